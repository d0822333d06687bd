"""Kind "persist": making a number of bytes durable, over and over."""

from typing import Literal

from pydantic import Field

from pmsim.kinds.base import Kind, Scalar
from pmsim.kinds.checks import check_access, check_modules, check_region, check_threads, medium
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.machine_options import with_options
from pmsim.kinds.measurement import (
    AMPLIFICATION_METRICS,
    BANDWIDTH_METRICS,
    BATCHED_LATENCY_METRICS,
    COMMON_METRICS,
    measure_both,
)
from pmsim.kinds.types import Dimms, KindParameters, LineSize, LineSizeOrZero, Memory, Threads
from pmsim.platforms import Platform


class PersistParameters(KindParameters):
    """Parameters of kind "persist"."""

    memory: Memory = Field(
        "pmem", description="where the region is; in memory mode both names mean main memory"
    )
    operation: Literal["ntstore", "store+clwb", "store+clflushopt", "store+clflush", "store"] = Field(
        "ntstore", description="how each line is written"
    )
    access_size: LineSize = Field(64, description="bytes of one persist [B]", le=2**30)
    fence_every: LineSizeOrZero = Field(
        0, description="bytes between two fences; 0: one at the end of a persist [B]"
    )
    threads: Threads = Field(1, description="threads, each on its own core while there are cores")
    dimms: Dimms = Field("all", description="PMem modules in use, pmem only; 1: not interleaved")
    region_size: LineSize = Field(10 * 2**30, description="bytes of the region, over all threads [B]")
    length: Length = LENGTH


class Persist(Kind[PersistParameters]):
    """Latency and bandwidth of persists by size, instruction and fence interval."""

    name = "persist"
    title = "Latency and bandwidth of a persist by size, instruction and fence interval"
    default_metric = "latency_ns"
    metrics = (*BATCHED_LATENCY_METRICS, *BANDWIDTH_METRICS, *AMPLIFICATION_METRICS, *COMMON_METRICS)
    parameter_model = PersistParameters

    def machine(self, platform: Platform, parameters: PersistParameters) -> Platform:
        """Apply ``dimms``."""
        return with_options(platform, dimms=parameters.dimms)

    def check(self, machine: Platform, parameters: PersistParameters) -> None:
        """Refuse more threads than hardware threads, and regions that do not fit."""
        check_threads(machine, parameters.threads)
        check_modules(machine, parameters.memory, parameters.dimms)
        check_region(machine, parameters.memory, parameters.region_size)
        check_access(parameters.access_size, parameters.region_size, parts=parameters.threads)

    def columns(self, machine: Platform, parameters: PersistParameters) -> dict[str, Scalar]:
        """Resolve "all"."""
        return super().columns(machine, parameters) | {"dimms": machine.value("pmem", "dimms")}

    def run(self, machine: Platform, parameters: PersistParameters, seed: int) -> dict[str, int | float]:
        """Simulate the persist twice: back to back for the bandwidth, and one at a time for the latency."""
        where = medium(machine, parameters.memory)
        given: dict[str, int | str] = {
            "memory": where,
            "operation": parameters.operation,
            "access_size": parameters.access_size,
            "fence_every": parameters.fence_every,
            "threads": parameters.threads,
            "region_size": parameters.region_size,
            "length": parameters.length,
        }
        back_to_back, timed = measure_both("persist", machine, given, seed)
        return (
            timed.latencies()
            | back_to_back.bandwidth()
            | back_to_back.amplification(where)
            | back_to_back.common(timed)
        )
