"""Published values of a figure: which points of the scenario they belong to, told before anything runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pmsim.columns import column_of_axis
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.messages import shown
from pmsim.plot_spec import Mark, Overlay, Plot
from pmsim.scenario import Scenario
from pmsim.units import Quantity, parse
from pmsim.variations import CHANGED

if TYPE_CHECKING:
    from pmsim.points import Point

_T = TypeVar("_T")
_VALUES_SHOWN = 20
_PS_PER_NS = 1_000


@dataclass(frozen=True)
class Published:
    """The overlays and marks of a figure that belong to points, and what is wrong with the others.

    Attributes
    ----------
    overlays, marks : mapping
        By their number, from 1, with columns and values as rows have them, whatever unit the scenario writes.
    problems : mapping
        By the key of the overlay or mark.
    """

    overlays: Mapping[int, Overlay]
    marks: Mapping[int, Mark]
    problems: Mapping[str, ConfigError]

    def drawn_in(self, plot: Plot) -> Plot:
        """Return a plot with what belongs to points and nothing else."""
        return plot.model_copy(update={"overlay": [*self.overlays.values()], "mark": [*self.marks.values()]})

    def written_in(self, plot: Plot) -> Plot:
        """Return the same in the words of the scenario, whose plot this is."""
        overlays = [
            plot.overlay[number - 1].model_copy(update={"points": self._kept(number, plot.overlay[number - 1])})
            for number in self.overlays
        ]
        return plot.model_copy(
            update={"overlay": overlays, "mark": [plot.mark[number - 1] for number in self.marks]}
        )

    def _kept(self, number: int, overlay: Overlay) -> list[list[Any]]:
        keys = (_key_of_point(f"plot.overlay.{number}", place) for place in range(1, len(overlay.points) + 1))
        return [point for key, point in zip(keys, overlay.points, strict=True) if key not in self.problems]


def published(scenario: Scenario, points: Sequence["Point"]) -> Published:
    """Sort out which published things of a scenario's figure belong to its points."""
    problems: dict[str, ConfigError] = {}
    figure = _Figure(scenario, points, problems)
    overlays = _belonging("overlay", figure.plot.overlay, figure.overlay, problems)
    marks = _belonging("mark", figure.plot.mark, figure.mark, problems)
    return Published(overlays, marks, problems)


def _belonging(
    name: str, given: Sequence[_T], meant: Callable[[str, _T], _T | None], problems: dict[str, ConfigError]
) -> dict[int, _T]:
    kept: dict[int, _T] = {}
    for number, one in enumerate(given, start=1):
        key = f"plot.{name}.{number}"
        try:
            found = meant(key, one)
        except ConfigError as error:
            problems[key] = error
        else:
            kept |= {} if found is None else {number: found}
    return kept


def _key_of_point(key: str, number: int) -> str:
    return f"{key}.points.{number}"


