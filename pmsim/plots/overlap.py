"""What would hide each other: curves that run under others, and labels on curves."""

import math

import numpy as np
import numpy.typing as npt

from pmsim.plot_spec import Mark
from pmsim.plots.layout import Curve, Panel, PlotLayout

#: Points so close are one to the eye: of the vertical extent, some four pixels of a panel.
_CLOSE = 0.01
#: A curve is hidden where so many of its points are. Of others enough is left to follow them.
_HIDDEN = 0.8
#: A character of a label, written upwards, takes so much of a panel's height, and a label so much of its width.
_CHARACTER = 0.018
_LABEL_WIDTH = 0.05
_TOP = 0.98
#: What Plotly leaves free between the outermost values and the frame.
ROOM = 0.055


def curves_above(layout: PlotLayout, panel: Panel) -> list[int]:
    """Return for each curve of a panel how many rims wide it must be to show behind those drawn after it.

    Zero where none of them runs along it and hides it; one with other dashes hides nothing.
    """
    ends = extent(layout, panel)
    if ends is None:
        return [0] * len(panel.curves)
    close = _CLOSE * (ends[1] - ends[0])
    above: list[int] = []
    for number in reversed(range(len(panel.curves))):
        curve, later = panel.curves[number], panel.curves[number + 1 :]
        # Wider than each that hides it: one of those may itself be wide, as a third one hides it.
        hiding = [wide for each, wide in zip(later, above, strict=True) if _hides(layout, each, curve, close)]
        above.insert(0, 1 + max(hiding) if hiding else 0)
    return above


def label_top(layout: PlotLayout, panel: Panel, mark: Mark) -> float:
    """Return where a label right of its vertical line begins, of the panel's height: as high as curves let it.

    At the top where they let it nowhere.
    """
    ends = extent(layout, panel)
    curves = [] if layout.bars else [_points(layout, curve) for curve in panel.curves]
    curves = [curve for curve in curves if len(curve)]
    if ends is None or ends[0] == ends[1] or not curves:
        return _TOP
    width = max(curve[-1, 0] for curve in curves) - min(curve[0, 0] for curve in curves)
    at = math.log10(mark.x) if layout.log_x else mark.x
    under = at + np.linspace(0, _LABEL_WIDTH, 5) * width
    beside = {"left": math.nan, "right": math.nan}
    heights = np.concatenate([np.interp(under, curve[:, 0], curve[:, 1], **beside) for curve in curves])
    shares = (heights - ends[0]) / (ends[1] - ends[0])
    # Plotly leaves room beyond the values, on linear axes above them only: those begin at zero.
    taken = ROOM + (1 - 2 * ROOM) * shares if layout.log_y else (1 - ROOM) * shares
    length = _CHARACTER * len(mark.label)
    for top in np.arange(_TOP, length, -ROOM / 2):
        if not ((taken > top - length - ROOM / 4) & (taken < top + ROOM / 4)).any():
            return float(top)
    return _TOP


def _points(layout: PlotLayout, curve: Curve) -> npt.NDArray[np.float64]:
    """Return the points of a curve along its axes, from left to right; none that an axis does not have."""
    points: npt.NDArray[np.float64] = np.array(
        [[along(layout, float(x)) for x in curve.x], [height(layout, y) for y in curve.y]]
    ).T
    finite: npt.NDArray[np.float64] = points[np.isfinite(points).all(axis=1)]
    return finite[finite[:, 0].argsort()]


def extent(layout: PlotLayout, panel: Panel) -> tuple[float, float] | None:
    """Return the least and the largest height on the vertical axis; none where there is no value."""
    shown = [panel] if not layout.share_y else layout.panels
    values = [height(layout, y) for each in shown for curve in each.curves for y in curve.y]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    return min(finite) if layout.log_y else min(0.0, *finite), max(finite)  # linear axes begin at zero


def _hides(layout: PlotLayout, later: Curve, curve: Curve, close: float) -> bool:
    if later.line not in (curve.line, layout.lines[0]):
        return False
    at = dict(zip(later.x, later.y, strict=True))
    hidden = [
        abs(height(layout, at[x]) - height(layout, y)) <= close
        for x, y in zip(curve.x, curve.y, strict=True)
        if x in at
    ]
    return sum(hidden) >= _HIDDEN * len(curve.x)


def along(layout: PlotLayout, x: float) -> float:
    """Return where a value is on the horizontal axis; nan: nowhere."""
    if not layout.log_x:
        return x
    return math.log10(x) if x > 0 else math.nan


def height(layout: PlotLayout, y: float) -> float:
    """Return where a value is on the vertical axis; nan: nowhere."""
    if not layout.log_y:
        return y
    return math.log(y) if y > 0 else math.nan
