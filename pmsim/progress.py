"""A progress bar with the time that is left, on terminals only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Show(Protocol):
    """Shows the number of finished points, with shares of those that run, and what these are doing."""

    def __call__(self, finished: float, doing: str = "") -> None: ...


def _show_nothing(finished: float, doing: str = "") -> None:
    pass


@contextmanager
def progress_bar(title: str, total: int, wanted: bool | None) -> Iterator[Show]:
    """Show a bar while the block runs.

    Parameters
    ----------
    title : str
        Stands before the bar.
    total : int
        Number of points.
    wanted : bool, optional
        None: where the standard error is a terminal.

    Yields
    ------
    Show : to be called whenever one of them changes.
    """
    console = Console(stderr=True)
    if not (console.is_terminal if wanted is None else wanted):
        yield _show_nothing
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[doing]}", style="dim"),
    )
    # What is printed meanwhile goes above the bar where both are one terminal, and past it into a file.
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task(title, total=total, doing="")

        def show(finished: float, doing: str = "") -> None:
            bar.update(task, completed=finished, doing=doing)

        yield show


@contextmanager
def step_display(title: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done while the block runs: in place on a terminal, elsewhere a line for each step.

    Both on the standard error. A log, or whoever waits for a pipe, sees at once that the work has begun.

    Yields
    ------
    callable : takes the name of the next step.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda doing: print(f"{title}: {doing}", file=sys.stderr, flush=True)
        return
    with console.status(title) as status:
        yield lambda doing: status.update(f"{title}: {doing}")
