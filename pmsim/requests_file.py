"""Reads a file of recorded requests: CSV or Parquet, one row per request."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.recorded_times import times_since_first
from pmsim.requests import COLUMNS, OPERATIONS, PACKED, Requests

_MOST = 2**30


def read(file: Path) -> Requests:
    """Return the requests of a file, see :func:`pmsim.requests.load_requests`."""
    table = _table(file)
    _check_names(file, table.column_names)
    for name in COLUMNS[:2]:
        if name not in table.column_names:
            raise ConfigError(f"{file}: {name}: column is missing; the first line names columns, add it")
    if table.num_rows == 0:
        raise ConfigError(f"{file}: there are no requests; add a row for each")
    packed = np.zeros(table.num_rows, dtype=PACKED)
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


def _table(file: Path) -> Any:
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
    return table if place < 0 else table.set_column(place, "key", _numbers_or_texts(file, table["key"]))


def _check_names(file: Path, names: Sequence[str]) -> None:
    for name in names:
        if name not in COLUMNS:
            raise ConfigError(f"{file}: {shown(name)}: unknown column; {nearest(name, COLUMNS)}")
        if names.count(name) > 1:
            raise ConfigError(f"{file}: {name}: column occurs twice; keep one")


def _numbers_or_texts(file: Path, column: Any) -> Any:
    """Return a column of texts as whole numbers, or as others, where all are such."""
    for kind, pattern in (
        (pa.int64(), r"^(0|-?[1-9]\d{0,17})$"),  # 007 is none: it would be the same key as 7
        (pa.decimal128(38, 0), r"^(0|-?[1-9]\d{0,37})$"),
        (pa.float64(), r"^-?\d+\.\d+$"),
    ):
        if pc.all(pc.match_substring_regex(column, pattern)).as_py():
            return column.cast(kind)
    _refuse_blanks(file, column)
    return column


def _refuse_blanks(file: Path, column: Any) -> None:
    """Refuse numbers with blanks around them: as texts " 10" comes before " 9", and is not the key "10"."""
    trimmed = pc.utf8_trim_whitespace(column)
    blank = pc.not_equal(trimmed, column)
    if pc.any(blank).as_py() and pc.all(pc.match_substring_regex(trimmed, r"^-?\d+$")).as_py():
        row = pc.index(blank, True).as_py()
        raise ConfigError(
            f"{file}: key: request {row + 1}: {column[row].as_py()!r} is a number with blanks around it; "
            "remove them"
        )


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
