"""Traces as tables, CSV or Parquet: one row per micro-operation."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.trace import micro_ops
from pmsim.trace.csv_problems import csv_problem, limits, remedy
from pmsim.trace.marks import Marks
from pmsim.trace.micro_ops import (
    FLAGS,
    KINDS,
    MEDIA,
    NO_SUCH_FLAG,
    WINDOW_BYTES,
    WINDOW_SHIFT,
    Array,
    is_one_of,
)
from pmsim.trace.rows import Rows
from pmsim.trace.source import Source
from pmsim.trace_file import PLAN_FIELDS

#: Columns of a table, in the order of an export, and their types. An imported table needs the first three.
COLUMNS = {
    "kind": pa.string(),
    "address": pa.uint64(),
    "bytes": pa.uint32(),
    "medium": pa.string(),
    "thread": pa.int64(),
    "flags": pa.string(),
    "batch": pa.int64(),
    "site": pa.uint16(),
}
_NEEDED = 3
#: Of the schema of a Parquet file: how the recorded run was driven, as JSON.
_PLAN = b"pmsim.plan"
#: What pandas calls the row numbers that it keeps of a table from which it has taken rows.
_INDEX = re.compile(r"__index_level_\d+__")
_ROWS_AT_ONCE = 2**18
_CSV_BLOCK_BYTES = 2**23


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


class RowWriter:
    """Writes rows to a CSV or Parquet file.

    Parameters
    ----------
    file : Path
        To write.
    name : Path
        What the file will be called; ends in one of `table_names.SUFFIXES`.
    schema : pyarrow.Schema
        Of its columns; a Parquet file keeps its metadata.
    """

    def __init__(self, file: Path, name: Path, schema: Any) -> None:
        self._schema = schema
        self._writer: Any
        if _is_parquet(name):
            self._sink = pa.output_stream(str(file), compression=None)
            self._writer = pyarrow.parquet.ParquetWriter(self._sink, schema, compression="zstd")
        else:
            packed = {".gz": "gzip", ".zst": "zstd"}.get(name.suffix.lower())
            self._sink = pa.output_stream(str(file), compression=packed)
            self._writer = pyarrow.csv.CSVWriter(
                self._sink,
                schema.remove_metadata(),
                write_options=pyarrow.csv.WriteOptions(quoting_style="none", quoting_header="none"),
            )

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows, by column."""
        arrays = [pa.array(columns[field.name], type=field.type) for field in self._schema]
        self._writer.write_table(pa.table(arrays, schema=self._schema))

    def close(self) -> None:
        """End the file."""
        self._writer.close()
        self._sink.close()


class TableWriter:
    """Writes micro-operations to a CSV or Parquet file.

    Parameters
    ----------
    file : Path
        To write.
    name : Path
        What the file will be called; ends in one of `table_names.SUFFIXES`.
    plan : mapping
        How the recorded run was driven; a Parquet file keeps it.
    """

    def __init__(self, file: Path, name: Path, plan: Mapping[str, Any]) -> None:
        self._next_batch: dict[int, int] = {}
        self._labels = _labels()
        kept = {_PLAN: json.dumps(plan, sort_keys=True)}
        self._rows = RowWriter(file, name, pa.schema(list(COLUMNS.items()), metadata=kept))

    def add(self, thread: int, operations: Array, batches: Sequence[int]) -> None:
        """Add batches of a thread."""
        kind, address = operations["kind"], operations["address"]
        placed = ~is_one_of(kind, *micro_ops.WITHOUT_PLACE)
        window = np.where(placed, address >> np.uint64(WINDOW_SHIFT), 1).astype(np.int64)
        if ((window < 1) | (window > len(MEDIA))).any():
            raise ConfigError("has operations outside of dram, pmem and block; record it with pmsim")
        number = self._next_batch.get(thread, 0)
        self._next_batch[thread] = number + len(batches)
        self._rows.add(
            {
                "kind": np.array(KINDS, dtype=object)[kind],
                "address": np.where(
                    placed, operations["address"] & np.uint64(WINDOW_BYTES - 1), operations["address"]
                ),
                "bytes": operations["bytes"],
                "medium": np.array([None, *MEDIA], dtype=object)[np.where(placed, window, 0)],
                "thread": np.full(len(operations), thread),
                "flags": self._labels[kind, operations["flags"]],
                "batch": np.repeat(np.arange(number, number + len(batches)), batches),
                "site": operations["site"],
            }
        )

    def close(self) -> None:
        """End the file."""
        self._rows.close()


