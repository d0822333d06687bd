"""Whether all that suites and data sets ask for can be run and judged, asked before the first run."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pmsim.errors import ConfigError, SimulationError
from pmsim.kinds import find_kind
from pmsim.kinds.types import KindParameters
from pmsim.runner import Progress
from pmsim.validation.claim_units import check_unit
from pmsim.validation.claims import Series, Suite
from pmsim.validation.loaders import DataSet, Measurement
from pmsim.validation.measures import DERIVED, Metrics, Point, Runs, points_of, resolve
from pmsim.validation.verdict import decide


def check_suite(suite: Suite) -> None:
    """Refuse a suite with runs that cannot be made, or with claims that no results could decide.

    Raises
    ------
    ConfigError : names file, series or claim, and key.
    """
    for name, series in suite.series.items():
        try:
            _check_series(series)
        except ConfigError as error:
            raise error.prefixed(f"{suite.file_of(name)}: series '{name}'") from None
    _check_claims(suite)


def leave_out_impossible(data: DataSet) -> None:
    """Take what pmsim cannot simulate out of a data set; it is counted with the first reason.

    Nobody corrects the files that others have published, so they are no reason to refuse the rest.
    """
    possible: list[Measurement] = []
    first: dict[tuple[str, str], str] = {}
    for row in data.rows:
        try:
            resolve(row.point, 0)
        except ConfigError as error:
            reason = first.setdefault((row.experiment, str(error).partition(":")[0]), str(error))
            data.skipped.add(f"{row.experiment}: {reason}")
        else:
            possible.append(row)
    data.rows = possible


def _check_series(series: Series) -> None:
    for _, platform, given in series.points():
        try:
            resolved = resolve(Point(series.kind, platform, given), 0)
        except ConfigError as error:
            raise ConfigError(_located(str(error), series)) from None
        _check_metric(series, resolved.parameters, given)


def _check_metric(series: Series, parameters: KindParameters, given: Mapping[str, Any]) -> None:
    kind = find_kind(series.kind)
    derived = DERIVED.get(series.metric)
    if derived is None:
        try:
            kind.check_metric(series.metric, parameters)
        except ConfigError as error:
            raise error.prefixed("metric") from None
        return
    try:
        derived(dict.fromkeys((metric.name for metric in kind.metric_list(parameters)), 1.0), given)
    except KeyError as error:
        raise ConfigError(
            f"metric: '{series.metric}' follows from '{error.args[0]}', which the series does not have; "
            "choose another metric, or add it to parameters"
        ) from None


def _check_claims(suite: Suite) -> None:
    """Judge with results that are all one: what fails then is how the claims use their series."""
    runs = Runs(_all_ones)
    runs.compute(point for series in suite.series.values() for point in points_of(series))
    for claim in suite.claim:
        try:
            check_unit(suite, claim)
            decide([runs], suite, claim)
        except ConfigError as error:
            raise error.prefixed(f"{suite.file_of(claim.id)}: claim '{claim.id}'") from None
        except SimulationError as error:
            raise ConfigError(f"{suite.file_of(claim.id)}: claim '{claim.id}': {error}; correct it") from None
        except ZeroDivisionError:
            continue  # two numbers that are one differ by nothing; those of a run do not


def _all_ones(points: Sequence[Point], progress: Progress | None) -> list[Metrics]:
    del progress
    return [defaultdict(lambda: 1.0) for _ in points]


def _located(message: str, series: Series) -> str:
    key = message.partition(":")[0].split(".")[0]
    if key in series.sweep:
        return f"sweep.{message}"
    known = series.parameters.keys() | find_kind(series.kind).parameter_model.model_fields.keys()
    return f"parameters.{message}" if key in known else message
