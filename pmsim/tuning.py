"""Simulated annealing over the points of a sweep: finds a good configuration without running all of them.

Spitfire tunes its four migration probabilities so (Zhou, Arulraj, Pavlo, Cohen: Spitfire, SIGMOD 2021):
change one setting by one step, keep what is better, and now and then what is worse, ever more seldom as the
temperature falls.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmsim import arguments
from pmsim.api import POINTS_FOLDER, load_scenario, origin_of
from pmsim.errors import ConfigError, InternalError, PmsimError
from pmsim.goal import Goal, goal_of
from pmsim.host_room import check_room
from pmsim.messages import shown
from pmsim.overrides import with_overrides
from pmsim.point_cache import Metrics, PointCache
from pmsim.points import Point
from pmsim.runner import Failure, evaluate
from pmsim.scenario import Scenario
from pmsim.search_space import Coordinates, SearchSpace
from pmsim.sweep import LARGEST_SWEEP
from pmsim.unused import checked_points

#: A step that loses a tenth of the best value is taken with probability 1/e at the start.
START_TEMPERATURE = 0.1
COOLING = 0.93


class _NotSimulatedError(PmsimError):
    """A point that could not be simulated."""


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


def anneal(
    sizes: list[int],
    energy: Callable[[Coordinates], float],
    steps: int,
    seed: int,
    temperature: float = START_TEMPERATURE,
    cooling: float = COOLING,
) -> Iterator[tuple[Coordinates, float, bool]]:
    """Walk over a grid towards low energy.

    Parameters
    ----------
    sizes : list of int
        Settings of each axis; the walk starts in the middle.
    energy : callable
        Of a place, to be made small; called again for a place that is visited again.
    steps : int
        Moves to try.
    seed : int
        The walk is a function of it.
    temperature, cooling : float
        A move that raises the energy by a share d of the best magnitude is taken with probability
        exp(-d / temperature); each move multiplies the temperature by `cooling`. A move to infinite energy is
        taken from such a place only: there anywhere else is as good.

    Yields
    ------
    place, its energy, and whether the walk went there.
    """
    choose = random.Random(seed)
    movable = [axis for axis, size in enumerate(sizes) if size > 1]
    place = tuple(size // 2 for size in sizes)
    current = best = energy(place)
    yield place, current, True
    for _ in range(steps if movable else 0):
        axis = choose.choice(movable)
        ways = [way for way in (-1, 1) if 0 <= place[axis] + way < sizes[axis]]
        moved = place[axis] + choose.choice(ways)
        there = (*place[:axis], moved, *place[axis + 1 :])
        found = energy(there)
        worse = 0.0 if math.isinf(current) else (found - current) / (abs(best) or 1.0)
        # After some ten thousand moves the temperature is too small for a float: what is worse is left then.
        accepted = worse <= 0 or (temperature > 0 and choose.random() < math.exp(-worse / temperature))
        if accepted:
            place, current, best = there, found, min(best, found)
        temperature *= cooling
        yield there, found, accepted


def tune(
    scenario: str | Path | Scenario,
    *,
    metric: str | None = None,
    minimize: bool | None = None,
    require: Iterable[str] = (),
    steps: int = 60,
    seed: int = 0,
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
    known: dict[Coordinates, float] = {}
    fresh: dict[Coordinates, None] = {}
    failures: list[Failure] = []

    def energy(place: Coordinates) -> float:
        if place not in known:
            fresh[place] = None
            point = space.grid[place]
            try:
                metrics = _metrics(point, cache)
            except _NotSimulatedError as error:  # as in a sweep, the others have their results
                failures.append(Failure(points.index(point), point.describe(), str(error)))
                known[place] = math.inf
            else:
                known[place] = goal.energy({**point.columns, **metrics})
        return known[place]

    taken: list[Step] = []
    for place, found, accepted in anneal(space.sizes, energy, steps, seed):
        step = Step(dict(space.grid[place].axes), goal.value(found), accepted, place in fresh)
        fresh.pop(place, None)
        taken.append(step)
        if progress is not None:
            progress(step)
        if len(known) == len(points):
            break  # nothing is left to find
    place = min(known, key=lambda where: known[where])
    best = None if math.isinf(known[place]) else dict(space.grid[place].axes)
    return Tuning(goal, best, goal.value(known[place]), taken, len(points), tuple(failures))


def _metrics(point: Point, cache: PointCache | None) -> Metrics:
    kept = cache.load(point) if cache is not None else None
    if kept is not None:
        return kept
    check_room([point])
    try:
        metrics = evaluate(point)
    except InternalError:
        raise
    except PmsimError as error:
        raise _NotSimulatedError(str(error)) from None
    if cache is not None:
        cache.store(point, metrics)
    return metrics
