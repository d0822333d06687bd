"""Kind "page-flush": making whole database pages durable, failure atomically."""

from typing import Literal

from pydantic import Field

from pmsim.errors import ConfigError
from pmsim.kinds.applies import PAGE_FLUSH
from pmsim.kinds.base import Kind, Metric, Scalar
from pmsim.kinds.checks import check_memory, check_region, check_threads
from pmsim.kinds.intervals import with_ends
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.machine_options import with_options
from pmsim.kinds.measurement import BANDWIDTH_METRICS, BATCHED_LATENCY_METRICS, COMMON_METRICS, measure
from pmsim.kinds.types import (
    LINE_BYTES,
    Count,
    CountOrAll,
    FlagOrPlatform,
    KindParameters,
    LineSize,
    Threads,
)
from pmsim.platforms import Platform

#: How a page becomes durable as a whole; servers have these, too.
PageTechnique = Literal["cow", "cow-load", "cow-invalidate", "microlog", "hybrid", "checksum"]

_LARGEST_PAGE = 65536
_SLOT_HEADER = 256  # one PMem block, so that payloads begin at a block
_WITHOUT_PMEM = "crc32c"
_HOST_PAGE = 4096  # what one written byte takes of this host


class PageFlushParameters(KindParameters):
    """Parameters of kind "page-flush"."""

    technique: Literal[PageTechnique, "crc32c"] = Field(
        "cow",
        description="cow: copy on write with page version numbers; cow-load: with only the dirty lines in "
        "DRAM; cow-invalidate: without version numbers; microlog: dirty lines through a log, in place; "
        "hybrid: cow or microlog, page by page, by a cost model of the platform; checksum: in place with a "
        "CRC-32C and one barrier; crc32c: the checksum alone, nothing is written",
    )
    dirty_lines: CountOrAll = Field("all", description="dirty cache lines of each page, at random places in it")
    threads: Threads = Field(1, description="writers, each with pages, free slots and a micro log of its own")
    page_size: LineSize = Field(16384, description="bytes of a page, at most 64 KiB [B]")
    pages: Count = Field(
        16384,
        le=2**24,
        description="pages over all threads, each with as many; many, so that none is still cached",
    )
    spare_slots: Count = Field(1, le=2**20, description="slots of each thread beyond its pages")
    order: Literal["sequential", "random"] = Field("sequential", description="of a thread's pages")
    write: Literal["ntstore", "store+clwb"] = Field("ntstore", description="how lines are written to PMem")
    barriers: bool = Field(True, description="false: no fences, to see what they cost; not crash safe")
    prefetcher: FlagOrPlatform = Field("platform", description="hardware prefetcher on or off")
    length: Length = LENGTH


class PageFlush(Kind[PageFlushParameters]):
    """Page propagation from DRAM to PMem (van Renen et al., VLDB Journal 2020, sec. 3.2)."""

    name = "page-flush"
    app_direct = True
    title = "Page propagation: copy on write, micro log, checksum"
    default_metric = "ops_per_s"
    metrics = (
        *with_ends(Metric("ops_per_s", "1/s", "pages flushed per second")),
        *BANDWIDTH_METRICS,
        *BATCHED_LATENCY_METRICS,
        Metric("barriers_per_op", "", "persistency barriers per page"),
        Metric("fences_per_op", "", "fences per page, those with nothing to wait for included"),
        Metric("lines_written_per_op", "", "cache lines flushed or streamed per page"),
        Metric("media_blocks_written_per_op", "", "internal PMem blocks written per page"),
        *COMMON_METRICS,
    )
    parameter_model = PageFlushParameters
    uses = PAGE_FLUSH

    def machine(self, platform: Platform, parameters: PageFlushParameters) -> Platform:
        """Apply ``prefetcher``."""
        return with_options(platform, prefetcher=parameters.prefetcher)

    def check(self, machine: Platform, parameters: PageFlushParameters) -> None:
        """Refuse pages that are too large, too few, or that the memories cannot hold."""
        check_threads(machine, parameters.threads)
        if parameters.page_size > _LARGEST_PAGE:
            raise ConfigError(f"page_size: {parameters.page_size} B; choose at most 64 KiB")
        lines = parameters.page_size // LINE_BYTES
        if isinstance(parameters.dirty_lines, int) and parameters.dirty_lines > lines:
            raise ConfigError(
                f"dirty_lines: {parameters.dirty_lines} of a page with {lines} lines; "
                "choose at most that, or 'all'"
            )
        if parameters.pages < parameters.threads:
            raise ConfigError(
                f"pages: {parameters.pages} for {parameters.threads} threads; "
                "choose at least one page per thread"
            )
        check_region(machine, "dram", parameters.pages * parameters.page_size, "pages")
        if parameters.technique != _WITHOUT_PMEM:
            check_memory(machine, "pmem", "technique")
            check_region(machine, "pmem", _pmem_bytes(parameters), "pages")

    def least_host_memory(self, parameters: PageFlushParameters) -> tuple[str, int]:
        """Return a page of the host for each slot that is set up; checksummed pages need no set-up."""
        if parameters.technique in ("checksum", _WITHOUT_PMEM):
            return super().least_host_memory(parameters)
        return "pages", parameters.pages * min(parameters.page_size, _HOST_PAGE)

    def columns(self, machine: Platform, parameters: PageFlushParameters) -> dict[str, Scalar]:
        """Resolve "all" and "platform"."""
        return super().columns(machine, parameters) | {
            "dirty_lines": _dirty_lines(parameters),
            "prefetcher": bool(machine.value("prefetcher", "enabled")),
        }

    def run(self, machine: Platform, parameters: PageFlushParameters, seed: int) -> dict[str, int | float]:
        """Simulate the flushes back to back."""
        run = measure(
            "page-flush",
            machine,
            {
                "technique": parameters.technique,
                "dirty_lines": _dirty_lines(parameters),
                "threads": parameters.threads,
                "page_size": parameters.page_size,
                "pages": parameters.pages,
                "spare_slots": parameters.spare_slots,
                "order": parameters.order,
                "write": parameters.write,
                "barriers": int(parameters.barriers),
                "length": parameters.length,
            },
            seed,
        )
        pages = run.total.operations
        return (
            run.rate("ops_per_s")
            | run.bandwidth()
            | run.latencies()
            | {
                "barriers_per_op": run.counters["persist_barriers"] / pages,
                "fences_per_op": run.counters["fences"] / pages,
                "lines_written_per_op": run.counters["lines_persisted"] / pages,
                "media_blocks_written_per_op": run.counters["pmem_media_write_blocks"] / pages,
            }
            | run.common()
        )


def _dirty_lines(parameters: PageFlushParameters) -> int:
    dirty = parameters.dirty_lines
    return dirty if isinstance(dirty, int) else parameters.page_size // LINE_BYTES


def _pmem_bytes(parameters: PageFlushParameters) -> int:
    slots = parameters.pages + parameters.threads * parameters.spare_slots
    copies = 2 if parameters.technique == "checksum" else 1
    return copies * slots * (parameters.page_size + 2 * _SLOT_HEADER)
