"""``pmsim run``."""

from pathlib import Path
from typing import Annotated

import typer

from pmsim.api import POINTS_FOLDER, load_scenario, origin_of, run
from pmsim.errors import ConfigError
from pmsim.exit_status import FAILED, INTERRUPTED
from pmsim.host_room import check_room
from pmsim.output_place import RUN_OUTPUTS, check_output_folder
from pmsim.overrides import with_overrides
from pmsim.path_option import path_option
from pmsim.point_cache import PointCache
from pmsim.runner import RunInterrupted, usable_jobs
from pmsim.scenario import Scenario
from pmsim.seeds import runs_of
from pmsim.terminal import complaints, output, print_table
from pmsim.unused import checked_points

_ROWS_SHOWN = 30


def run_command(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or a shipped scenario such as device/latency.")],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a parameter, sweep.AXIS or platform.SECTION.NAME."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        path_option("Output directory.", show_default="out/NAME"),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes.", show_default="processors")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed.", show_default="the scenario's")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Run each point with N seeds, from SEED on; metrics are means.",
            show_default="the scenario's, usually 1",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, and run nothing.")] = False,
) -> None:
    """Run a scenario and write its results, figure and provenance."""
    written = load_scenario(scenario)
    resolved = with_overrides(written, set_ or [], seed=seed, seeds=seeds)
    folder = out if out is not None else Path("out") / (resolved.name or resolved.kind)
    if dry_run:
        usable_jobs(jobs)
        _describe(resolved, written, scenario, folder)
        return
    before = _held_in(folder)
    try:
        result = run(scenario, set=set_, out=folder, jobs=jobs, seed=seed, seeds=seeds)
    except RunInterrupted as interruption:
        begun = f", and what {interruption.begun} more had done" if interruption.begun else ""
        complaints().print(
            f"pmsim: interrupted; {interruption.finished} of {interruption.total} "
            f"{'points' if resolved.seeds == 1 else 'runs'} are kept in {folder}"
            f"{begun}; run the same command again to resume"
        )
        raise typer.Exit(INTERRUPTED) from None
    # What was saved is named, by its kind where the scenario has no name.
    if before is not None and (before.kind, before.name) != (resolved.kind, resolved.name or resolved.kind):
        complaints().print(
            f"pmsim: {folder} held the results of another scenario, '{before.name}'; they are "
            "replaced, its points are kept"
        )
    from pmsim.commands.run_printed import print_result  # pandas and Plotly: half a second

    print_result(result, folder)
    if result.failures:
        raise typer.Exit(FAILED)


def _held_in(folder: Path) -> Scenario | None:
    """Return the scenario whose results an output directory holds, if any that can be read."""
    file = folder / "scenario.resolved.toml"
    try:
        return Scenario.from_file(file) if file.is_file() else None
    except (ConfigError, OSError):
        return None


def _describe(scenario: Scenario, written: Scenario, origin: str, folder: Path) -> None:
    try:
        points = checked_points(scenario, written)
    except ConfigError as error:
        raise error.prefixed(origin_of(origin)) from None
    check_output_folder(folder, RUN_OUTPUTS, make=False)
    kept_points = folder / POINTS_FOLDER
    cache = PointCache(kept_points) if kept_points.exists() else None
    console = output()
    machines = dict.fromkeys(point.platform.name for point in points)
    title = scenario.title or scenario.name or scenario.kind
    rows = [[str(index), *point.axes.values()] for index, point in enumerate(points[:_ROWS_SHOWN], start=1)]
    columns = ["point", *(points[0].axes if points else [])]
    if len(machines) == 1:
        title += f", on {next(iter(machines))}"
    elif "platform" not in columns:
        columns.append("platform")
        for row, point in zip(rows, points, strict=False):
            row.append(point.platform.name)
    print_table(console, columns, rows, title)
    if len(points) > _ROWS_SHOWN:
        console.print(f"the first {_ROWS_SHOWN} of {len(points)} points", style="dim")
    runs = runs_of(points, scenario.seeds)
    kept = {index for index, run_ in enumerate(runs) if cache is not None and cache.load(run_) is not None}
    try:
        check_room(run_ for index, run_ in enumerate(runs) if index not in kept)
    except ConfigError as error:
        raise error.prefixed(origin_of(origin)) from None
    what = f"{len(points)} points, {len(kept)} of them"
    if scenario.seeds > 1:
        what = f"{len(points)} points, {scenario.seeds} seeds each, {len(kept)} of {len(runs)} runs"
    console.print(f"{what} finished in {folder}; nothing was run", soft_wrap=True)
