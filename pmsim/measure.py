"""Measuring building blocks on this machine, beside what the simulator predicts for its profile."""

import datetime
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmsim.errors import PmsimError
from pmsim.host_blocks import chosen_blocks
from pmsim.host_machine import HostMachine, this_machine
from pmsim.host_timing import DISTURBED, FULL, QUICK, Subject, Timing, check_file, emptied_afterwards
from pmsim.platforms import Platform
from pmsim.profiles import load_platform
from pmsim.prototype.cpp import CppPrototype
from pmsim.versions import native_build, native_version, package_version

#: Files of the output directory.
OUTPUTS = ("measurements.parquet", "measurements.csv", "provenance.json", "report.html")
#: Two measurements that differ by more have an order that a prediction should keep.
ORDER_MARGIN = 0.2
#: Predictions within this factor count as near.
NEAR = 2.0
_SWAPPED_SHOWN = 4


@dataclass(frozen=True)
class Row:
    """A subject on this machine and on its simulated likeness.

    Attributes
    ----------
    subject : Subject
        What ran.
    timing : Timing
        How it went here.
    simulated : float
        In the metric of the subject; nan where it could not be simulated.
    message : str
        Why not.
    """

    subject: Subject
    timing: Timing
    simulated: float
    message: str = ""

    @property
    def measured(self) -> float:
        """In the metric of the subject."""
        return self.subject.value(self.timing)

    @property
    def spread(self) -> float:
        """Distance of the quartiles of what was measured, over its median."""
        return self.subject.spread(self.timing)

    @property
    def ratio(self) -> float:
        """Simulated over measured."""
        return self.simulated / self.measured


@dataclass(frozen=True)
class Order:
    """Whether a prediction keeps the order of a block's measurements.

    Attributes
    ----------
    block : str
        Whose.
    pairs : int
        Pairs of one unit whose measurements differ by more than `ORDER_MARGIN`.
    kept : int
        Pairs among them that the simulation orders in the same way.
    swapped : tuple of tuple of str
        The others, the faster one of the measurement first.
    """

    block: str
    pairs: int
    kept: int
    swapped: tuple[tuple[str, str], ...]

    def told(self) -> str:
        """Say it in a sentence, with some of the exceptions."""
        text = (
            f"{self.block}: {self.kept} of {self.pairs} pairs that differ by more than "
            f"{100 * ORDER_MARGIN:.0f} % keep their order"
        )
        if not self.swapped:
            return text
        some = "; ".join(f"{faster} over {slower}" for faster, slower in self.swapped[:_SWAPPED_SHOWN])
        more = len(self.swapped) - _SWAPPED_SHOWN
        return f"{text}; not: {some}" + (f"; and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class MeasureResult:
    """All that ``pmsim measure`` found."""

    rows: tuple[Row, ...]
    machine: HostMachine
    platform: Platform
    on: Path | None
    warnings: tuple[str, ...]
    started: str

    def provenance(self) -> dict[str, Any]:
        """Return where the numbers come from, for a JSON file."""
        return {
            "started": self.started,
            "command": sys.argv,
            "pmsim": package_version(),
            "native": native_version(),
            "native_build": native_build(),
            "platform": self.platform.name,
            "platform_hash": self.platform.hash,
            "memory": "anonymous memory (DRAM)" if self.on is None else str(self.on),
            "is_dax": self.on is not None and all(row.timing.is_dax for row in self.rows),
            "machine": self.machine.described(),
            "warnings": list(self.warnings),
        }

    def near(self) -> tuple[int, int]:
        """Return how many predictions are within a factor of `NEAR`, and of how many."""
        near = sum(1 for row in self.rows if 1 / NEAR <= row.ratio <= NEAR)
        return near, len(self.rows)

    def orders(self) -> list[Order]:
        """Return for each block with something to compare whether the simulation keeps its order."""
        blocks: dict[str, list[Row]] = {}
        for row in self.rows:
            blocks.setdefault(row.subject.block, []).append(row)
        orders = [order_of(block, rows) for block, rows in blocks.items()]
        return [order for order in orders if order.pairs]


def order_of(block: str, rows: Sequence[Row]) -> Order:
    """Compare the order of measured and simulated values, pair by pair."""
    swapped = []
    pairs = 0
    for one, other in itertools.combinations(rows, 2):
        if one.subject.unit != other.subject.unit:
            continue
        more, less = (one, other) if one.measured >= other.measured else (other, one)
        if more.measured <= less.measured * (1 + ORDER_MARGIN):
            continue
        pairs += 1
        if not more.simulated > less.simulated:
            # Of two times the smaller one is the faster.
            faster, slower = (less, more) if one.subject.unit == "ns" else (more, less)
            swapped.append((faster.subject.name, slower.subject.name))
    return Order(block, pairs, pairs - len(swapped), tuple(swapped))


def measure(
    platform: str | Platform,
    *,
    blocks: Iterable[str | type[CppPrototype]] = (),
    on: Path | None = None,
    quick: bool = False,
    progress: Callable[[str], None] = lambda doing: None,
) -> MeasureResult:
    """Run blocks on this machine and simulate the same set-ups.

    Parameters
    ----------
    platform : str or Platform
        Profile of this machine, as ``pmsim calibrate`` writes it.
    blocks : iterable of str or of CppPrototype
        Names; none: all that this build has. Prototypes in C++ are classes, or ``FILE.py:CLASS``.
    on : Path, optional
        New or empty file that stands for persistent memory, best on a DAX file system; DRAM by default.
    quick : bool
        A few repetitions instead of many.
    progress : callable
        Takes what is being done.

    Raises
    ------
    ConfigError : unknown block or platform, or a machine or file that cannot be measured.
    """
    chosen = chosen_blocks(blocks, progress)
    check_file(on)
    machine = this_machine()
    likeness = load_platform(platform)
    effort = QUICK if quick else FULL
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    memory = "dram" if on is None else "pmem"
    rows = []
    with emptied_afterwards(on):
        for block in chosen:
            for subject in block.subjects(machine, effort, memory):
                progress(f"{block.name}: {subject.name}")
                timing = subject.time(likeness, effort, on)
                rows.append(_row(subject, timing, likeness))
    warnings = _warnings(rows, on)
    return MeasureResult(tuple(rows), machine, likeness, on, tuple(warnings), started)


def _row(subject: Subject, timing: Timing, likeness: Platform) -> Row:
    try:
        return Row(subject, timing, subject.predict(likeness))
    except PmsimError as error:
        return Row(subject, timing, float("nan"), str(error))


def _warnings(rows: Sequence[Row], on: Path | None) -> list[str]:
    warnings = []
    if on is not None and not all(row.timing.is_dax for row in rows):
        warnings.append(
            f"{on} is not on a DAX file system: timings are those of DRAM and the page cache, and nothing "
            "of it is durable"
        )
    disturbed = [row for row in rows if row.timing.cpu_share < DISTURBED]
    if disturbed:
        least = min(row.timing.cpu_share for row in disturbed)
        warnings.append(
            f"other processes ran meanwhile: in {len(disturbed)} of {len(rows)} measurements a thread had less "
            f"than {100 * DISTURBED:.0f} % of its processor (least {100 * least:.0f} %); times are CPU times"
        )
    failed = [row for row in rows if row.message]
    if failed:
        warnings.append(f"{len(failed)} set-ups could not be simulated; first: {failed[0].message}")
    return warnings
