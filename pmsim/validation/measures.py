"""Runs what claims and measurements need, each distinct point once, and reduces series to numbers."""

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmsim.errors import ConfigError, SimulationError
from pmsim.kinds import find_kind
from pmsim.point_cache import PointCache
from pmsim.points import Point as ResolvedPoint
from pmsim.profiles import load_platform
from pmsim.runner import Progress, run_points
from pmsim.validation.claims import Claim, Crossover, Measure, PlatformRef, Series, Suite

Metrics = Mapping[str, float]
Curve = list[tuple[float, float]]


@dataclass(frozen=True)
class Point:
    """One run: what is simulated, on which platform, with which parameters."""

    kind: str
    platform: PlatformRef
    parameters: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Equal for equal runs, whatever the order in which parameters were written."""
        return json.dumps([self.kind, self.platform, dict(self.parameters)], sort_keys=True, default=repr)


#: Runs points, calling back with the number of finished ones; gives metrics, or the message of a failure.
Backend = Callable[[Sequence[Point], Progress | None], Sequence[Metrics | str]]


def simulator(*, seed: int = 0, jobs: int | None = None, cache: Path | None = None) -> Backend:
    """Return what runs points as a scenario runs them: the same seeds, workers and finished points on disk.

    Parameters
    ----------
    seed : of the runs; each point derives its own from it.
    jobs : worker processes; by default one per processor.
    cache : folder that keeps finished points, so that an interrupted validation resumes.
    """

    def run(points: Sequence[Point], progress: Progress | None) -> list[Metrics | str]:
        answers: list[Metrics | str] = [""] * len(points)
        resolved: dict[int, ResolvedPoint] = {}
        for index, point in enumerate(points):
            try:
                resolved[index] = resolve(point, seed)
            except ConfigError as error:
                answers[index] = str(error)
        store = PointCache(cache) if cache is not None else None
        outcome = run_points(list(resolved.values()), cache=store, jobs=jobs, progress=progress)
        messages = {failure.index: failure.message for failure in outcome.failures}
        for position, (index, metrics) in enumerate(zip(resolved, outcome.metrics, strict=True)):
            answers[index] = metrics if metrics is not None else messages[position]
        return answers

    return run


def resolve(point: Point, seed: int) -> ResolvedPoint:
    """Check a point and complete it; raises ConfigError where it cannot be run."""
    kind = find_kind(point.kind)
    prepared = kind.prepared(load_platform(point.platform), point.parameters)
    return ResolvedPoint(
        kind.name, prepared.machine, prepared.parameters, prepared.asked, columns={}, axes={}, base_seed=seed
    )


class Runs:
    """Results of points, computed at most once.

    Parameters
    ----------
    backend : runs points; `simulator` makes one, tests bring their own.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._answers: dict[str, Metrics | str] = {}

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def unsteady(self) -> int:
        """How many runs were still changing while they measured: whose metric `steady` is 0."""
        return sum(
            not isinstance(answer, str) and answer.get("steady") == 0 for answer in self._answers.values()
        )

    def missing(self, points: Iterable[Point]) -> dict[str, Point]:
        """Select the points without a result, each once."""
        return {point.key: point for point in points if point.key not in self._answers}

    def compute(self, points: Iterable[Point], progress: Progress | None = None) -> None:
        """Run every point that has no result yet; a point that fails is kept with its message."""
        todo = self.missing(points)
        self._answers.update(zip(todo, self._backend(list(todo.values()), progress), strict=True))

    def metrics(self, point: Point) -> Metrics:
        """Give the result of a point that was computed; raises what the point raised."""
        answer = self._answers[point.key]
        if isinstance(answer, str):
            raise SimulationError(answer)
        return answer

    def value(self, point: Point, metric: str) -> float:
        """Give one metric of a point, native or derived."""
        metrics = self.metrics(point)
        derived = DERIVED.get(metric)
        try:
            value = derived(metrics, point.parameters) if derived else metrics[metric]
        except KeyError as error:
            known = ", ".join(sorted(metrics))
            raise SimulationError(f"{point.kind}: no metric {error.args[0]!r}; known: {known}") from error
        if not math.isfinite(value):
            raise SimulationError(f"{point.kind}: metric '{metric}' is {value}")
        return float(value)


# Quantities that follow from a run's metrics and parameters and that papers state instead of them.
DERIVED: dict[str, Callable[[Metrics, Mapping[str, Any]], float]] = {
    "line_time_ns": lambda m, p: 64 / m["bandwidth_gb_s"],
    "transaction_ns": lambda m, p: 1e9 / m["transactions_per_s"],
    "persists_per_s": lambda m, p: 1e9 / m["latency_ns"],
    "media_bytes_read_per_access": lambda m, p: m["read_amplification"] * p["access_size"],
    "unneeded_lines_per_access": lambda m, p: (m["read_amplification"] - 1) * p["access_size"] / 64,
    "media_bytes_per_byte": lambda m, p: m["read_amplification"] + m["write_amplification"],
}
#: Of those that have one.
DERIVED_UNITS = {
    "line_time_ns": "ns",
    "transaction_ns": "ns",
    "persists_per_s": "1/s",
    "media_bytes_read_per_access": "B",
}


