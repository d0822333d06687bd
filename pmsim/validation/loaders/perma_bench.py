"""Reads the PerMA-Bench measurements (github.com/hpides/perma-bench): JSON results, and tables made of them.

Two layouts are recognised: a table ``a256_raw.csv`` of the raw benchmarks of one machine, and the published
``*.json``: a list of ``{"bm_name", "benchmarks": [{"config", "results"}]}``. Set-up, after the paper and its
source:

- Every persisting write ends in a fence. ``cache`` is store + clwb, ``cacheinv`` store + clflushopt (the same
  on these processors, whose clwb invalidates), ``nocache`` streaming stores, ``none`` plain stores without one.
- Random accesses of all threads fall in one range; each sequential thread has a part of its own.
- DRAM is in 2 MiB pages; files lie on ext4 with DAX, page size not stated: both are the platform's defaults.
- Operation chains of a DRAM run are written with ``rp_`` and ``wp_`` as well; they become ``rd_`` and ``wd_``.
- Bandwidth is in GiB/s.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.validation.claims import Use
from pmsim.validation.loaders.common import GIB, DataSet, Measurement, count, number, read_csv, read_data

NAME = "perma-bench"
LAYOUT = "PerMA-Bench (a256_raw.csv, *.json results)"
CITATION = (
    "L. Benson, L. Papke, T. Rabl: PerMA-Bench: Benchmarking Persistent Memory Access, PVLDB 15(11), 2022"
)
# The machines that have a profile, by the names of result files.
_MACHINES = {
    "a256": "perma-a256",
    "apache-256": "perma-a256",
    "intel-256": "perma-a256",
    "a128": "perma-a128",
    "apache-128": "perma-a128",
    "intel-128": "perma-a128",
}
_CALIBRATED = "perma-a256"
# Folders whose files have the names of machines but were measured with something about them changed.
_OTHER_CONFIGURATIONS = frozenset({"prefetcher", "speed", "dimms", "numa"})
_RAW_BENCHMARKS = frozenset(
    {
        "sequential_reads",
        "random_reads",
        "sequential_writes",
        "random_writes",
        "operation_latency",
        "double_flush_latency",
    }
)
_PERSIST = {"cache": "store+clwb", "cacheinv": "store+clwb", "nocache": "ntstore", "none": "store"}
_DEFAULT_RANGE = 10 * GIB
_CHAIN = re.compile(r"r[dp]?_\d+|w[dp]?_\d+_(none|cache|cacheinv|nocache)(_-?\d+)?")


def recognises(folder: Path) -> bool:
    """Tell whether a folder holds the table, or at least one result file (here or under ``results``)."""
    return any(folder.glob("*_raw.csv")) or any(_has_results(path) for path in _json_files(folder))


def _json_files(folder: Path) -> list[Path]:
    found = sorted([*folder.glob("*.json"), *folder.glob("results/**/*.json")])
    # The published set links one file into several folders.
    return [path for path in found if not path.is_symlink()]


def _has_results(path: Path) -> bool:
    """Tell whether a file begins as results do. One with the name of a machine is read in any case."""
    if path.stem in _MACHINES:
        return True
    try:
        with path.open("rb") as file:
            start = file.read(65536)
    except OSError:
        return False
    return start.lstrip().startswith(b"[") and re.search(rb'"(bm_name|bench_name)"', start) is not None


def load(folder: Path) -> DataSet:
    """Read every table and every result file whose machine has a profile."""
    data = DataSet(NAME, folder, CITATION)
    reader = _Reader(data)
    for path in sorted(folder.glob("*_raw.csv")):
        reader.table(path)
    for path in _json_files(folder):
        if _has_results(path):
            reader.results(path)
        else:
            data.skipped.add(f"{path.name}: no results of PerMA-Bench")
    return data


class _Reader:
    def __init__(self, data: DataSet) -> None:
        self._data = data

    def _add(
        self,
        place: Mapping[str, str],
        kind: str,
        parameters: dict[str, Any],
        metric: str,
        value: float,
        medium: str,
    ) -> None:
        unit = {"operations_per_s": "1/s", "latency_ns": "ns"}.get(metric, "GB/s")
        fitted = place["platform"] == _CALIBRATED and place["benchmark"] in _RAW_BENCHMARKS
        use: Use = "calibration" if fitted else "prediction"
        row = Measurement(
            NAME,
            place["benchmark"],
            place["platform"],
            kind,
            parameters,
            metric,
            value,
            unit,
            medium,
            use,
            CITATION,
        )
        self._data.rows.append(row)

    def table(self, path: Path) -> None:
        """Read a table of raw benchmarks."""
        machine = path.stem.removesuffix("_raw")
        if machine not in _MACHINES:
            raise ConfigError(f"{path}: machine '{machine}': no profile; known: {', '.join(_MACHINES)}")
        columns = [
            "memory",
            "bench",
            "exec_mode",
            "operation",
            "access_size",
            "threads",
            "persist_instruction",
            "custom_operations",
            "bandwidth_GiBs",
            "ops_per_s",
            "lat_avg",
        ]
        for line, row in read_csv(path, columns):
            place = {"benchmark": row["bench"], "platform": _MACHINES[machine], "where": f"{path}, line {line}"}
            threads = count(path, line, row, "threads")
            medium = _known(place, "memory", row["memory"], ("dram", "pmem"))
            if row["exec_mode"] == "custom":
                chain = _chain(place, row["custom_operations"], medium)
                parameters = {"operations": chain, "threads": threads, "region_size": _DEFAULT_RANGE}
                rate = number(path, line, row, "ops_per_s")
                self._add(place, "operations", parameters, "operations_per_s", rate, medium)
                if row["lat_avg"]:
                    latency = number(path, line, row, "lat_avg")
                    self._add(place, "operations", parameters, "latency_ns", latency, medium)
                continue
            config = {
                "exec_mode": row["exec_mode"],
                "operation": row["operation"],
                "access_size": count(path, line, row, "access_size"),
                "number_threads": threads,
                "persist_instruction": row["persist_instruction"],
            }
            parameters = _bandwidth(place, config, medium)
            value = number(path, line, row, "bandwidth_GiBs") * GIB / 1e9
            self._add(place, "bandwidth", parameters, "bandwidth_gb_s", value, medium)

    def results(self, path: Path) -> None:
        """Read a JSON result file."""
        content = _parsed(path)
        machine = _MACHINES.get(path.stem)
        left_out = "no profile of this machine"
        if path.parent.name in _OTHER_CONFIGURATIONS:
            machine, left_out = None, f"the machine in another configuration ({path.parent.name})"
        for position, benchmark in enumerate(content if isinstance(content, list) else [None]):
            if not isinstance(benchmark, dict) or not isinstance(benchmark.get("benchmarks"), list):
                raise ConfigError(
                    f"{path}: benchmark {position}: expected an object with the list 'benchmarks'; correct it"
                )
            name = str(benchmark.get("bm_name") or benchmark.get("bench_name"))
            for run_number, run in enumerate(benchmark["benchmarks"]):
                where = f"{path}: {name}, run {run_number}"
                if not isinstance(run, dict) or not isinstance(run.get("config", run.get("configs")), dict):
                    raise ConfigError(f"{where}: expected an object with 'config'; correct it")
                if machine is None:
                    self._data.skipped.add(f"{path.name}: {left_out}")
                    continue
                self._run({"benchmark": name, "platform": machine, "where": where}, run)

    def _run(self, place: Mapping[str, str], run: dict[str, Any]) -> None:
        config: dict[str, Any] = run["config"] if "config" in run else run["configs"]
        results = _object(place, "results", run.get("results", run))
        if _is_parallel(config):
            self._side_by_side(place, config, results)
            return
        reason = _not_expressible(config)
        if reason:
            self._data.skipped.add(f"{place['benchmark']}: {reason}")
            return
        medium = _known(place, "memory_type", str(config.get("memory_type", "pmem")), ("dram", "pmem"))
        if config.get("exec_mode") == "custom":
            self._chain(place, config, results, medium)
            return
        value = _bandwidth_of(place, config, results) * GIB / 1e9
        parameters = _bandwidth(place, config, medium)
        self._add(place, "bandwidth", parameters, "bandwidth_gb_s", value, medium)

    def _side_by_side(
        self, place: Mapping[str, str], config: dict[str, dict[str, Any]], results: dict[str, Any]
    ) -> None:
        groups = [_group(place, part) for part in config.values()]
        if not all(groups):
            self._data.skipped.add(f"{place['benchmark']}: two workloads, of which one has no task in pmsim")
            return
        for index, (name, part) in enumerate(config.items(), start=1):
            own = _object(place, f"results of {name}", results.get(name))
            own = _object(place, f"results of {name}", own.get("results", own))
            value = _bandwidth_of(place, part, own) * GIB / 1e9
            medium = groups[index - 1]["memory"]
            metric = f"group_{index}_bandwidth_gb_s"
            self._add(place, "mixed", {"groups": groups}, metric, value, medium)

    def _chain(
        self, place: Mapping[str, str], config: dict[str, Any], results: dict[str, Any], medium: str
    ) -> None:
        chain = _chain(place, str(config.get("custom_operations", "")), medium)
        parameters = {
            "operations": chain,
            "threads": _whole(place, config, "number_threads"),
            "region_size": _optional(place, config, "memory_range") or _DEFAULT_RANGE,
        }
        rate = results.get("ops_per_second", results.get("ops_per_s"))
        self._add(
            place,
            "operations",
            parameters,
            "operations_per_s",
            _positive(place, "ops_per_second", rate),
            medium,
        )
        latency = results.get("latency")
        if isinstance(latency, dict) and "avg" in latency:
            value = _positive(place, "latency.avg", latency["avg"])
            self._add(place, "operations", parameters, "latency_ns", value, medium)


def _is_parallel(config: dict[str, Any]) -> bool:
    return bool(config) and all(isinstance(part, dict) for part in config.values())


def _group(place: Mapping[str, str], config: dict[str, Any]) -> dict[str, Any]:
    """Translate one of two workloads; empty where no task of the kind "mixed" does the same."""
    task = {
        ("sequential", "read"): "scan",
        ("random", "read"): "read",
        ("sequential", "write"): "append",
        ("random", "write"): "overwrite",
    }.get((str(config.get("exec_mode")), str(config.get("operation"))))
    streaming = config.get("operation") == "read" or config.get("persist_instruction") == "nocache"
    if task is None or not streaming or _not_expressible(config):
        return {}
    group: dict[str, Any] = {
        "task": task,
        "memory": _known(place, "memory_type", str(config.get("memory_type", "pmem")), ("dram", "pmem")),
        "threads": _whole(place, config, "number_threads"),
    }
    return group if task == "scan" else group | {"access_size": _whole(place, config, "access_size")}


def _not_expressible(config: dict[str, Any]) -> str:
    if config.get("numa_pattern", "near") != "near":
        return "remote socket"
    if config.get("dram_operation_ratio", 0) not in (0, None, "", "0", "0.0"):
        return "operations split between DRAM and PMem"
    if config.get("random_distribution", "uniform") != "uniform":
        return "skewed distribution"
    if config.get("exec_mode") == "sequential_desc":
        return "descending addresses"
    if config.get("prefault_file", True) in (False, "false"):
        return "page faults"
    return ""


def _bandwidth(place: Mapping[str, str], config: Mapping[str, Any], medium: str) -> dict[str, Any]:
    pattern = _known(place, "exec_mode", str(config.get("exec_mode", "")), ("random", "sequential"))
    access_size = _whole(place, config, "access_size")
    threads = _whole(place, config, "number_threads")
    partitions = _optional(place, config, "number_partitions", 1)
    shared = pattern == "random" and (partitions == 1 or threads == 1)
    total = _optional(place, config, "memory_range") or _DEFAULT_RANGE
    parameters: dict[str, Any] = {
        "memory": medium,
        "operation": "load",
        "pattern": pattern,
        "access_size": access_size,
        "threads": threads,
        "shared_region": shared,
        "region_size": total,
        "address_list": True,
    }
    if _known(place, "operation", str(config.get("operation", "")), ("read", "write")) == "write":
        instruction = str(config.get("persist_instruction", ""))
        parameters["operation"] = _PERSIST[_known(place, "persist_instruction", instruction, tuple(_PERSIST))]
        if instruction != "none":
            parameters["fence_every"] = access_size
        if parameters["operation"] == "store+clwb":
            parameters["flush_every"] = access_size
    return parameters


def _bandwidth_of(place: Mapping[str, str], config: Mapping[str, Any], results: Mapping[str, Any]) -> float:
    value = results.get("bandwidth")
    if isinstance(value, dict):
        value = value.get("total", value.get(str(config.get("operation"))))
    return _positive(place, "bandwidth", value)


def _chain(place: Mapping[str, str], text: str, medium: str) -> str:
    operations = [operation.strip() for operation in text.split(",")]
    for operation in operations:
        if not _CHAIN.fullmatch(operation):
            raise ConfigError(
                f"{place['where']}: operation {shown(operation)} is not in the notation of PerMA-Bench; "
                "correct it"
            )
    # "r_64" and "rp_64" mean the memory under test; in a run on DRAM that is DRAM.
    letter = "d" if medium == "dram" else "p"
    explicit = [re.sub(r"^([rw])_", r"\1p_", operation) for operation in operations]
    return ",".join(re.sub(r"^([rw])p_", rf"\1{letter}_", operation) for operation in explicit)


def _parsed(path: Path) -> Any:
    text = read_data(path, "JSON")
    try:
        return json.loads(text, object_pairs_hook=_without_twins)
    except RecursionError:
        raise ConfigError(f"{path}: not a JSON file: nested too deeply; correct it") from None
    except ValueError as error:  # JSONDecodeError, and whole numbers of thousands of digits
        raise ConfigError(f"{path}: not a JSON file: {' '.join(str(error).split())}; correct it") from None


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError(f"an object with a key twice, among {', '.join(table)}")
    return table


def _object(place: Mapping[str, str], key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{place['where']}: {key} = {shown(value)}: expected an object; correct it")
    return value


def _known(place: Mapping[str, str], key: str, text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise ConfigError(f"{place['where']}: {key} = {shown(text)}: unknown; known: {', '.join(known)}")
    return text


def _positive(place: Mapping[str, str], key: str, value: object) -> float:
    # Beyond a double are only whole numbers that somebody has invented.
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e300
    if not usable:
        raise ConfigError(f"{place['where']}: {key} = {shown(value)}: expected a positive number; correct it")
    assert isinstance(value, int | float)
    return float(value)


def _whole(place: Mapping[str, str], config: Mapping[str, Any], key: str) -> int:
    value = _positive(place, key, config.get(key))
    if value != int(value):
        raise ConfigError(f"{place['where']}: {key} = {shown(value)}: expected a whole number; correct it")
    return int(value)


def _optional(place: Mapping[str, str], config: Mapping[str, Any], key: str, default: int = 0) -> int:
    """Read a whole number that may be 0 or absent."""
    value = config.get(key, default)
    return 0 if value == 0 and not isinstance(value, bool) else _whole(place, {key: value}, key)
