"""A progress bar with the time that is left, on terminals only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress_bar(title: str, total: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
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
    callable : takes the number of finished points.
    """
    console = Console(stderr=True)
    if not (console.is_terminal if wanted is None else wanted):
        yield lambda finished: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda finished: bar.update(task, completed=finished)


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
