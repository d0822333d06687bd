"""Kind "system": a server with arrivals, tails, background work and crashes."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pmsim.des import studies
from pmsim.des.asks import Ask
from pmsim.des.times import MS, US
from pmsim.errors import ConfigError
from pmsim.kinds import intervals, log_place
from pmsim.kinds.applies import SYSTEM
from pmsim.kinds.base import COUNTER_PREFIX, Kind, Metric, Scalar
from pmsim.kinds.capacities import capacity_columns, image_room
from pmsim.kinds.counters import machine_counters
from pmsim.kinds.filling import is_filling
from pmsim.kinds.latches import LOGS
from pmsim.kinds.log_place import AUTO
from pmsim.kinds.measurement import COUNTED_METRICS, LATENCY_METRICS
from pmsim.kinds.system_checks import check_system
from pmsim.kinds.system_parameters import SystemParameters, recording_of
from pmsim.kinds.system_parts import exponent_of, log_of, pages_of, parts_of, transaction_log, workers_of
from pmsim.kinds.types import LINE_BYTES
from pmsim.platforms import Platform
from pmsim.standing import stretch

_WINDOW = f"{COUNTER_PREFIX}window."
_PS_PER_NS = 1e3
_SERIES = ("time_ms", "window_throughput_per_s", "window_latency_ns", "window_latency_p99_ns")


class System(Kind[SystemParameters]):
    """Whole systems in one clock with the core; see docs/des.md."""

    name = "system"
    app_direct = True
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
        Metric(
            "keeps_up",
            "",
            "1: at most 1 % of the requests, beside those served or gathered, were there when the last came",
        ),
        *COUNTED_METRICS,
    )
    unrecordable = (
        "when its requests come decides what is executed; record another kind, such as log, page-flush or oltp"
    )
    unsteady = (
        "the 99th percentile was still changing while requests were counted, or DRAM or PMem of an engine was "
        "still filling; raise requests, or warmup"
    )
    # None of these changes the saturation: with one seed it is sought once.
    unseeded = frozenset({"load_percent", "scanners", "scan_rows"})
    uses = SYSTEM
    parameter_model = SystemParameters

    def metric_list(self, parameters: SystemParameters) -> tuple[Metric, ...]:
        """Add what only this study has."""
        return (*self.metrics, *_OWN[parameters.study])

    def counters(self) -> Mapping[str, Metric]:
        """Return the machine's: nobody has asked for bytes, and the elapsed time is that of the requests."""
        return machine_counters()

    def settled(self, machine: Platform, parameters: SystemParameters) -> SystemParameters:
        """Decide the skew, where the log of an engine is, how workers commit to it, and how long to warm up."""
        settled = log_place.settled(machine, parameters, threads=parameters.workers, logs=LOGS)
        decided: dict[str, float] = {}
        if settled.zipf == AUTO:
            decided["zipf"] = _zipf(parameters)
        if settled.warmup == AUTO:
            decided["warmup"] = _warmup(machine, parameters)
        return settled.model_copy(update=decided)

    def check(self, machine: Platform, parameters: SystemParameters) -> None:
        """Refuse what the machine lacks and what makes no study."""
        check_system(machine, parameters)

    def columns(self, machine: Platform, parameters: SystemParameters) -> dict[str, Scalar]:
        """Add the time-out in microseconds, and of an engine what its tiers cost."""
        columns = super().columns(machine, parameters) | {"timeout_us": parameters.timeout / US}
        if parameters.service != "engine":
            return columns
        sizes = (parameters.dram_capacity, parameters.pmem_capacity, parameters.ssd_capacity)
        # Nobody has chosen the size of its log, beside which small tiers would cost nothing.
        image = image_room(parameters.engine, parameters.dram_capacity, parameters.ssd_capacity)
        return columns | capacity_columns(machine, *sizes, parameters.prices, beside=image)

    def run(self, machine: Platform, parameters: SystemParameters, seed: int) -> dict[str, int | float]:
        """Simulate one point of the study."""
        found, series = _simulate(machine, parameters, seed)
        _check_counted(found, parameters)
        return _metrics(found, parameters) | _series(series)

    def resumes(self, parameters: SystemParameters) -> bool:
        """Runs of hours do."""
        return parameters.study == "long-run"

    def run_from(
        self, machine: Platform, parameters: SystemParameters, seed: int, state: Path
    ) -> dict[str, int | float]:
        """Simulate one point of the study, from the last segment that an interrupted run has finished."""
        found, series = _simulate(machine, parameters, seed, state)
        _check_counted(found, parameters)
        return _metrics(found, parameters) | _series(series)

    def lasting(self, metrics: Mapping[str, int | float], parameters: SystemParameters) -> bool:
        """Where the queue grows they are longer the longer it does; a recording ends when it ends."""
        return metrics.get("keeps_up") != 0 or parameters.study == "recorded"

    def lost_without_power(
        self, machine: Platform, parameters: SystemParameters, metrics: Mapping[str, int | float]
    ) -> str:
        """Name the engine that keeps on volatile PMem what it would restart from, or the log there."""
        if parameters.service == "engine":
            return log_place.kept_on_volatile_pmem(machine, parameters)
        return super().lost_without_power(machine, parameters, metrics)

    def ran_for(self, metrics: Mapping[str, int | float]) -> str:
        """Say how many requests there were."""
        return f"{metrics['simulated_ops']:,.0f} requests"

    def curve(self, parameters: SystemParameters) -> tuple[str, str] | None:
        """Throughput over time, where the study has time windows."""
        return ("time_ms", "window_throughput_per_s") if parameters.study in _OVER_TIME else None

    def rows(self, metrics: Mapping[str, int | float]) -> list[dict[str, int | float]]:
        """Return one row per time window, where there are any."""
        common = {name: value for name, value in metrics.items() if not name.startswith(_WINDOW)}
        count = sum(name.startswith(_WINDOW) for name in metrics) // len(_SERIES)
        if not count:
            return [common]
        return [
            common | {name: metrics[f"{_WINDOW}{number}.{name}"] for name in _SERIES} for number in range(count)
        ]


