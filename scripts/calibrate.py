"""Holds a platform against the measurements that calibrate it, and searches for values that fit them better.

    python scripts/calibrate.py --data DIR --platform ucsd-8260
    python scripts/calibrate.py --data DIR --only "graph 04 pmem" --only ntstore --fit pmem.media_write_service

DIR is a copy of a published data set, as for ``pmsim validate --data``. Only rows that serve for calibration
are read: a search never sees the measurements that the model has to predict. Nothing is written; what a search
finds is printed as lines for the profile, and a person decides whether they are physical. See
docs/calibration.md.
"""

import math
import random
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import pmsim
from pmsim.errors import ConfigError, PmsimError
from pmsim.fitting import LIMIT, MOVES, Candidate, cost_of_ratio, search
from pmsim.platforms import Platform, find_field
from pmsim.progress import progress_bar
from pmsim.runner import usable_jobs
from pmsim.units import Quantity, format_value
from pmsim.validation.loaders import Measurement, load
from pmsim.validation.verdict import quantile, relative_error

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Row:
    """A measurement beside the prediction of one machine.

    Attributes
    ----------
    measurement : Measurement
        What was measured [GB/s, ns or 1/s, as its unit says].
    predicted : float
        In the same unit; nan where the run failed.
    message : str
        Why it failed.
    """

    measurement: Measurement
    predicted: float = math.nan
    message: str = ""

    @property
    def error(self) -> float:
        """Signed relative error; nan where the run failed."""
        return relative_error(self.predicted, self.measurement.value)

    @property
    def cost(self) -> float:
        """``|log(predicted / measured)|``, at most log 2; log 2 where the run failed."""
        return LIMIT if self.message else cost_of_ratio(self.predicted, self.measurement.value)


def experiment_of(measurement: Measurement) -> str:
    """Name the experiment of a row: "graph 04" for the figures of OptaneStudy, else as the data set does."""
    figure = re.match(r"(\d+)-", measurement.experiment)
    return f"graph {figure[1]}" if figure else measurement.experiment


def group_of(measurement: Measurement, modules: int) -> str:
    """Name the experiment group of a row, for example "graph 04 pmem 6 modules ntstore".

    Parameters
    ----------
    measurement : Measurement
        The row.
    modules : int
        PMem modules of the platform: what a row without ``dimms`` uses.
    """
    parts = [experiment_of(measurement), measurement.medium]
    if measurement.medium == "pmem":
        used = int(measurement.parameters.get("dimms", modules))
        parts.append("1 module" if used == 1 else f"{used} modules")
    # Two columns of graph 13 are the same instruction: its own names, behind the experiment's, tell them apart.
    column = measurement.experiment.partition(" ")[2]
    if measurement.kind == "operations":
        parts.append("chains")
    else:
        parts.append(column or str(measurement.parameters["operation"]))
    return " ".join(parts)


def calibration_rows(folders: Sequence[Path], platform: Platform, only: Iterable[str]) -> list[Measurement]:
    """Read the rows that calibrate a platform.

    Parameters
    ----------
    folders : sequence of Path
        Published data sets.
    platform : Platform
        Its name selects the rows.
    only : iterable of str
        Texts that must all occur in the name of a row's group; none: all rows.

    Raises
    ------
    ConfigError : no data set, or no row is left.
    """
    measured = [row for data_set in load(folders) for row in data_set.rows if row.use == "calibration"]
    rows = [row for row in measured if row.platform_name == platform.name]
    if not rows:
        known = ", ".join(sorted({row.platform_name for row in measured})) or "none"
        raise ConfigError(
            f"--platform {platform.name}: --data has no calibration measurements of it; it has some of: {known}"
        )
    modules = platform.value("pmem", "dimms")
    chosen = [row for row in rows if all(text in group_of(row, modules) for text in only)]
    if not chosen:
        groups = ", ".join(dict.fromkeys(group_of(row, modules) for row in rows))
        raise ConfigError(f"--only: no group contains {' and '.join(map(repr, only))}; groups: {groups}")
    return chosen


