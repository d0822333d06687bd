"""The public functions: run a scenario, or one point."""

import datetime
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pmsim import arguments
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.messages import shown
from pmsim.output_place import RUN_OUTPUTS, check_output_folder
from pmsim.overrides import with_overrides
from pmsim.plain import plain
from pmsim.platforms import Platform
from pmsim.point_cache import PointCache
from pmsim.profiles import load_platform
from pmsim.progress import progress_bar
from pmsim.runner import run_points, usable_jobs
from pmsim.scenario import Scenario
from pmsim.seeds import joined, runs_of
from pmsim.shipped import find_scenario
from pmsim.unused import checked_points

if TYPE_CHECKING:
    from pmsim.results import Result

#: Folder of finished points in an output directory.
POINTS_FOLDER = "points"


def run(
    scenario: str | Path | Scenario,
    *,
    set: Mapping[str, Any] | Iterable[str] | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> "Result":
    """Run a scenario.

    Parameters
    ----------
    scenario : str, Path or Scenario
        A path, the name of a shipped scenario such as "device/latency", or an object.
    set : mapping or iterable of "key=value", optional
        Changes: a parameter, ``sweep.AXIS``, ``platform.SECTION.NAME``, or a key of the scenario.
    out : str or Path, optional
        Output directory: gets the results, and keeps finished points so that an interrupted run resumes.
    jobs : int, optional
        Processes; by default one per processor.
    seed, seeds : int, optional
        Replace the scenario's seed, and how many from there on each point is run with: with more than one its
        metrics are means, with intervals over the seeds.
    executor : concurrent.futures.Executor, optional
        Runs the points instead of local processes, for example that of a Dask client.
    progress : bool, optional
        Show a progress bar; by default where the standard error is a terminal.

    Returns
    -------
    Result : failed points are in ``failures``, all others in ``frame``.

    Raises
    ------
    ConfigError : the scenario or the output directory is not usable; nothing has been run.
    RunInterrupted : Ctrl-C; the finished points are kept in ``out``.
    """
    # Frames and figures take a second to import; the workers of a run need neither.
    from pmsim.results import Result, RunInfo

    written = load_scenario(scenario)
    resolved = with_overrides(written, {} if set is None else set, seed=seed, seeds=seeds)
    usable_jobs(jobs)
    _check_executor(executor, jobs)
    folder = None if out is None else arguments.path("out", out)
    if progress is not None:
        arguments.flag("progress", progress)
    try:
        points = checked_points(resolved, written)
    except ConfigError as error:
        raise error.prefixed(origin_of(scenario)) from None
    cache = None
    if folder is not None:
        check_output_folder(folder, RUN_OUTPUTS)
        cache = PointCache(folder / POINTS_FOLDER)
    started = datetime.datetime.now(datetime.UTC)
    clock = time.monotonic()
    runs = runs_of(points, resolved.seeds)
    with progress_bar(resolved.name or resolved.kind, len(runs), progress) as advance:
        try:
            outcome = run_points(runs, cache=cache, jobs=jobs, executor=executor, progress=advance)
        except ConfigError as error:
            raise error.prefixed(origin_of(scenario)) from None
    outcome = joined(points, resolved.seeds, outcome)
    info = RunInfo(
        command=tuple(sys.argv),
        started=started.isoformat(timespec="seconds"),
        wall_time_s=time.monotonic() - clock,
        points_from_cache=outcome.from_cache,
    )
    result = Result(resolved, points, outcome.metrics, outcome.failures, info)
    if folder is not None:
        result.save(folder)
    return result


def load_scenario(scenario: str | Path | Scenario) -> Scenario:
    """Return a scenario from a path, the name of a shipped one, or itself."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, str | Path):
        return Scenario.from_file(find_scenario(str(scenario)))
    raise ConfigError(f"scenario: {shown(scenario)} is neither a path nor a Scenario; give one of them")


def origin_of(scenario: str | Path | Scenario) -> str:
    """Return how messages name a scenario."""
    if isinstance(scenario, Scenario):
        return scenario.name or scenario.kind
    return str(find_scenario(str(scenario)))


def _check_executor(executor: object, jobs: object) -> None:
    if isinstance(executor, type):
        name = executor.__name__
        raise ConfigError(f"executor: {name} is a class and runs nothing; give an object, such as {name}()")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ConfigError(f"executor: {shown(executor)} runs nothing; give a concurrent.futures.Executor")
    if executor is not None and jobs is not None:
        raise ConfigError(f"jobs: {shown(jobs)} has no meaning with an executor, which has its own; remove one")


def simulate_point(
    kind: str, platform: str | Mapping[str, Any] | Platform, parameters: Mapping[str, Any], seed: int = 0
) -> dict[str, float]:
    """Simulate one point in this process.

    Parameters
    ----------
    kind : str
        Kind of experiment.
    platform : str, mapping or Platform
        As for `load_platform`.
    parameters : mapping
        Of the kind, as in a scenario file; what is not given takes the kind's default.
    seed : int
        Given to the core as it is.

    Returns
    -------
    dict : every metric of the kind, and the counters as ``counter.NAME``.

    Raises
    ------
    ConfigError : what cannot be run.
    """
    known = find_kind(kind)
    seed = arguments.whole("seed", seed, 0, 2**64 - 1)
    machine, complete, _ = known.prepared(load_platform(platform), plain(parameters))
    return known.run(machine, complete, seed)
