"""The command ``pmsim validate``."""

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pmsim.api import POINTS_FOLDER
from pmsim.errors import ConfigError
from pmsim.runner import RunInterrupted
from pmsim.validation.claims import load_suite
from pmsim.validation.loaders import DataSet, load
from pmsim.validation.measures import Runs, simulator
from pmsim.validation.report import percent, with_range, write_report
from pmsim.validation.summary import Accuracy, Validation
from pmsim.validation.summary import validate as run_validation

_INTERRUPTED = 130
_COLOURS = {"pass": "green", "fail": "red", "error": "red", "not simulated": "dim"}


def validate(
    suite: Annotated[str, typer.Option(help="Claims to test: a name, or a TOML file.")] = "device",
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a published data set, or of several; may be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html and results.parquet.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; all processors by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every run.")] = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, help="Repeat every run with so many seeds, SEED, SEED + 1 and so on, and judge by medians."
        ),
    ] = 1,
    optane_units: Annotated[
        str, typer.Option(help="MB and GB of OptaneStudy: 'labelled' (powers of ten) or 'binary'.")
    ] = "labelled",
) -> None:
    """Hold predictions against published measurements; exits with 1 if a claim fails."""
    console = Console()
    tested = load_suite(suite)
    data_sets = _data_sets(data or [], optane_units)
    if out is not None:
        _make(out)
    if not data_sets:
        console.print("No measurement data (--data): the claims of the publications alone.")
    for data_set in data_sets:
        _introduce(console, data_set)
    cache = out / POINTS_FOLDER if out is not None else None
    used = range(seed, seed + seeds)
    runs = [Runs(simulator(seed=each, jobs=jobs, cache=cache)) for each in used]
    try:
        result = run_validation(tested, data_sets, runs)
    except RunInterrupted as interruption:
        done = sum(len(seed) > 0 for seed in runs) * interruption.total + interruption.finished
        kept = f"are kept in {out}; run the same command again to resume"
        _tell_interrupted(
            f"{done} of {seeds * interruption.total} runs {kept if out else 'were done; --out DIR keeps them'}"
        )
        raise typer.Exit(_INTERRUPTED) from None
    if out is not None:
        _save(result, out)
    _show(console, result)
    if out is not None:
        console.print(f"Report: {(out / 'report.html').resolve()}", soft_wrap=True)
    if not result.passed:
        raise typer.Exit(1)


def _tell_interrupted(what: str) -> None:
    Console(stderr=True).print(f"pmsim: interrupted; {what}", markup=False, highlight=False, soft_wrap=True)


def _data_sets(folders: list[Path], units: str) -> list[DataSet]:
    if units not in ("labelled", "binary"):
        raise ConfigError(f"--optane-units {units}: unknown; known: labelled, binary")
    return load(folders, "binary" if units == "binary" else "labelled") if folders else []


def _introduce(console: Console, data_set: DataSet) -> None:
    console.print(f"{data_set.name}: {len(data_set.rows)} measurements from {data_set.folder}", soft_wrap=True)
    console.print(f"  {data_set.citation}", style="dim", soft_wrap=True)
    for note in data_set.notes:
        console.print(f"  {note}", style="dim", soft_wrap=True)
    for reason, number in data_set.skipped.counts.items():
        console.print(f"  left out, {number}: {reason}", style="dim", soft_wrap=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _save(result: Validation, folder: Path) -> None:
    try:
        result.frame().to_parquet(folder / "results.parquet", index=False)
        write_report(result, folder / "report.html")
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _show(console: Console, result: Validation) -> None:
    table = Table(title=result.suite.title, title_justify="left")
    for column in ("claim", "setup", "measured", "predicted", "error", "verdict", "use"):
        table.add_column(column, justify="right" if column == "error" else "left", overflow="fold")
    for outcome, share in zip(result.outcomes, result.shares(), strict=True):
        claim = outcome.claim
        verdict = f"[{_COLOURS[outcome.verdict]}]{outcome.verdict}[/]"
        use = ("calibrated" if claim.use == "calibration" else "predicted") if claim.checks else ""
        cells = [
            claim.id,
            _short(claim.setup),
            claim.expected_text(),
            outcome.predicted,
            percent(outcome.error, True),
        ]
        if share is not None:
            # In the columns that are there anyway: a terminal has no room for two more.
            verdict += f" {share}"
            cells[3] += f" ({share.spread})" if share.spread else ""
        table.add_row(*(cell.replace("[", r"\[") for cell in cells), verdict, use)
    console.print(table)
    console.print(_accuracy_table("Accuracy: relative error of predictions", result.accuracy()))
    if result.compared:
        console.print(_accuracy_table("By experiment", result.by_experiment()))
    verdicts = [outcome.verdict for outcome in result.outcomes]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in _COLOURS if name in verdicts)
    console.print(f"{len(verdicts)} claims: {counts}; {result.runs} runs.")
    if result.each:
        found = ", ".join(f"{share.claim} {share}" for share in result.by_chance())
        console.print(
            f"Decided by chance, passing with some of the {len(result.each)} seeds only: {found or 'none'}."
        )
    failed = next((row for row in result.compared if row.message), None)
    if failed is not None:
        number = sum(1 for row in result.compared if row.message)
        console.print(
            f"{number} measurements could not be simulated; first: {failed.measurement.setup}: ", end=""
        )
        console.print(failed.message, style="red", markup=False)


def _short(setup: str, limit: int = 72) -> str:
    return setup if len(setup) <= limit else setup[: limit - 3].rsplit(" ", 1)[0] + " ..."


def _accuracy_table(title: str, rows: list[Accuracy]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("group", "medium", "use"):
        table.add_column(column)
    for column in ("points", "median", "90th percentile", "rank correlation", "failed"):
        table.add_column(column, justify="right")
    for row in rows:
        correlation = "" if math.isnan(row.rank_correlation) else f"{row.rank_correlation:.3f}"
        errors = (with_range(row.median, row.median_range), with_range(row.p90, row.p90_range))
        shown = (str(row.rows), *errors, correlation, str(row.failed or ""))
        table.add_row(row.group, row.medium, row.use, *shown)
    return table
