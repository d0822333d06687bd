"""The command ``pmsim validate``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pmsim.api import POINTS_FOLDER
from pmsim.arguments import LARGEST
from pmsim.errors import ConfigError
from pmsim.exit_status import FAILED
from pmsim.output_place import check_output_folder
from pmsim.path_option import path_option
from pmsim.runner import RunInterrupted, usable_jobs
from pmsim.terminal import complaints, output
from pmsim.validation.loaders import DataSet, load
from pmsim.validation.measures import Runs, simulator
from pmsim.validation.printed import print_validation
from pmsim.validation.runnable import check_suite, leave_out_impossible
from pmsim.validation.suite_files import load_suite
from pmsim.validation.summary import Validation
from pmsim.validation.summary import validate as run_validation
from pmsim.whole_files import replace_file

_INTERRUPTED = 130
#: A verdict by more is no better known, and takes months.
_MOST_SEEDS = 10_000
_OUTPUTS = ("results.parquet", "report.html")


def validate(
    suite: Annotated[str, typer.Option(help="Claims to test: a name, or a TOML file.")] = "device",
    data: Annotated[
        list[Path] | None,
        path_option("Folder of a published data set, or of several; may be repeated.", metavar="DIR"),
    ] = None,
    out: Annotated[
        Path | None,
        path_option("Folder for report.html and results.parquet."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; all processors by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST, help="Seed of every run.")] = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            max=_MOST_SEEDS,
            help="Repeat every run with so many seeds, SEED, SEED + 1 and so on, and judge by medians.",
        ),
    ] = 1,
    optane_units: Annotated[
        str, typer.Option(help="MB and GB of OptaneStudy: 'labelled' (powers of ten) or 'binary'.")
    ] = "labelled",
) -> None:
    """Hold predictions against published measurements; exits with 1 if a claim fails."""
    console = output()
    usable_jobs(jobs)
    tested = load_suite(suite)
    check_suite(tested)
    data_sets = _data_sets(data or [], optane_units)
    if out is not None:
        check_output_folder(out, _OUTPUTS)
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
    print_validation(console, result)
    if out is not None:
        _save(result, out)
        console.print(f"Report: {(out / 'report.html').resolve()}", soft_wrap=True)
    else:
        console.print("With --out DIR a report has every set-up, ordering and what is known of it.")
    if not result.passed:
        raise typer.Exit(FAILED)


def _tell_interrupted(what: str) -> None:
    complaints().print(f"pmsim: interrupted; {what}")


def _data_sets(folders: list[Path], units: str) -> list[DataSet]:
    if units not in ("labelled", "binary"):
        raise ConfigError(f"--optane-units {units}: unknown; known: labelled, binary")
    if not folders and units != "labelled":
        raise ConfigError(
            "--optane-units: is of the measurements of OptaneStudy; name their folder with --data"
        )
    found = load(folders, "binary" if units == "binary" else "labelled") if folders else []
    for data_set in found:
        leave_out_impossible(data_set)
    return found


def _introduce(console: Console, data_set: DataSet) -> None:
    console.print(f"{data_set.name}: {len(data_set.rows)} measurements from {data_set.folder}", soft_wrap=True)
    console.print(f"  {data_set.citation}", style="dim", soft_wrap=True)
    for note in data_set.notes:
        console.print(f"  {note}", style="dim", soft_wrap=True)
    for reason, number in data_set.skipped.counts.items():
        console.print(f"  left out, {number}: {reason}", style="dim", soft_wrap=True)


def _save(result: Validation, folder: Path) -> None:
    from pmsim.validation.report import write_report

    try:
        replace_file(folder / "results.parquet", result.frame().to_parquet(None, index=False))
        write_report(result, folder / "report.html")
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be written: {error.strerror or error}; choose another with --out"
        ) from error
