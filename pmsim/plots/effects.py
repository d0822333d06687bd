"""A tornado: bars for what each change does to a metric, the largest on top."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from pmsim.effects import AFTER, BEFORE, EFFECT, HIGH, LOW
from pmsim.plots.style import AXIS, BAR_GAP, LAYOUT, MEASURED, color, log_ticks, value_label
from pmsim.units import number
from pmsim.variations import CHANGED

_BAR = 20  # pixels
_LEGEND_LINE = 22
_TITLE = 80
_AXIS = 70  # its ticks and title, above the legend
_LOG_FROM = 10  # largest factor over smallest: smaller effects would vanish beside it
_LABEL_ROOM, _LOG_LABEL_ROOM = 0.16, 0.15  # of the range, beyond the longest bar of either side
_NO_LABEL_ROOM = 0.02  # on a side without bars
_DECIMALS = 3  # of an effect in per cent, at most: where its interval is narrow


def effects_figure(frame: pd.DataFrame, *, sweep: Sequence[str], title: str, metric: str) -> go.Figure:
    """Draw the effects of changes that were made one at a time.

    Parameters
    ----------
    frame : DataFrame
        Of `pmsim.effects.effects`.
    sweep : sequence of str
        Its columns of the sweep: each point of it has a colour.
    title, metric : str
        Over the figure, and what was compared, without its unit.
    """
    known = frame.dropna(subset=[EFFECT])
    points = known.groupby(list(sweep), sort=False) if sweep else [((), known)]
    # The largest first: the axis runs downwards, as legends do.
    strength = known.groupby(CHANGED)[EFFECT].apply(lambda effect: effect.abs().max())
    order = list(strength.sort_values(ascending=False, kind="stable").index)
    factors = 1 + known[EFFECT] / 100
    log = bool(factors.min() > 0 and max(factors.max(), 1) / min(factors.min(), 1) > _LOG_FROM)
    figure = go.Figure()
    for index, (names, rows) in enumerate(points):
        name = ", ".join(value_label(column, value) for column, value in zip(sweep, names, strict=True))
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=rows[CHANGED],
                # On a logarithmic axis the effect is a factor, and bars begin at 1.
                x=rows[EFFECT] / 100 if log else rows[EFFECT],
                base=1 if log else 0,
                name=name,
                marker={"color": color(index)},
                text=[_label(row, log) for _, row in rows.iterrows()],
                textposition="outside",
                textfont={"size": 11},
                cliponaxis=False,
                customdata=[[number(row[BEFORE]), number(row[AFTER])] for _, row in rows.iterrows()],
                hovertemplate="%{y}<br>%{customdata[0]} as it is, then %{customdata[1]}"
                "<extra>%{fullData.name}</extra>",
            )
        )
    series = len(figure.data)
    legend = _LEGEND_LINE * series if sweep else 0
    bars = max(1, round(_BAR * len(order) * (series / (1 - BAR_GAP) if series else 1)))
    figure.update_layout(
        **LAYOUT,
        title={"text": title, "x": 0.02},
        height=_TITLE + bars + _AXIS + legend,
        barmode="group",
        bargap=BAR_GAP,
        showlegend=bool(sweep),
    )
    figure.update_layout(margin={"t": _TITLE, "b": _AXIS}, legend={"y": -_AXIS / bars})
    figure.update_yaxes(categoryorder="array", categoryarray=order, autorange="reversed", automargin=True)
    figure.update_xaxes(**AXIS, **_scale(known[EFFECT], factors, log), zeroline=not log, zerolinecolor=MEASURED)
    figure.update_xaxes(title_text=f"{metric}: then over as it is" if log else f"change of: {metric} [%]")
    return figure


def _label(row: pd.Series, log: bool) -> str:
    reach = (row[HIGH] - row[LOW]) / 2 if HIGH in row else math.nan
    if log:
        factor = f"{1 + row[EFFECT] / 100:,.3g}"
        return f"{factor} ± {reach / 100:,.2g}x" if math.isfinite(reach) else f"{factor}x"
    if not math.isfinite(reach):
        return f"{row[EFFECT]:+.1f} %"
    # One digit of the interval at least, and as many decimals of the effect: "± 0.0" says nothing.
    decimals = max(1, -math.floor(math.log10(reach))) if reach > 10**-_DECIMALS else 1
    return f"{row[EFFECT]:+.{decimals}f} ± {reach:.{decimals}f} %"


def _scale(effect: pd.Series, factors: pd.Series, log: bool) -> dict[str, Any]:
    """Return the horizontal axis, with room for the labels of the longest bars."""
    if not log:
        low, high = min(0.0, effect.min()), max(0.0, effect.max())
        below, above = (_LABEL_ROOM if end else _NO_LABEL_ROOM for end in (low, high))
        return {"range": [low - below * (high - low), high + above * (high - low)]}
    low, high = math.log10(min(1.0, factors.min())), math.log10(max(1.0, factors.max()))
    room = _LOG_LABEL_ROOM * (high - low)
    ticks = log_ticks([10**low, 10**high])
    labels = [f"{tick:,.12g}" for tick in ticks]
    return {"type": "log", "range": [low - room, high + room], "tickvals": ticks, "ticktext": labels}
