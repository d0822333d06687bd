"""One call of the native core, and the metrics that most kinds take from it."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pmsim import _native
from pmsim.errors import InternalError
from pmsim.kinds import intervals
from pmsim.kinds.base import COUNTER_PREFIX, Metric
from pmsim.kinds.intervals import LATENCY_ENDS, Latencies, with_ends
from pmsim.kinds.metric import INTERVAL_ENDS
from pmsim.kinds.types import LINE_BYTES
from pmsim.platforms import Platform
from pmsim.standing import phases, stretch
from pmsim.trace_file import info, memory_in_use

_PS_PER_NS = 1_000

Simulate = Callable[
    [str, list[dict[str, dict[str, int]]], dict[str, int | str], int],
    list[dict[str, Any]],
]


def _simulate(
    workload: str,
    platforms: list[dict[str, dict[str, int]]],
    parameters: dict[str, int | str],
    seed: int,
) -> list[dict[str, Any]]:
    return _native.simulate(workload, platforms, parameters, seed, phases())


#: How `measure` reaches the core; `pmsim.trace` stands in for it while it records.
simulator: ContextVar[Simulate] = ContextVar("simulator", default=_simulate)

LATENCY_METRICS = (
    Metric("latency_ns", "ns", "mean latency of an operation"),
    Metric("latency_p50_ns", "ns", "median latency of an operation"),
    Metric("latency_p95_ns", "ns", "95th percentile of the latency"),
    Metric("latency_p99_ns", "ns", "99th percentile of the latency"),
    Metric("latency_p999_ns", "ns", "99.9th percentile of the latency"),
    Metric("latency_max_ns", "ns", "largest latency"),
)
#: Of runs in batches: the mean and the tails have confidence intervals.
BATCHED_LATENCY_METRICS = (*LATENCY_METRICS, *LATENCY_ENDS)
BANDWIDTH_METRIC = Metric("bandwidth_gb_s", "GB/s", "user data per second (1e9 bytes)")
BANDWIDTH_METRICS = with_ends(BANDWIDTH_METRIC)
OPERATIONS_METRIC = Metric("operations_per_s", "1/s", "operations per second")
AMPLIFICATION_METRICS = (
    Metric("read_amplification", "", "bytes read from the medium per byte of user data"),
    Metric("write_amplification", "", "bytes written to the medium per byte of user data"),
)
#: Of all kinds.
COUNTED_METRICS = (
    Metric("simulated_ops", "", "operations simulated: the statistical weight of the point"),
    Metric("out_of_range_count", "", "times the model left the range it was validated for"),
)
#: Of kinds whose points are one rate, or one mean.
COMMON_METRICS = (
    *COUNTED_METRICS,
    Metric(
        "steady",
        "",
        "1: the second half of the run was as fast as the first, within 5 % or what chance does to it",
    ),
)


@dataclass(frozen=True)
class Latency:
    """Latency of the operations of a run [ps]; the percentiles come from a log-bucketed histogram."""

    mean_ps: float
    p50_ps: int
    p95_ps: int
    p99_ps: int
    p999_ps: int
    max_ps: int

    @property
    def is_measured(self) -> bool:
        """Whether any operation was timed: each takes time."""
        return self.max_ps > 0

    def metrics(self) -> dict[str, float]:
        """Return the latency metrics [ns]; not a number where no operation was timed."""
        if not self.is_measured:  # 0 ns would be the best latency of a sweep
            return dict.fromkeys((metric.name for metric in LATENCY_METRICS), math.nan)
        return {
            "latency_ns": self.mean_ps / _PS_PER_NS,
            "latency_p50_ns": self.p50_ps / _PS_PER_NS,
            "latency_p95_ns": self.p95_ps / _PS_PER_NS,
            "latency_p99_ns": self.p99_ps / _PS_PER_NS,
            "latency_p999_ns": self.p999_ps / _PS_PER_NS,
            "latency_max_ns": self.max_ps / _PS_PER_NS,
        }


@dataclass(frozen=True)
class Group:
    """What one group of threads did."""

    operations: int
    user_bytes: int
    elapsed_ps: int
    latency: Latency

    @property
    def bandwidth_gb_s(self) -> float:
        """User data per second [GB/s, 1e9 bytes]."""
        return _per_second(self.user_bytes, self.elapsed_ps) / 1e9

    @property
    def operations_per_s(self) -> float:
        """Operations per second."""
        return _per_second(self.operations, self.elapsed_ps)


@dataclass(frozen=True)
class Measurement:
    """The result of one simulation."""

    total: Group
    groups: tuple[Group, ...]
    counters: Mapping[str, int]
    pmem_block_bytes: int
    #: What the workload says about its data structures; empty for a replayed trace.
    facts: Mapping[str, float]
    #: When the measured part began, how long after that each of its batches ended [ps], and their latencies.
    started_ps: int
    batch_ends_ps: tuple[int, ...]
    batch_latencies: Latencies
    #: User data of each batch [B], by group.
    batch_bytes: tuple[tuple[int, ...], ...]

    @property
    def steady(self) -> float:
        """Whether operations were as frequent, and took as long, in both halves of the run (`is_steady`)."""
        times = intervals.times_of_batches(self.batch_ends_ps, self.total.operations)
        return _all(intervals.is_steady(times), self.batch_latencies.is_mean_steady())

    def common(self, beside: "Measurement | None" = None) -> dict[str, int | float]:
        """Return `COMMON_METRICS` and the counters; of two runs for one point, both have to be steady."""
        return self.counted() | {"steady": _all(self.steady, beside.steady if beside else math.nan)}

    def counted(self) -> dict[str, int | float]:
        """Return `COUNTED_METRICS` and the counters."""
        named: dict[str, int | float] = {
            "simulated_ops": self.total.operations,
            "out_of_range_count": self.counters["out_of_range_count"],
            f"{COUNTER_PREFIX}elapsed_ps": self.total.elapsed_ps,
            f"{COUNTER_PREFIX}user_bytes": self.total.user_bytes,
        }
        return named | {COUNTER_PREFIX + name: value for name, value in self.counters.items()}

    def rate(self, name: str) -> dict[str, int | float]:
        """Return the operations per second under this name, with their confidence interval over batches."""
        return self._with_interval(name, self.total.operations_per_s)

    def bandwidth(self) -> dict[str, int | float]:
        """Return `BANDWIDTH_METRICS`."""
        return self._with_interval("bandwidth_gb_s", self.total.bandwidth_gb_s)

    def _with_interval(self, name: str, value: float) -> dict[str, int | float]:
        """Return what is in proportion to the throughput, and its interval."""
        ends = intervals.of_throughput(self.batch_ends_ps, self.total.operations)
        rate = self.total.operations_per_s
        # The one nan, as elsewhere: metrics without a value compare equal.
        low, high = (math.nan if math.isnan(end) else value * (end / rate) for end in ends)
        return dict(zip([name, *(name + end for end in INTERVAL_ENDS)], [value, low, high], strict=True))

    def bandwidth_of_group(self, group: int) -> intervals.Estimate:
        """Return the bandwidth of a group, from 0, and the ends of its confidence interval [GB/s]."""
        times_ns = np.diff(self.batch_ends_ps, prepend=0) / _PS_PER_NS
        return self.groups[group].bandwidth_gb_s, *intervals.of_ratio(self.batch_bytes[group], times_ns)

    def latencies(self) -> dict[str, float]:
        """Return `BATCHED_LATENCY_METRICS`."""
        return self.total.latency.metrics() | self.batch_latencies.metrics()

    def amplification(self, medium: str) -> dict[str, float]:
        """Return bytes moved at the medium of "dram" or "pmem" per byte of user data."""
        count, user_bytes = self.counters, self.total.user_bytes
        if medium == "pmem":
            read = count["pmem_media_read_blocks"] * self.pmem_block_bytes
            written = count["pmem_media_write_blocks"] * self.pmem_block_bytes
        else:
            read = count["dram_read_lines"] * LINE_BYTES
            written = count["dram_write_lines"] * LINE_BYTES
        return {
            "read_amplification": read / user_bytes if user_bytes else 0.0,
            "write_amplification": written / user_bytes if user_bytes else 0.0,
        }


def measure(workload: str, machine: Platform, parameters: Mapping[str, int | str], seed: int) -> Measurement:
    """Simulate a native workload on one machine."""
    return measure_lanes(workload, [machine], parameters, seed)[0]


def measure_both(
    workload: str, machine: Platform, parameters: Mapping[str, int | str], seed: int
) -> tuple[Measurement, Measurement]:
    """Simulate operations back to back, for the throughput, and again one at a time, for the latency."""
    with stretch(0, 1 / 2):
        back_to_back = measure(workload, machine, {**parameters, "timed": 0}, seed)
    with stretch(1 / 2, 1):
        timed = measure(workload, machine, {**parameters, "timed": 1}, seed)
    return back_to_back, timed


def measure_lanes(
    workload: str, machines: Sequence[Platform], parameters: Mapping[str, int | str], seed: int
) -> list[Measurement]:
    """Simulate a native workload once and time it on several machines that differ in times only."""
    results = simulator.get()(workload, [machine.native() for machine in machines], dict(parameters), seed)
    if len(results) != len(machines):
        raise InternalError(
            f"pmsim bug: workload '{workload}' gave {len(results)} results for {len(machines)} platforms"
        )
    return [measurement_of(result, machine) for result, machine in zip(results, machines, strict=True)]


def replayed(trace: Path, machines: Sequence[Platform]) -> list[Measurement]:
    """Time a trace on several machines, which differ in times only."""
    natives = [machine.native() for machine in machines]
    results = _native.trace_replay(trace, natives, memory_in_use(info(trace)), phases())
    return [measurement_of(result, machine) for result, machine in zip(results, machines, strict=True)]


def measurement_of(result: Mapping[str, Any], machine: Platform) -> Measurement:
    """Return what the core's dictionary for one lane says."""
    counts, edges, sums = result["batch_latencies"]
    return Measurement(
        total=_group(result),
        groups=tuple(_group(group) for group in result["groups"]),
        counters={str(name): int(value) for name, value in result["counters"].items()},
        pmem_block_bytes=machine.value("pmem", "block_size"),
        facts={str(name): float(value) for name, value in result.get("facts", {}).items()},
        started_ps=_integer(result["started_ps"]),
        batch_ends_ps=tuple(_integer(end) for end in result["batch_ends_ps"]),
        batch_latencies=Latencies(np.asarray(counts), np.asarray(edges), np.asarray(sums)),
        batch_bytes=tuple(tuple(map(_integer, group)) for group in result["batch_bytes"]),
    )


def _group(result: Mapping[str, object]) -> Group:
    latency = result["latency"]
    if not isinstance(latency, Mapping):
        raise InternalError("pmsim bug: the core returned a result without latencies")
    return Group(
        operations=_integer(result["operations"]),
        user_bytes=_integer(result["user_bytes"]),
        elapsed_ps=_integer(result["elapsed_ps"]),
        latency=Latency(
            mean_ps=float(latency["mean_ps"]),
            p50_ps=_integer(latency["p50_ps"]),
            p95_ps=_integer(latency["p95_ps"]),
            p99_ps=_integer(latency["p99_ps"]),
            p999_ps=_integer(latency["p999_ps"]),
            max_ps=_integer(latency["max_ps"]),
        ),
    )


def _all(*flags: float) -> float:
    """Return 0 where one of several flags is, else 1; not a number where none of them is one."""
    return min((flag for flag in flags if not math.isnan(flag)), default=math.nan)


def _integer(value: object) -> int:
    if not isinstance(value, int):
        raise InternalError(f"pmsim bug: the core returned {value!r} where an integer was promised")
    return value


def _per_second(amount: int, elapsed_ps: int) -> float:
    return amount * 1e12 / elapsed_ps if elapsed_ps else 0.0