def sample(rows: Sequence[Measurement], number: int | None, modules: int, seed: int) -> list[Measurement]:
    """Choose rows at random, in turn from every group, so that a small sample still sees every experiment.

    Parameters
    ----------
    rows : sequence of Measurement
        To choose from; the order of the result is theirs.
    number : int, optional
        Rows to choose; None: all.
    modules : int
        As for `group_of`.
    seed : int
        Equal seeds choose equal rows.
    """
    if number is None or number >= len(rows):
        return list(rows)
    generator = random.Random(seed)
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(group_of(row, modules), []).append(index)
    for members in groups.values():
        generator.shuffle(members)
    deepest = max(map(len, groups.values()))
    turns = [members[turn] for turn in range(deepest) for members in groups.values() if turn < len(members)]
    return [rows[index] for index in sorted(turns[:number])]


def evaluate(
    platform: Platform,
    rows: Sequence[Measurement],
    pool: ThreadPoolExecutor,
    seed: int,
    progress: Callable[[int], None] = lambda finished: None,
) -> list[Row]:
    """Predict every row on a platform, each distinct run once; the core computes without Python's lock.

    Parameters
    ----------
    platform : Platform
        Stands in for the platform that the rows name.
    rows : sequence of Measurement
        What to predict.
    pool : ThreadPoolExecutor
        Runs the points.
    seed : int
        Of every run.
    progress : callable
        Takes the number of finished runs.
    """
    points = {row.point.key: row.point for row in rows}
    futures = {
        pool.submit(pmsim.simulate_point, point.kind, platform, point.parameters, seed): key
        for key, point in points.items()
    }
    answers: dict[str, dict[str, float] | str] = {}
    try:
        for future in as_completed(futures):
            try:
                answers[futures[future]] = future.result()
            except PmsimError as error:
                answers[futures[future]] = str(error)
            progress(len(answers))
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    compared = []
    for row in rows:
        answer = answers[row.point.key]
        if isinstance(answer, str):
            compared.append(Row(row, message=answer))
        else:
            compared.append(Row(row, float(answer[row.metric])))
    return compared


def objective(rows: Sequence[Row]) -> float:
    """Mean cost of the rows: 0 where every prediction is exact, log 2 where all are off by a factor of two."""
    return statistics.fmean(row.cost for row in rows)


def candidates(text: str, platform: Platform) -> list[Candidate]:
    """Parse the argument of --fit: names of parameters, separated by commas.

    Raises
    ------
    ConfigError : unknown, twice, or without a step to take: a flag, or a value of 0.
    """
    found: list[Candidate] = []
    for key in (part.strip() for part in text.split(",")):
        section, _, name = key.partition(".")
        try:
            field = find_field(section, name or None)
        except ConfigError as error:
            raise ConfigError(f"--fit: {error}") from None
        if field.quantity is Quantity.FLAG:
            raise ConfigError(f"--fit: {key}: is a flag; a search needs a quantity or a count")
        if platform.value(section, name) == 0:
            raise ConfigError(f"--fit: {key}: is 0 in {platform.name}, which no factor changes; start above 0")
        if any(known.key == key for known in found):
            raise ConfigError(f"--fit: {key}: given twice; once is enough")
        found.append(Candidate(section, name, field.quantity, field.minimum, field.maximum))
    return found


def toml_lines(platform: Platform, parameters: Sequence[Candidate], source: str) -> str:
    """Write the values of some parameters as lines of a profile."""
    lines = []
    for section in dict.fromkeys(parameter.section for parameter in parameters):
        lines.append(f"[{section}]")
        for parameter in parameters:
            if parameter.section == section:
                value = format_value(platform.value(section, parameter.name), parameter.quantity)
                shown = value if parameter.quantity is Quantity.COUNT else f'"{value}"'
                lines.append(
                    f'{parameter.name} = {{ value = {shown}, source = "{source}", origin = "fitted" }}'
                )
    return "\n".join(lines)


def _errors(rows: Sequence[Row]) -> list[str]:
    errors = [row.error for row in rows if not row.message]
    if not errors:
        return ["", "", ""]
    absolute = [abs(error) for error in errors]
    return [
        f"{100 * statistics.median(absolute):.1f} %",
        f"{100 * quantile(absolute, 0.9):.1f} %",
        f"{100 * statistics.median(errors):+.1f} %",
    ]


