"""Kind "log": appending entries to transaction logs."""

from typing import Literal

from pydantic import Field

from pmsim.errors import ConfigError
from pmsim.kinds.applies import LOG
from pmsim.kinds.base import Kind, Metric
from pmsim.kinds.buildable import check_workload
from pmsim.kinds.checks import check_region, check_threads
from pmsim.kinds.intervals import with_ends
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.logs import HAS_ENTRIES, LogName
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COMMON_METRICS, Measurement, measure_both
from pmsim.kinds.types import Count, CountOrZero, KindParameters, LineSize, Memory, Threads, WordSize
from pmsim.platforms import Platform

BLOCK_METRICS = (
    *with_ends(Metric("ops_per_s", "1/s", "operations per second")),
    Metric("barriers_per_op", "", "persistency barriers per operation: fences that had something to wait for"),
    Metric("lines_written_per_op", "", "64-byte lines written to the memory per operation"),
    Metric("media_blocks_written_per_op", "", "internal blocks written to the persistent medium per operation"),
)


def block_metrics(result: Measurement, memory: str) -> dict[str, int | float]:
    """Return what every building block is measured by, from a run whose operations follow each other."""
    count, operations = result.counters, result.total.operations
    lines = count["pmem_write_lines" if memory == "pmem" else "dram_write_lines"]
    return result.rate("ops_per_s") | {
        "barriers_per_op": count["persist_barriers"] / operations,
        "lines_written_per_op": lines / operations,
        "media_blocks_written_per_op": count["pmem_media_write_blocks"] / operations,
    }


class LogParameters(KindParameters):
    """Parameters of kind "log"."""

    algorithm: LogName = Field("poplog", description="how an entry becomes durable as a whole")
    layout: Literal["naive", "padded", "dram-tail"] = Field(
        "padded",
        description="naive: dense; padded: entries begin on lines; dram-tail: dense, the last line is kept in "
        "DRAM and streamed; pmemlog is naive only",
    )
    entry_size: WordSize = Field(512, description="payload of an entry, without what the log adds [B]")
    group_commit: Count = Field(1, le=2**20, description="entries that are made durable together")
    dancing_fields: Count = Field(64, le=4096, description="size fields of header-dancing, each on a line")
    threads: Threads = Field(1, description="threads, each with a log of its own")
    memory: Memory = Field("pmem", description="where the logs are")
    log_size: LineSize = Field(
        2**30, ge=256, description="bytes of one log; when full it is truncated and reused [B]"
    )
    cpu_cycles: CountOrZero = Field(
        0, le=1_000_000, description="CPU cycles of an append besides those of its instructions; a calibration"
    )
    length: Length = LENGTH


class Log(Kind[LogParameters]):
    """Transaction log writers (van Renen et al., Building blocks for persistent memory, section 3.3)."""

    name = "log"
    app_direct = True
    title = "Appending entries to transaction logs"
    default_metric = "ops_per_s"
    metrics = (
        *BLOCK_METRICS,
        *BATCHED_LATENCY_METRICS,
        Metric("log_bytes_per_entry", "B", "space that an entry takes in the log, padding included"),
        *COMMON_METRICS,
    )
    parameter_model = LogParameters
    uses = LOG

    def check(self, machine: Platform, parameters: LogParameters) -> None:
        """Refuse logs that do not fit, and what the algorithm does not have."""
        check_threads(machine, parameters.threads)
        check_region(machine, parameters.memory, parameters.log_size * parameters.threads, "log_size")
        if not HAS_ENTRIES[parameters.algorithm] and parameters.layout != "naive":
            raise ConfigError(
                f"layout: {parameters.algorithm} has no '{parameters.layout}' layout; choose naive"
            )
        if parameters.entry_size > parameters.log_size:  # the core would fill a payload before it looks
            raise ConfigError(
                f"log_size: {parameters.log_size} B hold no entry with a payload of {parameters.entry_size} B; "
                "choose a larger log or smaller entries"
            )
        check_workload("log", machine, parameters.model_dump() | {"timed": 0})

    def run(self, machine: Platform, parameters: LogParameters, seed: int) -> dict[str, int | float]:
        """Simulate the appends twice: back to back for the throughput, and one at a time for the latency."""
        given: dict[str, int | str] = parameters.model_dump()
        back_to_back, timed = measure_both("log", machine, given, seed)
        return (
            block_metrics(back_to_back, parameters.memory)
            | timed.latencies()
            | dict(back_to_back.facts)
            | back_to_back.common(timed)
        )
