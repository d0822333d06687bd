"""Kind "interleave": lookups in and inserts into index leaves, plain or interleaved by coroutines."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from pmsim.errors import ConfigError
from pmsim.kinds.applies import INTERLEAVE
from pmsim.kinds.base import Kind, Metric
from pmsim.kinds.checks import check_region, check_threads
from pmsim.kinds.intervals import with_ends
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COMMON_METRICS, Measurement, measure
from pmsim.kinds.types import KindParameters, LineSize, Memory, Threads
from pmsim.platforms import Platform
from pmsim.standing import stretch
from pmsim.units import Measures, Quantity, parse

#: Bytes of a leaf with 32 slots.
LEAF_BYTES = 576
MAX_GROUP = 64


MOST_CYCLES = 100_000


def _group(value: object) -> int:
    count = parse(value, Quantity.COUNT)
    if not 1 <= count <= MAX_GROUP:
        raise ConfigError(f"{count} coroutines in a group; choose 1 to {MAX_GROUP}")
    return count


def _cycles(value: object) -> int:
    count = parse(value, Quantity.COUNT)
    if not 0 <= count <= MOST_CYCLES:
        raise ConfigError(f"{count} cycles of a switch; choose 0 to {MOST_CYCLES}")
    return count


GroupSize = Annotated[int, BeforeValidator(_group), Measures(Quantity.COUNT)]
Cycles = Annotated[int, BeforeValidator(_cycles), Measures(Quantity.COUNT)]


class InterleaveParameters(KindParameters):
    """Parameters of kind "interleave"."""

    operation: Literal["lookup", "insert"] = Field("lookup", description="what each operation does")
    interleave: Literal["none", "reads", "writes", "both"] = Field(
        "reads",
        description="none: plain code; reads: prefetch and suspend before a line is first touched; writes: "
        "suspend instead of a barrier, which the group shares; both; lookups have reads only",
    )
    group_size: GroupSize = Field(
        20, description="coroutines that are active at the same time, 1 to 64; plain code has none"
    )
    fence: Literal["sfence", "mfence"] = Field("sfence", description="what a barrier is made of")
    first_flush: Literal["pair+fingerprint", "pair"] = Field(
        "pair+fingerprint",
        description="what an insert flushes before its first barrier; the fingerprint shares the bit's line "
        "and needs no flush of its own, but the paper flushes it",
    )
    memory: Memory = Field("pmem", description="where the leaves are")
    region_size: LineSize = Field(10 * 2**30, description="bytes of all leaves, over all threads [B]")
    threads: Threads = Field(1, description="threads, each with leaves of its own")
    cpu_cycles: Cycles = Field(
        30, description="CPU cycles of a start or resumption of a coroutine; a calibration"
    )
    length: Length = LENGTH


class Interleave(Kind[InterleaveParameters]):
    """Interleaved execution (van Renen et al., Building blocks for persistent memory, section 3.5)."""

    name = "interleave"
    app_direct = True
    title = "Lookups in and inserts into index leaves, plain or interleaved by coroutines"
    default_metric = "ops_per_s"
    metrics = (
        *with_ends(Metric("ops_per_s", "1/s", "operations per second")),
        Metric("speedup", "", "throughput over that of plain code"),
        Metric("time_per_op_ns", "ns", "time of a thread per operation"),
        Metric("suspensions_per_op", "", "times that a coroutine is suspended per operation"),
        Metric(
            "barriers_per_op", "", "persistency barriers per operation: fences that had something to wait for"
        ),
        Metric("lines_written_per_op", "", "64-byte lines written to the memory per operation"),
        Metric(
            "media_blocks_written_per_op", "", "internal blocks written to the persistent medium per operation"
        ),
        *BATCHED_LATENCY_METRICS,
        *COMMON_METRICS,
    )
    parameter_model = InterleaveParameters
    uses = INTERLEAVE

    def check(self, machine: Platform, parameters: InterleaveParameters) -> None:
        """Refuse threads and regions that the machine lacks, and lookups with interleaved writes."""
        check_threads(machine, parameters.threads)
        check_region(machine, parameters.memory, parameters.region_size)
        # Two inserts of a group may take one leaf, but not its last slot both.
        grouped = parameters.operation == "insert" and parameters.interleave != "none"
        leaves = parameters.group_size if grouped else 1
        if parameters.region_size // parameters.threads < LEAF_BYTES * leaves:
            needed = f"{leaves} leaves of {LEAF_BYTES} B, one for each insert of a group"
            raise ConfigError(
                f"region_size: each of {parameters.threads} threads needs "
                f"{needed if leaves > 1 else f'a leaf of {LEAF_BYTES} B'}; choose a larger region"
                f"{', smaller groups' if leaves > 1 else ''} or fewer threads"
            )
        if parameters.operation == "lookup" and parameters.interleave in ("writes", "both"):
            raise ConfigError(
                f"interleave: a lookup has no writes to interleave ('{parameters.interleave}'); "
                "choose 'none' or 'reads'"
            )

    def run(self, machine: Platform, parameters: InterleaveParameters, seed: int) -> dict[str, int | float]:
        """Simulate operations back to back, and the same by plain code.

        The latency of an interleaved operation is that of its group.
        """
        given = parameters.model_dump()
        if parameters.interleave == "none":
            plain = result = measure("interleave", machine, given, seed)
        else:
            with stretch(0, 1 / 2):
                result = measure("interleave", machine, given, seed)
            with stretch(1 / 2, 1):
                plain = measure("interleave", machine, given | {"interleave": "none"}, seed)
        return (
            _per_operation(result, parameters)
            | {"speedup": result.total.operations_per_s / plain.total.operations_per_s}
            | dict(result.facts)
            | result.latencies()
            | result.common()
        )


def _per_operation(result: Measurement, parameters: InterleaveParameters) -> dict[str, int | float]:
    count, total = result.counters, result.total
    lines = count["pmem_write_lines" if parameters.memory == "pmem" else "dram_write_lines"]
    return result.rate("ops_per_s") | {
        "time_per_op_ns": parameters.threads * 1e9 / total.operations_per_s,
        "barriers_per_op": count["persist_barriers"] / total.operations,
        "lines_written_per_op": lines / total.operations,
        "media_blocks_written_per_op": count["pmem_media_write_blocks"] / total.operations,
    }
