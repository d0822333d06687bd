"""What a search looks for: one column of the results, whether high or low, and what a point has to meet."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pmsim import arguments
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.kinds import COUNTER_PREFIX, find_kind
from pmsim.kinds.base import Scalar
from pmsim.messages import shown
from pmsim.points import Point

_REQUIREMENT = re.compile(r"\s*([\w.]+)\s*(>=|<=)\s*(\S+)\s*")

Row = Mapping[str, Scalar]


@dataclass(frozen=True)
class Requirement:
    """A bound on a column that a point has to keep; nan keeps none."""

    column: str
    at_least: bool
    bound: float

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """Read ``COLUMN >= NUMBER`` or ``COLUMN <= NUMBER``.

        Raises
        ------
        ConfigError : it is neither.
        """
        match = _REQUIREMENT.fullmatch(text)
        try:
            bound = float(match[3]) if match else math.nan
        except ValueError:
            bound = math.nan
        if match is None or math.isnan(bound):
            raise ConfigError(
                f"require: {shown(text)} is no requirement; write COLUMN >= NUMBER or COLUMN <= NUMBER"
            )
        return cls(match[1], match[2] == ">=", bound)

    def met_by(self, row: Row) -> bool:
        """Tell whether a row keeps the bound."""
        value = number_in(row, self.column)
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{self.column} {'>=' if self.at_least else '<='} {self.bound:g}"


@dataclass(frozen=True)
class Goal:
    """Seek the highest, or lowest, value of a column among the points that meet all requirements."""

    column: str
    minimize: bool
    requirements: tuple[Requirement, ...] = ()

    def energy(self, row: Row) -> float:
        """Return what is to be made small: infinite where the point has no value or misses a requirement."""
        value = number_in(row, self.column)
        if math.isnan(value) or not all(requirement.met_by(row) for requirement in self.requirements):
            return math.inf
        return value if self.minimize else -value

    def value(self, energy: float) -> float:
        """Return the column's value of an energy; nan where the point cannot be used."""
        if math.isinf(energy):
            return math.nan
        return energy if self.minimize else -energy


def goal_of(point: Point, metric: str | None, minimize: bool | None, require: Iterable[str]) -> Goal:
    """Make the goal of a search from what its user says.

    Parameters
    ----------
    point : Point
        Any of the space: it knows its kind and its columns.
    metric : str or None
        A metric of the kind, ``counter.NAME``, or a column of numbers such as ``cost_usd``; by default the
        kind's own.
    minimize : bool or None
        None: rates are sought high and times low; for anything else it has to be said.
    require : iterable of str
        Requirements, as `Requirement.parse` reads them.

    Raises
    ------
    ConfigError : no row will have such a column, or nobody knows which of its values are good.
    """
    kind = find_kind(point.kind)
    metrics = {known.name: known for known in kind.metric_list(point.parameters)}
    columns = [name for name, value in point.columns.items() if _is_number(value)]
    wanted = kind.default_metric if metric is None else arguments.text("metric", metric)
    requirements = tuple(Requirement.parse(text) for text in arguments.texts("require", require))
    for option, name in (("metric", wanted), *(("require", needed.column) for needed in requirements)):
        if name not in metrics and name not in columns and name not in kind.counters():
            counter = name.startswith(COUNTER_PREFIX)
            what, where = ("counter", "counters") if counter else ("metric", f"kinds {kind.name}")
            raise ConfigError(
                f"{option}: kind '{kind.name}' has no {what} {shown(name)} (pmsim list {where}); "
                f"{nearest(name, kind.counters() if counter else [*metrics, *columns])}"
            )
    if minimize is None:
        minimize = metrics[wanted].low_is_good if wanted in metrics else None
        if minimize is None:
            raise ConfigError(f"metric: '{wanted}' may be sought high or low; say --minimize or --maximize")
    return Goal(wanted, arguments.flag("minimize", minimize), requirements)


def number_in(row: Row, column: str) -> float:
    """Return a number of a row.

    Raises
    ------
    ConfigError : the row has no such column, as of a counter that its engine does not have, or no number in it.
    """
    if column not in row:
        raise ConfigError(f"{column}: no result has such a column; {nearest(column, row)}")
    try:
        return float(row[column])
    except ValueError:
        raise ConfigError(
            f"{column}: {shown(row[column])} is no number; take another column, or numbers only"
        ) from None


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
