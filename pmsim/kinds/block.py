"""Kind "block": reads and writes of a block device."""

from typing import Literal

from pydantic import Field

from pmsim.errors import ConfigError
from pmsim.kinds.base import Kind
from pmsim.kinds.checks import check_access, check_threads
from pmsim.kinds.intervals import with_ends
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.measurement import (
    BANDWIDTH_METRICS,
    BATCHED_LATENCY_METRICS,
    COMMON_METRICS,
    OPERATIONS_METRIC,
    measure,
)
from pmsim.kinds.types import KindParameters, LineSize, SectorSize, Threads
from pmsim.platforms import Platform
from pmsim.units import Quantity, format_value


class BlockParameters(KindParameters):
    """Parameters of kind "block"."""

    operation: Literal["read", "write", "write+flush"] = Field("read", description="what each request does")
    pattern: Literal["random", "sequential"] = Field("random", description="where the next request goes")
    access_size: SectorSize = Field(
        4096, description="bytes of a request, rounded up to the device's block [B]"
    )
    threads: Threads = Field(1, description="threads, each with one request outstanding")
    region_size: LineSize = Field(10 * 2**30, description="bytes of the device in use [B]")
    length: Length = LENGTH


class Block(Kind[BlockParameters]):
    """Latency and throughput of a block device."""

    name = "block"
    title = "Latency and throughput of a block device"
    default_metric = "operations_per_s"
    metrics = (*with_ends(OPERATIONS_METRIC), *BANDWIDTH_METRICS, *BATCHED_LATENCY_METRICS, *COMMON_METRICS)
    parameter_model = BlockParameters

    def check(self, machine: Platform, parameters: BlockParameters) -> None:
        """Refuse machines without a block device, and regions that do not fit."""
        available = machine.value("block", "capacity")
        if not available:
            raise ConfigError(
                f"platform: '{machine.name}' has no block device; add one with "
                f'platform = {{base = "{machine.name}", block_device = "nvme-p4510"}}'
            )
        check_threads(machine, parameters.threads)
        if parameters.region_size > available:
            raise ConfigError(
                f"region_size: {format_value(parameters.region_size, Quantity.SIZE)} do not fit the "
                f"{format_value(available, Quantity.SIZE)} of the block device of platform '{machine.name}'; "
                "choose at most that"
            )
        check_access(parameters.access_size, parameters.region_size, parts=parameters.threads)

    def run(self, machine: Platform, parameters: BlockParameters, seed: int) -> dict[str, int | float]:
        """Simulate one point."""
        measured = measure(
            "block",
            machine,
            {
                "operation": parameters.operation,
                "pattern": parameters.pattern,
                "access_size": parameters.access_size,
                "threads": parameters.threads,
                "region_size": parameters.region_size,
                "length": parameters.length,
            },
            seed,
        )
        return (
            measured.rate("operations_per_s") | measured.bandwidth() | measured.latencies() | measured.common()
        )
