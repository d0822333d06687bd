"""Drawing a layout with Plotly."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pmsim.plot_spec import Overlay
from pmsim.plots.front_labels import front_positions
from pmsim.plots.layout import Curve, Panel, PlotLayout
from pmsim.plots.overlap import curves_above, label_top
from pmsim.plots.style import (
    AXIS,
    BAR_GAP,
    LAYOUT,
    MEASURED,
    SUBTITLE,
    color,
    dash,
    log_ticks,
    marker,
    metric_title,
    parameter_title,
    pattern,
    size_ticks,
    tick_is_size,
    tick_label,
    value_label,
)
from pmsim.plots.times import in_readable_units

_PANELS_PER_ROW = 2
_TITLE_WIDTH = 44  # of an axis, in characters
_PANEL_HEIGHT = 380
_LEGEND_LINE = 14
_TICK_LINE = 16
_FIGURE_CHARACTERS = 130  # of tick labels side by side
_LEGEND_GAP = 60
_TOP = 74
_SUBTITLE_LINE = 16
_MOST_TICKS = {1: 12, 2: 8}  # of a panel, by panels side by side: labels of sizes then need no turning
_ONLY_CURVE = "simulated"
_FRONT = "Pareto front"
_LINE, _POINT = 2, 5  # pixels
_RIM = 2  # that a curve is wider than one that runs along it and is drawn over it
_ERROR_BARS = "Error bars: 95 % confidence interval over"


def figure_of(
    layout: PlotLayout,
    *,
    title: str,
    y_title: str,
    intervals_over: str = "batches of a run",
    notes: Sequence[str] = (),
) -> go.Figure:
    """Draw a figure.

    Parameters
    ----------
    layout : PlotLayout
        What to show.
    title : str
        Stands over the figure.
    y_title : str
        Title of the vertical axes, with unit. Times are drawn in a unit of their size, whatever it says.
    intervals_over : str
        What confidence intervals are taken over.
    notes : sequence of str
        Lines under the title, below those that say where published things come from.

    Returns
    -------
    Figure : simulated values as curves or bars, published ones as open markers, cited under the title.
    """
    layout, x_title, y_title = in_readable_units(
        layout, parameter_title(layout.columns.x), metric_title(layout.columns.y, y_title)
    )
    count = len(layout.panels)
    columns = min(count, _PANELS_PER_ROW)
    rows = -(-count // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        shared_yaxes="all" if count > 1 and layout.share_y else False,
        subplot_titles=[
            value_label(layout.columns.facet, panel.facet) if layout.columns.facet else ""
            for panel in layout.panels
        ],
        vertical_spacing=0.16 / rows if rows > 1 else 0.0,
        horizontal_spacing=0.08 if layout.share_y else 0.12,  # room for ticks of its own
    )
    shown: set[str] = set()
    for index, panel in enumerate(layout.panels):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        for trace in [
            *_front(layout, panel, shown),
            *_curves(layout, panel, shown),
            *_overlays(layout, panel, shown),
        ]:
            figure.add_trace(trace, **place)
        _draw_marks(figure, layout, panel, place)
    _label_axes(figure, layout, (x_title, y_title), rows, columns)
    sources = [*_sources(layout, intervals_over), *notes]
    top = _TOP + _SUBTITLE_LINE * (1 + len(sources) if sources else 0)
    # The legend stands below: panels need the width.
    panels, legend = _PANEL_HEIGHT * rows, _LEGEND_LINE * len(shown)
    gap = _LEGEND_GAP
    if layout.bars:
        gap += _TICK_LINE * (_label_categories(figure, layout, columns) - 1)
    height = panels + legend + top + gap
    figure.update_layout(**LAYOUT, height=height, title=_title(title, sources, height))
    figure.update_layout(margin={"t": top, "b": gap}, legend={"y": -gap / panels})
    figure.update_layout(showlegend=shown != {_ONLY_CURVE})
    if layout.bars:
        # Published values stand on the bar they belong to.
        figure.update_layout(barmode="group", bargap=BAR_GAP, scattermode="group", scattergap=BAR_GAP)
    return figure


def _sources(layout: PlotLayout, intervals_over: str) -> list[str]:
    """Return the lines that say where published things come from, and what error bars are."""
    lines = []
    for kind, published in (
        ("Open markers", [overlay for panel in layout.panels for overlay in panel.overlays]),
        ("Dotted lines", [mark for panel in layout.panels for mark in panel.marks]),
    ):
        first, *more = dict.fromkeys(each.citation for each in published) or [""]
        lines += [f"{kind}: {first}", *more] if first else []
    if any(curve.low for panel in layout.panels for curve in panel.curves):
        lines.append(f"{_ERROR_BARS} {intervals_over}")
    return lines


def _title(title: str, sources: list[str], height: int) -> dict[str, Any]:
    return {
        "text": title,
        "x": 0.02,
        "y": 1 - 24 / height,
        "yanchor": "top",
        "subtitle": {"text": "<br>".join(sources), "font": SUBTITLE},
    }


def _draw_marks(figure: go.Figure, layout: PlotLayout, panel: Panel, place: dict[str, int]) -> None:
    for mark in panel.marks:
        # On a logarithmic axis Plotly takes shapes by value and annotations by logarithm.
        at = math.log10(mark.x) if layout.log_x else mark.x
        line = {"color": MEASURED, "width": 1.5, "dash": "dot"}
        figure.add_shape(type="line", x0=mark.x, x1=mark.x, y0=0, y1=1, yref="y domain", line=line, **place)
        figure.add_annotation(
            x=at,
            y=label_top(layout, panel, mark),
            yref="y domain",
            text=mark.label,
            textangle=-90,
            xanchor="left",  # curves end at capacities
            xshift=5,  # clear of points on the line
            bgcolor="rgba(255, 255, 255, 0.5)",  # a curve behind it stays visible, and the words legible
            borderpad=0,
            yanchor="top",
            showarrow=False,
            font={"size": 11, "color": MEASURED},
            **place,
        )


def _front(layout: PlotLayout, panel: Panel, shown: set[str]) -> list[Any]:
    if not panel.front:
        return []
    said = layout.columns.color
    labels = [
        ", ".join(value_label(column, value) for column, value in point.names if column != said)
        for point in panel.front
    ]
    positions = front_positions(layout, panel, labels)
    trace = go.Scatter(
        x=[point.x for point in panel.front],
        y=[point.y for point in panel.front],
        mode="lines+markers+text",
        # Steps: what lies further right is better only above the line.
        line={"color": MEASURED, "width": 1.5, "dash": "dot", "shape": "hv"},
        marker={"color": "white", "size": 11, "line": {"color": MEASURED, "width": 1.5}},
        text=[label if position else "" for label, position in zip(labels, positions, strict=True)],
        textposition=[position or "top center" for position in positions],
        hovertext=labels,  # of those without room, too
        textfont={"size": 10, "color": MEASURED},
        cliponaxis=False,
        name=_FRONT,
        legendgroup=_FRONT,
        showlegend=_FRONT not in shown,
    )
    shown.add(_FRONT)
    return [trace]


def _curves(layout: PlotLayout, panel: Panel, shown: set[str]) -> list[Any]:
    traces = []
    for curve, above in zip(panel.curves, curves_above(layout, panel), strict=True):
        number = layout.colors.index(curve.color)
        name = _name(layout, curve)
        common = {"name": name, "legendgroup": name, "showlegend": name not in shown}
        common |= {"error_y": _error_bars(curve)} if curve.low else {}
        shown.add(name)
        if layout.bars:
            bar = {"color": color(number), "pattern": {"shape": pattern(layout.lines.index(curve.line))}}
            traces.append(
                go.Bar(
                    x=[str(value) for value in curve.x], y=list(curve.y), marker=bar, offsetgroup=name, **common
                )
            )
        else:
            rim = _RIM * above
            traces.append(
                go.Scatter(
                    x=list(curve.x),
                    y=list(curve.y),
                    mode="lines+markers",
                    line={
                        "color": color(number),
                        "dash": dash(layout.lines.index(curve.line)),
                        "width": _LINE + rim,
                    },
                    marker={"color": color(number), "size": _POINT + rim},
                    **common,
                )
            )
    return traces


def _error_bars(curve: Curve) -> dict[str, Any]:
    """Return the reach of each point's confidence interval; of too few batches there is none."""
    up = [high - y for y, high in zip(curve.y, curve.high, strict=True)]
    down = [y - low for y, low in zip(curve.y, curve.low, strict=True)]
    reach = ([each if math.isfinite(each) else None for each in side] for side in (up, down))
    array, arrayminus = reach
    return {
        "type": "data",
        "symmetric": False,
        "array": array,
        "arrayminus": arrayminus,
        "thickness": 1,
        "width": 3,
    }


