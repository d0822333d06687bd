"""Judges predictions: claims by their rule, measurements by their relative error."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from pmsim.errors import SimulationError
from pmsim.validation.claims import AT_LEAST_WITHIN, EQUAL_WITHIN, Check, Claim, Suite, parse_ordering
from pmsim.validation.measures import Curve, Runs, curve, evaluate, over

Verdict = Literal["pass", "fail", "error", "not simulated"]

FLAT_WITHIN = 0.25  # spread of a flat curve, relative to its maximum
NOISE = 0.03  # a step back in a rising curve that does not count
CLEAR = 0.10  # a rise or a decline that does


@dataclass(frozen=True)
class CheckResult:
    """What one condition of a claim came to."""

    passed: bool
    predicted: str
    value: float | None = None  # of a value check
    error: float | None = None  # relative, signed; of a value check
    numbers: dict[str, float] = field(default_factory=dict)  # that it was decided by, by name


@dataclass(frozen=True)
class Outcome:
    """What a claim came to."""

    claim: Claim
    verdict: Verdict
    checks: list[CheckResult] = field(default_factory=list)
    message: str = ""

    @property
    def predicted(self) -> str:
        """Write the predictions for a table."""
        return self.message or "; ".join(check.predicted for check in self.checks)

    @property
    def error(self) -> float | None:
        """The relative error of the check that is furthest off; none without numbers, or if one has none."""
        errors = [check.error for check in self.checks if check.value is not None]
        finite = [error for error in errors if error is not None]
        return max(finite, key=abs) if finite and len(finite) == len(errors) else None

    @property
    def without_number(self) -> bool:
        """A run failed, or something never comes."""
        return self.verdict == "error" or not all(math.isfinite(check.value or 0.0) for check in self.checks)


def judge(runs: Sequence[Runs], suite: Suite, claim: Claim) -> Outcome:
    """Evaluate a claim from finished runs.

    Parameters
    ----------
    runs : results for each seed; every number that the claim compares is the median over them.
    suite, claim : what is judged.
    """
    if claim.not_simulated:
        return Outcome(claim, "not simulated", message=claim.not_simulated)
    try:
        checks = decide(runs, suite, claim)
    except (SimulationError, ZeroDivisionError) as error:
        return Outcome(claim, "error", message=str(error))
    return Outcome(claim, "pass" if all(check.passed for check in checks) else "fail", checks)


def decide(runs: Sequence[Runs], suite: Suite, claim: Claim) -> list[CheckResult]:
    """Evaluate the checks of a claim.

    Raises
    ------
    SimulationError : a run failed, or a check does not fit its series.
    ZeroDivisionError : it divides by a number that is zero.
    """
    return [_check(runs, suite, claim, check) for check in claim.checks]


def _check(runs: Sequence[Runs], suite: Suite, claim: Claim, check: Check) -> CheckResult:
    def number(name: str) -> float:
        return statistics.median(evaluate(seed, suite, claim, name) for seed in runs)

    def points(name: str) -> Curve:
        return median_curve([curve(seed, suite.series[name]) for seed in runs])

    def quotients(upper: str, lower: str) -> Curve:
        pair = suite.series[upper], suite.series[lower]
        return median_curve([over(*(curve(seed, series) for series in pair)) for seed in runs])

    if check.value is not None:
        return check_value(claim, number(check.value))
    if check.order is not None:
        return check_order(check.order, {name: number(name) for name in check.measure_names()})
    if check.everywhere is not None:
        return check_everywhere(check.everywhere, {name: points(name) for name in check.series_names()})
    assert check.of is not None
    return check_shape(check, points(check.of) if check.over is None else quotients(check.of, check.over))


def median_curve(curves: Sequence[Curve]) -> Curve:
    """Give the median of curves at each x; it ends where the first of them does (`curve`)."""
    sweeps = [[x for x, _ in points] for points in curves]
    common = min(sweeps, key=len)
    if any(sweep[: len(common)] != common for sweep in sweeps):
        raise SimulationError("the data fit at other points of the sweep with one seed than with another")
    return [
        (x, statistics.median(points[position][1] for points in curves)) for position, x in enumerate(common)
    ]


def check_value(claim: Claim, value: float) -> CheckResult:
    """Compare a number with the expected number or range, by the claim's rule."""
    expected = claim.expected
    assert not isinstance(expected, str)
    low, high = expected if isinstance(expected, tuple) else (expected, expected)
    accepted_low, accepted_high = claim.tolerance.interval(low, high)
    nearest = min(max(value, low), high)
    off = value - nearest
    error = off / abs(nearest) if nearest else math.nan if off else 0.0  # nothing is relative to zero
    shown = f"{value:.4g}" if math.isfinite(value) else "never"
    return CheckResult(
        accepted_low <= value <= accepted_high,
        shown,
        value,
        error if math.isfinite(error) else None,
        {"": value},
    )


