"""Kind "trace": a recorded or imported trace, timed on the platform."""

import math
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from pmsim.errors import ConfigError
from pmsim.kinds.base import Kind, Metric
from pmsim.kinds.checks import check_tier, hardware_threads
from pmsim.kinds.measurement import (
    BANDWIDTH_METRIC,
    COUNTED_METRICS,
    LATENCY_METRICS,
    OPERATIONS_METRIC,
    Measurement,
    replayed,
)
from pmsim.kinds.types import LINE_BYTES, FileName, KindParameters
from pmsim.platforms import Platform
from pmsim.trace_file import digest, info, verified

_PS_PER_MS = 10**9
#: What a trace calls them.
_TIERS = {"dram": "dram", "pmem": "pmem", "ssd": "block"}


class TraceParameters(KindParameters):
    """Parameters of kind "trace"."""

    file: FileName = Field("", description="the trace, of pmsim trace record or import (docs/traces.md)")

    def file_contents(self) -> dict[str, str]:
        """Name what the trace holds."""
        return {"file": digest(Path(self.file))} if self.file else {}


class Trace(Kind[TraceParameters]):
    """The micro-operations of a trace in their order, on any machine."""

    name = "trace"
    title = "A recorded or imported trace, timed on other machines"
    default_metric = "time_ms"
    metrics = (
        Metric("time_ms", "ms", "virtual time of what is measured"),
        OPERATIONS_METRIC,
        *LATENCY_METRICS,
        BANDWIDTH_METRIC,
        Metric("dram_read_bytes", "B", "read from DRAM"),
        Metric("dram_written_bytes", "B", "written to DRAM"),
        Metric("pmem_read_bytes", "B", "read from the media of the PMem modules, whole blocks"),
        Metric("pmem_written_bytes", "B", "written to the media of the PMem modules, whole blocks"),
        *COUNTED_METRICS,
    )
    parameter_model = TraceParameters
    unrecordable = "it is a trace already; copy its file"
    seeded = False  # what the machine draws, it draws as in the recorded run

    def check(self, machine: Platform, parameters: TraceParameters) -> None:
        """Refuse what is no trace, and machines with fewer threads or less memory than it uses."""
        if not parameters.file:
            raise ConfigError("file: is missing; name a trace, of pmsim trace record or import")
        try:
            recorded = verified(parameters.file)
        except ConfigError as error:
            raise error.prefixed("file") from None
        most = hardware_threads(machine)
        if recorded.threads > most:
            raise ConfigError(
                f"file: has {recorded.threads} threads, platform '{machine.name}' has {most}; choose a larger "
                "platform"
            )
        for tier, medium in _TIERS.items():
            check_tier(machine, tier, recorded.extent_bytes[medium], "file")

    def executes_regardless_of_time(self, parameters: TraceParameters) -> bool:
        """A trace is what it is; but what threads find in the caches that they share depends on their times."""
        return bool(parameters.file) and info(parameters.file).threads == 1

    def run(self, machine: Platform, parameters: TraceParameters, seed: int) -> dict[str, int | float]:
        """Time the trace; what the machine draws, it draws as in the recorded run."""
        return self.run_lanes([machine], parameters, seed)[0]

    def run_lanes(
        self, machines: Sequence[Platform], parameters: TraceParameters, seed: int
    ) -> list[dict[str, int | float]]:
        """Time the trace on each machine."""
        del seed
        return [_metrics(measured) for measured in replayed(Path(parameters.file), machines)]


def _metrics(measured: Measurement) -> dict[str, int | float]:
    count, total = measured.counters, measured.total
    return (
        {
            "time_ms": total.elapsed_ps / _PS_PER_MS,
            # Without marks nothing is known of either: 0 would be a measured rate.
            "operations_per_s": total.operations_per_s if total.operations else math.nan,
            "bandwidth_gb_s": total.bandwidth_gb_s if total.user_bytes else math.nan,
            "dram_read_bytes": count["dram_read_lines"] * LINE_BYTES,
            "dram_written_bytes": count["dram_write_lines"] * LINE_BYTES,
            "pmem_read_bytes": count["pmem_media_read_blocks"] * measured.pmem_block_bytes,
            "pmem_written_bytes": count["pmem_media_write_blocks"] * measured.pmem_block_bytes,
        }
        | total.latency.metrics()
        | measured.counted()
    )