def _name(layout: PlotLayout, curve: Curve) -> str:
    columns = layout.columns
    parts = [value_label(columns.color, curve.color)] if columns.color else []
    if len(layout.lines) > 1:
        parts += [value_label(column, value) for column, value in zip(columns.lines, curve.line, strict=True)]
    return ", ".join(parts) or _ONLY_CURVE


def _overlays(layout: PlotLayout, panel: Panel, shown: set[str]) -> list[Any]:
    everything = [overlay.label for each in layout.panels for overlay in each.overlays]
    symbols = {label: marker(number) for number, label in enumerate(dict.fromkeys(everything))}
    traces = []
    for overlay in panel.overlays:
        shade = MEASURED
        if overlay.where.get(layout.columns.color) in layout.colors:
            shade = color(layout.colors.index(overlay.where[layout.columns.color]))
        name = overlay.label
        traces.append(
            go.Scatter(
                x=[str(point[0]) if layout.bars else point[0] for point in overlay.points],
                y=[point[1] for point in overlay.points],
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=name not in shown,
                offsetgroup=_bar_of(layout, panel, overlay) if layout.bars else None,
                marker=_on_bar(symbols[name]) if layout.bars else _on_curve(symbols[name], shade),
                hovertemplate=f"%{{x}}, %{{y}}<br>{overlay.label}<br>{overlay.citation}<extra></extra>",
            )
        )
        shown.add(name)
    return traces


