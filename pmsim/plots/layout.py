"""What a figure shows, decided without drawing it: columns, panels, curves and measured values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pmsim.capacity import pareto_front
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.kinds.metric import INTERVAL_ENDS
from pmsim.plot_spec import Mark, Overlay, Plot
from pmsim.plots.scales import spans_decades
from pmsim.plots.style import tick_is_size


@dataclass(frozen=True)
class Curve:
    """The simulated points of one colour and dash in one panel, ordered along the horizontal axis."""

    color: Any
    line: tuple[Any, ...]
    x: tuple[Any, ...]
    y: tuple[float, ...]
    # Ends of the confidence interval of each y, where its metric has one.
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class FrontPoint:
    """A point that no other of its panel beats: none is as far to the left and as good."""

    x: float
    y: float
    names: tuple[tuple[str, Any], ...]  # columns and values that tell which it is


@dataclass(frozen=True)
class Panel:
    """One part of the figure."""

    facet: Any
    curves: tuple[Curve, ...]
    overlays: tuple[Overlay, ...]
    marks: tuple[Mark, ...]
    front: tuple[FrontPoint, ...]


@dataclass(frozen=True)
class Columns:
    """Which column of the frame plays which part; an empty name: none."""

    x: str
    y: str
    color: str
    lines: tuple[str, ...]
    facet: str


@dataclass(frozen=True)
class PlotLayout:
    """Everything that the drawing needs."""

    columns: Columns
    log_x: bool
    log_y: bool
    share_y: bool
    bars: bool
    colors: tuple[Any, ...]
    lines: tuple[tuple[Any, ...], ...]
    panels: tuple[Panel, ...]


def plot_layout(
    frame: pd.DataFrame,
    *,
    plot: Plot | None,
    axes: Sequence[str],
    metrics: Sequence[str],
    default_metric: str,
    low_y: bool = False,
    on_front: Sequence[bool] | None = None,
) -> PlotLayout:
    """Decide what a figure shows.

    Parameters
    ----------
    frame : DataFrame
        One row per point.
    plot : Plot, optional
        What the scenario says.
    axes : sequence of str
        Columns of the sweep, in its order: they become the horizontal axis, colours, panels and dashes.
    metrics : sequence of str
        Metric columns.
    default_metric : str
        The vertical axis unless the scenario says otherwise.
    low_y : bool
        Whether less of the vertical axis is better, for the front.
    on_front : sequence of bool, optional
        Which rows may be on the front; by default all.

    Raises
    ------
    ConfigError : a column that does not exist.
    """
    plot = plot or Plot()
    columns = _columns(
        frame, plot, axes, plot.y or (default_metric if default_metric in metrics else metrics[0]), metrics
    )
    bars = plot.style == "bars" or (plot.style == "auto" and not _numeric(frame, columns.x))
    colors = tuple(dict.fromkeys(frame[columns.color])) if columns.color else ("",)
    lines = tuple(dict.fromkeys(_line_values(frame, columns)))
    facets = tuple(dict.fromkeys(frame[columns.facet])) if columns.facet else ("",)
    panels = []
    for facet in facets:
        rows = frame[frame[columns.facet] == facet] if columns.facet else frame
        overlays = [overlay for overlay in plot.overlay if overlay.where.get(columns.facet, facet) == facet]
        ordered = rows if bars else rows.sort_values(plot.along or columns.x, kind="stable")
        curves = _curves(ordered, columns, bars)
        marks = [mark for mark in plot.mark if mark.facet is None or mark.facet == facet]
        allowed = rows if on_front is None else rows[pd.Series(on_front, frame.index)[rows.index]]
        front = _front(allowed, columns, plot.front, low_y) if plot.front else ()
        panels.append(Panel(facet, tuple(curves), tuple(overlays), tuple(marks), front))
    log_x = not bars and _wide(frame, columns.x, plot) if plot.log_x is None else plot.log_x
    return PlotLayout(columns, log_x, bool(plot.log_y), plot.share_y, bars, colors, lines, tuple(panels))


def _wide(frame: pd.DataFrame, x: str, plot: Plot) -> bool:
    """Whether sizes on the horizontal axis lie so far apart that a linear one shows only the largest."""
    published = [point[0] for overlay in plot.overlay for point in overlay.points]
    values = [*frame[x].dropna(), *published, *(mark.x for mark in plot.mark)]
    return tick_is_size(x) and not any(isinstance(value, str) for value in values) and spans_decades(values)


def _columns(frame: pd.DataFrame, plot: Plot, axes: Sequence[str], y: str, metrics: Sequence[str]) -> Columns:
    said_already = (plot.x, plot.color, plot.line, plot.facet, plot.along)
    free = [axis for axis in axes if axis not in said_already]
    # A sweep over one value has nothing to tell apart.
    free = [axis for axis in free if axis not in frame or len(set(frame[axis])) > 1] or free[:1]
    x = plot.x or _first_numeric(frame, free) or (free[0] if free else str(frame.columns[0]))
    # What the horizontal axis says (the same size in another unit) asks for no colour and no panel. A metric
    # says nothing of the kind, though hardly two points have the same.
    free = [axis for axis in free if axis != x]
    if x not in metrics:
        told = [axis for axis in free if _follows(frame, axis, x) or _traded(frame, axis, x, plot, axes)]
        free = [axis for axis in free if axis not in told]
        if x not in axes and _numeric(frame, x) and not (free or plot.color):
            free = _apart(frame, told, x)
    color = plot.color or (free.pop(0) if free else "")
    # A front is over all points unless panels are asked for: one that fell apart by itself would keep what is
    # beaten in another panel.
    facet = plot.facet or (free.pop(0) if free and not plot.front else "")
    named = {"x": x, "y": y, "color": color, "line": plot.line, "facet": facet, "along": plot.along}
    for key, column in named.items():
        if column and column not in frame.columns:
            known = [str(name) for name in frame.columns]
            raise ConfigError(f"plot.{key}: unknown column '{column}'; {nearest(column, known)}")
    if said := [column for column in (color, facet) if column]:
        # What colours and panels say needs no dash of its own.
        free = [axis for axis in free if axis not in frame or frame.groupby(said)[axis].nunique().max() > 1]
    return Columns(x, y, color, tuple(filter(None, (plot.line, *free))), facet)


def _apart(frame: pd.DataFrame, told: list[str], x: str) -> list[str]:
    """Return the axes whose points a curve over ``x`` must not join, though each has an ``x`` of its own.

    A cost follows from several axes together, and a curve through all their points would show nothing: along
    each curve the last one changes. Designs that have names have no order that a curve could follow.
    """
    if len(told) > 1 and not any(_follows(frame, x, axis) for axis in told):
        return told[:-1]
    return [axis for axis in told if not _numeric(frame, axis)]


def _follows(frame: pd.DataFrame, axis: str, x: str) -> bool:
    if axis not in frame or x not in frame or len(set(frame[axis])) == 1:
        return False
    return bool(frame.groupby(x)[axis].nunique().max() == 1)


def _traded(frame: pd.DataFrame, axis: str, x: str, plot: Plot, axes: Sequence[str]) -> bool:
    """Whether ``axis`` is one of those that the front names and ``x`` adds up from, as a cost does of several.

    It is told by ``x`` then, though two mixes that cost the same hide that.
    """
    known = [axis for axis in axes if axis in frame]
    if x in axes or axis not in known or any(_follows(frame, x, each) for each in known):
        return False
    names = [name for name in plot.front if name in frame]
    return bool(names) and bool(frame.groupby(names, dropna=False)[axis].nunique().max() == 1)


def _curves(rows: pd.DataFrame, columns: Columns, bars: bool) -> list[Curve]:
    colors = rows[columns.color] if columns.color else [""] * len(rows)
    ends = [f"{columns.y}{end}" for end in INTERVAL_ENDS]
    known = all(end in rows for end in ends)
    # What belongs to a point as a whole stands in each of its rows, and is drawn once. Bars would add up, so of
    # points that come to the same setup ("auto", and what it comes to), with other seeds, they show the first.
    members: dict[tuple[Any, tuple[Any, ...]], dict[Any, tuple[Any, ...]]] = {}
    keys = zip(colors, _line_values(rows, columns), strict=True)
    intervals = rows[ends].itertuples(index=False, name=None) if known else [()] * len(rows)
    for key, x, y, interval in zip(
        keys, rows[columns.x].tolist(), rows[columns.y].tolist(), intervals, strict=True
    ):
        members.setdefault(key, {}).setdefault(x if bars else (x, y), (x, y, *interval))
    return [
        Curve(color, line, *zip(*points.values(), strict=True)) for (color, line), points in members.items()
    ]


def _front(rows: pd.DataFrame, columns: Columns, names: Sequence[str], low_y: bool) -> tuple[FrontPoint, ...]:
    best = front_rows(rows, columns.x, columns.y, low_y=low_y)
    values = best[[columns.x, columns.y, *names]].itertuples(index=False, name=None)
    return tuple(FrontPoint(x, y, tuple(zip(names, named, strict=True))) for x, y, *named in values)


def front_rows(
    frame: pd.DataFrame, x: str, y: str, by: Sequence[str] = (), *, low_y: bool = False
) -> pd.DataFrame:
    """Return the rows that no other beats in ``x``, of which less is better, and ``y``, ordered by ``x``.

    `low_y`: whether less of ``y`` is better, too. A front for each value of ``by``.
    """
    least, most = ([x, y], []) if low_y else ([x], [y])
    return frame[pareto_front(frame, minimise=least, maximise=most, by=by)].sort_values([*by, x], kind="stable")


def _line_values(frame: pd.DataFrame, columns: Columns) -> list[tuple[Any, ...]]:
    if not columns.lines:
        return [()] * len(frame)
    return list(zip(*(frame[column].tolist() for column in columns.lines), strict=True))


def _numeric(frame: pd.DataFrame, column: str) -> bool:
    kind = frame[column].dtype
    return bool(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind))


def _first_numeric(frame: pd.DataFrame, columns: Sequence[str]) -> str:
    return next((column for column in columns if column in frame.columns and _numeric(frame, column)), "")
