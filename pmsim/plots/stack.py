"""Stacked bars: what the time of threads went to."""

import textwrap
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pmsim.errors import ConfigError
from pmsim.plots.style import AXIS, BAR_GAP, LAYOUT, parameter_title, value_label
from pmsim.time_stack import CAUSES, STACK_TITLES, Unit

#: Caches and memories from light to dark, what is written in other shades.
_COLORS = dict(
    zip(
        CAUSES,
        (
            *("#BBBBBB", "#777777", "#C6E2F5", "#8CC3E8", "#56B4E9", "#CC79A7", "#0072B2", "#D55E00"),
            *("#F0E442", "#E69F00", "#009E73", "#000000", "#F2F2F2"),
        ),
        strict=True,
    )
)
_PANELS_PER_ROW = 2
_PANEL_HEIGHT = 340
_TOP, _BOTTOM = 90, 60
_LEGEND_LINE = 20
_LEGEND_COLUMNS = 4
_TICK_LINE = 16
_FIGURE_CHARACTERS = 120  # of tick labels side by side
_TITLE_ROOM = 24
#: More are no figure.
MOST_PANELS, MOST_BARS = 12, 30


def stack_figure(frame: pd.DataFrame, *, x: str, panels: Sequence[str], title: str, unit: Unit) -> go.Figure:
    """Draw a bar for each row.

    Parameters
    ----------
    frame : DataFrame
        Of `pmsim.time_stack.stacks`.
    x : str
        Column whose values stand under the bars; empty: there is one.
    panels : sequence of str
        Columns whose values make a panel each.
    title : str
        Over the figure.
    unit : "share" or "time"
        Of the frame's values. Panels of times have vertical scales of their own.

    Raises
    ------
    ConfigError : more bars than anybody could tell apart.
    """
    if x:  # points that come to the same setup would add up
        frame = frame.drop_duplicates([*panels, x])
    groups = list(frame.groupby(list(panels), sort=False)) if panels else [((), frame)]
    bars = frame[x].nunique() if x else 1
    if len(groups) > MOST_PANELS or bars > MOST_BARS:
        raise ConfigError(
            f"stack: {len(groups)} panels of {bars} bars are no figure; run fewer points (--set), or take the "
            "values from Result.time_stack()"
        )
    columns = min(len(groups), _PANELS_PER_ROW)
    rows = -(-len(groups) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        shared_yaxes="all" if unit == "share" and len(groups) > 1 else False,
        subplot_titles=[
            ", ".join(value_label(column, value) for column, value in zip(panels, names, strict=True))
            for names, _ in groups
        ],
        vertical_spacing=0.2 / rows if rows > 1 else 0.0,
        horizontal_spacing=0.1,
    )
    causes = [cause for cause in CAUSES if cause in frame]
    for index, (_, members) in enumerate(groups):
        labels = list(map(str, members[x])) if x else [""] * len(members)
        for cause in causes:
            figure.add_trace(
                go.Bar(
                    x=labels,
                    y=members[cause],
                    name=cause,
                    legendgroup=cause,
                    showlegend=index == 0,
                    marker={"color": _COLORS[cause], "line": {"color": "white", "width": 0.5}},
                    hovertemplate=f"%{{x}}<br>{cause}: %{{y:,.3g}}<extra></extra>",
                ),
                row=index // columns + 1,
                col=index % columns + 1,
            )
    categories = list(dict.fromkeys(map(str, frame[x]))) if x else [""]
    width = max(_FIGURE_CHARACTERS // (columns * len(categories)), 8)
    ticks = [textwrap.wrap(category, width, break_on_hyphens=False) or [""] for category in categories]
    gap = _BOTTOM + _TICK_LINE * max(map(len, ticks))
    height, legend = _PANEL_HEIGHT * rows, _LEGEND_LINE * -(-len(causes) // _LEGEND_COLUMNS)
    figure.update_layout(**LAYOUT, barmode="stack", bargap=BAR_GAP, height=height + legend + _TOP + gap)
    figure.update_layout(
        title={
            "text": title,
            "x": 0.02,
            "y": 1 - _TITLE_ROOM / (height + legend + _TOP + gap),
            "yanchor": "top",
        },
        margin={"t": _TOP, "b": gap + legend},
        legend={"y": -gap / height, "traceorder": "normal"},
    )
    figure.update_xaxes(**AXIS, type="category", tickvals=categories, tickangle=0)
    figure.update_xaxes(ticktext=["<br>".join(lines) for lines in ticks], showgrid=False)
    figure.update_yaxes(**AXIS, rangemode="tozero")
    for row in range(1, rows + 1):
        figure.update_yaxes(title_text=STACK_TITLES[unit], row=row, col=1)
    if x:
        for column in range(1, columns + 1):
            figure.update_xaxes(title_text=parameter_title(x).removesuffix(" [B]"), row=rows, col=column)
    return figure