def _bar_of(layout: PlotLayout, panel: Panel, overlay: Overlay) -> str | None:
    columns = layout.columns
    for curve in panel.curves:
        keys = dict(zip((columns.color, *columns.lines), (curve.color, *curve.line), strict=True))
        if all(overlay.where.get(column, value) == value for column, value in keys.items()):
            return _name(layout, curve)
    return None


def _on_bar(symbol: str) -> dict[str, Any]:
    # White inside: an open marker would vanish in its bar.
    return {"symbol": symbol, "size": 11, "color": "white", "line": {"color": MEASURED, "width": 2}}


def _on_curve(symbol: str, shade: str) -> dict[str, Any]:
    return {"symbol": f"{symbol}-open", "size": 12, "color": shade, "line": {"width": 2.5}}


def _label_axes(
    figure: go.Figure, layout: PlotLayout, titles: tuple[str, str], rows: int, columns: int
) -> None:
    x_title, y_title = titles
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    if layout.log_y:
        ticks = log_ticks([y for panel in layout.panels for curve in panel.curves for y in curve.y])
        figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:,.12g}" for tick in ticks])
    else:
        figure.update_yaxes(rangemode="tozero")
    if layout.bars:
        figure.update_xaxes(type="category", showgrid=False)
    elif layout.log_x:
        ticks = _ticks(layout)
        figure.update_xaxes(
            type="log", tickvals=ticks, ticktext=[tick_label(layout.columns.x, tick) for tick in ticks]
        )
        x_title = x_title.removesuffix(" [B]")  # the ticks have units
    elif tick_is_size(layout.columns.x) and (values := _horizontal(layout)):
        ticks, labels, unit = size_ticks(values)
        figure.update_xaxes(tickvals=ticks, ticktext=labels)
        x_title = f"{x_title.removesuffix(' [B]')} [{unit}]"
    y_title = "<br>".join(textwrap.wrap(y_title, _TITLE_WIDTH))
    for row in range(1, rows + 1):
        figure.update_yaxes(title_text=y_title, row=row, col=1)
    for column in range(1, columns + 1):
        figure.update_xaxes(title_text=x_title, row=rows, col=column)


def _label_categories(figure: go.Figure, layout: PlotLayout, columns: int) -> int:
    """Break the labels of categories into lines that fit side by side; return the number of lines."""
    categories = list(
        dict.fromkeys(str(x) for panel in layout.panels for curve in panel.curves for x in curve.x)
    )
    width = max(_FIGURE_CHARACTERS // (columns * len(categories)), 10)
    labels = [textwrap.wrap(category, width, break_on_hyphens=False) for category in categories]
    figure.update_xaxes(tickvals=categories, ticktext=["<br>".join(lines) for lines in labels], tickangle=0)
    return max(len(lines) for lines in labels)


def _horizontal(layout: PlotLayout) -> list[float]:
    values = {float(x) for panel in layout.panels for curve in panel.curves for x in curve.x}
    return sorted(value for value in values if not math.isnan(value))


def _ticks(layout: PlotLayout) -> list[float]:
    # The values of the sweep are the natural ticks; of many, the powers of two among them. What follows from
    # the sweep, such as a cost, has values that nobody would write at an axis.
    values = [value for value in _horizontal(layout) if value > 0]
    if any(value != float(f"{value:.5g}") for value in values) and not tick_is_size(layout.columns.x):
        return log_ticks(values)
    most = _MOST_TICKS[min(len(layout.panels), _PANELS_PER_ROW)]
    if len(values) > most:
        powers = [value for value in values if math.frexp(value)[0] == 0.5]
        values = powers if len(powers) > 2 else values
    return values[:: max(1, -(-len(values) // most))]  # of a metric that is 0 throughout there are none