def _labels() -> Array:
    """Return what flags are called, by kind and value."""
    labels = np.full((len(KINDS), 256), "?", dtype=object)
    values = micro_ops.flag_values()
    for kind in range(len(KINDS)):
        for flag, value in zip(FLAGS, values[kind], strict=True):
            if value != NO_SUCH_FLAG:
                labels[kind, value] = flag or None
    return labels


class Table(Source):
    """A CSV or Parquet file with a row for each operation.

    Parameters
    ----------
    file : Path
        Its name ends in one of `table_names.SUFFIXES`.
    """

    form = "table"

    def __init__(self, file: Path) -> None:
        self._file = file

    def outline(self) -> tuple[list[int], int]:
        """Return the threads in the column of that name, and how many operations of the workload end.

        Raises
        ------
        ConfigError : as `pieces`, or marks that do not fit together.
        """
        threads: Array = np.empty(0, dtype=np.int64)
        marks = Marks(self._file)
        for rows in self.pieces():
            threads = np.union1d(threads, rows.thread)
            marks.add(rows)
        marks.finish()
        return threads.tolist(), marks.ended

    def pieces(self) -> Iterator[Rows]:
        """Read the table.

        Raises
        ------
        ConfigError : ``file: column: row: problem; remedy``.
        """
        values = micro_ops.flag_values()
        first = 1
        with _readable(self._file):
            for batch in _batches(self._file):
                if batch.num_rows:
                    yield _rows(self._file, batch, first, values)
                    first += batch.num_rows

    def kept(self) -> Mapping[str, Any]:
        """Return what a Parquet file says of the run that it was exported from.

        Raises
        ------
        ConfigError : it does, but not in words that this version knows.
        """
        if not _is_parquet(self._file):
            return {}
        with _readable(self._file):
            metadata = pyarrow.parquet.read_schema(self._file).metadata or {}
        if _PLAN not in metadata:
            return {}
        try:
            # Exports of traces of version 1 were timed from their first operation on; versions 1 and 2 did not
            # say whether threads share lines.
            kept = {"untimed_operations": 0, "shares_lines": 1, **json.loads(metadata[_PLAN])}
            provenance, groups = kept["provenance"], kept["group_of_thread"]
            numbers = [
                kept["ended"],
                *groups,
                *(kept[name] for name in PLAN_FIELDS if name != "group_of_thread"),
                kept["warmup_operations"] - kept["untimed_operations"],
            ]
        except (ValueError, KeyError, TypeError):
            numbers, provenance = [-1], {}
        if not isinstance(provenance, dict) or not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise ConfigError(f"{self._file}: metadata {_PLAN.decode()} is damaged; export the trace again")
        return dict(kept)


