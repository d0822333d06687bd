"""Where the names of the points of a front stand: beside curves and front, and not on each other."""

import math
from typing import NamedTuple

from pmsim.plots.layout import Panel, PlotLayout
from pmsim.plots.overlap import ROOM, along, extent, height

#: Pixels. Figures are as wide as their page; narrower ones than this are hardly read.
_PANEL_HEIGHT, _FIGURE_WIDTH = 380, 870
_CHARACTER, _LINE = 5.8, 12
#: From the middle of a marker to its label, which Plotly places so, and to its own rim.
_OFFSET, _MARKER = 8, 7


class _Box(NamedTuple):
    left: float
    right: float
    bottom: float
    top: float

    def meets(self, other: "_Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )


def front_positions(layout: PlotLayout, panel: Panel, labels: list[str]) -> list[str]:
    """Return where each point of a front has its label, in Plotly's words; empty: there is no room for it.

    Nothing is better than a point of the front, so what lies to its left on the side of the better is free, but
    for the labels and markers of its neighbours: of labels that would meet these only the first is shown, and
    before all others those of both ends. Left of the first point is the frame, and no front comes to it.
    """
    falls = len(panel.front) > 1 and panel.front[-1].y < panel.front[0].y
    beside = "bottom left" if falls else "top left"
    positions = ["top center", *[beside] * (len(labels) - 1)]
    places = _places(layout, panel)
    if places is None:
        return positions
    boxes = [
        _label(*place, *each) for place, each in zip(places, zip(labels, positions, strict=True), strict=True)
    ]
    markers = [_Box(x - _MARKER, x + _MARKER, y - _MARKER, y + _MARKER) for x, y in places]
    last = len(labels) - 1
    taken: list[_Box] = []
    for number in dict.fromkeys((0, last, *range(last))):
        others = [*taken, *markers[:number], *markers[number + 1 :]]
        if any(boxes[number].meets(other) for other in others):
            positions[number] = ""
        else:
            taken.append(boxes[number])
    return positions


def _places(layout: PlotLayout, panel: Panel) -> list[tuple[float, float]] | None:
    """Return where the points of a front are in their panel [pixels]; None on axes without numbers."""
    if layout.bars:
        return None
    known = [along(layout, float(x)) for curve in panel.curves for x in curve.x]
    known = [x for x in known if math.isfinite(x)]
    up = extent(layout, panel)
    if not known or up is None:
        return None
    width = _FIGURE_WIDTH / min(len(layout.panels), 2)

    def pixels(at: float, ends: tuple[float, float], size: float) -> float:
        return (at - ends[0]) / ((ends[1] - ends[0]) or 1) * (1 - 2 * ROOM) * size

    sides = (min(known), max(known))
    return [
        (pixels(along(layout, point.x), sides, width), pixels(height(layout, point.y), up, _PANEL_HEIGHT))
        for point in panel.front
    ]


def _label(x: float, y: float, label: str, position: str) -> _Box:
    length = _CHARACTER * len(label)
    left = x - length / 2 if position.endswith("center") else x - _OFFSET - length
    bottom = y + _OFFSET if position.startswith("top") else y - _OFFSET - _LINE
    return _Box(left, left + length, bottom, bottom + _LINE)
