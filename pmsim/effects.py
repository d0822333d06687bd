"""What each change of a scenario's ``vary`` does to a metric, against the scenario as it stands."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pmsim.kinds.intervals import Estimate, of_quotient
from pmsim.kinds.metric import INTERVAL_ENDS
from pmsim.variations import CHANGED

#: Columns of `effects` beside those of the sweep.
BEFORE, AFTER, EFFECT = "as it is", "then", "effect_percent"
#: And the ends of the effect's 95 % confidence interval, where the metric has one.
LOW, HIGH = (EFFECT + end for end in INTERVAL_ENDS)


def effects(
    frame: pd.DataFrame, points: Sequence[int], metric: str, sweep: Sequence[str], changes: int
) -> pd.DataFrame:
    """Compare each changed point with the one that it was made from.

    Parameters
    ----------
    frame : DataFrame
        A point has one row or more; a point whose rows differ in the metric has no value of it.
    points : sequence of int
        Number of the point of each row. After each point as it is come its `changes` changed ones.
    metric : str
        What to compare.
    sweep : sequence of str
        Columns of the sweep, kept.
    changes : int
        How many changes there are.

    Returns
    -------
    DataFrame : the columns of the sweep, ``changed``, the metric ``as it is`` and ``then``, and
    ``effect_percent``, where the metric has a confidence interval with that of the effect; within a point of
    the sweep the largest effect first, unknown ones (nan) last.
    """
    numbers = np.asarray(points)
    rows = {int(number): frame[numbers == number] for number in np.unique(numbers)}
    values = {number: _value(found, metric) for number, found in rows.items()}
    ends = [metric + end for end in INTERVAL_ENDS]
    intervals = [LOW, HIGH] if set(ends) <= set(frame) else []
    compared: list[dict[str, Any]] = []
    for number, found in rows.items():
        first = number - number % (changes + 1)
        if number == first:
            continue
        before = values.get(first, math.nan)
        named = {column: found[column].iloc[0] for column in [*sweep, CHANGED]}
        effect = 100 * (values[number] / before - 1) if before else math.nan
        compared.append({**named, BEFORE: before, AFTER: values[number], EFFECT: effect, "_first": first})
        if intervals:
            then, as_it_is = (
                _estimate(rows.get(point), values.get(point, math.nan), ends) for point in (number, first)
            )
            _, *factors = of_quotient(then, as_it_is)
            compared[-1] |= {end: 100 * (factor - 1) for end, factor in zip(intervals, factors, strict=True)}
    result = pd.DataFrame(compared, columns=[*sweep, CHANGED, BEFORE, AFTER, EFFECT, *intervals, "_first"])
    result = result.sort_values(EFFECT, key=lambda effect: -effect.abs(), kind="stable")
    return result.sort_values("_first", kind="stable", ignore_index=True).drop(columns="_first")


def _value(rows: pd.DataFrame, metric: str) -> float:
    values = set(rows[metric])
    return float(values.pop()) if len(values) == 1 else math.nan


def _estimate(rows: pd.DataFrame | None, value: float, ends: Sequence[str]) -> Estimate:
    low, high = (math.nan, math.nan) if rows is None else (_value(rows, end) for end in ends)
    return value, low, high
