"""What the readers of published measurements share."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.toml_file import read_text
from pmsim.validation.claims import PlatformRef, Use
from pmsim.validation.measures import Point

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
#: The published files have a few MiB; /dev/zero has no end [B].
LARGEST_FILE = 256 * MIB
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Measurement:
    """One measured number and the run that should reproduce it."""

    dataset: str
    experiment: str  # file or benchmark inside the set
    platform: PlatformRef
    kind: str
    parameters: Mapping[str, Any]
    metric: str
    value: float
    unit: str
    medium: str  # dram, pmem
    use: Use
    citation: str

    @property
    def point(self) -> Point:
        """The run that predicts this number."""
        return Point(self.kind, self.platform, self.parameters)

    @property
    def platform_name(self) -> str:
        """The platform, without what is overridden in it."""
        return self.platform if isinstance(self.platform, str) else str(self.platform["base"])

    @property
    def setup(self) -> str:
        """Write the set-up for a table."""
        shown = ", ".join(f"{name} {value}" for name, value in self.parameters.items())
        return f"{self.platform_name}: {self.kind} {shown}"


@dataclass
class Skipped:
    """Measurements that no parameters of pmsim express, by reason."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, reason: str, count: int = 1) -> None:
        """Count measurements left out."""
        self.counts[reason] += count


@dataclass
class DataSet:
    """What was read from one folder."""

    name: str
    folder: Path
    citation: str
    rows: list[Measurement] = field(default_factory=list)
    skipped: Skipped = field(default_factory=Skipped)
    notes: list[str] = field(default_factory=list)


def read_data(path: Path, what: str) -> str:
    """Read a text file of a data set, or raise a ConfigError that names it."""
    return read_text(path, what, LARGEST_FILE)


def read_csv(path: Path, required: Iterable[str]) -> list[tuple[int, dict[str, str]]]:
    """Read a table with a header line, checking that the columns are there and every line is complete.

    Returns
    -------
    list of (line, row) : the number of the line in the file, and its texts by column.

    Raises
    ------
    ConfigError : names the file, and the line where there is one.
    """
    reader = csv.reader(io.StringIO(read_data(path, "CSV"), newline=""), strict=True)
    begins = 1  # where the row that is read next begins: an open quote runs to the end of the file
    try:
        header = next(reader, [])
        missing = [name for name in required if name not in header]
        if missing:
            found = ", ".join(header) or "nothing"
            raise ConfigError(f"{path}: no column '{missing[0]}'; found: {found}; correct the header")
        twice = [name for name, times in Counter(header).items() if times > 1]
        if twice:
            raise ConfigError(f"{path}: two columns '{twice[0]}'; remove or rename one")
        rows = []
        begins = reader.line_num + 1
        for cells in reader:
            line, begins = begins, reader.line_num + 1
            if not cells:
                continue
            if len(cells) != len(header):
                raise ConfigError(f"{path}, line {line}: expected {len(header)} values; correct the line")
            rows.append((line, dict(zip(header, map(str.strip, cells), strict=True))))
    except csv.Error as error:
        raise ConfigError(f"{path}, line {begins}: not CSV: {error}; correct the line") from None
    if not rows:
        raise ConfigError(f"{path}: no measurements behind the header; fetch the file again")
    return rows


def number(path: Path, line: int, row: Mapping[str, str], column: str) -> float:
    """Read a positive number.

    Raises
    ------
    ConfigError : names file, line and column.
    """
    value = _number(row[column])
    if not 0 < value < math.inf:
        raise _refused(path, line, row, column, "is not a positive number")
    return value


def count(path: Path, line: int, row: Mapping[str, str], column: str) -> int:
    """Read a positive whole number."""
    value = number(path, line, row, column)
    if value != int(value):
        raise _refused(path, line, row, column, "is not a whole number")
    return int(value)


def amount(path: Path, line: int, row: Mapping[str, str], column: str) -> float:
    """Read a number of at least 0; an empty or absent column means 0."""
    value = _number(row.get(column) or "0")
    if not 0 <= value < math.inf:
        raise _refused(path, line, row, column, "is not a number of at least 0")
    return value


def count_or_zero(path: Path, line: int, row: Mapping[str, str], column: str) -> int:
    """Read a whole number of at least 0; an empty or absent column means 0."""
    value = amount(path, line, row, column)
    if value != int(value):
        raise _refused(path, line, row, column, "is not a whole number")
    return int(value)


def _number(text: str) -> float:
    # float() alone would take 1_000 and the digits of other scripts.
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


def _refused(path: Path, line: int, row: Mapping[str, str], column: str, problem: str) -> ConfigError:
    return ConfigError(f"{path}, line {line}, column '{column}': {shown(row[column])} {problem}; correct it")
