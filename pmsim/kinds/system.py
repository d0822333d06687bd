"""Kind "system": a server with arrivals, tails, background work and crashes."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pmsim.des import studies
from pmsim.des.load import Ask
from pmsim.des.parts import BlockLogPart, EnginePart, LogPart, PagesPart, PageTechnique, Part, TablePart
from pmsim.des.times import MS, US, S
from pmsim.errors import ConfigError
from pmsim.kinds.base import COUNTER_PREFIX, Kind, Metric, Scalar
from pmsim.kinds.checks import check_memory, check_region, check_threads
from pmsim.kinds.engine_options import EngineName
from pmsim.kinds.measurement import COMMON_METRICS, LATENCY_METRICS
from pmsim.kinds.types import (
    LINE_BYTES,
    Count,
    CountOrZero,
    KindParameters,
    LineSize,
    LineSizeOrZero,
    Measures,
    Threads,
    WordSize,
)
from pmsim.platforms import Platform
from pmsim.units import Quantity, parse

_WINDOW = f"{COUNTER_PREFIX}window."
_PS_PER_NS = 1e3
_LARGEST_ROW = 65536
_LARGEST_ENGINE_ROW = 4096
_FPTREE_ROW = 8
_SERIES = ("time_ms", "window_throughput_per_s", "window_latency_ns", "window_latency_p99_ns")


def _duration(value: object) -> int:
    # A resolved scenario has picoseconds.
    time = value if isinstance(value, int) and not isinstance(value, bool) else parse(value, Quantity.TIME)
    if not 0 <= time <= 10**16:
        raise ConfigError(f"{time} ps is no duration; choose 0 to 10000 s")
    return time


Duration = Annotated[int, BeforeValidator(_duration), Measures(Quantity.TIME)]


class SystemParameters(KindParameters):
    """Parameters of kind "system"."""

    study: Literal["load", "tenants", "group-commit", "propagation", "restart", "long-run"] = Field(
        "load",
        description="load: latency against offered load; tenants: requests beside scans; group-commit: entries "
        "in groups; propagation: page writes in the background or not; restart: a power failure under load; "
        "long-run: a load for hours, which resumes after an interruption",
    )
    service: Literal["log", "block-log", "table", "engine"] = Field(
        "log", description="what the requests are: appends, lookups, or transactions on an engine"
    )
    workers: Threads = Field(4, description="threads that serve requests; group-commit has one")
    load_percent: CountOrZero = Field(
        50, description="offered load in percent of the saturation, which is found by bisection"
    )
    rate: CountOrZero = Field(
        0, le=10**12, description="requests per second instead of load_percent; 0: load_percent"
    )
    requests: Count = Field(50_000, le=10**9, description="requests that count, about")

    algorithm: Literal["classic", "header", "header-dancing", "rawl", "poplog"] = Field(
        "poplog", description="of the log"
    )
    entry_size: WordSize = Field(64, description="payload of a log entry [B]")
    log_size: LineSize = Field(
        2**22, ge=4096, le=2**40, description="bytes of one worker's log; truncated when full [B]"
    )

    rows: Count = Field(2**20, description="rows of the table or engine")
    row_size: WordSize = Field(256, description="bytes of a row; of a table whole lines, of fptree 8 [B]")
    scanners: CountOrZero = Field(1, le=65536, description="tenants: clients that scan without a pause")
    scan_rows: Count = Field(1_000, description="tenants: rows of a scan")

    engine: EngineName = Field("nvm-direct", description="the storage engine")
    dram_capacity: LineSize = Field(2**28, description="engine: DRAM for pages [B]")
    pmem_capacity: LineSizeOrZero = Field(2**30, description="engine: PMem for pages [B]")
    ssd_capacity: LineSizeOrZero = Field(0, description="engine: SSD for pages [B]")
    update_percent: CountOrZero = Field(100, le=100, description="engine: updates, the rest are reads [%]")

    group_size: Count = Field(16, le=65536, description="group-commit: entries of a full group")
    timeout: Duration = Field(10 * US, description="group-commit: longest time that a group gathers")

    technique: PageTechnique = Field("cow", description="propagation: of page flushes")
    background: Literal["none", "writers"] = Field(
        "writers", description="propagation: who writes dirty pages back: threads of their own, or transactions"
    )
    writers: Threads = Field(2, description="propagation: background threads")
    page_size: LineSize = Field(16384, le=65536, description="propagation: bytes of a page [B]")
    pages: Count = Field(4_096, le=2**24, description="propagation: pages that transactions change")
    dirty_lines: Count = Field(16, description="propagation: lines of a page that differ when it is written")
    dirty_limit: Count = Field(256, description="propagation: dirty pages that fit into the buffer")
    dirty_target: CountOrZero = Field(128, description="propagation: dirty pages that writers leave alone")

    crash_at: Duration = Field(2 * MS, description="restart: when the power fails")
    restart_after: Duration = Field(MS, description="restart: from the failure until recovery begins")
    duration: Duration = Field(10 * MS, description="restart, long-run: length of the run")
    windows: Count = Field(
        100, description="restart, long-run: time windows; one row of the result each, at most 256"
    )
    segment: Duration = Field(
        60 * S,
        description="long-run: what an interruption can cost; then workers finish, and the next segment begins "
        "on a fresh server",
    )


class System(Kind[SystemParameters]):
    """Whole systems in one clock with the core; see docs/des.md."""

    name = "system"
    title = "A server under load"
    default_metric = "latency_p99_ns"
    metrics = (
        Metric("offered_per_s", "1/s", "requests offered per second"),
        Metric("throughput_per_s", "1/s", "requests acknowledged per second"),
        Metric("saturation_per_s", "1/s", "largest rate whose queue does not grow; nan where a rate was given"),
        *LATENCY_METRICS,
        Metric("waited_ns", "ns", "mean time until a worker was there"),
        Metric("mean_in_system", "", "time average of the requests in the system"),
        Metric("in_system_at_end", "", "requests in the system at the end"),
        *COMMON_METRICS,
    )
    parameter_model = SystemParameters

    def metric_list(self, parameters: SystemParameters) -> tuple[Metric, ...]:
        """Add what only this study has."""
        return (*self.metrics, *_OWN[parameters.study])

    def check(self, machine: Platform, parameters: SystemParameters) -> None:
        """Refuse what the machine lacks and what makes no study."""
        check_threads(machine, parameters.workers, "workers")
        check_threads(machine, parameters.workers + parameters.writers, "writers")
        service = "log" if parameters.study == "propagation" else parameters.service
        if service == "block-log" and machine.value("block", "capacity") == 0:
            raise ConfigError(
                f"service: platform '{machine.name}' has no block device; name one with platform.block_device"
            )
        if service == "engine" and parameters.ssd_capacity and machine.value("block", "capacity") == 0:
            raise ConfigError(
                f"ssd_capacity: platform '{machine.name}' has no block device; "
                "name one with platform.block_device"
            )
        if service != "block-log":
            check_memory(machine, "pmem", "service")
        if parameters.load_percent == 0 and parameters.rate == 0:
            raise ConfigError("load_percent: nothing is offered; choose at least 1, or a rate")
        if parameters.rate == 0 and parameters.study in ("group-commit", "propagation"):
            raise ConfigError(f"rate: study '{parameters.study}' has no saturation of its own; give a rate")
        if parameters.study == "tenants" and service != "table":
            raise ConfigError(f"service: tenants look up and scan; choose table instead of '{service}'")
        if parameters.study == "group-commit" and service not in ("log", "block-log"):
            raise ConfigError(f"service: '{service}' has no groups; choose log or block-log")
        if parameters.study == "restart" and service == "table":
            raise ConfigError(
                "service: the table keeps nothing that a restart could find; choose log or engine"
            )
        if service == "table" and parameters.row_size % LINE_BYTES:
            raise ConfigError(
                f"row_size: {parameters.row_size} B are not whole lines; choose a multiple of 64 B"
            )
        if service == "table" and not LINE_BYTES <= parameters.row_size <= _LARGEST_ROW:
            raise ConfigError(f"row_size: {parameters.row_size} B; choose 64 B to 64 KiB for a table")
        if service == "engine":
            _check_rows_of_engine(parameters)
        if service == "table":
            check_region(machine, "pmem", parameters.rows * parameters.row_size, "rows")
        if parameters.study == "propagation" and parameters.dirty_lines > parameters.page_size // LINE_BYTES:
            raise ConfigError(
                f"dirty_lines: {parameters.dirty_lines} of a page with {parameters.page_size // LINE_BYTES} "
                "lines; choose at most that"
            )
        if parameters.study == "long-run" and (
            parameters.duration == 0 or parameters.segment == 0 or parameters.duration % parameters.segment
        ):
            raise ConfigError("duration: must be a whole number of segments; choose a multiple of segment")
        if parameters.windows > 256:
            raise ConfigError(f"windows: {parameters.windows} are too many; choose at most 256")
        if parameters.dirty_target >= parameters.dirty_limit:
            raise ConfigError(
                f"dirty_target: {parameters.dirty_target} is not below dirty_limit; "
                f"choose at most {parameters.dirty_limit - 1}"
            )

    def columns(self, machine: Platform, parameters: SystemParameters) -> dict[str, Scalar]:
        """Add the time-out in microseconds."""
        return super().columns(machine, parameters) | {"timeout_us": parameters.timeout / US}

    def run(self, machine: Platform, parameters: SystemParameters, seed: int) -> dict[str, int | float]:
        """Simulate one point of the study."""
        found, series = _simulate(machine, parameters, seed)
        return _metrics(found) | _series(series)

    def resumes(self, parameters: SystemParameters) -> bool:
        """Runs of hours do."""
        return parameters.study == "long-run"

    def run_from(
        self, machine: Platform, parameters: SystemParameters, seed: int, state: Path
    ) -> dict[str, int | float]:
        """Simulate one point of the study, from the last segment that an interrupted run has finished."""
        found, series = _simulate(machine, parameters, seed, state)
        return _metrics(found) | _series(series)

    def rows(self, metrics: Mapping[str, int | float]) -> list[dict[str, int | float]]:
        """Return one row per time window, where there are any."""
        common = {name: value for name, value in metrics.items() if not name.startswith(_WINDOW)}
        count = sum(name.startswith(_WINDOW) for name in metrics) // len(_SERIES)
        if not count:
            return [common]
        return [
            common | {name: metrics[f"{_WINDOW}{number}.{name}"] for name in _SERIES} for number in range(count)
        ]


def _check_rows_of_engine(parameters: SystemParameters) -> None:
    if parameters.engine == "fptree" and parameters.row_size != _FPTREE_ROW:
        raise ConfigError(
            f"row_size: {parameters.row_size} B; rows of fptree have 8 B, choose that or another engine"
        )
    if parameters.row_size > _LARGEST_ENGINE_ROW:
        raise ConfigError(f"row_size: {parameters.row_size} B; choose 8 B to 4 KiB for an engine")


_WINDOW_METRICS = (
    Metric("time_ms", "ms", "time, end of the window"),
    Metric("window_throughput_per_s", "1/s", "requests acknowledged per second in the window"),
    Metric("window_latency_ns", "ns", "mean latency of those"),
    Metric("window_latency_p99_ns", "ns", "99th percentile of their latency"),
)
_OWN: dict[str, tuple[Metric, ...]] = {
    "load": (),
    "tenants": (Metric("scans_per_s", "1/s", "scans per second beside them"),),
    "group-commit": (Metric("entries_per_group", "", "entries that became durable together, mean"),),
    "propagation": (
        Metric("stalled_ratio", "", "part of the transactions that waited for room in the buffer"),
    ),
    "restart": (
        Metric("recovery_ms", "ms", "time of the recovery"),
        Metric("cut_off", "", "requests that the failure cut off"),
        *_WINDOW_METRICS,
    ),
    "long-run": _WINDOW_METRICS,
}


def _setting(machine: Platform, parameters: SystemParameters, seed: int) -> studies.Setting:
    part: Part
    if parameters.service == "table":
        part = TablePart(rows=parameters.rows, row_size=parameters.row_size)
        mix = [Ask("table.lookup", first="uniform", below=parameters.rows)]
    elif parameters.service == "engine":
        part = EnginePart(
            engine=parameters.engine,
            rows=parameters.rows,
            row_size=parameters.row_size,
            dram_capacity=parameters.dram_capacity,
            pmem_capacity=parameters.pmem_capacity,
            ssd_capacity=parameters.ssd_capacity,
        )
        shares = {"update": parameters.update_percent, "read": 100 - parameters.update_percent}
        mix = [
            Ask(f"engine.{kind}", weight, first="uniform", below=parameters.rows)
            for kind, weight in shares.items()
            if weight > 0
        ]
    else:
        part = _log(parameters)
        mix = [Ask(f"{part.name}.append")]
    return studies.Setting(machine, (part,), parameters.workers, tuple(mix), seed)


def _log(parameters: SystemParameters) -> LogPart | BlockLogPart:
    if parameters.service == "block-log":
        return BlockLogPart(
            entry_size=parameters.entry_size,
            log_size=parameters.log_size // 512 * 512,
            largest_group=max(parameters.group_size, 1),
        )
    return LogPart(
        algorithm=parameters.algorithm,
        entry_size=parameters.entry_size,
        log_size=parameters.log_size,
        largest_group=max(parameters.group_size, 1),
    )


def _simulate(
    machine: Platform, parameters: SystemParameters, seed: int, state: Path | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if parameters.study == "group-commit":
        return studies.group_commit(
            machine,
            _log(parameters),
            size=parameters.group_size,
            timeout=parameters.timeout,
            rate=parameters.rate,
            requests=parameters.requests,
            seed=seed,
        ), []
    if parameters.study == "propagation":
        return studies.propagation(
            machine,
            log=LogPart(
                algorithm=parameters.algorithm,
                entry_size=parameters.entry_size,
                log_size=parameters.log_size,
            ),
            pages=PagesPart(
                technique=parameters.technique,
                page_size=parameters.page_size,
                pages=parameters.pages,
                dirty_lines=parameters.dirty_lines,
            ),
            background=parameters.background,
            workers=parameters.workers,
            writers=parameters.writers,
            limit=parameters.dirty_limit,
            target=parameters.dirty_target,
            rate=parameters.rate,
            requests=parameters.requests,
            seed=seed,
        ), []
    setting = _setting(machine, parameters, seed)
    saturation = math.nan if parameters.rate else studies.saturation(setting)
    rate = float(parameters.rate or saturation * parameters.load_percent / 100)
    if parameters.study == "restart":
        found, series = studies.restart_under_load(
            setting,
            rate,
            crash_at=parameters.crash_at,
            restart_after=parameters.restart_after,
            duration=parameters.duration,
            windows=parameters.windows,
        )
        return found | {"saturation": saturation}, series
    if parameters.study == "long-run":
        found, series = studies.long_run(
            setting,
            rate,
            duration=parameters.duration,
            segment=parameters.segment,
            windows=parameters.windows,
            state=state,
        )
        return found | {"saturation": saturation}, series
    if parameters.study == "tenants":
        scans = Ask("table.scan", first="uniform", below=parameters.rows, count=parameters.scan_rows)
        found = studies.two_tenants(setting, rate, scans, parameters.scanners, parameters.requests)
    else:
        found = studies.open_load(setting, rate, parameters.requests)
    return found | {"saturation": saturation}, []


def _metrics(found: Mapping[str, Any]) -> dict[str, int | float]:
    metrics: dict[str, int | float] = {
        "offered_per_s": found["offered"],
        "throughput_per_s": _per_second(found["count"], found["elapsed_ps"]),
        "saturation_per_s": found.get("saturation", math.nan),
        "latency_ns": found["mean_ps"] / _PS_PER_NS,
        "waited_ns": found["waited_ps"] / _PS_PER_NS,
        "mean_in_system": found["mean_in_system"],
        "in_system_at_end": found["in_system"],
        "simulated_ops": found["count"],
        "out_of_range_count": found["counters"]["out_of_range_count"],
    }
    metrics |= {
        f"latency_{name}_ns": found[f"{name}_ps"] / _PS_PER_NS for name in ("p50", "p95", "p99", "p999", "max")
    }
    own = ("scans_per_s", "entries_per_group", "stalled_ratio", "cut_off")
    metrics |= {name: found[name] for name in own if name in found}
    if "recovery" in found:
        metrics["recovery_ms"] = found["recovery"] / MS
    metrics |= {COUNTER_PREFIX + name: value for name, value in found["counters"].items()}
    return metrics


def _series(windows: list[dict[str, Any]]) -> dict[str, int | float]:
    series: dict[str, int | float] = {}
    for number, window in enumerate(windows):
        values = (
            (window["begin_ps"] + window["window_ps"]) / MS,
            _per_second(window["count"], window["window_ps"]),
            window["mean_ps"] / _PS_PER_NS,
            window["p99_ps"] / _PS_PER_NS,
        )
        series |= {f"{_WINDOW}{number}.{name}": value for name, value in zip(_SERIES, values, strict=True)}
    return series


def _per_second(count: int, elapsed_ps: int) -> float:
    return count * 1e12 / elapsed_ps if elapsed_ps else 0.0
