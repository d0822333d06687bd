"""What Arrow refuses of a CSV file, told by column and row: Arrow names a column by its number, and no row."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pmsim.messages import shown

_VALUE = re.compile(r"In CSV column #(\d+): CSV conversion error to \w+: invalid value '(.*)'", re.DOTALL)
_TEXT = re.compile(r"In CSV column #(\d+): CSV conversion error to string: invalid UTF8 data")
_WIDTH = re.compile(r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+)")


def csv_problem(file: Path, reason: str, columns: Mapping[str, Any]) -> str | None:
    """Return ``column: row: problem; remedy`` for what Arrow says of a CSV file, else None.

    Parameters
    ----------
    file : Path
        That Arrow has read until it came upon the problem; its beginning is read again to find the row.
    reason : str
        Arrow's message.
    columns : mapping
        Their types, by name.
    """
    if found := _VALUE.match(reason):
        number, text = int(found[1]), found[2]
        column, row = _find(file, number, lambda cells: cells[number].strip() == text.strip())
        return f"{column}: {row}{shown(text)} cannot stand here; {remedy(column, columns)}"
    if found := _TEXT.match(reason):
        number = int(found[1])
        column, row = _find(file, number, lambda cells: "\ufffd" in cells[number])
        return f"{column}: {row}not UTF-8 text; write the file in UTF-8"
    if found := _WIDTH.match(reason):
        width = int(found[1])
        _, row = _find(file, 0, lambda cells: len(cells) != width)
        return f"{row}{found[2]} values where the first line names {width} columns; write as many"
    return None


def remedy(column: str, columns: Mapping[str, Any]) -> str:
    """Say what may stand in a column of numbers."""
    least, most = limits(column, columns)
    hexadecimal = ", decimal or with 0x" if column == "address" else ""
    return f"write a whole number from {least} to {most}{hexadecimal}"


def limits(column: str, columns: Mapping[str, Any]) -> tuple[int, int]:
    """Return the least and the largest number that a column holds."""
    if column == "address":
        return 0, 2**62 - 1  # of which the core uses the rest
    kind = np.iinfo(columns[column].to_pandas_dtype() if column in columns else np.int64)
    return int(kind.min), int(kind.max)


def _find(file: Path, number: int, wrong: Callable[[list[str]], bool]) -> tuple[str, str]:
    """Return the name of a column and the first row that is wrong, as a prefix; empty where none is found."""
    name = f"column {number + 1}"
    try:
        rows = _rows(file)
        names = next(rows)
        name = names[number] if number < len(names) else name
        for row, cells in enumerate(rows, start=1):
            if (len(cells) > number or number == 0) and wrong(cells):
                return name, f"row {row}: "
    except (OSError, csv.Error, pa.ArrowException, StopIteration):
        pass  # the message has a column then
    return name, ""


def _rows(file: Path) -> Iterator[list[str]]:
    """Read the file as Arrow does: packed or not, without empty lines."""
    with (
        pa.input_stream(str(file), compression="detect") as stream,
        TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="") as text,
    ):
        yield from filter(None, csv.reader(text))
