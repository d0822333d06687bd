"""Reads the OptaneStudy measurements (github.com/NVSL/OptaneStudy): figures' data and raw sweeps.

Three parts are recognised: ``graphs/*.csv`` of the paper's figures, ``random_bandwidth_subset.csv`` (medians of
the raw random sweep, made for calibration), and the raw sweeps ``data/bandwidth.csv``, ``data/flush.csv`` and
``data/alignment.csv``. Set-ups follow the paper and the source of its load generator:

- graph 02: best case, so sequential writes; 1 GiB is touched.
- graph 04: sequential 256-byte accesses, each thread in its own 2 GiB.
- graph 05: random accesses, all threads in 16 GiB, chunks of more than 4 KiB at multiples of 4 KiB (the sizes
  are those of the generator's 41_sizebw_unalign.sh, which says so); 24/24/24 threads for DRAM
  (loads/ntstore/store+clwb), 16/4/12 for six modules, 4/1/2 for one.
- graph 12: bandwidth with six threads, latency with one. Graph 13: one thread, one module, sequential.
- A flush follows the store of its line, but for ``clwb(write size)`` of graph 13 and rows with a ``clwb_size``
  above 64: these store a whole window before they flush it (`flush_every`).

Units are taken as the publishers label them, GB = 1e9 and MB = 1e6 bytes. Their load generator divides by
2**20, so that its "MB" may be MiB; `load` can read them so.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pmsim.errors import ConfigError
from pmsim.validation.claims import Use
from pmsim.validation.loaders.common import (
    GIB,
    DataSet,
    Measurement,
    Skipped,
    amount,
    count,
    count_or_zero,
    number,
    read_csv,
)

NAME = "optane-study"
LAYOUT = "OptaneStudy (graphs/*.csv, random_bandwidth_subset.csv, data/bandwidth.csv)"
CITATION = (
    "J. Yang, J. Kim, M. Hoseinzadeh, J. Izraelevitz, S. Swanson: An Empirical Guide to the Behavior and Use "
    "of Scalable Persistent Memory, USENIX FAST 2020"
)
PLATFORM = "ucsd-8260"
Units = Literal["labelled", "binary"]

_OPERATIONS = {"Load": "load", "NTStore": "ntstore", "Store": "store", "Store+Flush": "store+clwb"}
_KERNELS = {"Read": "load", "Write(ntstore)": "ntstore", "Write(clwb)": "store+clwb"}
_MEDIA = {"ldram": "dram", "lpmem": "pmem"}
# Threads of graph 05, per kernel, as the panels of the figure give them.
_BEST_THREADS = {
    "dram": {"load": 24, "ntstore": 24, "store+clwb": 24},
    "optane": {"load": 16, "ntstore": 4, "store+clwb": 12},
    "optane_ni": {"load": 4, "ntstore": 1, "store+clwb": 2},
}
_FIGURES = (
    "02-best_case_latency",
    *(
        f"{figure}_{part}"
        for figure in ("04-bandwidth_thcount", "05-bandwidth_accesssize")
        for part in _BEST_THREADS
    ),
    "12-flush_instr_bw",
    "12-flush_instr_lat",
    "13-sfence_interval",
)
_SUBSET = "random_bandwidth_subset.csv"
_SUBSET_SIZES = frozenset({64, 256, 4096, 65536, 1048576})
_SUBSET_THREADS = frozenset({1, 4, 12, 24})
_RAW = ("bandwidth.csv", "flush.csv", "alignment.csv", "allocation.csv")
_SHARED_REGION = 16 * GIB  # random accesses of all threads
_THREAD_REGION = 2 * GIB  # strided accesses of each thread
_LATENCY_REGION = GIB
_LINE = 64
_PAGE = 4096  # what the chunks of graph 05 are aligned to, where they are larger


def recognises(folder: Path) -> bool:
    """Tell whether a folder holds any part of the set."""
    return (
        any((folder / "graphs" / f"{name}.csv").is_file() for name in _FIGURES)
        or (folder / _SUBSET).is_file()
        or (folder / "data" / "bandwidth.csv").is_file()
    )


def load(folder: Path, units: Units = "labelled") -> DataSet:
    """Read every part that the folder holds.

    Parameters
    ----------
    folder : a clone of the repository, or a folder with some of its files.
    units : "labelled": MB and GB are powers of ten; "binary": powers of two, as in the load generator's source.
    """
    data = DataSet(NAME, folder, CITATION)
    reader = _Reader(data, units)
    for name in _FIGURES:
        path = folder / "graphs" / f"{name}.csv"
        if os.path.lexists(path):
            reader.figure(path)
    if os.path.lexists(folder / _SUBSET):
        reader.subset(folder / _SUBSET)
    for name in _RAW:
        path = folder / "data" / name
        if os.path.lexists(path):
            reader.raw(path)
    return data


def bandwidth_parameters(
    memory: str, operation: str, pattern: str, access_size: int, threads: int, interleaved: bool
) -> dict[str, Any]:
    """Write the parameters of a bandwidth run on this machine."""
    shared = pattern == "random"
    parameters: dict[str, Any] = {
        "memory": memory,
        "operation": operation,
        "pattern": pattern,
        "access_size": access_size,
        "threads": threads,
        "prefetcher": False,
        "shared_region": shared,
        "region_size": _SHARED_REGION if shared else _THREAD_REGION * threads,
    }
    if memory == "pmem" and not interleaved:
        parameters["dimms"] = 1
    return parameters


class _Reader:
    def __init__(self, data: DataSet, units: Units) -> None:
        self._data = data
        self._gb = GIB / 1e9 if units == "binary" else 1.0
        self._mb = (1 << 20) / 1e9 if units == "binary" else 1e-3
        self._swap_noted = False

    def _add(
        self,
        experiment: str,
        kind: str,
        parameters: dict[str, Any],
        metric: str,
        value: float,
        use: Use = "calibration",
    ) -> None:
        unit = "GB/s" if metric == "bandwidth_gb_s" else "ns"
        medium = parameters.get("memory", "pmem")
        self._data.rows.append(
            Measurement(
                NAME, experiment, PLATFORM, kind, parameters, metric, value, unit, medium, use, CITATION
            )
        )

    # figures

    def figure(self, path: Path) -> None:
        stem = path.stem
        if stem.startswith("02"):
            self._best_case_latency(path)
        elif stem.startswith("04"):
            self._by_threads(path, part=stem.removeprefix("04-bandwidth_thcount_"))
        elif stem.startswith("05"):
            self._by_size(path, part=stem.removeprefix("05-bandwidth_accesssize_"))
        elif stem.startswith("12"):
            self._persist(path)
        else:
            self._fence_interval(path)

    def _best_case_latency(self, path: Path) -> None:
        setups = {
            r"Read\Sequential": ("load", "sequential"),
            r"Read\Random": ("load", "random"),
            r"Write\(ntstore)": ("ntstore", "sequential"),
            r"Write\(clwb)": ("store+clwb", "sequential"),
        }
        rows = read_csv(path, ["", "DRAM", "Optane"])
        for line, row in rows:
            if row[""] not in setups:
                raise ConfigError(f"{path}, line {line}: '{row['']}': unknown; known: {', '.join(setups)}")
            operation, pattern = setups[row[""]]
            for column, memory in (("DRAM", "dram"), ("Optane", "pmem")):
                parameters = {
                    "memory": memory,
                    "operation": operation,
                    "pattern": pattern,
                    "region_size": _LATENCY_REGION,
                }
                self._add(path.stem, "latency", parameters, "latency_ns", number(path, line, row, column))

    def _by_threads(self, path: Path, part: str) -> None:
        rows = read_csv(path, ["Threads", *_KERNELS])
        kernels = self._unswapped(path, rows) if part == "optane" else _KERNELS
        for line, row in rows:
            for column, operation in kernels.items():
                parameters = bandwidth_parameters(
                    "dram" if part == "dram" else "pmem",
                    operation,
                    "sequential",
                    256,
                    count(path, line, row, "Threads"),
                    interleaved=part != "optane_ni",
                )
                value = number(path, line, row, column) * self._gb
                self._add(path.stem, "bandwidth", parameters, "bandwidth_gb_s", value)

    def _unswapped(self, path: Path, rows: Sequence[tuple[int, dict[str, str]]]) -> dict[str, str]:
        """Undo the erratum of 04-bandwidth_thcount_optane.csv: its two write columns have each other's name.

        One thread streams faster than it flushes. Where the columns say the opposite their names are swapped; a
        corrected file is read as it is.
        """
        line, first = min(rows, key=lambda found: number(path, found[0], found[1], "Threads"))
        if number(path, line, first, "Write(clwb)") <= number(path, line, first, "Write(ntstore)"):
            return _KERNELS
        self._data.notes.append(f"{path.name}: the names of its two write columns are swapped (known erratum)")
        return {"Read": "load", "Write(clwb)": "ntstore", "Write(ntstore)": "store+clwb"}

    def _by_size(self, path: Path, part: str) -> None:
        for line, row in read_csv(path, ["AccessSize", *_KERNELS]):
            for column, operation in _KERNELS.items():
                parameters = bandwidth_parameters(
                    "dram" if part == "dram" else "pmem",
                    operation,
                    "random",
                    count(path, line, row, "AccessSize"),
                    _BEST_THREADS[part][operation],
                    interleaved=part != "optane_ni",
                )
                if parameters["access_size"] > _PAGE:
                    parameters["alignment"] = _PAGE
                value = number(path, line, row, column) * self._gb
                self._add(path.stem, "bandwidth", parameters, "bandwidth_gb_s", value)

    def _persist(self, path: Path) -> None:
        bandwidth = path.stem.endswith("_bw")
        operations = ["ntstore", "store+clwb", *(["store"] if bandwidth else [])]
        for line, row in read_csv(path, ["", *operations]):
            size = count(path, line, row, "")
            for operation in operations:
                threads = 6 if bandwidth else 1
                parameters = {
                    "operation": operation,
                    "access_size": size,
                    "fence_every": size,
                    "threads": threads,
                    "region_size": _THREAD_REGION * threads,
                }
                value = number(path, line, row, operation)
                if bandwidth:
                    self._add(path.stem, "persist", parameters, "bandwidth_gb_s", value * self._gb)
                else:
                    self._add(path.stem, "persist", parameters, "latency_ns", value)

    def _fence_interval(self, path: Path) -> None:
        columns = {"clwb(every 64B)": "store+clwb", "clwb(write size)": "store+clwb", "ntstore": "ntstore"}
        for line, row in read_csv(path, ["", *columns]):
            interval = count(path, line, row, "")
            for column, operation in columns.items():
                parameters = bandwidth_parameters("pmem", operation, "sequential", 64, 1, interleaved=False)
                parameters["fence_every"] = interval
                if column == "clwb(write size)" and interval > _LINE:
                    parameters["flush_every"] = interval
                value = number(path, line, row, column) * self._gb
                self._add(f"{path.stem} {column}", "bandwidth", parameters, "bandwidth_gb_s", value)

    # sweeps

    def subset(self, path: Path) -> None:
        columns = ["media", "interleaving", "operation", "access_size", "threads", "throughput_mb_s"]
        for line, row in read_csv(path, columns):
            parameters = self._random(path, line, row)
            value = number(path, line, row, "throughput_mb_s") * self._mb
            self._add(path.stem, "bandwidth", parameters, "bandwidth_gb_s", value)

    def _random(self, path: Path, line: int, row: dict[str, str]) -> dict[str, Any]:
        return bandwidth_parameters(
            _one_of(path, line, row, "media", _MEDIA),
            _one_of(path, line, row, "operation", _OPERATIONS),
            "random",
            count(path, line, row, "access_size"),
            count(path, line, row, "threads"),
            interleaved=_one_of(path, line, row, "interleaving", {"0": False, "1": True}),
        )

    def raw(self, path: Path) -> None:
        """Read a raw sweep: what pmsim can express, repetitions reduced to their median."""
        repetitions: dict[tuple[Any, ...], list[float]] = {}
        for parameters, value in _RawRows(path, self._data.skipped).rows():
            key = tuple(sorted(parameters.items(), key=lambda item: item[0]))
            repetitions.setdefault(key, []).append(value * self._mb)
        for key, values in repetitions.items():
            parameters = dict(key)
            self._add(
                f"data/{path.name}",
                "bandwidth",
                parameters,
                "bandwidth_gb_s",
                median(values),
                _use_of(parameters),
            )


def _use_of(parameters: dict[str, Any]) -> Use:
    in_subset = (
        parameters["pattern"] == "random"
        and parameters["access_size"] in _SUBSET_SIZES
        and parameters["threads"] in _SUBSET_THREADS
        and parameters["shared_region"]
        and not {"fence_every", "alignment"} & parameters.keys()
        and not parameters["prefetcher"]
    )
    return "calibration" if in_subset else "prediction"


class _RawRows:
    """Rows of one raw sweep as parameters and MB/s; what cannot be expressed is counted with its reason."""

    def __init__(self, path: Path, skipped: Skipped) -> None:
        self._path = path
        self._skipped = skipped
        table = read_csv(path, ["media", "access_size", "threads", "throughput"])
        # Below the header the published files name the type of each column.
        self._table = [(line, row) for line, row in table if row["throughput"] != "float"]
        if not self._table:
            raise ConfigError(f"{path}: no measurements behind the header; fetch the file again")
        self._budget = self._usual_budget()

    def _usual_budget(self) -> tuple[str, str]:
        budgets = Counter((row.get("avgpower", ""), row.get("peakpower", "")) for _, row in self._table)
        return budgets.most_common(1)[0][0]

    def rows(self) -> Iterator[tuple[dict[str, Any], float]]:
        for line, row in self._table:
            reason = self._reason(line, row)
            parameters = {} if reason else self._parameters(line, row)
            if parameters:
                yield parameters, number(self._path, line, row, "throughput")
            else:
                self._skipped.add(f"{self._path.name}: {reason or self._why}")

    def _reason(self, line: int, row: dict[str, str]) -> str:
        if row["media"].startswith("r") or row.get("local", "1") in ("0", "0.0"):
            return "remote socket"
        if (row.get("avgpower", ""), row.get("peakpower", "")) != self._budget:
            return "power budget other than the usual one"
        if amount(self._path, line, row, "delay") > 0:
            return "delay between accesses"
        return "" if row["throughput"] not in ("", "0", "0.0") else "no throughput recorded"

    def _parameters(self, line: int, row: dict[str, str]) -> dict[str, Any]:
        """Translate a row; empty, with the reason in `_why`, where pmsim has no parameters for it."""
        self._why = ""
        if self._path.name == "flush.csv":
            parameters = self._fences(line, row)
        elif self._path.name in ("alignment.csv", "allocation.csv"):
            parameters = self._allocation(line, row)
        else:
            parameters = self._sweep(line, row)
        if parameters and row.get("prefetching", "0") in ("1", "1.0"):
            parameters["prefetcher"] = True
        return parameters

    def _common(
        self, line: int, row: dict[str, str], operation: str, pattern: str, *, interleaved: bool | None = None
    ) -> dict[str, Any]:
        if interleaved is None:
            interleaved = _one_of(
                self._path,
                line,
                {"interleaving": "1", **row},
                "interleaving",
                {"0": False, "1": True, "0.0": False, "1.0": True},
            )
        return bandwidth_parameters(
            _one_of(self._path, line, row, "media", _MEDIA),
            operation,
            pattern,
            count(self._path, line, row, "access_size"),
            count(self._path, line, row, "threads"),
            interleaved,
        )

    def _sweep(self, line: int, row: dict[str, str]) -> dict[str, Any]:
        operation = _one_of(self._path, line, row, "operation", _OPERATIONS)
        size = count(self._path, line, row, "access_size")
        stride = count_or_zero(self._path, line, row, "stride_size")
        if row.get("task_type", "RandBW") == "StrideBW" or (stride and "task_type" not in row):
            parameters = self._common(line, row, operation, "sequential" if stride in (0, size) else "strided")
            if parameters["pattern"] == "strided":
                parameters["stride"] = stride
            return parameters
        parameters = self._common(line, row, operation, "random")
        align = count_or_zero(self._path, line, row, "align_size")
        if align not in (0, size):
            parameters["alignment"] = align
        return parameters

    def _fences(self, line: int, row: dict[str, str]) -> dict[str, Any]:
        # The column `op` says whether addresses are random; what is done is always store and clwb.
        operations = {**dict.fromkeys(("", "0", "1", "0.0", "1.0"), "store+clwb"), **_OPERATIONS}
        operation = _one_of(self._path, line, {"operation": row.get("op", ""), **row}, "operation", operations)
        random = row.get("op", "0") in ("1", "1.0")
        parameters = self._common(line, row, operation, "random" if random else "sequential")
        parameters |= {"shared_region": False, "region_size": _THREAD_REGION * parameters["threads"]}
        parameters["fence_every"] = (
            count_or_zero(self._path, line, row, "fence_size") or parameters["access_size"]
        )
        window = count_or_zero(self._path, line, row, "clwb_size")
        if window > _LINE and operation == "store+clwb":
            parameters["flush_every"] = window
        return parameters

    def _allocation(self, line: int, row: dict[str, str]) -> dict[str, Any]:
        operation = _one_of(self._path, line, row, "operation", _OPERATIONS)
        kind = row.get("alloc_type", "").removesuffix(".0")
        if kind == "6" and count(self._path, line, row, "threads") == 1:
            return self._common(line, row, operation, "random", interleaved=False)
        if kind not in ("0", "1"):
            self._why = "threads bound to single modules"
            return {}
        parameters = self._common(line, row, operation, "random", interleaved=True)
        if kind == "1":
            parameters |= {"shared_region": False, "region_size": _THREAD_REGION * parameters["threads"]}
        return parameters


def _one_of(path: Path, line: int, row: dict[str, str], column: str, known: dict[str, Any]) -> Any:
    text = row.get(column, "")
    if text not in known:
        raise ConfigError(
            f"{path}, line {line}, column '{column}': '{text}': unknown; known: {', '.join(known)}"
        )
    return known[text]
