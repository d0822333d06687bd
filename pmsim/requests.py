"""Recorded requests: what a user's own database was asked for, as a workload of the storage engines."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from pmsim import arguments
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.recorded_times import LONGEST_DAYS, PS_PER_DAY, times_since_first

#: What a request may ask for. Their order is that of the core (oltp/requests.hpp).
OPERATIONS = ("read", "update", "insert", "delete", "scan", "read-modify-write")
#: Columns of a file of requests; the last three are optional.
COLUMNS = ("operation", "key", "bytes", "rows", "seconds")
#: How the core reads a request.
_PACKED = np.dtype([("key", "<u8"), ("count", "<u4"), ("operation", "<u4")])
_MOST = 2**30
_PS_PER_SECOND = 10**12


@dataclass(frozen=True)
class Requests:
    """Requests in the order in which they were made.

    Attributes
    ----------
    packed : bytes
        As the core reads them, 16 bytes each: the rank of the key among all keys, rows or bytes, the operation.
    digest : str
        SHA-256 of `packed`.
    keys : int
        Different keys.
    existing : int
        Keys that exist at the start: their first request does not insert them.
    operations : mapping of str to int
        How many requests there are of each operation that occurs.
    times : array of int64 [ps] or None
        When each has come, ascending from 0, the first; None where the file does not say.
    """

    packed: bytes
    digest: str
    keys: int
    existing: int
    operations: Mapping[str, int]
    times: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        """Return how many requests there are."""
        return len(self.packed) // _PACKED.itemsize

    @property
    def timed_digest(self) -> str:
        """SHA-256 of the requests and their times."""
        times = b"" if self.times is None else self.times.tobytes()
        return hashlib.sha256(self.packed + times).hexdigest()

    def arrivals(self, speed_percent: int) -> npt.NDArray[np.int64]:
        """Return when requests come [ps] that come as fast as they did, or in so many percent of that speed.

        Raises
        ------
        ConfigError : the file does not say when they came, or they would come over more than 100 days.
        """
        if self.times is None:
            raise ConfigError("the file does not say when requests came; add a column 'seconds'")
        span = int(self.times[-1]) * 100
        if span > LONGEST_DAYS * PS_PER_DAY * speed_percent:
            days = span / speed_percent / PS_PER_DAY
            raise ConfigError(
                f"at {speed_percent} % of their speed requests come over {days:.0f} days; choose at most "
                f"{LONGEST_DAYS}"
            )
        # The same as 100 * times / speed_percent, rounded down, within 64 bits.
        return self.times // speed_percent * 100 + self.times % speed_percent * 100 // speed_percent


def load_requests(path: str | Path) -> Requests:
    """Return the requests of a file.

    Parameters
    ----------
    path : str or Path
        CSV, may be compressed (.csv, .csv.gz, .csv.zst), or Parquet (.parquet); one row per request, in
        order. Columns: ``operation``, one of `OPERATIONS`; ``key``, a whole number or a text; optionally
        ``bytes``, how many bytes of the row are read or written, from its start (by default all), ``rows``,
        how many rows a scan reads at most, and ``seconds``, when the request has come, on any clock: a number,
        in Parquet also a timestamp.

    Raises
    ------
    ConfigError : ``file: column: problem; remedy``.
    """
    file = arguments.path("requests", path)
    try:
        stat = file.stat()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; name a CSV or Parquet file of requests") from None
    return _load(file, stat.st_mtime_ns, stat.st_size)


def requests_of(key: str, path: str) -> Requests:
    """Return the requests of the file that a parameter names.

    Raises
    ------
    ConfigError : ``key: problem; remedy``.
    """
    if not path:
        raise ConfigError(f"{key}: is missing; name a CSV or Parquet file of requests")
    try:
        return load_requests(path)
    except ConfigError as error:
        raise error.prefixed(key) from None


# A sweep asks once per point and more, and a file may have millions of rows.
@lru_cache(maxsize=4)
def _load(file: Path, _modified_ns: int, _size: int) -> Requests:
    table = _read(file)
    _check_names(file, table.column_names)
    for name in COLUMNS[:2]:
        if name not in table.column_names:
            raise ConfigError(f"{file}: {name}: column is missing; the first line names columns, add it")
    if table.num_rows == 0:
        raise ConfigError(f"{file}: there are no requests; add a row for each")
    packed = np.zeros(table.num_rows, dtype=_PACKED)
    packed["operation"] = _operations(file, table)
    packed["key"] = ranks = _ranks(file, table)
    scans = packed["operation"] == OPERATIONS.index("scan")
    packed["count"] = np.where(
        scans, _counts(file, table, "rows", scans), _counts(file, table, "bytes", ~scans)
    )
    if scans.any() and not packed["count"][scans].all():
        row = int(np.flatnonzero(scans & (packed["count"] == 0))[0])
        raise ConfigError(f"{file}: rows: request {row + 1} is a scan; say how many rows it reads at most")
    content = packed.tobytes()
    found = np.bincount(packed["operation"], minlength=len(OPERATIONS))
    first = np.unique(ranks, return_index=True)[1]
    inserted = np.count_nonzero(packed["operation"][first] == OPERATIONS.index("insert"))
    return Requests(
        content,
        hashlib.sha256(content).hexdigest(),
        len(first),
        len(first) - int(inserted),
        {name: int(count) for name, count in zip(OPERATIONS, found, strict=True) if count},
        _times(file, table),
    )


def _read(file: Path) -> Any:
    try:
        if file.suffix == ".parquet":
            if file.is_file():
                _check_names(file, pyarrow.parquet.read_schema(file).names)  # Arrow reads no column twice
            return pyarrow.parquet.read_table(file)
        # Keys are numbers or texts, of which dates are one kind, and numbers may have more digits than 64 bits
        # or a double; only nothing is nothing: `NA` may be a key.
        texts = pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in ("operation", "key", "seconds")},
            timestamp_parsers=[],
            strings_can_be_null=True,
            null_values=[""],
        )
        table = pyarrow.csv.read_csv(file, convert_options=texts)
    except ConfigError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ConfigError(f"{file}: {reason}; name a CSV or Parquet file of requests") from None
    place = table.schema.get_field_index("key")
    return table if place < 0 else table.set_column(place, "key", _numbers_or_texts(table["key"]))


def _check_names(file: Path, names: Sequence[str]) -> None:
    for name in names:
        if name not in COLUMNS:
            raise ConfigError(f"{file}: {shown(name)}: unknown column; {nearest(name, COLUMNS)}")
        if names.count(name) > 1:
            raise ConfigError(f"{file}: {name}: column occurs twice; keep one")


def _numbers_or_texts(column: Any) -> Any:
    """Return a column of texts as whole numbers, or as others, where all are such."""
    for kind, pattern in (
        (pa.int64(), r"^(0|-?[1-9]\d{0,17})$"),  # 007 is none: it would be the same key as 7
        (pa.decimal128(38, 0), r"^(0|-?[1-9]\d{0,37})$"),
        (pa.float64(), r"^-?\d+\.\d+$"),
    ):
        if pc.all(pc.match_substring_regex(column, pattern)).as_py():
            return column.cast(kind)
    return column


def _refuse_gaps(file: Path, name: str, column: Any) -> None:
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise ConfigError(f"{file}: {name}: request {row + 1} has none; every request needs one")


def _operations(file: Path, table: Any) -> Any:
    column = table["operation"]
    _refuse_gaps(file, "operation", column)
    codes = pc.index_in(column.cast(pa.string()), pa.array(OPERATIONS))
    if codes.null_count:
        row = pc.index(codes.is_null(), True).as_py()
        name = str(column[row].as_py())
        raise ConfigError(f"{file}: operation: request {row + 1}: {shown(name)}; {nearest(name, OPERATIONS)}")
    return codes.to_numpy()


def _ranks(file: Path, table: Any) -> Any:
    """Number the keys in their order, from 0 without gaps."""
    column = table["key"]
    _refuse_gaps(file, "key", column)
    kind = column.type
    whole = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    if not (whole or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise ConfigError(f"{file}: key: is of type {kind}; write whole numbers or texts")
    coded = column.combine_chunks().dictionary_encode()
    rank_of = np.empty(len(coded.dictionary), dtype=np.uint64)
    rank_of[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(rank_of), dtype=np.uint64)
    return rank_of[coded.indices.to_numpy()]


def _counts(file: Path, table: Any, name: str, used: Any) -> Any:
    """Return a column of counts, 0 where there is none."""
    if name not in table.column_names:
        return np.zeros(table.num_rows, dtype=np.uint32)
    column = table[name]
    if pa.types.is_null(column.type):
        return np.zeros(table.num_rows, dtype=np.uint32)
    if not pa.types.is_integer(column.type):
        raise ConfigError(f"{file}: {name}: is of type {column.type}; write whole numbers, or nothing")
    given = column.is_valid().to_numpy()
    counts = column.fill_null(0).to_numpy()
    wrong = np.flatnonzero(given & used & ((counts < 1) | (counts > _MOST)))
    if wrong.size:
        row = int(wrong[0])
        raise ConfigError(
            f"{file}: {name}: request {row + 1}: {counts[row]} is no number of {name}; choose 1 to 2^30"
        )
    return np.where(given & used, counts, 0).astype(np.uint32)


def _times(file: Path, table: Any) -> npt.NDArray[np.int64] | None:
    if "seconds" not in table.column_names:
        return None
    _refuse_gaps(file, "seconds", table["seconds"])
    return times_since_first(file, table["seconds"])
