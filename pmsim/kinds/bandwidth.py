"""Kind "bandwidth": threads that read or write chunks of a region as fast as they can."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from pmsim.errors import ConfigError
from pmsim.kinds.base import COUNTER_PREFIX, Kind, Scalar
from pmsim.kinds.checks import check_access, check_modules, check_region, check_threads, medium
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.machine_options import with_options
from pmsim.kinds.measurement import AMPLIFICATION_METRICS, BANDWIDTH_METRICS, COMMON_METRICS, measure
from pmsim.kinds.types import (
    LINE_BYTES,
    CountOrZero,
    Dimms,
    FlagOrPlatform,
    KindParameters,
    LineSize,
    LineSizeOrZero,
    Memory,
    PageSize,
    Threads,
)
from pmsim.platforms import Platform
from pmsim.units import Quantity, format_value

#: Bytes of a thread's list of addresses: no run comes to the end of it, and no cache holds it.
LIST_SIZE = 2**26
#: Where memory moves less than this part of the bytes that are accessed, caches have them.
_FROM_MEMORY = 0.5


class BandwidthParameters(KindParameters):
    """Parameters of kind "bandwidth"."""

    memory: Memory = Field(
        "pmem", description="where the region is; in memory mode both names mean main memory"
    )
    operation: Literal["load", "store", "store+clwb", "load+store", "load+store+clwb", "ntstore"] = Field(
        "load", description="what is done to each 64-byte line of a chunk"
    )
    pattern: Literal["random", "sequential", "strided"] = Field(
        "random", description="where the next chunk begins; random chunks are aligned, see alignment"
    )
    access_size: LineSize = Field(256, description="bytes of a chunk [B]")
    stride: LineSizeOrZero = Field(
        0, description="bytes from the start of a chunk to the next one, strided only [B]"
    )
    alignment: LineSizeOrZero = Field(
        0, description="random chunks begin at multiples of it; 0: of access_size [B]"
    )
    threads: Threads = Field(1, description="threads, each on its own core while there are cores")
    dimms: Dimms = Field("all", description="PMem modules in use, pmem only; 1: not interleaved")
    prefetcher: FlagOrPlatform = Field("platform", description="hardware prefetcher on or off")
    page_size: PageSize = Field("platform", description="page size of the mapping [B]")
    shared_region: bool = Field(
        True,
        description="threads draw from one region, or each from its own part of it; sequential and strided "
        "threads always have a part of their own",
    )
    region_size: LineSize = Field(10 * 2**30, description="bytes of the region, over all threads [B]")
    fence_every: LineSizeOrZero = Field(
        0, description="bytes that a thread writes between two fences; 0: no fences [B]"
    )

    flush_every: LineSize = Field(
        64,
        description="bytes in a row that are stored before all of them are flushed; 64: each line at once; "
        "store+clwb and load+store+clwb only [B]",
        le=2**26,
    )
    address_list: bool = Field(
        False,
        description="each thread reads where its next chunk begins from a list in DRAM, 8 bytes for each chunk",
    )
    instructions: CountOrZero = Field(
        0,
        description="instructions between a chunk and the next, beside those that find where it begins",
        le=2**20,
    )
    length: Length = LENGTH

    @model_validator(mode="after")
    def _combinations(self) -> "BandwidthParameters":
        if self.pattern == "strided":
            if self.stride == 0:
                raise ConfigError("stride: missing for pattern = 'strided'; give the distance between chunks")
            if self.stride < self.access_size:
                raise ConfigError(
                    f"stride: {self.stride} B are less than access_size; choose at least {self.access_size}"
                )
        elif self.stride:
            raise ConfigError(
                f"stride: has no meaning for pattern = '{self.pattern}'; remove it or use 'strided'"
            )
        if self.alignment and self.pattern != "random":
            raise ConfigError(
                f"alignment: has no meaning for pattern = '{self.pattern}'; remove it or use 'random'"
            )
        if self.fence_every and self.operation == "load":
            raise ConfigError("fence_every: has no meaning for operation = 'load'; remove it or choose a store")
        if self.flush_every != 64 and not self.operation.endswith("clwb"):
            raise ConfigError(
                f"flush_every: has no meaning for operation = '{self.operation}'; remove it or use 'store+clwb'"
            )
        return self

    @property
    def parts(self) -> int:
        """Parts of the region: one for each thread, or 1 where all draw from all of it."""
        return 1 if self.shared_region and self.pattern == "random" else self.threads


class Bandwidth(Kind[BandwidthParameters]):
    """Bandwidth and amplification of a memory under a regular load."""

    name = "bandwidth"
    title = "Bandwidth of reads and writes by threads, chunk size and pattern"
    default_metric = "bandwidth_gb_s"
    metrics = (
        *BANDWIDTH_METRICS,
        *AMPLIFICATION_METRICS,
        *COMMON_METRICS,
    )
    parameter_model = BandwidthParameters

    def machine(self, platform: Platform, parameters: BandwidthParameters) -> Platform:
        """Apply ``dimms``, ``prefetcher`` and ``page_size``."""
        return with_options(
            platform,
            dimms=parameters.dimms,
            prefetcher=parameters.prefetcher,
            page_size=parameters.page_size,
        )

    def check(self, machine: Platform, parameters: BandwidthParameters) -> None:
        """Refuse more threads than hardware threads, and regions that do not fit."""
        check_threads(machine, parameters.threads)
        check_modules(machine, parameters.memory, parameters.dimms)
        check_region(machine, parameters.memory, parameters.region_size)
        if parameters.address_list:
            beside = medium(machine, parameters.memory) == medium(machine, "dram")
            others = parameters.region_size if beside else 0
            try:
                check_region(machine, "dram", others + parameters.threads * LIST_SIZE, "address_list")
            except ConfigError as error:
                raise ConfigError(
                    f"{error} (64 MiB for each thread, beside a region in the same memory)"
                ) from None
        for key in ("access_size", "stride", "alignment"):
            check_access(getattr(parameters, key), parameters.region_size, key, parts=parameters.parts)

    def kept_in_caches(
        self, machine: Platform, parameters: BandwidthParameters, metrics: Mapping[str, int | float]
    ) -> str:
        """Name the few chunks that strides or alignment leave; else a small region means the caches."""
        apart = parameters.stride or parameters.alignment
        if apart <= parameters.access_size:
            return ""
        block_bytes = machine.value("pmem", "block_size")
        unit_bytes = {"dram_read_lines": LINE_BYTES, "dram_write_lines": LINE_BYTES}
        unit_bytes |= {"pmem_media_read_blocks": block_bytes, "pmem_media_write_blocks": block_bytes}
        moved = sum(metrics[COUNTER_PREFIX + name] * size for name, size in unit_bytes.items())
        if moved >= _FROM_MEMORY * metrics[f"{COUNTER_PREFIX}user_bytes"]:
            return ""
        chunks = parameters.region_size // apart // parameters.parts
        whose = "each thread" if parameters.parts == parameters.threads else "all threads"
        return f"{chunks} chunks of {format_value(parameters.access_size, Quantity.SIZE)} for {whose}"

    def columns(self, machine: Platform, parameters: BandwidthParameters) -> dict[str, Scalar]:
        """Resolve "all" and "platform"."""
        on_dram = medium(machine, parameters.memory) == "dram"
        return super().columns(machine, parameters) | {
            "dimms": machine.value("pmem", "dimms"),
            "prefetcher": bool(machine.value("prefetcher", "enabled")),
            "page_size": machine.value("tlb", "dram_page_size" if on_dram else "page_size"),
        }

    def run(self, machine: Platform, parameters: BandwidthParameters, seed: int) -> dict[str, int | float]:
        """Simulate one point."""
        where = medium(machine, parameters.memory)
        measured = measure(
            "bandwidth",
            machine,
            {
                "memory": where,
                "operation": parameters.operation,
                "pattern": parameters.pattern,
                "access_size": parameters.access_size,
                "stride": parameters.stride,
                "alignment": parameters.alignment,
                "threads": parameters.threads,
                "shared_region": int(parameters.shared_region),
                "region_size": parameters.region_size,
                "fence_every": parameters.fence_every,
                "flush_every": parameters.flush_every,
                "address_list": LIST_SIZE if parameters.address_list else 0,
                "instructions": parameters.instructions,
                "length": parameters.length,
            },
            seed,
        )
        return measured.bandwidth() | measured.amplification(where) | measured.common()
