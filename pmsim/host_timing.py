"""Timing benchmarks on this machine, beside the simulated kinds that they correspond to."""

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pmsim
from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.platforms import Platform

#: Below this share of processor time the median repetition was disturbed by other processes.
DISTURBED = 0.95
#: Far between, so that trying a file touches little of it [B].
_SPARSE = 2**21
#: What a cold chase goes over, however short the effort: L2 holds next to nothing of it [B].
COLD_REGION = 128 * 2**20


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes
    ----------
    repetitions : int
        Of each benchmark; their median counts.
    seconds : float [s]
        Length of a repetition.
    region : int [B]
        What bandwidth is measured over.
    """

    repetitions: int
    seconds: float
    region: int


FULL = Effort(repetitions=25, seconds=0.004, region=128 * 2**20)
QUICK = Effort(repetitions=5, seconds=0.001, region=16 * 2**20)


@dataclass(frozen=True)
class Timing:
    """What a benchmark measured.

    Attributes
    ----------
    ns, rate : float [ns, 1/s]
        Medians over the repetitions: time of an operation of one thread, operations of all threads together.
        Both are of processor time, so that other processes do not count.
    best_ns : float [ns]
        Shortest time of an operation in any repetition.
    low, high : float [1/s]
        Quartiles of the rate.
    ns_low, ns_high : float [ns]
        Quartiles of the time of an operation. A benchmark that waits between operations and times each on its
        own has a rate of which most is waiting.
    bytes : int [B]
        Moved by an operation.
    cpu_share : float
        Median share of the processor that the measuring thread got; 1 on an idle machine.
    repetitions : int
        How many.
    is_dax : bool
        The memory was a DAX mapping.
    """

    ns: float
    best_ns: float
    rate: float
    low: float
    high: float
    bytes: int
    cpu_share: float
    repetitions: int
    is_dax: bool
    ns_low: float
    ns_high: float


def check_file(on: Path | None) -> None:
    """Refuse a file that cannot stand for memory, before anything is measured.

    Raises
    ------
    ConfigError : a directory, a file in a directory that does not exist, or one that holds data.
    """
    if on is None:
        return
    # Not Path.is_dir, which fails for names that no file can have.
    if os.path.isdir(on):
        raise ConfigError(f"--on {on}: is a directory; name a file in it, which is created")
    if not os.path.isdir(on.absolute().parent):
        raise ConfigError(f"--on {on}: its directory does not exist; name a file in an existing one")
    if os.path.isfile(on) and os.path.getsize(on) > 0:
        raise ConfigError(f"--on {on}: holds data that measuring would overwrite; name a new or empty file")


@contextmanager
def emptied_afterwards(on: Path | None) -> Iterator[None]:
    """Leave a file that stood for memory empty: what is in it is of no use, and the next run may take it."""
    try:
        yield
    finally:
        if on is not None and os.path.isfile(on):
            os.truncate(on, 0)


def try_file(on: Path, effort: Effort) -> None:
    """Map the file once, as large as measuring will.

    Raises
    ------
    ConfigError : the operating system refuses it, for example because it is read-only or no regular file.
    """
    once = Effort(repetitions=1, seconds=0.0, region=max(effort.region, COLD_REGION))
    try:
        with emptied_afterwards(on):
            time_benchmark("chase", chase(once.region, _SPARSE, cold=False, memory="pmem"), once, on)
    except ConfigError as error:
        raise error.prefixed("--on") from None


def time_benchmark(
    benchmark: str, parameters: Mapping[str, Any], effort: Effort, on: Path | None = None
) -> Timing:
    """Time a native benchmark.

    Parameters
    ----------
    benchmark : str
        One of ``_native.host_benchmarks()``.
    parameters : mapping
        Of the benchmark, in base units.
    effort : Effort
        How long.
    on : Path, optional
        File behind the pmem window; anonymous memory, which is DRAM, by default.

    Raises
    ------
    ConfigError : what cannot be measured here.
    """
    measured = _native.host_measure(
        benchmark,
        dict(parameters),
        path="" if on is None else str(on),
        repetitions=effort.repetitions,
        seconds=effort.seconds,
    )
    return timing_of(
        measured["ns_per_operation"],
        measured["operations_per_s"],
        measured["cpu_share"],
        size=measured["bytes_per_operation"],
        is_dax=measured["is_dax"],
    )


def timing_of(
    ns: Sequence[float], per_s: Sequence[float], cpu_shares: Sequence[float], *, size: int, is_dax: bool
) -> Timing:
    """Sum up repetitions, of which each has a time [ns], a rate [1/s] and a share of the processor."""
    times, rates = sorted(ns), sorted(per_s)
    quarter = len(rates) // 4
    return Timing(
        ns=statistics.median(times),
        best_ns=times[0],
        rate=statistics.median(rates),
        low=rates[quarter],
        high=rates[-1 - quarter],
        bytes=size,
        cpu_share=statistics.median(cpu_shares),
        repetitions=len(rates),
        is_dax=is_dax,
        ns_low=times[quarter],
        ns_high=times[-1 - quarter],
    )


@dataclass(frozen=True)
class Subject:
    """Something that both this machine and the simulator can run.

    Attributes
    ----------
    name : str
        For people; unique among the subjects of a block.
    block : str
        What ``--blocks`` chooses by.
    benchmark, host : str, mapping
        The native benchmark and its parameters.
    kind, simulated : str, mapping
        The kind of experiment and its parameters.
    metric : str
        "latency_ns", "bandwidth_gb_s", "ops_per_s", ...: of the kind; how the timing is expressed.
    from_profile : callable, optional
        Gives parameters of the benchmark that follow from the profile which stands for this machine.
    cold : bool
        The benchmark flushes its memory first and hardly meets a line twice. What is simulated meets it with
        warm caches, so it is simulated with a last-level cache that is no larger than L2.
    """

    name: str
    block: str
    benchmark: str
    host: Mapping[str, Any]
    kind: str
    simulated: Mapping[str, Any] = field(default_factory=dict)
    metric: str = "ops_per_s"
    from_profile: Callable[[Platform], Mapping[str, int]] | None = None
    cold: bool = False

    def time(self, likeness: Platform, effort: Effort, on: Path | None) -> Timing:
        """Run it on this machine, for which the profile stands."""
        further = self.from_profile(likeness) if self.from_profile is not None else {}
        return time_benchmark(self.benchmark, {**self.host, **further}, effort, on)

    @property
    def unit(self) -> str:
        """Unit of the metric."""
        return {"latency_ns": "ns", "bandwidth_gb_s": "GB/s"}.get(self.metric, "op/s")

    def value(self, timing: Timing) -> float:
        """Express a timing in the metric."""
        if self.metric == "latency_ns":
            return timing.ns
        if self.metric == "bandwidth_gb_s":
            return timing.rate * timing.bytes / 1e9
        return timing.rate

    def spread(self, timing: Timing) -> float:
        """Distance of the quartiles over the median, of what the metric expresses."""
        if self.metric == "latency_ns":
            return (timing.ns_high - timing.ns_low) / timing.ns
        return (timing.high - timing.low) / timing.rate

    def predict(self, platform: Platform, seed: int = 0) -> float:
        """Simulate it on a platform."""
        if self.cold:  # not over a larger region instead, of which translation would take longer
            small = {"llc": {"size": platform.value("l2", "size")}}
            platform = platform.with_values(small, source=f"{self.name}: cold caches")
        return float(pmsim.simulate_point(self.kind, platform, self.simulated, seed)[self.metric])


def chase(region: int, spacing: int, *, cold: bool, memory: str = "dram") -> dict[str, Any]:
    """Return the parameters of a chase of dependent loads."""
    return {"memory": memory, "region_size": region, "spacing": spacing, "cold": int(cold)}
