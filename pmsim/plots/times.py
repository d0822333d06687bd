"""Times, frequencies and bandwidths on axes, in a unit of their size: a tail of 90 ms is not 90,000,000 ns."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pmsim.plots.layout import PlotLayout

#: How many of the least each unit is, ascending, and from how many of one on the next is easier to read.
_TIMES = ({"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}, 10_000)
_FREQUENCIES = ({"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}, 1_000)
_BANDWIDTHS = ({"B/s": 1, "kB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9}, 1_000)
_SCALES = {unit: family for family in (_TIMES, _FREQUENCIES, _BANDWIDTHS) for unit in family[0]}

Scale = Callable[[Any], Any]


def in_readable_units(layout: PlotLayout, x_title: str, y_title: str) -> tuple[PlotLayout, str, str]:
    """Return a layout and the titles of its axes in a unit of their size; what has another one is as it was."""
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
    if unit not in _SCALES:
        return title, lambda value: value
    units, many = _SCALES[unit]
    given = units[unit]
    positive = [value for value in values if value > 0]
    most = max(positive, default=0)
    if most < many:
        return title, lambda value: value
    # A logarithmic axis has its small values, too: what lies in its middle has one to three digits.
    typical = 10 * math.sqrt(min(positive)) * math.sqrt(most) if log else most
    fitting = (unit for unit, size in units.items() if size >= given and typical * given < many * size)
    unit = next(fitting, [*units][-1])
    return f"{name} [{unit}]", lambda value: value * given / units[unit]


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
