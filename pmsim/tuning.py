"""Simulated annealing over the points of a sweep: finds a good configuration without running all of them.

The walk is pmsim.annealing's. Its next move depends on what the last one found, so more processes simulate
what it may ask for next: they change how long a search takes, and nothing that it finds.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmsim import arguments
from pmsim.ahead import Ahead, NotSimulatedError
from pmsim.annealing import Walk, outlook
from pmsim.annealing import anneal as anneal  # a part of this module to its users
from pmsim.api import POINTS_FOLDER, load_scenario, origin_of
from pmsim.errors import ConfigError
from pmsim.goal import Goal, goal_of
from pmsim.messages import shown
from pmsim.overrides import with_overrides
from pmsim.point_cache import PointCache
from pmsim.runner import Failure, usable_jobs
from pmsim.scenario import Scenario
from pmsim.search_space import Coordinates, SearchSpace
from pmsim.sweep import LARGEST_SWEEP
from pmsim.unused import checked_points


@dataclass(frozen=True)
class Step:
    """One visit: where, what it gave (nan: the point does not count), whether the search moved there, and
    whether it had to be simulated.
    """

    settings: dict[str, str]
    value: float
    accepted: bool
    simulated: bool


@dataclass(frozen=True)
class Tuning:
    """Result of a search.

    Attributes
    ----------
    goal : Goal
        What was sought.
    best : dict or None
        Axis to setting, as text; None: no point that was visited can be used.
    value : float
        Of the metric there; nan where there is none.
    steps : list of Step
        In the order of the search; the first is the start.
    points : int
        Of the whole sweep.
    failures : tuple of Failure
        Points that were visited and could not be simulated, and why: they do not count.
    """

    goal: Goal
    best: dict[str, str] | None
    value: float
    steps: list[Step]
    points: int
    failures: tuple[Failure, ...] = ()

    @property
    def simulated(self) -> int:
        """Points that were simulated, or had been before."""
        return sum(step.simulated for step in self.steps)


def tune(
    scenario: str | Path | Scenario,
    *,
    metric: str | None = None,
    minimize: bool | None = None,
    require: Iterable[str] = (),
    steps: int = 60,
    seed: int = 0,
    jobs: int = 1,
    set: Mapping[str, Any] | Iterable[str] | None = None,
    out: str | Path | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Tuning:
    """Search the sweep of a scenario for its best point.

    Parameters
    ----------
    scenario : str, Path or Scenario
        Its sweep is the space, each axis in the order in which neighbours should lie.
    metric : str, optional
        A metric, counter or column of numbers (``cost_usd``). By default the metric of the kind.
    minimize : bool, optional
        Seek the lowest value, or the highest. By default rates are sought high and times low.
    require : iterable of str, optional
        What a point has to meet to count, such as ``"transactions_per_s >= 300000"``.
    steps : int, optional
        Moves to try, at most: the walk ends where every point has been visited.
    seed : int, optional
        Of the walk. That of the simulation is the scenario's.
    jobs : int, optional
        Processes. One simulates the point that the walk asks for, the others what it may ask for next. The
        result is the same; what turns out not to be asked for is simulated in vain, or kept in `out`.
    set : optional
        As for `pmsim.run`.
    out : str or Path, optional
        Keeps finished points, shared with `pmsim.run` of the same scenario: a search that was
        interrupted, or that is repeated with more steps, simulates only what is new.
    progress : callable, optional
        Told each step.

    Raises
    ------
    ConfigError : the scenario is not usable, its points fill no grid, or its kind has no such metric.
    """
    written = load_scenario(scenario)
    resolved = with_overrides(written, [] if set is None else set)
    steps = arguments.whole("steps", steps, 1, LARGEST_SWEEP)
    seed = arguments.whole("seed", seed, 0)
    folder = None if out is None else arguments.path("out", out)
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress: {shown(progress)} cannot be called; give a function of a step")
    try:
        points = checked_points(resolved, written)
    except ConfigError as error:
        raise error.prefixed(origin_of(scenario)) from None
    if resolved.seeds > 1:
        raise ConfigError(f"{origin_of(scenario)}: seeds: a search visits each point with one seed; remove it")
    goal = goal_of(points[0], metric, minimize, require)
    space = SearchSpace.of(points)
    cache = PointCache(folder / POINTS_FOLDER) if folder is not None else None
    walk = Walk(space.sizes, steps, seed)
    known: dict[Coordinates, float] = {}
    failures: list[Failure] = []
    taken: list[Step] = []
    with Ahead(space.grid, cache, usable_jobs(jobs)) as ahead:
        while (place := walk.proposed) is not None and len(known) < len(points):
            point = space.grid[place]
            fresh = place not in known
            if fresh:
                try:
                    metrics = ahead.metrics(place, outlook(walk, known))
                except NotSimulatedError as error:  # as in a sweep, the others have their results
                    failures.append(Failure(points.index(point), point.describe(), str(error)))
                    known[place] = math.inf
                else:
                    known[place] = goal.energy({**point.columns, **metrics})
            found = known[place]
            step = Step(dict(point.axes), goal.value(found), walk.judge(found), fresh)
            taken.append(step)
            if progress is not None:
                progress(step)
    place = min(known, key=lambda where: known[where])
    best = None if math.isinf(known[place]) else dict(space.grid[place].axes)
    return Tuning(goal, best, goal.value(known[place]), taken, len(points), tuple(failures))