_WINDOW_METRICS = (
    Metric("time_ms", "ms", "time, end of the window"),
    Metric("window_throughput_per_s", "1/s", "requests acknowledged per second in the window"),
    Metric("window_latency_ns", "ns", "mean latency of those; nan where there are none"),
    Metric("window_latency_p99_ns", "ns", "99th percentile of their latency"),
)
_BATCHES = (
    *intervals.LATENCY_ENDS,
    Metric(
        "steady",
        "",
        "1: the 99th percentile is the same in the first half of the requests and in the second, and DRAM and "
        "PMem of an engine gave up as many pages as they took",
    ),
)
_OWN: dict[str, tuple[Metric, ...]] = {
    "load": _BATCHES,
    "recorded": (),  # the load of a day is not that of its hours
    "tenants": (Metric("scans_per_s", "1/s", "scans per second beside them"), *_BATCHES),
    "group-commit": (Metric("entries_per_group", "", "entries that became durable together, mean"), *_BATCHES),
    "propagation": (
        Metric("stalled_ratio", "", "part of the transactions that waited for room in the buffer"),
        *_BATCHES,
    ),
    "restart": (
        Metric("recovery_ms", "ms", "time of the recovery"),
        Metric("cut_off", "", "requests that the failure cut off"),
        *_WINDOW_METRICS,
    ),
    "long-run": _WINDOW_METRICS,
}


#: Studies whose requests that count are divided into batches.
_IN_BATCHES = tuple(study for study, metrics in _OWN.items() if set(_BATCHES) <= set(metrics))
#: Studies whose rows are time windows.
_OVER_TIME = ("restart", "long-run")


#: Lookups of a warm-up, by each worker, for each row: so many leave one in fifty out where all are as popular.
_LOOKUPS_PER_ROW = 4


def _zipf(parameters: SystemParameters) -> float:
    """Return the exponent of "auto": YCSB is skewed, and of a uniform ycsb-d no latest row is popular."""
    return 1.0 if parameters.service == "engine" and parameters.workload.startswith("ycsb") else 0.0