class _Figure:
    def __init__(self, scenario: Scenario, points: Sequence["Point"], problems: dict[str, ConfigError]) -> None:
        self._problems = problems
        self.plot = scenario.plot or Plot()
        self._scenario = scenario
        self._points = points
        self._axis_of = {column_of_axis(axis): axis for axis in scenario.axes()[0]}
        for change in scenario.changes():
            self._axis_of |= {column_of_axis(axis): axis for axis in change.settings}

    def overlay(self, key: str, overlay: Overlay) -> Overlay | None:
        """Return an overlay with the pairs that have a place on the axis; None where none has."""
        where: dict[str, Any] = {}
        for name, given in overlay.where.items():
            column = column_of_axis(name)
            where[column] = self._meant(f"{key}.where.{name}", column, given)
        if not any(_agree(point.columns, where) for point in self._points):
            said = " and ".join(f"{name} = {shown(given)}" for name, given in overlay.where.items())
            raise ConfigError(f"{key}.where: no point has {said} together; change one of them")
        points = []
        for number, (x, y) in enumerate(overlay.points, start=1):
            place = _key_of_point(key, number)
            try:
                points.append([self._along(place, x, where), y])
            except ConfigError as error:  # the others stay where overrides leave out what this one belongs to
                self._problems[place] = error
        return overlay.model_copy(update={"where": where, "points": points}) if points else None

    def _along(self, key: str, x: Any, where: Mapping[str, Any]) -> Any:
        """Return a place on the horizontal axis: among categories another value would be one more of them."""
        if self._has_numbers_along():
            if isinstance(x, str | bool):
                raise ConfigError(
                    f"{key}: {shown(x)} stands on an axis of numbers; write a number, in its unit"
                )
            return x
        column = column_of_axis(self.plot.x) or self._chosen("x")
        points = [point for point in self._points if _agree(point.columns, where)]
        values = [point.columns[column] for point in points if column in point.columns]
        names = {str(value): value for value in values}  # as they stand below bars
        return names[x] if isinstance(x, str) and x in names else self._meant(key, column, x, points)

    def mark(self, key: str, mark: Mark) -> Mark:
        if mark.facet is None:
            return mark
        column = column_of_axis(self.plot.facet) or self._chosen("facet")
        if not column:
            raise ConfigError(
                f"{key}.facet: the figure has one panel; remove it, or name a column as plot.facet"
            )
        return mark.model_copy(update={"facet": self._meant(f"{key}.facet", column, mark.facet)})

    def _meant(self, key: str, column: str, given: Any, points: Sequence["Point"] | None = None) -> Any:
        """Return a value as the rows, of these points or of all, have it."""
        points = self._points if points is None else points
        values = dict.fromkeys(_typed(point.columns[column]) for point in points if column in point.columns)
        known = [*values]
        if not known:  # a metric: before the run nobody knows
            return given
        for meant in (given, self._in_base_units(column, given)):
            if _typed(meant) in known:
                return known[known.index(_typed(meant))][1]
        remedy = "choose one of" if len(known) > 1 else "choose"
        listed = ", ".join(_written(value) for _, value in known[:_VALUES_SHOWN])
        more = ", ..." if len(known) > _VALUES_SHOWN else ""
        raise ConfigError(f"{key}: no point has {shown(given)}; {remedy} {listed}{more}")

    def _in_base_units(self, column: str, given: Any) -> Any:
        """Return a value like "64 B" as a column has it; what is none of its quantity as it is."""
        axis = self._axis_of.get(column, column)
        try:
            quantity = self._scenario.quantity_of(axis)
            if quantity is None or quantity is Quantity.FLAG:
                return given
            value = parse(given, quantity)
        except ConfigError:
            return given
        return value / _PS_PER_NS if quantity is Quantity.TIME and column != axis else value

    def _has_numbers_along(self) -> bool:
        if self.plot.style == "bars":
            return False
        column = column_of_axis(self.plot.x) or self._chosen("x")
        values = [point.columns[column] for point in self._points if column in point.columns]
        return not any(isinstance(value, str | bool) for value in values)

    def _chosen(self, part: Literal["x", "facet"]) -> str:
        """Return the column that the figure chooses where the scenario names none."""
        import pandas as pd  # takes a second, as do figures, and few scenarios ask

        from pmsim.plots import plot_layout

        parameters = self._points[0].parameters
        kind = find_kind(self._scenario.kind)
        if part == "x" and (curve := kind.curve(parameters)):
            return curve[0]
        metrics = [metric.name for metric in kind.metric_list(parameters)]
        frame = pd.DataFrame([dict(point.columns) for point in self._points])
        named = {key: column_of_axis(getattr(self.plot, key)) for key in ("x", "color", "line", "facet")}
        front = [column_of_axis(name) for name in self.plot.front]
        plot = Plot(style=self.plot.style).model_copy(update=named | {"front": front})
        axes = [*map(column_of_axis, self._scenario.axes()[0])]
        layout = plot_layout(
            frame.assign(**dict.fromkeys([*metrics, *(name for name in front if name not in frame)], 1.0)),
            plot=plot,
            axes=[*axes, *([CHANGED] if CHANGED in frame else [])],
            metrics=metrics,
            default_metric=kind.default_metric,
        )
        return str(getattr(layout.columns, part))


def _typed(value: Any) -> tuple[bool, Any]:
    # To Python true is 1.
    return isinstance(value, bool), value


def _agree(columns: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(_typed(columns[name]) == _typed(value) for name, value in where.items() if name in columns)


def _written(value: Any) -> str:
    return shown(value) if isinstance(value, bool) else str(value)
