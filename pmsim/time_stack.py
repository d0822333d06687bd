"""Where the time goes: what the threads of a run stood for, from the ledgers of its machine."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from pmsim.kinds.counters import COUNTER_PREFIX

Unit = Literal["share", "time"]

#: What a thread's time is charged to, in the order in which bars are stacked, and the counter of each.
CAUSES = {
    "instructions": "time_core_ps",
    "mispredicted branches": "time_branch_ps",
    "L2": "time_l2_ps",
    "last-level cache": "time_llc_ps",
    "other cores' caches": "time_transfer_ps",
    "address translation": "time_walk_ps",
    "DRAM reads": "time_dram_ps",
    "PMem reads": "time_pmem_ps",
    "stores": "time_store_ps",
    "persists": "time_persist_ps",
    "latches": "time_latch_ps",
    "block device": "time_device_ps",
    "idle": "time_idle_ps",
}
IDLE = "idle"
STACK_TITLES: dict[Unit, str] = {"share": "share of the threads' time [%]", "time": "time per operation [ns]"}


def stack(metrics: Mapping[str, float], unit: Unit, rate: str = "") -> dict[str, float]:
    """Return what one point's time went to.

    Parameters
    ----------
    metrics : mapping
        Of a point, counters among them.
    unit : "share" or "time"
        Of all threads' time in per cent, or nanoseconds per operation, time without work left out.
    rate : str
        The metric that counts operations per second, for "time".

    Returns
    -------
    dict : a value for each of `CAUSES`; empty where the point has no time, or no operation.
    """
    spent = {cause: metrics.get(COUNTER_PREFIX + name, 0) for cause, name in CAUSES.items()}
    if unit == "share":
        total = sum(spent.values())
        return {cause: 100 * time / total for cause, time in spent.items()} if total else {}
    operations = metrics.get(rate, 0) * metrics.get(f"{COUNTER_PREFIX}elapsed_ps", 0) / 1e12
    if not operations > 0:
        return {}
    return {cause: time / 1e3 / operations for cause, time in spent.items() if cause != IDLE}


def stacks(
    columns: Sequence[Mapping[str, Any]], metrics: Sequence[Mapping[str, float] | None], unit: Unit, rate: str
) -> pd.DataFrame:
    """Return the stacks of points as a frame: the columns of each, then one for each cause that any has."""
    found = [
        (own, times)
        for own, point in zip(columns, metrics, strict=True)
        if point is not None and (times := stack(point, unit, rate))
    ]
    seen = [cause for cause in CAUSES if any(times.get(cause) for _, times in found)]
    return pd.DataFrame([{**own, **{cause: times[cause] for cause in seen}} for own, times in found])
