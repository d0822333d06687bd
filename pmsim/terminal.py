"""What commands print: tables that fit the terminal, and one line per row where no terminal is.

Behind a pipe and in files a row stays one line, so that `grep` works. COLUMNS sets the width of either, as for
other programs.
"""

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

#: Wider than any row: nothing is wrapped.
_UNLIMITED = 100_000
_GAP = 2
#: What columns that give way keep while others have not done so.
_COMFORTABLE = {"cut": 12, "wrap": 30}
_LEAST = {"cut": 6, "wrap": 16}
#: How far a name may hang over its column.
_OVERHANG = 6


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its head.
    right : bool
        Numbers: flush right.
    narrow : str
        What happens where the terminal is too narrow: the column stays whole, its cells are cut, they go on in
        the next line, the column is left out (the last one first), its longest cells hang over into the next
        column, which is one whose cells are cut, or the column has what the others leave, and is left out where
        that is less than `least`.
    most : int, optional
        Cells are cut at so many characters on any terminal and behind a pipe.
    least : int, optional
        Characters that are never cut.
    """

    name: str
    right: bool = False
    narrow: Literal["whole", "cut", "wrap", "left out", "hang", "rest"] = "whole"
    most: int | None = None
    least: int | None = None


class _Output(Console):
    """A console that leaves it to the command to end where the reader of its output has left."""

    def on_broken_pipe(self) -> None:
        """Not as Rich does, which ends the process with status 1: of a run that is a failed point."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains of it at its end
        raise BrokenPipeError


def output() -> Console:
    """Return the standard output. Nothing in what is printed is taken for markup."""
    limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Output(width=None if limited else _UNLIMITED, markup=False, highlight=False)


def complaints() -> Console:
    """Return the standard error, whose lines stay lines."""
    return Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


def print_table(
    console: Console, columns: Sequence[Column | str], rows: Iterable[Sequence[str | Text]], title: str = ""
) -> None:
    """Print a table.

    Parameters
    ----------
    console : Console
        See `output`.
    columns : sequence of Column or str
        A bare name is a column that stays whole.
    rows : iterable of sequences
        The cells.
    title : str
        A line above.
    """
    heads = [Column(column) if isinstance(column, str) else column for column in columns]
    cells = [[_cell(cell, head) for cell, head in zip(row, heads, strict=True)] for row in rows]
    widths = [
        max([cell_len(head.name), *(row[place].cell_len for row in cells)]) for place, head in enumerate(heads)
    ]
    kept = _kept(heads, widths, console.width)
    shown = [heads[place] for place in kept]
    fitted = _fitted(shown, [widths[place] for place in kept], console.width)
    if title:
        console.print(title, style="bold")
    _print_row(console, shown, fitted, [Text(head.name, style="bold") for head in shown])
    for row in cells:
        _print_row(console, shown, fitted, [row[place] for place in kept])
    if left_out := [head.name for place, head in enumerate(heads) if place not in kept]:
        console.print(f"(a wider terminal also shows {', '.join(left_out)})", style="dim")


def print_item(console: Console, head: str, text: str) -> None:
    """Print a line that begins with its name; on a terminal it goes on indented."""
    line = f"{head}: {text}"
    if console.width < _UNLIMITED:
        line = textwrap.fill(
            line, console.width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
    console.print(line, soft_wrap=True)


def _cell(content: str | Text, head: Column) -> Text:
    cell = content.copy() if isinstance(content, Text) else Text(content)
    if head.most is not None:
        cell.truncate(head.most, overflow="ellipsis")
    return cell


def _least(head: Column, width: int) -> int:
    """Give the width below which a column must not get."""
    if head.narrow == "hang":
        return max(width - _OVERHANG, cell_len(head.name))
    return min(head.least or _LEAST.get(head.narrow, width), width)


def _total(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + _GAP * (len(widths) - 1)


def _kept(heads: Sequence[Column], widths: Sequence[int], available: int) -> list[int]:
    """Choose the columns that fit: those that may be left out go until the others do."""
    kept = [place for place, head in enumerate(heads) if head.narrow != "rest"]
    while _total(_least(heads[place], widths[place]) for place in kept) > available:
        if not (spare := [place for place in kept if heads[place].narrow == "left out"]):
            break
        kept.remove(spare[-1])
    for place, head in enumerate(heads):
        whole = [widths[other] for other in kept]
        if head.narrow == "rest" and _total([*whole, _least(head, widths[place])]) <= available:
            kept.append(place)
    return sorted(kept)


def _fitted(heads: Sequence[Column], widths: Sequence[int], available: int) -> list[int]:
    """Shrink columns that may shrink, the widest first, and names only when the others have little left.

    What still does not fit is printed all the same: half a number is worse than a broken line.
    """
    fitted = list(widths)
    least = [_least(head, width) for head, width in zip(heads, widths, strict=True)]
    comfortable = [
        max(low, min(_COMFORTABLE.get(head.narrow, width), width))
        for head, low, width in zip(heads, least, widths, strict=True)
    ]
    names = [
        low if head.narrow == "hang" else width
        for head, low, width in zip(heads, least, comfortable, strict=True)
    ]
    rest = [
        low if head.narrow == "rest" else width for head, low, width in zip(heads, least, fitted, strict=True)
    ]
    for floor in (rest, comfortable, names, least):
        while _total(fitted) > available:
            if not (places := [place for place, low in enumerate(floor) if fitted[place] > low]):
                break
            fitted[max(places, key=fitted.__getitem__)] -= 1
    return fitted


def _print_row(console: Console, heads: Sequence[Column], widths: Sequence[int], cells: Sequence[Text]) -> None:
    over = 0
    columns: list[list[Text]] = []
    for head, width, cell in zip(heads, widths, cells, strict=True):
        room = width - over
        over = max(0, cell.cell_len - room) if head.narrow == "hang" else 0
        if head.narrow == "wrap":
            lines = list(cell.wrap(console, room)) or [Text()]
        else:
            lines = [cell.copy()]
            if head.narrow != "hang":
                lines[0].truncate(room, overflow="ellipsis")
        for line in lines:
            line.rstrip()
            line.align("right" if head.right else "left", room + over)
        columns.append([*lines, Text(" " * (room + over))])
    for number in range(max(map(len, columns)) - 1):
        line = Text(" " * _GAP).join(lines[min(number, len(lines) - 1)] for lines in columns)
        line.rstrip()
        console.print(line, soft_wrap=True)
