"""What the readers of published measurements share."""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmsim.errors import ConfigError
from pmsim.validation.claims import PlatformRef, Use
from pmsim.validation.measures import Point

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


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


def read_csv(path: Path, required: Iterable[str]) -> list[dict[str, str]]:
    """Read a table with a header line, checking that the columns are there and every line is complete.

    Raises
    ------
    ConfigError : names the file, and the line where there is one.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            missing = [name for name in required if name not in header]
            if missing:
                raise ConfigError(f"{path}: no column '{missing[0]}'; found: {', '.join(header) or 'nothing'}")
            rows = []
            for row in reader:
                if None in row or None in row.values():
                    raise ConfigError(f"{path}, line {reader.line_num}: expected {len(header)} values")
                rows.append({str(name): str(value).strip() for name, value in row.items()})
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if not rows:
        raise ConfigError(f"{path}: no measurements behind the header")
    return rows


def number(path: Path, line: int, row: Mapping[str, str], column: str) -> float:
    """Read a positive number.

    Raises
    ------
    ConfigError : names file, line and column.
    """
    text = row[column]
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise ConfigError(f"{path}, line {line}, column '{column}': '{text}' is not a positive number")
    return value


def count(path: Path, line: int, row: Mapping[str, str], column: str) -> int:
    """Read a positive whole number."""
    value = number(path, line, row, column)
    if value != int(value):
        raise ConfigError(f"{path}, line {line}, column '{column}': '{row[column]}' is not a whole number")
    return int(value)