class _readable:  # noqa: N801 (reads as a phrase)
    """Turns whatever Arrow says of a file into one line."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ConfigError):
            return
        if isinstance(error, OSError) and error.strerror:
            raise ConfigError(f"{self._file}: {error.strerror}; name a CSV or Parquet file") from None
        if isinstance(error, OSError | ValueError | pa.ArrowException):
            if told := csv_problem(self._file, str(error), COLUMNS):
                raise ConfigError(f"{self._file}: {told}") from None
            reason = str(error).splitlines()[0].rstrip(".")
            raise ConfigError(f"{self._file}: {reason}; docs/traces.md tells columns and values") from None


def _batches(file: Path) -> Iterator[Any]:
    if _is_parquet(file):
        table = pyarrow.parquet.ParquetFile(file)
        _check_names(file, table.schema_arrow.names)
        yield from table.iter_batches(_ROWS_AT_ONCE)
        return
    with pyarrow.csv.open_csv(
        file,
        read_options=pyarrow.csv.ReadOptions(block_size=_CSV_BLOCK_BYTES),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=COLUMNS, strings_can_be_null=True, null_values=[""]
        ),
    ) as table:
        _check_names(file, table.schema.names)
        yield from table


def _check_names(file: Path, names: Sequence[str]) -> None:
    for name in names:
        if name not in COLUMNS and not _INDEX.fullmatch(name):
            raise ConfigError(f"{file}: {shown(name)}: unknown column; {nearest(name, COLUMNS)}")
        if names.count(name) > 1:
            raise ConfigError(f"{file}: {name}: column occurs twice; keep one")
    for name in list(COLUMNS)[:_NEEDED]:
        if name not in names:
            raise ConfigError(f"{file}: {name}: column is missing; the first line names columns, add it")


def _rows(file: Path, batch: Any, first: int, values: Array) -> Rows:
    def numbers(name: str, default: int) -> Array:
        kind = COLUMNS[name]
        if name not in batch.schema.names:
            return np.full(batch.num_rows, default, dtype=kind.to_pandas_dtype())
        try:
            column = batch[name].cast(kind)
        except pa.ArrowException:
            _refuse_numbers(file, name, first, batch[name])
            raise
        found: Array = column.fill_null(default).to_numpy(zero_copy_only=False)
        return found

    def choices(name: str, known: Sequence[str]) -> Array:
        """Return the places of texts in `known`, -1 where there is none."""
        if name not in batch.schema.names:
            return np.full(batch.num_rows, -1)
        column = batch[name].cast(pa.string())
        code = pc.index_in(column, pa.array(known))
        unknown = pc.and_(code.is_null(), column.is_valid())
        if pc.any(unknown).as_py():
            row = pc.index(unknown, True).as_py()
            text = column[row].as_py()
            raise ConfigError(f"{file}: {name}: row {first + row}: {shown(text)}; {nearest(text, known)}")
        places: Array = code.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return places

    kind = choices("kind", KINDS)
    _refuse(file, "kind", first, kind < 0, "there is none; every row needs one")
    placed = ~is_one_of(kind, *micro_ops.WITHOUT_PLACE, "block_flush", "block_commit")
    window = choices("medium", MEDIA) + 1
    if "address" in batch.schema.names:
        lacks = batch["address"].is_null().to_numpy(zero_copy_only=False)
        _refuse(file, "address", first, placed & lacks, "there is none; say where")
    if "medium" in batch.schema.names:
        _refuse(file, "medium", first, placed & (window == 0), "there is none; write dram, pmem or block")
    for name, said in (("thread", "say whose the row is"), ("batch", "number every row's")):
        if name in batch.schema.names:  # a gap is not thread 0, which may be another one
            lacks = batch[name].is_null().to_numpy(zero_copy_only=False)
            _refuse(file, name, first, lacks, f"there is none; {said}")
    flag = choices("flags", FLAGS[1:]) + 1
    flags = values[kind, flag]
    latch = is_one_of(kind, "acquire", "release") & (flag == 0)
    _refuse(file, "flags", first, latch, "a latch needs one; write shared, exclusive, optimistic or attempt")
    _refuse(file, "flags", first, flags == NO_SUCH_FLAG, "its kind has no such flag; see docs/traces.md")
    return Rows(
        first=first,
        thread=numbers("thread", 0),
        batch=numbers("batch", 0) if "batch" in batch.schema.names else None,
        kind=kind.astype(np.uint8),
        window=window.astype(np.uint8),
        address=numbers("address", 0),
        size=numbers("bytes", 0).astype(np.uint64),
        flags=flags,
        site=numbers("site", 0),
    )


def _refuse_numbers(file: Path, name: str, first: int, column: Any) -> None:
    """Refuse the first value of a column that is none of its numbers."""
    least, most = limits(name, COLUMNS)
    for row, value in enumerate(column.to_pylist()):
        try:
            wrong = value is not None and not (least <= int(value) == float(value) <= most)
        except (TypeError, ValueError, OverflowError):
            wrong = True
        if wrong:
            problem = f"row {first + row}: {shown(value)} cannot stand here; {remedy(name, COLUMNS)}"
            raise ConfigError(f"{file}: {name}: {problem}")


def _refuse(file: Path, column: str, first: int, wrong: Array, problem: str) -> None:
    if wrong.any():
        raise ConfigError(f"{file}: {column}: row {first + int(np.flatnonzero(wrong)[0])}: {problem}")
