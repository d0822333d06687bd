"""Curves that run under others, which would hide them."""

import math

from pmsim.plots.layout import Curve, Panel, PlotLayout

#: Points so close are one to the eye: of the vertical extent, some four pixels of a panel.
_CLOSE = 0.01
#: A curve is hidden where so many of its points are. Of others enough is left to follow them.
_HIDDEN = 0.8


def curves_above(layout: PlotLayout, panel: Panel) -> list[int]:
    """Return for each curve of a panel how many rims wide it must be to show behind those drawn after it.

    Zero where none of them runs along it and hides it; one with other dashes hides nothing.
    """
    shown = [panel] if not layout.share_y else layout.panels
    values = [_height(layout, y) for each in shown for curve in each.curves for y in curve.y]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return [0] * len(panel.curves)
    least = min(finite) if layout.log_y else min(0.0, *finite)  # linear axes begin at zero
    close = _CLOSE * (max(finite) - least)
    above: list[int] = []
    for number in reversed(range(len(panel.curves))):
        curve, later = panel.curves[number], panel.curves[number + 1 :]
        # Wider than each that hides it: one of those may itself be wide, as a third one hides it.
        hiding = [wide for each, wide in zip(later, above, strict=True) if _hides(layout, each, curve, close)]
        above.insert(0, 1 + max(hiding) if hiding else 0)
    return above


def _hides(layout: PlotLayout, later: Curve, curve: Curve, close: float) -> bool:
    if later.line not in (curve.line, layout.lines[0]):
        return False
    at = dict(zip(later.x, later.y, strict=True))
    hidden = [
        abs(_height(layout, at[x]) - _height(layout, y)) <= close
        for x, y in zip(curve.x, curve.y, strict=True)
        if x in at
    ]
    return sum(hidden) >= _HIDDEN * len(curve.x)


def _height(layout: PlotLayout, y: float) -> float:
    if not layout.log_y:
        return y
    return math.log(y) if y > 0 else math.nan
