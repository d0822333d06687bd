"""What a figure shows, decided without drawing it: columns, panels, curves and measured values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.plot_spec import Overlay, Plot


@dataclass(frozen=True)
class Curve:
    """The simulated points of one colour in one panel, ordered along the horizontal axis."""

    color: Any
    x: tuple[Any, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """One part of the figure."""

    facet: Any
    curves: tuple[Curve, ...]
    overlays: tuple[Overlay, ...]


@dataclass(frozen=True)
class PlotLayout:
    """Everything that the drawing needs."""

    x: str
    y: str
    color: str
    facet: str
    log_x: bool
    log_y: bool
    bars: bool
    colors: tuple[Any, ...]
    panels: tuple[Panel, ...]


def plot_layout(
    frame: pd.DataFrame, *, plot: Plot | None, axes: Sequence[str], metrics: Sequence[str], default_metric: str
) -> PlotLayout:
    """Decide what a figure shows.

    Parameters
    ----------
    frame : DataFrame
        One row per point.
    plot : Plot, optional
        What the scenario says.
    axes : sequence of str
        Columns of the sweep, in its order: they become the horizontal axis, the colours and the panels.
    metrics : sequence of str
        Metric columns.
    default_metric : str
        The vertical axis unless the scenario says otherwise.

    Raises
    ------
    ConfigError : a column that does not exist.
    """
    plot = plot or Plot()
    y = plot.y or (default_metric if default_metric in metrics else metrics[0])
    free = [axis for axis in axes if axis not in (plot.x, plot.color, plot.facet)]
    x = plot.x or _first_numeric(frame, free) or (free[0] if free else str(frame.columns[0]))
    free = [axis for axis in free if axis != x]
    color = plot.color or (free.pop(0) if free else "")
    facet = plot.facet or (free.pop(0) if free else "")
    for key, column in (("x", x), ("y", y), ("color", color), ("facet", facet)):
        if column and column not in frame.columns:
            raise ConfigError(
                f"plot.{key}: unknown column '{column}'; {nearest(column, map(str, frame.columns))}"
            )
    bars = plot.style == "bars" or (plot.style == "auto" and not _numeric(frame, x))
    colors = tuple(dict.fromkeys(frame[color])) if color else ("",)
    facets = tuple(dict.fromkeys(frame[facet])) if facet else ("",)
    panels = tuple(_panel(frame, plot, (x, y, color, facet), colors, value, bars) for value in facets)
    return PlotLayout(x, y, color, facet, plot.log_x, plot.log_y, bars, colors, panels)


def _panel(
    frame: pd.DataFrame,
    plot: Plot,
    names: tuple[str, str, str, str],
    colors: Iterable[Any],
    facet: Any,
    bars: bool,
) -> Panel:
    x, y, color, facet_column = names
    rows = frame[frame[facet_column] == facet] if facet_column else frame
    curves = []
    for value in colors:
        part = rows[rows[color] == value] if color else rows
        if not bars:
            part = part.sort_values(x, kind="stable")
        if len(part):
            curves.append(Curve(value, tuple(part[x].tolist()), tuple(part[y].tolist())))
    overlays = tuple(
        overlay
        for overlay in plot.overlay
        if not facet_column or facet_column not in overlay.where or overlay.where[facet_column] == facet
    )
    return Panel(facet, tuple(curves), overlays)


def _numeric(frame: pd.DataFrame, column: str) -> bool:
    kind = frame[column].dtype
    return bool(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind))


def _first_numeric(frame: pd.DataFrame, columns: Sequence[str]) -> str:
    return next((column for column in columns if column in frame.columns and _numeric(frame, column)), "")