def accuracy_table(rows: Sequence[Row], modules: int) -> Table:
    """Tabulate median and 90th percentile of the absolute relative error, by group and over each medium.

    The signed median tells a group that is off in one direction, so that a value is wrong, from one that
    scatters around the measurements, so that a shape is.
    """
    table = Table(title="Absolute relative error on the calibration rows", title_justify="left", box=SIMPLE)
    table.add_column("group", no_wrap=True)
    table.add_column("of")
    for column in ("rows", "median", "90th percentile", "signed median", "failed"):
        table.add_column(column, justify="right")

    def add(group: str, unit: str, members: list[Row]) -> None:
        failed = sum(1 for row in members if row.message)
        table.add_row(group.replace("[", r"\["), unit, str(len(members)), *_errors(members), str(failed or ""))

    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((group_of(row.measurement, modules), row.measurement.unit), []).append(row)
    for (group, unit), members in groups.items():
        add(group, unit, members)
    table.add_section()
    for medium in ("pmem", "dram"):
        members = [row for row in rows if row.measurement.medium == medium]
        if members:
            add(f"all {medium}", "", members)
    return table


def _show(console: Console, rows: Sequence[Row], platform: Platform) -> bool:
    console.print(accuracy_table(rows, platform.value("pmem", "dimms")))
    console.print(f"Objective (mean of |log(predicted / measured)|, clipped at log 2): {objective(rows):.4f}")
    failed = [row for row in rows if row.message]
    if failed:
        console.print(
            f"{len(failed)} rows could not be simulated; first: {failed[0].measurement.setup}: ", end=""
        )
        console.print(failed[0].message, style="red", markup=False)
    return not failed


def _calibrate(
    console: Console,
    data: list[Path],
    name: str,
    only: list[str],
    fit: str | None,
    number: int | None,
    rounds: int,
    jobs: int | None,
    seed: int,
) -> bool:
    platform = pmsim.load_platform(name)
    modules = platform.value("pmem", "dimms")
    parameters = candidates(fit, platform) if fit is not None else []
    available = calibration_rows(data, platform, only)
    rows = sample(available, number, modules, seed)
    runs = len({row.point.key for row in rows})
    console.print(f"{platform.name}: {len(rows)} of {len(available)} calibration rows, {runs} runs")
    with ThreadPoolExecutor(usable_jobs(jobs)) as pool:
        if not parameters:
            with progress_bar(platform.name, runs, None) as advance:
                return _show(console, evaluate(platform, rows, pool, seed, advance), platform)
        most = 1 + rounds * len(parameters) * (MOVES + 1)
        done = 0
        with progress_bar(f"{platform.name}, runs at most", most * runs, None) as advance:

            def cost_of(machine: Platform) -> float:
                nonlocal done
                cost = objective(evaluate(machine, rows, pool, seed, lambda finished: advance(done + finished)))
                done += runs
                return cost

            found = search(platform, parameters, cost_of, rounds)
        complete = _show(console, evaluate(found.platform, rows, pool, seed), found.platform)
    gain = f"{found.start:.4f} to {found.cost:.4f}"
    console.print(f"The search took the objective from {gain} in {found.evaluations} evaluations.")
    if found.platform.hash == platform.hash:
        console.print("No step was better than the profile.")
        return complete
    experiments = ", ".join(dict.fromkeys(experiment_of(row) for row in rows))
    source = f"fitted to {rows[0].dataset}: {experiments} (scripts/calibrate.py, {len(rows)} rows, seed {seed})"
    console.print("Best values:")
    print(toml_lines(found.platform, parameters, source))  # whole lines, to be copied
    return complete


@app.command()
def calibrate(
    data: Annotated[
        list[Path], typer.Option(help="Folder of a published data set, or of several; may be repeated.")
    ],
    platform: Annotated[str, typer.Option(help="Name of the profile: ucsd-8260 or perma-a256.")] = "ucsd-8260",
    fit: Annotated[
        str | None, typer.Option(metavar="SECTION.NAME,...", help="Parameters to search better values for.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only groups whose name contains this text; repeated: contains all."),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Rows to use, drawn in turn from every group; all by default.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, max=8, help="Rounds of a search: the step is x1.25, then halves.")
    ] = 3,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time; one per processor by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample of rows and of every run.")] = 0,
) -> None:
    """Compare a platform with its calibration measurements, or search for values that fit better.

    Exit status: 0 done, 1 a row could not be simulated, 2 bad input.
    """
    try:
        # Where the output is a file or a pipe Rich assumes 80 columns, too few for the table.
        console = Console(width=None if sys.stdout.isatty() else 120)
        complete = _calibrate(console, data, platform, only or [], fit, rows, rounds, jobs, seed)
    except PmsimError as error:
        sys.stderr.write(f"calibrate: {' '.join(str(error).split())}\n")
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from None
    if not complete:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
