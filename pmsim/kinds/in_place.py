"""Kind "in-place": failure-atomic updates and reads of small records in an array."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.kinds.base import Kind, Metric
from pmsim.kinds.buildable import check_workload
from pmsim.kinds.checks import check_memory, check_region, check_threads
from pmsim.kinds.intervals import with_ends
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COMMON_METRICS, measure_both
from pmsim.kinds.types import KindParameters, LineSize, Memory, Threads
from pmsim.platforms import Platform
from pmsim.units import Measures, Quantity, parse

_WORD_BYTES = 8
_MOST_BYTES = 1024
_MOST_EXTRA = 1_000_000


def _update_size(value: object) -> int:
    size = parse(value, Quantity.SIZE)
    if not _WORD_BYTES <= size <= _MOST_BYTES or size % _WORD_BYTES:
        raise ConfigError(f"{size} B is not an update in place; choose a multiple of 8 B from 8 B to 1 KiB")
    return size


def _extra_instructions(value: object) -> int:
    count = parse(value, Quantity.COUNT)
    if not 0 <= count <= _MOST_EXTRA:
        raise ConfigError(f"{count} instructions; choose 0 to {_MOST_EXTRA}")
    return count


#: Every in-place method of the core: what it is.
METHODS: dict[str, str] = _native.in_place_methods()

if TYPE_CHECKING:
    MethodName = str
else:
    MethodName = Literal[tuple(METHODS)]
UpdateSize = Annotated[int, BeforeValidator(_update_size), Measures(Quantity.SIZE)]
ExtraInstructions = Annotated[int, BeforeValidator(_extra_instructions), Measures(Quantity.COUNT)]


class InPlaceParameters(KindParameters):
    """Parameters of kind "in-place"."""

    algorithm: MethodName = Field(
        "fam", description="; ".join(f"{name}: {title}" for name, title in METHODS.items())
    )
    update_size: UpdateSize = Field(
        16, description="bytes of user data of a record, updated or read as a whole [B]"
    )
    operation: Literal["write", "read", "dependent-read"] = Field(
        "write", description="dependent-read: where to read next follows from the value read before"
    )
    pattern: Literal["sequential", "random"] = Field("random", description="order of the records")
    memory: Memory = Field(
        "pmem", description="where array and log are; an update is failure-atomic on pmem only"
    )
    region_size: LineSize = Field(
        10 * 10**9, description="bytes of the array; each thread has an equal part and a log of its own [B]"
    )
    threads: Threads = Field(1, description="threads, each on its own core while there are cores")
    extra_instructions: ExtraInstructions = Field(
        0, description="instructions of the program around each operation, beside the bare loop"
    )
    length: Length = LENGTH


class InPlace(Kind[InPlaceParameters]):
    """Failure-atomic updates in place, and reads of them (van Renen et al., VLDB Journal 2020, sec. 3.4)."""

    name = "in-place"
    app_direct = True
    title = "Failure-atomic updates of small records in place, and reads of them"
    default_metric = "ops_per_s"
    metrics = (
        *with_ends(Metric("ops_per_s", "1/s", "updates or reads per second")),
        *BATCHED_LATENCY_METRICS,
        Metric("barriers_per_op", "", "persistency barriers per operation"),
        Metric("lines_written_per_op", "", "cache lines written back per operation"),
        Metric("media_blocks_written_per_op", "", "internal blocks written to the medium per operation"),
        *COMMON_METRICS,
    )
    parameter_model = InPlaceParameters

    def check(self, machine: Platform, parameters: InPlaceParameters) -> None:
        """Refuse more threads than hardware threads, regions that do not fit, and words of another size."""
        check_threads(machine, parameters.threads)
        check_memory(machine, parameters.memory)
        check_region(machine, parameters.memory, parameters.region_size)
        check_workload("in-place", machine, parameters.model_dump() | {"timed": 0})

    def run(self, machine: Platform, parameters: InPlaceParameters, seed: int) -> dict[str, int | float]:
        """Simulate the operation twice: back to back for the throughput, and one at a time for the latency."""
        given: dict[str, int | str] = parameters.model_dump()
        back_to_back, timed = measure_both("in-place", machine, given, seed)
        count, operations = back_to_back.counters, back_to_back.total.operations
        return (
            back_to_back.rate("ops_per_s")
            | timed.latencies()
            | {
                "barriers_per_op": count["persist_barriers"] / operations,
                "lines_written_per_op": count["lines_persisted"] / operations,
                "media_blocks_written_per_op": count["pmem_media_write_blocks"] / operations,
            }
            | back_to_back.common(timed)
        )
