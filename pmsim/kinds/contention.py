"""Kind "contention": threads that meet, at a counter or at data under a latch."""

from typing import Literal

from pydantic import Field

from pmsim.errors import ConfigError
from pmsim.kinds.base import Kind, Metric
from pmsim.kinds.buildable import check_workload
from pmsim.kinds.checks import check_threads
from pmsim.kinds.intervals import with_ends
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COMMON_METRICS, measure_both
from pmsim.kinds.types import Count, CountOrZero, KindParameters, Threads
from pmsim.platforms import Platform


class ContentionParameters(KindParameters):
    """Parameters of kind "contention"."""

    operation: Literal["counter", "latch"] = Field(
        "counter", description="counter: a locked addition; latch: data are read or changed under a latch"
    )
    threads: Threads = Field(1, description="threads, each on its own core while there are cores")
    objects: Count = Field(
        1,
        le=2**20,
        description="counters or latches, of which an operation takes any; each has lines of its own",
    )
    read_percent: CountOrZero = Field(
        0, le=100, description="latch: operations that only read, the others write [%]"
    )
    readers: Literal["shared", "optimistic"] = Field(
        "shared",
        description="latch: how a reader holds it; optimistic: not at all, it looks for writers afterwards",
    )
    lines: Count = Field(1, le=256, description="latch: lines of data under each")
    work: CountOrZero = Field(
        0,
        le=1_000_000,
        description="multiplications between two operations, each of which waits for the one before: 4 cycles",
    )
    length: Length = LENGTH


class Contention(Kind[ContentionParameters]):
    """Counters and latches that threads have in common."""

    name = "contention"
    title = "Threads that meet: a counter, or data under a latch"
    default_metric = "ops_per_s"
    metrics = (
        *with_ends(Metric("ops_per_s", "1/s", "operations per second, of all threads")),
        *BATCHED_LATENCY_METRICS,
        Metric("core_transfers_per_op", "", "lines that other cores gave up per operation"),
        Metric("latch_waits_per_op", "", "latches waited for per operation"),
        Metric("latch_restarts_per_op", "", "optimistic reads repeated per operation"),
        *COMMON_METRICS,
    )
    parameter_model = ContentionParameters

    def check(self, machine: Platform, parameters: ContentionParameters) -> None:
        """Refuse more threads than hardware threads, and readers of a counter."""
        check_threads(machine, parameters.threads)
        if parameters.operation == "counter" and parameters.read_percent:
            raise ConfigError(
                f"read_percent: {parameters.read_percent}; a counter is only added to; choose 0, or latch"
            )
        check_workload("contention", machine, parameters.model_dump() | {"timed": 0})

    def run(self, machine: Platform, parameters: ContentionParameters, seed: int) -> dict[str, int | float]:
        """Simulate the operations twice: back to back for the throughput, one at a time for the latency."""
        given: dict[str, int | str] = parameters.model_dump()
        back_to_back, timed = measure_both("contention", machine, given, seed)
        count, operations = back_to_back.counters, back_to_back.total.operations
        return (
            back_to_back.rate("ops_per_s")
            | timed.latencies()
            | {
                "core_transfers_per_op": count["core_transfers"] / operations,
                "latch_waits_per_op": count["latch_waits"] / operations,
                "latch_restarts_per_op": count["latch_restarts"] / operations,
            }
            | back_to_back.common(timed)
        )