def check_order(order: str, values: dict[str, float]) -> CheckResult:
    """Test each adjacent pair of an ordering."""

    def number(operand: str) -> float:
        return values[operand] if operand in values else float(operand)

    passed = all(
        _related(number(left), relation, number(right)) for left, relation, right in parse_ordering(order)
    )
    shown = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
    return CheckResult(passed, shown, numbers=values)


def check_everywhere(order: str, curves: dict[str, Curve]) -> CheckResult:
    """Test an ordering of series at each x; tell where it is violated first."""
    sweeps = {tuple(x for x, _ in points) for points in curves.values()}
    if len(sweeps) != 1:
        raise SimulationError(f"the series of the ordering '{order}' differ in x")
    (sweep,) = sweeps
    violated = []
    for position, x in enumerate(sweep):
        at = check_order(order, {name: points[position][1] for name, points in curves.items()})
        if not at.passed:
            violated.append(f"at {x:g}: {at.predicted}")
    held = f"holds at {len(sweep) - len(violated)} of {len(sweep)}"
    shown = f"{held}, not {violated[0]}" if violated else held
    return CheckResult(not violated, shown, numbers={"holds at": len(sweep) - len(violated)})


def _related(left: float, relation: str, right: float) -> bool:
    if relation == "~":
        return abs(left - right) <= EQUAL_WITHIN * max(abs(left), abs(right))
    if relation == ">":
        return left > right
    if relation == "<":
        return left < right
    if relation == ">=":
        return left >= right - AT_LEAST_WITHIN * abs(right)
    return left <= right + AT_LEAST_WITHIN * abs(right)


def check_shape(check: Check, points: Curve) -> CheckResult:
    """Test the form of a curve."""
    if len(points) < 3:
        raise SimulationError(f"a shape needs at least three points, this series has {len(points)}")
    values = [y for _, y in points]
    top, top_x = max((y, -x) for x, y in points)
    top_x = -top_x
    if check.shape == "flat":
        passed = (top - min(values)) <= (check.within or FLAT_WITHIN) * top
    elif check.shape == "rise_then_flat":
        passed = values[0] < (1 - CLEAR) * top and values[-1] >= (1 - (check.within or CLEAR)) * top
    elif check.shape == "rise_peak_decline":
        low, high = check.peak or (-math.inf, math.inf)
        rises = values[0] < (1 - NOISE) * top
        declines = values[-1] < (1 - (check.within or CLEAR)) * top
        passed = rises and declines and low <= top_x <= high
    elif check.shape == "increasing":
        passed = values[-1] > values[0] and spearman([x for x, _ in points], values) >= 0.7
    else:
        passed = _peaks_at(points, check.at or [])
    shown = f"{values[0]:.4g} to {values[-1]:.4g}, largest {top:.4g} at {top_x:g}"
    numbers = {"first": values[0], "last": values[-1], "largest": top, "at": top_x}
    return CheckResult(passed, shown, numbers=numbers)


def _peaks_at(points: Curve, wanted: Sequence[float]) -> bool:
    """Test that each wanted x is a local maximum and that these maxima do not fall."""
    xs = [x for x, _ in points]
    values = [y for _, y in points]
    envelope = []
    for x in wanted:
        if x not in xs or xs.index(x) in (0, len(xs) - 1):
            raise SimulationError(f"a local maximum at {x:g} needs neighbours in the sweep")
        here = xs.index(x)
        if not (values[here] > values[here - 1] and values[here] > values[here + 1]):
            return False
        envelope.append(values[here])
    return all(later >= (1 - NOISE) * earlier for earlier, later in pairwise(envelope))


def relative_error(predicted: float, measured: float) -> float:
    """Give the signed error relative to the measurement."""
    return predicted / measured - 1


def quantile(values: Sequence[float], fraction: float) -> float:
    """Give a quantile with linear interpolation; nan of nothing."""
    if not values:
        return math.nan
    ordered = sorted(values)
    position = fraction * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Give the rank correlation, ties sharing their mean rank; nan for fewer than two different values."""
    a, b = _ranks(left), _ranks(right)
    mean_a, mean_b = math.fsum(a) / len(a), math.fsum(b) / len(b)
    covariance = math.fsum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    spread = math.sqrt(math.fsum((x - mean_a) ** 2 for x in a) * math.fsum((y - mean_b) ** 2 for y in b))
    return covariance / spread if spread else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2
        start = end + 1
    return ranks
