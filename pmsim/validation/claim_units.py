"""Whether a claim's number is in the unit of the metric that it is compared with."""

import re
from collections.abc import Iterator

from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.validation.claims import Claim, Measure, Series, Suite
from pmsim.validation.measures import DERIVED_UNITS, points_of, resolve

_RATE = "1/s"
#: What happens per second may have any name (Tx, pages, GETs), but not one of bytes, or of thousands at a time.
_COUNTED = (
    "tx|ops?|operations?|req(uest)?s?|transactions?|quer(y|ie)s|pages?|rows?|keys?|lookups?|inserts?|lines?"
)
_SCALED = re.compile(
    rf"([kKMGT]i?)?(B|bytes?|bits?)|[kKMGT]( .*|(?i:{_COUNTED}))?|\d.+|(thousand|million)s?.*", re.ASCII
)


def check_unit(suite: Suite, claim: Claim) -> None:
    """Refuse a claim whose numbers would be off by a power of ten.

    Ratios, counts, positions in a sweep and what a measure has scaled may have any unit.

    Raises
    ------
    ConfigError : names the metric, its unit, and a measure that converts.
    """
    if not claim.unit:
        return
    for name in dict.fromkeys(check.value for check in claim.checks if check.value is not None):
        for metric, unit in _metrics_of(suite, claim, suite.measure(claim, name)):
            if not _fits(claim.unit, unit):
                raise ConfigError(
                    f"unit: '{claim.unit}', and metric '{metric}' is in {unit}; write what is expected in that "
                    f'unit, or compare a measure that converts: {{ scaled = "{name}", by = ... }}'
                )


def _fits(claimed: str, unit: str) -> bool:
    if unit == _RATE:
        return claimed.endswith("/s") and not _SCALED.fullmatch(claimed.removesuffix("/s"))
    return claimed == unit


def _metrics_of(suite: Suite, claim: Claim, measure: Measure) -> Iterator[tuple[str, str]]:
    """Yield each metric that a measure takes as it is and its unit, where it has one."""
    single = [name for name in (measure.point, measure.at) if name is not None]
    for name in (*single, *(measure.max or ()), *(measure.min or ())):
        series = suite.series[name]
        if unit := _unit_of(series):
            yield series.metric, unit
    for name in measure.sum or ():
        yield from _metrics_of(suite, claim, suite.measure(claim, name))


def _unit_of(series: Series) -> str:
    """Return the unit of what a series measures; empty for ratios, counts and counters."""
    if series.metric in DERIVED_UNITS:
        return DERIVED_UNITS[series.metric]
    kind = find_kind(series.kind)
    parameters = resolve(points_of(series)[0], 0).parameters
    return next((each.unit for each in kind.metric_list(parameters) if each.name == series.metric), "")
