"""Times on axes, in a unit of their size: a tail of 90 ms is not 90,000,000 ns."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pmsim.plots.layout import PlotLayout

#: Picoseconds of each, ascending.
_UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
#: From here on the next unit is easier to read.
_MANY = 10_000

Scale = Callable[[Any], Any]


def in_readable_units(layout: PlotLayout, x_title: str, y_title: str) -> tuple[PlotLayout, str, str]:
    """Return a layout and the titles of its axes with times in a unit of their size; all else as it was."""
    panels = layout.panels
    drawn = [point for panel in panels for overlay in panel.overlays for point in overlay.points]
    if not layout.bars:
        x = [x for panel in panels for curve in panel.curves for x in curve.x]
        marks = [mark.x for panel in panels for mark in panel.marks]
        x_title, along = _readable(x_title, [*x, *marks, *(point[0] for point in drawn)], layout.log_x)
        layout = _scaled(layout, along, lambda y: y)
    y = [y for panel in panels for curve in panel.curves for y in curve.y]
    y_title, up = _readable(y_title, [*y, *(point[1] for point in drawn)], layout.log_y)
    return _scaled(layout, lambda x: x, up), x_title, y_title


def _readable(title: str, values: Iterable[float], log: bool) -> tuple[str, Scale]:
    name, _, unit = title.rstrip("]").rpartition(" [")
    given = _UNITS.get(unit)
    if given is None:
        return title, lambda value: value
    positive = [value for value in values if value > 0]
    most = max(positive, default=0)
    if most < _MANY:
        return title, lambda value: value
    # A logarithmic axis has its small values, too: what lies in its middle has one to three digits.
    typical = 10 * math.sqrt(min(positive)) * math.sqrt(most) if log else most
    fitting = (unit for unit, size in _UNITS.items() if size >= given and typical * given < _MANY * size)
    unit = next(fitting, "s")
    return f"{name} [{unit}]", lambda value: value * given / _UNITS[unit]


def _scaled(layout: PlotLayout, along: Scale, up: Scale) -> PlotLayout:
    panels = (
        replace(
            panel,
            curves=tuple(
                replace(
                    curve,
                    x=tuple(map(along, curve.x)),
                    y=tuple(map(up, curve.y)),
                    low=tuple(map(up, curve.low)),
                    high=tuple(map(up, curve.high)),
                )
                for curve in panel.curves
            ),
            overlays=tuple(
                overlay.model_copy(update={"points": [[along(x), up(y)] for x, y in overlay.points]})
                for overlay in panel.overlays
            ),
            marks=tuple(mark.model_copy(update={"x": along(mark.x)}) for mark in panel.marks),
            front=tuple(replace(point, x=along(point.x), y=up(point.y)) for point in panel.front),
        )
        for panel in layout.panels
    )
    return replace(layout, panels=tuple(panels))
