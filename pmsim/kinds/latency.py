"""Kind "latency": one thread, one operation at a time."""

from typing import Literal

from pydantic import Field

from pmsim.kinds.base import Kind, Scalar
from pmsim.kinds.checks import check_region, medium
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.machine_options import with_options
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COMMON_METRICS, measure
from pmsim.kinds.types import KindParameters, LineSize, Memory
from pmsim.platforms import Platform


class LatencyParameters(KindParameters):
    """Parameters of kind "latency"."""

    memory: Memory = Field(
        "pmem", description="where the region is; in memory mode both names mean main memory"
    )
    operation: Literal["load", "ntstore", "store+clwb", "store+clflushopt", "store+clflush"] = Field(
        "load",
        description="a load whose address depends on the one before, or one line made durable with a fence",
    )
    pattern: Literal["same-line", "sequential", "random"] = Field("random", description="which line comes next")
    region_size: LineSize = Field(8 * 2**30, description="bytes of the region [B]")
    mode: Literal["app-direct", "memory-mode", "platform"] = Field(
        "platform",
        description="PMem as its own memory, as main memory with DRAM as its cache, or as the platform",
    )
    length: Length = LENGTH


class Latency(Kind[LatencyParameters]):
    """Latency of dependent loads and of persistent stores on an otherwise idle machine."""

    name = "latency"
    title = "Idle latency of dependent loads and persistent stores"
    default_metric = "latency_ns"
    metrics = (*BATCHED_LATENCY_METRICS, *COMMON_METRICS)
    parameter_model = LatencyParameters

    def machine(self, platform: Platform, parameters: LatencyParameters) -> Platform:
        """Apply ``mode``."""
        return with_options(platform, mode=parameters.mode)

    def check(self, machine: Platform, parameters: LatencyParameters) -> None:
        """Refuse regions that do not fit."""
        check_region(machine, parameters.memory, parameters.region_size)

    def columns(self, machine: Platform, parameters: LatencyParameters) -> dict[str, Scalar]:
        """Resolve "platform"."""
        mode = "memory-mode" if machine.value("controller", "memory_mode") else "app-direct"
        return super().columns(machine, parameters) | {"mode": mode}

    def run(self, machine: Platform, parameters: LatencyParameters, seed: int) -> dict[str, int | float]:
        """Simulate one point."""
        measured = measure(
            "latency",
            machine,
            {
                "memory": medium(machine, parameters.memory),
                "operation": parameters.operation,
                "pattern": parameters.pattern,
                "region_size": parameters.region_size,
                "length": parameters.length,
            },
            seed,
        )
        return measured.latencies() | measured.common()
