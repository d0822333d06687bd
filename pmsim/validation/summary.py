"""Runs a suite and data sets, and reduces the comparison to the few numbers that say how far to trust pmsim."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pmsim.errors import SimulationError
from pmsim.progress import progress_bar
from pmsim.validation.claims import Claim, Suite
from pmsim.validation.loaders import DataSet, Measurement
from pmsim.validation.measures import Point, Runs, points_of
from pmsim.validation.verdict import Outcome, judge, quantile, relative_error, spearman


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


@dataclass(frozen=True)
class Validation:
    """Everything that one validation came to."""

    suite: Suite
    outcomes: list[Outcome]
    data_sets: list[DataSet]
    compared: list[Compared]
    runs: int

    @property
    def passed(self) -> bool:
        """No claim failed and every measurement could be simulated."""
        claims = all(outcome.verdict in ("pass", "not simulated") for outcome in self.outcomes)
        return claims and not any(row.message for row in self.compared)

    def accuracy(self) -> list[Accuracy]:
        """Errors of the claims that are numbers, then of each data set, by use and by medium."""
        found = []
        for use in ("prediction", "calibration"):
            errors = [outcome.error for outcome in self.outcomes if outcome.claim.use == use]
            found += _accuracy("claims", "all", use, [error for error in errors if error is not None])
        for data_set in dict.fromkeys(row.measurement.dataset for row in self.compared):
            rows = [row for row in self.compared if row.measurement.dataset == data_set]
            for use in ("prediction", "calibration"):
                used = [row for row in rows if row.measurement.use == use]
                for medium in ("all", "pmem", "dram"):
                    found += _measured(data_set, medium, use, used)
        return found

    def by_experiment(self) -> list[Accuracy]:
        """Errors of each experiment of each data set."""
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

    def frame(self) -> pd.DataFrame:
        """One row per claim and per measurement, for further analysis."""
        rows = [_claim_row(outcome) for outcome in self.outcomes]
        rows += [_measurement_row(row) for row in self.compared]
        return pd.DataFrame(rows)


def validate(
    suite: Suite, data_sets: Sequence[DataSet], runs: Runs, *, progress: bool | None = None
) -> Validation:
    """Run what is missing and judge.

    Parameters
    ----------
    suite, data_sets : what to compare with.
    runs : the results; computed here where they are missing.
    progress : show a progress bar; by default where the standard error is a terminal.
    """
    rows = [row for data_set in data_sets for row in data_set.rows]
    points = [point for claim in suite.claim for point in _points(suite, claim)] + [row.point for row in rows]
    with progress_bar("validation", len(runs.missing(points)), progress) as finished:
        runs.compute(points, finished)
    outcomes = [judge(runs, suite, claim) for claim in suite.claim]
    return Validation(suite, outcomes, list(data_sets), [_compare(runs, row) for row in rows], len(runs))


def _points(suite: Suite, claim: Claim) -> list[Point]:
    return [point for name in suite.series_of(claim) for point in points_of(suite.series[name])]


def _compare(runs: Runs, measurement: Measurement) -> Compared:
    try:
        return Compared(measurement, runs.value(measurement.point, measurement.metric))
    except SimulationError as error:
        return Compared(measurement, message=str(error))


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
