"""Several seeds: each point is run with every one, and its metrics are means with intervals over the seeds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.kinds.does_not_fit import DoesNotFit
from pmsim.kinds.intervals import of_ratio
from pmsim.kinds.metric import FLAGS, INTERVAL_ENDS
from pmsim.point_cache import Metrics
from pmsim.points import Point
from pmsim.runner import Failure, Outcome


def check_seeds(points: Sequence[Point], seeds: int) -> None:
    """Refuse several seeds where they say nothing, or of points whose rows are a curve.

    Raises
    ------
    ConfigError : ``seeds: problem; remedy``.
    """
    if seeds == 1:
        return
    if points and not find_kind(points[0].kind).seeded:
        raise ConfigError(f"seeds: a run of kind '{points[0].kind}' draws nothing from a seed; remove it")
    if any(find_kind(point.kind).curve(point.parameters) for point in points):
        raise ConfigError(
            "seeds: rows of these points are a curve over time or rank, of which each seed has its own; remove "
            "it, and run them with one --seed after the other"
        )


def runs_of(points: Sequence[Point], seeds: int) -> list[Point]:
    """Return the runs of points: of each as many as there are seeds, from the scenario's on, one by one."""
    return [
        replace(point, base_seed=point.base_seed + number) if number else point
        for point in points
        for number in range(seeds)
    ]


def joined(points: Sequence[Point], seeds: int, outcome: Outcome) -> Outcome:
    """Return the outcome of points from that of `runs_of`: a point has failed where one of its runs has."""
    if seeds == 1:
        return outcome
    runs = [outcome.metrics[first : first + seeds] for first in range(0, len(outcome.metrics), seeds)]
    failures: dict[int, Failure] = {}
    for failure in outcome.failures:
        index, number = divmod(failure.index, seeds)
        told = f"seed {points[index].base_seed + number}: {failure.message}"
        failures.setdefault(index, Failure(index, failure.point, told))
    metrics = [
        None if index in failures else mean([found for found in of_point if found is not None], _ends(point))
        for index, (point, of_point) in enumerate(zip(points, runs, strict=True))
    ]
    return Outcome(metrics, list(failures.values()), outcome.from_cache)


def _ends(point: Point) -> list[str]:
    """Return the metrics that have an interval."""
    known = {metric.name for metric in find_kind(point.kind).metric_list(point.parameters)}
    return [name for name in known if all(name + end in known for end in INTERVAL_ENDS)]


def mean(runs: Sequence[Metrics], with_interval: Sequence[str]) -> Metrics:
    """Return the metrics of one point from those of its runs.

    Means over the runs; what is 0 or 1 is 1 where it is 1 in all. Ends of intervals are Student's 95 % over the
    runs, whatever those of each run say. Data that do not fit with one seed do not fit.
    """
    for run in runs:
        if isinstance(run, DoesNotFit):
            return run
    found: Metrics = {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        over: Callable[[list[int | float]], int | float] = min if name in FLAGS else fmean
        if any(map(math.isnan, values)):
            found[name] = math.nan
        else:
            found[name] = values[0] if len(set(values)) == 1 else over(values)
    for name in with_interval:
        ends = of_ratio([run[name] for run in runs], [1] * len(runs))
        found |= zip((name + end for end in INTERVAL_ENDS), ends, strict=True)
    return found