def points_of(series: Series) -> list[Point]:
    """List the runs of a series."""
    return [Point(series.kind, platform, parameters) for _, platform, parameters in series.points()]


def curve(runs: Runs, series: Series) -> Curve:
    """Give (x, y) of a series by ascending x; a curve ends where the data do not fit the engine.

    Raises
    ------
    SimulationError : a run failed, or the data fit nowhere: of nothing everything would be true.
    """
    points = [(x, Point(series.kind, platform, parameters)) for x, platform, parameters in series.points()]
    points.sort(key=lambda point: point[0])  # "from which x on", "the smallest x" and shapes run along x
    found = [
        (x, runs.value(point, series.metric))
        for x, point in points
        if series.metric == "fits" or runs.metrics(point).get("fits") != 0
    ]
    if not found:
        raise SimulationError(f"{series.kind}: the data fit the engine at no point of the series")
    return found


def evaluate(runs: Runs, suite: Suite, claim: Claim, name: str) -> float:
    """Reduce a measure of a claim to its number."""
    measure = suite.measure(claim, name)

    def series(series_name: str) -> Curve:
        return curve(runs, suite.series[series_name])

    def other(measure_name: str) -> float:
        return evaluate(runs, suite, claim, measure_name)

    return reduce(measure, series, other)


def reduce(measure: Measure, series: Callable[[str], Curve], other: Callable[[str], float]) -> float:
    """Apply the one reducer that a measure names."""
    if measure.point is not None:
        return only(series(measure.point))
    if measure.max is not None:
        return max(y for name in measure.max for _, y in series(name))
    if measure.min is not None:
        return min(y for name in measure.min for _, y in series(name))
    if measure.peak_x is not None:
        return peak_x(series(measure.peak_x), measure.within)
    if measure.decline_x is not None:
        return min(decline_x(series(name), measure.within) for name in measure.decline_x)
    if measure.at is not None:
        return at_x(series(measure.at), measure.x)
    if measure.from_x is not None:
        return crossing(series(measure.from_x.upper), series(measure.from_x.lower), measure.from_x)
    if measure.median_ratio is not None:
        upper, lower = (series(name) for name in measure.median_ratio)
        return statistics.median(quotient for _, quotient in over(upper, lower))
    if measure.ratio is not None:
        return other(measure.ratio[0]) / other(measure.ratio[1])
    if measure.sum is not None:
        return math.fsum(other(name) for name in measure.sum)
    if measure.slowdown is not None:
        return 100 * (1 - other(measure.slowdown[1]) / other(measure.slowdown[0]))
    assert measure.scaled is not None
    assert measure.by is not None
    return other(measure.scaled) * measure.by


def over(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]]) -> Curve:
    """Divide one series by another with the same x, point by point."""
    if [x for x, _ in upper] != [x for x, _ in lower]:
        raise SimulationError("two series that are divided by each other differ in x")
    return [(x, y / divisor) for (x, y), (_, divisor) in zip(upper, lower, strict=True)]


def only(points: Sequence[tuple[float, float]]) -> float:
    """Give the value of a series of one run."""
    if len(points) != 1:
        raise SimulationError(f"'point' needs a series of one run, this one has {len(points)}")
    return points[0][1]


def at_x(points: Sequence[tuple[float, float]], wanted: float | None) -> float:
    """Give the value at one x of the sweep."""
    for x, y in points:
        if x == wanted:
            return y
    raise SimulationError(f"the series has no point at {wanted}")


def peak_x(points: Sequence[tuple[float, float]], within: float) -> float:
    """Give the smallest x whose value is within a fraction of the maximum ("needed to reach the peak")."""
    top = max(y for _, y in points)
    return next(x for x, y in points if y >= (1 - within) * top)


def decline_x(points: Sequence[tuple[float, float]], within: float) -> float:
    """Give the smallest x behind the maximum that has lost a fraction of it; infinite where none has."""
    top, top_x = max((y, -x) for x, y in points)
    return next((x for x, y in points if x > -top_x and y < (1 - within) * top), math.inf)


def crossing(
    upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], crossover: Crossover
) -> float:
    """Give the smallest x from which on the relation holds to the end; infinite where there is none."""
    reference = dict(lower)
    found = math.inf
    for x, y in reversed(upper):
        if x not in reference:
            raise SimulationError(f"the two series of a crossover differ at x = {x:g}")
        limit = crossover.factor * reference[x]
        if not (y >= limit if crossover.relation == "at least" else y <= limit):
            break
        found = x
    return found
