"""Kind "operations": each thread repeats a chain of reads and persisting writes."""

import re

from pydantic import Field, field_validator

from pmsim.errors import ConfigError
from pmsim.kinds.base import Kind, Metric
from pmsim.kinds.checks import check_access, check_memory, check_region, check_threads
from pmsim.kinds.intervals import with_ends
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COMMON_METRICS, measure_both
from pmsim.kinds.types import LINE_BYTES, KindParameters, LineSize, Threads
from pmsim.messages import shown
from pmsim.platforms import Platform

_STEP = re.compile(
    r"r(?P<read_memory>[dp]?)_(?P<read_size>\d{1,9})"
    r"|w(?P<write_memory>[dp]?)_(?P<write_size>\d{1,9})_(?:cache|cacheinv|nocache|none)(?:_(?P<offset>-?\d{1,12}))?"
)
_LARGEST_STEP = 2**20
_NOTATION = "rp_SIZE, rd_SIZE, wp_SIZE_INSTRUCTION[_OFFSET] or wd_..., with cache, cacheinv, nocache or none"


def _steps(chain: str) -> list[tuple[str, int]]:
    """Return the memory and the bytes of every step of a chain."""
    steps = []
    for number, text in enumerate(_split(chain), start=1):
        match = _STEP.fullmatch(text)
        if match is None:
            raise ConfigError(f"step {number} {shown(text)} is not an operation; write {_NOTATION}")
        size = int(match["read_size"] or match["write_size"])
        if number == 1 and match["write_size"]:
            raise ConfigError(
                f"step 1 {shown(text)} writes at the last address, and nothing has been read yet; begin with a "
                "read, as PerMA-Bench demands"
            )
        if not 0 < size <= _LARGEST_STEP or size % LINE_BYTES:
            raise ConfigError(f"step {number} {shown(text)}: {size} B; choose a multiple of 64 up to 1 MiB")
        if match["offset"] and int(match["offset"]) % LINE_BYTES:
            raise ConfigError(f"step {number} {shown(text)}: its offset is not a multiple of 64 B; choose one")
        steps.append(("dram" if "d" in (match["read_memory"], match["write_memory"]) else "pmem", size))
    return steps


def _split(chain: str) -> list[str]:
    return [step.strip() for step in chain.split(",")]


class OperationsParameters(KindParameters):
    """Parameters of kind "operations"."""

    operations: str = Field(
        "rp_64,wp_64_cache",
        description="the chain, which begins with a read: rp_SIZE reads SIZE bytes at a random address that "
        "depends on the value read before, wp_SIZE_cache[_OFFSET] writes at the last address plus OFFSET, "
        "flushes and fences; rd_ and wd_ do so on DRAM",
    )
    threads: Threads = Field(1, description="threads, each on its own core while there are cores")
    region_size: LineSize = Field(
        10 * 2**30, ge=4096, description="bytes of the region, shared by all threads [B]"
    )
    length: Length = LENGTH

    @field_validator("operations")
    @classmethod
    def _notation(cls, chain: str) -> str:
        _steps(chain)
        return chain


class Operations(Kind[OperationsParameters]):
    """Composite operations in the notation of PerMA-Bench (Benson et al., VLDB 2022).

    Latencies include, as those of PerMA-Bench do, what its loop takes: 44 cycles until the address of a random
    read is known, and 32 of the clock. They leave out, as those do, the wait of the last fence of a chain:
    `rdtscp` waits for older loads alone. A persist at the end looks nearly free by them; kind `persist` has the
    wait.
    """

    name = "operations"
    title = "Composite operations: chains of dependent reads and persisting writes"
    default_metric = "operations_per_s"
    metrics = (
        *with_ends(Metric("operations_per_s", "1/s", "chains per second")),
        Metric("latency_ns", "ns", "mean latency of a chain, without the wait of its last fence"),
        *BATCHED_LATENCY_METRICS[1:],
        *COMMON_METRICS,
    )
    parameter_model = OperationsParameters

    def check(self, machine: Platform, parameters: OperationsParameters) -> None:
        """Refuse more threads than hardware threads, and regions that do not fit."""
        check_threads(machine, parameters.threads)
        for memory, size in _steps(parameters.operations):
            check_memory(machine, memory, "operations")
            check_region(machine, memory, parameters.region_size)
            check_access(size, parameters.region_size, "operations")

    def run(self, machine: Platform, parameters: OperationsParameters, seed: int) -> dict[str, int | float]:
        """Simulate the chain twice: back to back for the throughput, with one in 16 timed for the latency."""
        given: dict[str, int | str] = {
            "operations": ",".join(_split(parameters.operations)),
            "threads": parameters.threads,
            "region_size": parameters.region_size,
            "length": parameters.length,
        }
        back_to_back, timed = measure_both("operations", machine, given, seed)
        return back_to_back.rate("operations_per_s") | timed.latencies() | back_to_back.common(timed)
