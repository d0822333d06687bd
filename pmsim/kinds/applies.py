"""When a parameter means something: of which engines, workloads, studies and numbers of threads.

A parameter that nothing reads still changes the seed of its point, and so the result, by noise that looks like
an effect. `pmsim.unused` refuses it where no point of a scenario has a use for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pmsim.errors import ConfigError
from pmsim.kinds.types import KindParameters
from pmsim.messages import shown


@dataclass(frozen=True)
class Condition:
    """A parameter that has to have certain values.

    Attributes
    ----------
    key : str
        The parameter that decides.
    holds : callable
        Whether its value is one of them.
    remedy : str
        What to use instead, for messages.
    """

    key: str
    holds: Callable[[Any], bool]
    remedy: str


#: Parameter: conditions that all have to hold; what is not there always means something.
Uses = Mapping[str, tuple[Condition, ...]]


def is_given(name: str, points: Sequence[KindParameters]) -> bool:
    """Return whether a parameter is other than at its default in any of the points."""
    return not all(_at_default(point, name) for point in points)


def without_use(
    name: str, uses: Uses, asked: Sequence[KindParameters], settled: Sequence[KindParameters]
) -> str | None:
    """Say why a parameter, given other than at its default, is of no use to any point; None where it is.

    Parameters
    ----------
    name : str
        The parameter.
    uses : mapping
        Of the kind.
    asked : sequence of parameters
        Of all points of a scenario: an option of one engine may stand in a sweep over engines. A switch that is
        off in all of them, or the same place for the log, is true of engines without it, too.
    settled : sequence of parameters
        The same with what they leave to the machine decided: on that it depends what has a use.
    """
    conditions = uses[name]
    given = [end for start, end in zip(asked, settled, strict=True) if not _at_default(start, name)]
    if not given:
        return None
    values = [getattr(point, name) for point in asked]
    same = all(value == values[0] for value in values)
    of_all = same and (name in _OF_THE_SETUP or values[0] is False)
    used = any(all(each.holds(getattr(point, each.key)) for each in conditions) for point in settled)
    if of_all or used:
        return None
    failed: dict[str, dict[str, None]] = {}
    for each in conditions:
        deciding = [getattr(point, each.key) for point in given]
        if bad := [value for value in deciding if not each.holds(value)]:
            failed[each.key] = dict.fromkeys(map(shown, bad))
    now = " and ".join(f"{key} = {_either(list(bad))}" for key, bad in failed.items())
    instead = " and ".join(each.remedy for each in conditions if each.key in failed)
    return f"{name}: has no meaning for {now}; remove it or use {instead}"


def check_file(name: str, uses: Uses, parameters: KindParameters) -> None:
    """Refuse a file that this point would not read, and so would not even miss."""
    if message := without_use(name, uses, [parameters], [parameters]):
        raise ConfigError(message)


def _at_default(parameters: KindParameters, name: str) -> bool:
    field = type(parameters).model_fields[name]
    return bool(getattr(parameters, name) == field.get_default(call_default_factory=True))


def _either(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _one_of(key: str, *values: str) -> Condition:
    words = _either([shown(value) for value in values])
    return Condition(key, lambda value: value in values, f"{key} = {words}")


#: Said once for all engines that a setup is tried with; only several values would look like an effect.
_OF_THE_SETUP = ("page_write", "log_device", "log_algorithm", "log_layout")

_SEVERAL_THREADS = Condition("threads", lambda threads: threads > 1, "threads = 2 or more")
_SCALED = Condition("scale", lambda scale: scale != "1", "scale below 1")

_YCSB_MIXES = ("ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f")
_YCSB = _one_of("workload", "ycsb-ro", "ycsb-rw", "ycsb-scan", *_YCSB_MIXES)
_ZIPF = _one_of("workload", "ycsb-ro", "ycsb-rw", "ycsb-scan", *_YCSB_MIXES, "lookup8")
_SCANS = _one_of("workload", "ycsb-scan", "ycsb-e", "table-scan")
_SCANNING = _one_of("workload", "ycsb-scan", "ycsb-e", "table-scan", "requests")
_NOT_TPCC = Condition("workload", lambda workload: workload != "tpcc", "another workload")

_THREE_TIERS = _one_of("engine", "three-tier", "spitfire")
_SPITFIRE = _one_of("engine", "spitfire")
_BUFFER_MANAGERS = ("basic-nvm-bm", "file-bm", "redirect-bm", "ssd-bm", "three-tier", "spitfire")
_BUFFERED = _one_of("engine", *_BUFFER_MANAGERS)
#: The others have undo logs of their own, on PMem.
LOGGED = _one_of("engine", "main-memory", *_BUFFER_MANAGERS)
#: Pages, or the image of those in DRAM, are written to PMem; the others change them there, or have none.
_PAGES_TO_PMEM = _one_of(
    "engine", "main-memory", *(engine for engine in _BUFFER_MANAGERS if engine != "ssd-bm")
)
_LOG_ON_PMEM = _one_of("log_device", "pmem")
_LOG_ON_SSD = _one_of("log_device", "ssd")
_FILES = _one_of("engine", "file-bm")

#: Of kinds with an engine.
ENGINE: Uses = {
    "cache_line_grained": (_THREE_TIERS,),
    "mini_pages": (_THREE_TIERS,),
    "pointer_swizzling": (_THREE_TIERS,),
    "admission_entries": (_one_of("engine", "three-tier"),),
    "migration_dr": (_SPITFIRE,),
    "migration_dw": (_SPITFIRE,),
    "migration_nr": (_SPITFIRE,),
    "migration_nw": (_SPITFIRE,),
    "data_size": (_NOT_TPCC,),
    "warehouses": (_one_of("workload", "tpcc"),),
    "update_percent": (_one_of("workload", "ycsb-rw"),),
    "scan_length": (_SCANS,),
    "scan_hint": (_SCANNING,),
    "scan_prefetch": (_SCANNING,),
    "row_cycles": (_one_of("workload", "table-scan"),),
    "zipf": (_ZIPF,),
    "access": (_YCSB,),
    "requests": (_one_of("workload", "requests"),),
    "row_size": (_one_of("workload", "requests", "table-scan"),),
    "page_write": (_PAGES_TO_PMEM,),
    "log_device": (LOGGED,),
    "log_algorithm": (LOGGED, _LOG_ON_PMEM),
    "log_layout": (LOGGED, _LOG_ON_PMEM),
    "logs": (_SEVERAL_THREADS, LOGGED),
    "commits": (_SEVERAL_THREADS, LOGGED, _LOG_ON_SSD, _one_of("logs", "shared")),
    "cleaning": (LOGGED,),
    "library_cycles": (_one_of("engine", "nvm-undo"),),
    "system_call_cycles": (_FILES,),
    "system_call_copies": (_FILES,),
    "latches": (_SEVERAL_THREADS,),
    "fixes": (_SEVERAL_THREADS, _BUFFERED),
    "locks": (_SEVERAL_THREADS, _one_of("workload", "tpcc"), _one_of("latches", "shared", "optimistic")),
    "scale_caches": (_SCALED,),
}

_RECORDED = _one_of("study", "recorded")
_NOT_RECORDED = Condition("study", lambda study: study != "recorded", "another study")
_WHOLE_ROWS = _one_of("workload", "rows")
_TENANTS = _one_of("study", "tenants")
_GROUPS = _one_of("study", "group-commit")
_PROPAGATION = _one_of("study", "propagation")
_WRITERS = _one_of("background", "writers")
_RESTART = _one_of("study", "restart")
_LONG_RUN = _one_of("study", "long-run")
_OVER_TIME = _one_of("study", "restart", "long-run")
_ON_ENGINE = _one_of("service", "engine")
_SEVERAL_WORKERS = Condition("workers", lambda workers: workers > 1, "workers = 2 or more")
_LOGS = _one_of("service", "log", "block-log")
_ROWS = _one_of("service", "table", "engine")

#: Of kind "system". Propagation has no service besides its log, which is the default.
SYSTEM: Uses = {
    "service": (Condition("study", lambda study: study != "propagation", "another study"),),
    "workers": (Condition("study", lambda study: study != "group-commit", "another study"),),
    "load_percent": (
        _one_of("study", "load", "tenants", "restart", "long-run"),
        Condition("rate", lambda rate: rate == 0, "rate = 0"),
    ),
    "rate": (_NOT_RECORDED,),
    "requests": (_one_of("study", "load", "tenants", "group-commit", "propagation"),),
    "recording": (_RECORDED,),
    "speed_percent": (_RECORDED,),
    "algorithm": (_one_of("service", "log"),),
    "entry_size": (_LOGS,),
    "log_size": (_LOGS,),
    "rows": (_ROWS, _NOT_TPCC),
    "row_size": (_ROWS, _WHOLE_ROWS),
    "zipf": (_ROWS, _NOT_RECORDED, _NOT_TPCC),
    "scanners": (_TENANTS,),
    "scan_rows": (_TENANTS,),
    "engine": (_ON_ENGINE,),
    "dram_capacity": (_ON_ENGINE,),
    "pmem_capacity": (_ON_ENGINE,),
    "ssd_capacity": (_ON_ENGINE,),
    "log_device": (_ON_ENGINE, LOGGED),
    "commits": (_ON_ENGINE, LOGGED, _LOG_ON_SSD, _SEVERAL_WORKERS),
    "cleaning": (_ON_ENGINE, LOGGED),
    "cpu_cycles": (_ON_ENGINE,),
    "transaction_cycles": (_ON_ENGINE,),
    "workload": (_ON_ENGINE, _NOT_RECORDED),
    "warehouses": (_ON_ENGINE, _one_of("workload", "tpcc")),
    "update_percent": (_ON_ENGINE, _NOT_RECORDED, _WHOLE_ROWS),
    "warmup": (
        _one_of("service", "table", "log", "block-log", "engine"),
        _one_of("study", "load", "tenants", "long-run", "restart"),
    ),
    "prices": (_ON_ENGINE,),
    "group_size": (_GROUPS,),
    "timeout": (_GROUPS,),
    "technique": (_PROPAGATION,),
    "background": (_PROPAGATION,),
    "writers": (_PROPAGATION, _WRITERS),
    "page_size": (_PROPAGATION,),
    "pages": (_PROPAGATION,),
    "dirty_lines": (_PROPAGATION,),
    "dirty_limit": (_PROPAGATION,),
    "dirty_target": (_PROPAGATION, _WRITERS),
    "crash_at": (_RESTART,),
    "restart_after": (_RESTART,),
    "duration": (_OVER_TIME,),
    "windows": (_OVER_TIME,),
    "segment": (_LONG_RUN,),
}

#: Of kind "log".
LOG: Uses = {"dancing_fields": (_one_of("algorithm", "header-dancing"),)}

_COROUTINES = Condition("interleave", lambda how: how != "none", "interleave = 'reads', 'writes' or 'both'")
_INSERTS = _one_of("operation", "insert")

#: Of kind "interleave".
INTERLEAVE: Uses = {
    "group_size": (_COROUTINES,),
    "cpu_cycles": (_COROUTINES,),
    "fence": (_INSERTS,),
    "first_flush": (_INSERTS,),
}

_WRITES_PAGES = Condition("technique", lambda technique: technique != "crc32c", "another technique")

#: Of kind "page-flush". Which lines are dirty is noted whatever the technique makes of it.
PAGE_FLUSH: Uses = {
    "spare_slots": (
        Condition(
            "technique",
            lambda technique: technique not in ("checksum", "crc32c"),
            "technique = 'cow', 'cow-load', 'cow-invalidate', 'microlog' or 'hybrid'",
        ),
    ),
    "write": (_WRITES_PAGES,),
    "barriers": (_WRITES_PAGES,),
}