def _warmup(machine: Platform, parameters: SystemParameters) -> int:
    """Return the requests of "auto": of a table, whose state is in the caches alone, what fills these.

    At most a lookup for each of their lines. Of 262,144 rows by Zipf's law (z = 1) tum-6212u then serves 73
    million per second; with seven times as many 76, with none 31 (docs/des.md).
    """
    if parameters.service != "table" or parameters.study not in ("load", "tenants"):
        return 0
    caches = machine.value("llc", "size") + parameters.workers * machine.value("l2", "size")
    return min(_LOOKUPS_PER_ROW * parameters.rows * parameters.workers, caches // LINE_BYTES)


def _setting(machine: Platform, parameters: SystemParameters, seed: int) -> studies.Setting:
    parts = parts_of(parameters)
    if parameters.study == "recorded":
        mix = [Ask("recorded.request")]
    elif parameters.service == "table":
        mix = [_asked("table.lookup", 1, parameters)]
    elif parameters.service == "engine" and parameters.workload != "rows":
        mix = [Ask("transactions.next")]
    elif parameters.service == "engine":
        shares = {"update": parameters.update_percent, "read": 100 - parameters.update_percent}
        mix = [_asked(f"engine.{kind}", weight, parameters) for kind, weight in shares.items() if weight > 0]
    else:
        mix = [Ask(f"{parts[0].name}.append")]
    assert isinstance(parameters.warmup, int), "settled"
    in_order = parameters.study == "restart"  # so that its saturation is that of the server that is crashed
    return studies.Setting(machine, parts, parameters.workers, tuple(mix), seed, parameters.warmup, in_order)


def _asked(kind: str, weight: int, parameters: SystemParameters) -> Ask:
    zipf = exponent_of(parameters)
    if zipf == 0:
        return Ask(kind, weight, first="uniform", below=parameters.rows)
    return Ask(kind, weight, first="zipf", below=parameters.rows, zipf=zipf)


def _simulate(
    machine: Platform, parameters: SystemParameters, seed: int, state: Path | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if parameters.study == "group-commit":
        return studies.group_commit(
            machine,
            log_of(parameters),
            size=parameters.group_size,
            timeout=parameters.timeout,
            rate=parameters.rate,
            requests=parameters.requests,
            seed=seed,
            batches=intervals.BATCHES,
        ), []
    if parameters.study == "propagation":
        return studies.propagation(
            machine,
            log=transaction_log(parameters),
            pages=pages_of(parameters),
            background=parameters.background,
            workers=parameters.workers,
            writers=parameters.writers,
            limit=parameters.dirty_limit,
            target=parameters.dirty_target,
            rate=parameters.rate,
            requests=parameters.requests,
            seed=seed,
            batches=intervals.BATCHES,
        ), []
    setting = _setting(machine, parameters, seed)
    if parameters.study == "recorded":
        arrivals = recording_of(parameters).arrivals(parameters.speed_percent)
        return studies.recorded_load(setting, arrivals), []
    searched = studies.SEARCH_REQUESTS / (studies.SEARCH_REQUESTS + parameters.requests)
    if parameters.rate:
        saturation, searched = math.nan, 0.0
    else:
        with stretch(0, searched):
            saturation = studies.saturation(setting)
    rate = float(parameters.rate or saturation * parameters.load_percent / 100)
    with stretch(searched, 1):
        return _under_load(setting, parameters, rate, saturation, state)


def _under_load(
    setting: studies.Setting, parameters: SystemParameters, rate: float, saturation: float, state: Path | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
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
        found = studies.two_tenants(
            setting, rate, scans, parameters.scanners, parameters.requests, intervals.BATCHES
        )
    else:
        found = studies.open_load(setting, rate, parameters.requests, intervals.BATCHES)
    return found | {"saturation": saturation}, []


def _check_counted(found: Mapping[str, Any], parameters: SystemParameters) -> None:
    # Of no request there is no latency: 0 ns would be the best tail of a sweep.
    if found["count"]:
        return
    if parameters.study == "recorded":
        raise ConfigError("recording: no request was counted; give more of them")
    length = "duration" if parameters.study in _OVER_TIME else "requests"
    raise ConfigError(f"{length}: no request was counted; raise {length}")


def _metrics(found: dict[str, Any], parameters: SystemParameters) -> dict[str, int | float]:
    metrics: dict[str, int | float] = {
        "offered_per_s": found["offered"],
        "throughput_per_s": _per_second(found["count"], found["elapsed_ps"]),
        "saturation_per_s": found.get("saturation", math.nan),
        "latency_ns": found["mean_ps"] / _PS_PER_NS,
        "waited_ns": found["waited_ps"] / _PS_PER_NS,
        "mean_in_system": found["mean_in_system"],
        "in_system_at_end": found["in_system"],
        "keeps_up": int(found.get("keeps_up", studies.keeps_up(found, workers_of(parameters)))),
        "simulated_ops": found["count"],
        "out_of_range_count": found["counters"]["out_of_range_count"],
    }
    metrics |= {
        f"latency_{name}_ns": found[f"{name}_ps"] / _PS_PER_NS for name in ("p50", "p95", "p99", "p999", "max")
    }
    if parameters.study in _IN_BATCHES:
        metrics |= _of_batches(intervals.Latencies(*found["batches"]), bool(metrics["keeps_up"]))
        engine = f"{parts_of(parameters)[0].name}."
        if metrics["keeps_up"] and is_filling(found["facts"], found["count"], engine):
            metrics["steady"] = 0
    own = ("scans_per_s", "entries_per_group", "stalled_ratio", "cut_off")
    metrics |= {name: found[name] for name in own if name in found}
    if "recovery" in found:
        metrics["recovery_ms"] = found["recovery"] / MS
    metrics |= {COUNTER_PREFIX + name: value for name, value in found["counters"].items()}
    return metrics


def _of_batches(latencies: intervals.Latencies, keeps_up: bool) -> dict[str, float]:
    # Of a queue that grows the latency says how long the run was: no run is a sample of it.
    if not keeps_up:
        return dict.fromkeys((metric.name for metric in _BATCHES), math.nan)
    return latencies.metrics() | {"steady": latencies.is_steady(0.99)}


def _series(windows: list[dict[str, Any]]) -> dict[str, int | float]:
    series: dict[str, int | float] = {}
    for number, window in enumerate(windows):
        # Of no request there is no latency.
        latencies = (window["mean_ps"], window["p99_ps"]) if window["count"] else (math.nan, math.nan)
        values = (
            (window["begin_ps"] + window["window_ps"]) / MS,
            _per_second(window["count"], window["window_ps"]),
            *(latency / _PS_PER_NS for latency in latencies),
        )
        series |= {f"{_WINDOW}{number}.{name}": value for name, value in zip(_SERIES, values, strict=True)}
    return series


def _per_second(count: int, elapsed_ps: int) -> float:
    return count * 1e12 / elapsed_ps if elapsed_ps else 0.0
