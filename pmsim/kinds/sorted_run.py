"""Kind "sorted-run": a buffer moved to a sorted run on persistent memory, and runs of a level merged."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from pmsim.errors import ConfigError
from pmsim.kinds.base import Kind, Metric
from pmsim.kinds.buildable import check_workload
from pmsim.kinds.checks import check_memory
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.library import LIBRARY_CYCLES, LibraryCycles
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COMMON_METRICS, measure
from pmsim.kinds.types import KindParameters, Memory
from pmsim.messages import shown
from pmsim.platforms import Platform
from pmsim.units import Measures, Quantity, parse

#: A key of 8 bytes and a value of 16.
PAIR_BYTES = 24
_LARGEST_RUN = 4 * 2**20


def _run_size(value: object) -> int:
    size = parse(value, Quantity.SIZE)
    if not PAIR_BYTES <= size <= _LARGEST_RUN:
        raise ConfigError(
            f"{shown(value)} is no run of pairs of {PAIR_BYTES} B; choose {PAIR_BYTES} B to 4 MiB"
        )
    return size


def _duplicates(value: object) -> int:
    percent = parse(value, Quantity.COUNT)
    if percent not in (0, 100):
        raise ConfigError(f"{percent} % of duplicate keys; choose 0 or 100")
    return percent


RunSize = Annotated[int, BeforeValidator(_run_size), Measures(Quantity.SIZE)]
Duplicates = Annotated[int, BeforeValidator(_duplicates), Measures(Quantity.COUNT)]


class SortedRunParameters(KindParameters):
    """Parameters of kind "sorted-run"."""

    operation: Literal["move", "merge"] = Field(
        "move",
        description="move: a full DRAM buffer becomes a run of level 0; merge: the four runs of level 0 become "
        "one of level 1",
    )
    run_size: RunSize = Field(
        4096, description="bytes of the pairs of a run of level 0, and of the buffer; a pair has 24 B [B]"
    )
    c0: Literal["sorted", "unsorted"] = Field(
        "sorted",
        description="of a move: the buffer is an ordered map, or a hash map that is sorted when it is moved",
    )
    failure_atomicity: Literal["none", "individual", "transaction"] = Field(
        "none",
        description="none: one word says that the run counts; individual: that word changes in a transaction; "
        "transaction: which snapshots the run, too",
    )
    algorithm: Literal["two-way", "k-way"] = Field(
        "two-way",
        description="of a merge: two and two runs to buffers in DRAM, then these; or all four at once",
    )
    target: Literal["direct", "buffer"] = Field(
        "direct", description="of a merge: to the new run, or to a buffer in DRAM that is then copied to it"
    )
    duplicates: Duplicates = Field(
        0, description="of a merge: per cent of keys that all runs have; 0 (no run has another's) or 100"
    )
    memory: Memory = Field("pmem", description="where runs and undo log are; the buffers are in DRAM")
    library_cycles: LibraryCycles = Field(
        LIBRARY_CYCLES,
        description="CPU cycles of a call of the transaction library, beside what it moves and checks; a "
        "calibration",
    )
    length: Length = LENGTH


class SortedRun(Kind[SortedRunParameters]):
    """Sorted runs of an LSM tree (Götze et al., Data Structure Primitives on Persistent Memory)."""

    name = "sorted-run"
    app_direct = True
    title = "Sorted runs on persistent memory: a buffer moved to one, or runs merged"
    default_metric = "latency_ns"
    metrics = (
        *BATCHED_LATENCY_METRICS,
        Metric("bytes_written", "B", "bytes that an operation stores to runs and undo log"),
        Metric("lines_written_per_op", "", "64-byte lines written to the memory per operation"),
        Metric(
            "barriers_per_op", "", "persistency barriers per operation: fences that had something to wait for"
        ),
        Metric(
            "media_blocks_written_per_op", "", "internal blocks written to the persistent medium per operation"
        ),
        *COMMON_METRICS,
    )
    parameter_model = SortedRunParameters

    def check(self, machine: Platform, parameters: SortedRunParameters) -> None:
        """Refuse memories that the machine lacks, or that are too small for the array of trees."""
        check_memory(machine, parameters.memory)
        check_workload("sorted-run", machine, parameters.model_dump())

    def run(self, machine: Platform, parameters: SortedRunParameters, seed: int) -> dict[str, int | float]:
        """Simulate operations, each on another tree of the array and timed on its own."""
        result = measure("sorted-run", machine, parameters.model_dump(), seed)
        count, operations = result.counters, result.total.operations
        lines = count["pmem_write_lines" if parameters.memory == "pmem" else "dram_write_lines"]
        return (
            result.latencies()
            | dict(result.facts)
            | {
                "lines_written_per_op": lines / operations,
                "barriers_per_op": count["persist_barriers"] / operations,
                "media_blocks_written_per_op": count["pmem_media_write_blocks"] / operations,
            }
            | result.common()
        )
