"""Runs a suite and data sets, and reduces the comparison to the few numbers that say how far to trust pmsim."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pmsim.errors import SimulationError
from pmsim.progress import progress_bar
from pmsim.runner import Progress
from pmsim.validation.claims import Claim, Suite
from pmsim.validation.loaders import DataSet, Measurement
from pmsim.validation.measures import Point, Runs, points_of
from pmsim.validation.seeds import Share, share_of, value_range
from pmsim.validation.verdict import Outcome, judge, quantile, relative_error, spearman

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Compared:
    """A measurement beside its prediction."""

    measurement: Measurement
    predicted: float = math.nan
    message: str = ""

    @property
    def error(self) -> float:
        """Signed relative error; nan where the run failed."""
        return relative_error(self.predicted, self.measurement.value)


@dataclass(frozen=True)
class Accuracy:
    """Errors of one group of rows."""

    group: str
    medium: str
    use: str
    rows: int
    median: float
    p90: float
    rank_correlation: float = math.nan  # of operations per second
    failed: int = 0
    median_range: tuple[float, float] | None = None  # over the seeds, where there are several
    p90_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Validation:
    """Everything that one validation came to; predictions are medians over the seeds."""

    suite: Suite
    outcomes: list[Outcome]
    data_sets: list[DataSet]
    compared: list[Compared]
    runs: int
    unsteady: int = 0  # runs whose metric `steady` is 0
    each: list["Validation"] = field(default_factory=list)  # with each seed alone, where there are several

    @property
    def passed(self) -> bool:
        """No claim failed and every measurement could be simulated."""
        claims = all(outcome.verdict in ("pass", "not simulated") for outcome in self.outcomes)
        return claims and not any(row.message for row in self.compared)

    def accuracy(self) -> list[Accuracy]:
        """Errors of the claims that are numbers, then of each data set, by use and by medium."""
        return _with_ranges(self._accuracy(), [one._accuracy() for one in self.each])

    def by_experiment(self) -> list[Accuracy]:
        """Errors of each experiment of each data set."""
        return _with_ranges(self._by_experiment(), [one._by_experiment() for one in self.each])

    def shares(self) -> list[Share | None]:
        """In how many of several seeds each claim holds; none where it is not simulated, or with one seed."""
        return [
            share_of(outcomes) if outcome.claim.checks and outcomes else None
            for outcome, outcomes in zip(self.outcomes, self._outcomes_by_seed(), strict=True)
        ]

    def by_chance(self) -> list[Share]:
        """List the claims that pass with some seeds and fail with others."""
        return [share for share in self.shares() if share is not None and share.by_chance]

    def _accuracy(self) -> list[Accuracy]:
        found = []
        for use in ("prediction", "calibration"):
            found += _accuracy_of_claims(use, [one for one in self.outcomes if one.claim.use == use])
        for data_set in dict.fromkeys(row.measurement.dataset for row in self.compared):
            rows = [row for row in self.compared if row.measurement.dataset == data_set]
            for use in ("prediction", "calibration"):
                used = [row for row in rows if row.measurement.use == use]
                for medium in ("all", "pmem", "dram"):
                    found += _measured(data_set, medium, use, used)
        return found

    def _by_experiment(self) -> list[Accuracy]:
        groups: dict[tuple[str, str, str], list[Compared]] = {}
        for row in self.compared:
            measurement = row.measurement
            key = (f"{measurement.dataset}: {measurement.experiment}", measurement.medium, measurement.use)
            groups.setdefault(key, []).append(row)
        return [
            entry
            for (group, medium, use), rows in groups.items()
            for entry in _measured(group, medium, use, rows)
        ]

    def frame(self) -> "pd.DataFrame":
        """One row per claim and per measurement, for further analysis."""
        import pandas as pd

        rows = [_claim_row(outcome) for outcome in self.outcomes]
        rows += [_measurement_row(row) for row in self.compared]
        if self.each:
            for row, share, outcomes in zip(rows, self.shares(), self._outcomes_by_seed(), strict=False):
                row |= _claim_over_seeds(share, outcomes)
            for row, *alone in zip(
                rows[len(self.outcomes) :], *(one.compared for one in self.each), strict=True
            ):
                row |= _measurement_over_seeds(alone)
        return pd.DataFrame(rows)

    def _outcomes_by_seed(self) -> list[list[Outcome]]:
        return [[one.outcomes[index] for one in self.each] for index in range(len(self.outcomes))]


def validate(
    suite: Suite, data_sets: Sequence[DataSet], runs: Sequence[Runs], *, progress: bool | None = None
) -> Validation:
    """Run what is missing and judge.

    Parameters
    ----------
    suite, data_sets : what to compare with.
    runs : the results for each seed; computed here where they are missing.
    progress : show a progress bar; by default where the standard error is a terminal.
    """
    rows = [row for data_set in data_sets for row in data_set.rows]
    points = [point for claim in suite.claim for point in _points(suite, claim)] + [row.point for row in rows]
    missing = [len(seed.missing(points)) for seed in runs]
    with progress_bar("validation", sum(missing), progress) as finished:
        for number, seed in enumerate(runs):
            seed.compute(points, _behind(sum(missing[:number]), finished))

    def judged(chosen: Sequence[Runs], each: list[Validation]) -> Validation:
        outcomes = [judge(chosen, suite, claim) for claim in suite.claim]
        compared = [_compare(chosen, row) for row in rows]
        unsteady = sum(one.unsteady for one in chosen)
        return Validation(suite, outcomes, list(data_sets), compared, sum(map(len, chosen)), unsteady, each)

    return judged(runs, [judged([seed], []) for seed in runs] if len(runs) > 1 else [])


def _behind(before: int, finished: Progress) -> Progress:
    """Count on from what the seeds before have finished."""
    return lambda done, doing: finished(before + done, doing)


def _points(suite: Suite, claim: Claim) -> list[Point]:
    return [point for name in suite.series_of(claim) for point in points_of(suite.series[name])]


def _compare(runs: Sequence[Runs], measurement: Measurement) -> Compared:
    try:
        values = [seed.value(measurement.point, measurement.metric) for seed in runs]
        return Compared(measurement, statistics.median(values))
    except SimulationError as error:
        return Compared(measurement, message=str(error))


def _accuracy_of_claims(use: str, outcomes: Sequence[Outcome]) -> list[Accuracy]:
    """Sum up the claims that are numbers; what never comes, or whose run failed, is only counted.

    What is off from zero has no relative error: the table of claims alone tells of it.
    """
    numbers = [outcome for outcome in outcomes if any(check.value for check in outcome.claim.checks)]
    errors = [outcome.error for outcome in numbers if outcome.error is not None]
    return _accuracy("claims", "all", use, errors, failed=sum(outcome.without_number for outcome in numbers))


def _measured(group: str, medium: str, use: str, rows: Sequence[Compared]) -> list[Accuracy]:
    chosen = [row for row in rows if medium in ("all", row.measurement.medium)]
    good = [row for row in chosen if not row.message]
    rates = [row for row in good if row.measurement.metric == "operations_per_s"]
    correlation = math.nan
    if len(rates) > 1:
        correlation = spearman([row.predicted for row in rates], [row.measurement.value for row in rates])
    return _accuracy(group, medium, use, [row.error for row in good], correlation, len(chosen) - len(good))


def _accuracy(
    group: str, medium: str, use: str, errors: Sequence[float], correlation: float = math.nan, failed: int = 0
) -> list[Accuracy]:
    if not errors and not failed:
        return []
    sizes = [abs(error) for error in errors]
    return [
        Accuracy(
            group, medium, use, len(sizes), quantile(sizes, 0.5), quantile(sizes, 0.9), correlation, failed
        )
    ]


def _with_ranges(rows: list[Accuracy], by_seed: Sequence[Sequence[Accuracy]]) -> list[Accuracy]:
    """Add the ranges over the seeds."""
    if not by_seed:
        return rows
    found = []
    for row in rows:
        same = [
            one
            for alone in by_seed
            for one in alone
            if (one.group, one.medium, one.use) == (row.group, row.medium, row.use)
        ]
        medians, p90s = [one.median for one in same], [one.p90 for one in same]
        found.append(
            replace(row, median_range=(min(medians), max(medians)), p90_range=(min(p90s), max(p90s)))
            if same
            else row
        )
    return found


def _claim_over_seeds(share: Share | None, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    if share is None:
        return {}
    low, high = value_range(outcomes) or (None, None)
    return {
        "seeds": share.seeds,
        "seeds_passed": share.passed,
        "spread": share.spread,
        "predicted_min": low,
        "predicted_max": high,
    }


def _measurement_over_seeds(alone: Sequence[Compared]) -> dict[str, Any]:
    values = [row.predicted for row in alone if not row.message]
    return {
        "seeds": len(alone),
        "predicted_min": min(values, default=math.nan),
        "predicted_max": max(values, default=math.nan),
    }


def _claim_row(outcome: Outcome) -> dict[str, Any]:
    claim = outcome.claim
    return {
        "table": "claim",
        "id": claim.id,
        "setup": claim.setup,
        "quantity": claim.quantity,
        "medium": claim.medium,
        "measured": claim.expected_text(),
        "predicted": outcome.predicted,
        "error": outcome.error,
        "verdict": outcome.verdict,
        "use": claim.use if claim.checks else "",
        "message": outcome.message,
    }


def _measurement_row(row: Compared) -> dict[str, Any]:
    measurement = row.measurement
    parameters = {f"parameter.{name}": str(value) for name, value in measurement.parameters.items()}
    return {
        "table": "measurement",
        "id": f"{measurement.dataset}: {measurement.experiment}",
        "setup": measurement.setup,
        "quantity": measurement.metric,
        "medium": measurement.medium,
        "measured": f"{measurement.value:.6g}",
        "predicted": "" if row.message else f"{row.predicted:.6g}",
        "measured_value": measurement.value,
        "predicted_value": row.predicted,
        "unit": measurement.unit,
        "error": None if row.message else row.error,
        "verdict": "error" if row.message else "",
        "use": measurement.use,
        "message": row.message,
        "platform": measurement.platform_name,
        "kind": measurement.kind,
        **parameters,
    }
