"""Drawing a layout with Plotly."""

from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pmsim.plots.layout import Panel, PlotLayout
from pmsim.plots.style import AXIS, LAYOUT, MEASURED, color, dash, marker, parameter_title, pattern, value_label

_PANELS_PER_ROW = 2
_PANEL_HEIGHT = 380
_LEGEND_LINE = 14
_LEGEND_GAP = 60


def figure_of(layout: PlotLayout, *, title: str, y_title: str) -> go.Figure:
    """Draw a figure.

    Parameters
    ----------
    layout : PlotLayout
        What to show.
    title : str
        Stands over the figure.
    y_title : str
        Title of the vertical axes, with unit.

    Returns
    -------
    Figure : simulated values as curves or bars, published ones as open markers with their citation.
    """
    count = len(layout.panels)
    columns = min(count, _PANELS_PER_ROW)
    rows = -(-count // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        shared_yaxes="all" if count > 1 else False,
        subplot_titles=[
            value_label(layout.columns.facet, panel.facet) if layout.columns.facet else ""
            for panel in layout.panels
        ],
        vertical_spacing=0.16 / rows if rows > 1 else 0.0,
        horizontal_spacing=0.08,
    )
    shown: set[str] = set()
    for index, panel in enumerate(layout.panels):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        for trace in [*_curves(layout, panel, shown), *_overlays(layout, panel, shown)]:
            figure.add_trace(trace, **place)
    _label_axes(figure, layout, y_title, rows, columns)
    figure.update_layout(**LAYOUT, title={"text": title, "x": 0.02})
    # The legend stands below: citations are long, and panels need the width.
    panels, legend = _PANEL_HEIGHT * rows, _LEGEND_LINE * len(shown)
    figure.update_layout(height=panels + legend + 140, legend={"y": -_LEGEND_GAP / panels})
    if layout.bars:
        figure.update_layout(barmode="group")
    return figure


def _curves(layout: PlotLayout, panel: Panel, shown: set[str]) -> list[Any]:
    columns = layout.columns
    traces = []
    for curve in panel.curves:
        number = layout.colors.index(curve.color)
        parts = [value_label(columns.color, curve.color)] if columns.color else []
        parts += [value_label(column, value) for column, value in zip(columns.lines, curve.line, strict=True)]
        name = ", ".join(parts) or "simulated"
        common = {"name": name, "legendgroup": name, "showlegend": name not in shown}
        shown.add(name)
        if layout.bars:
            bar = {"color": color(number), "pattern": {"shape": pattern(layout.lines.index(curve.line))}}
            traces.append(go.Bar(x=[str(value) for value in curve.x], y=list(curve.y), marker=bar, **common))
        else:
            traces.append(
                go.Scatter(
                    x=list(curve.x),
                    y=list(curve.y),
                    mode="lines+markers",
                    line={"color": color(number), "dash": dash(layout.lines.index(curve.line)), "width": 2},
                    marker={"color": color(number), "size": 5},
                    **common,
                )
            )
    return traces


def _overlays(layout: PlotLayout, panel: Panel, shown: set[str]) -> list[Any]:
    traces = []
    for number, overlay in enumerate(panel.overlays):
        shade = MEASURED
        if overlay.where.get(layout.columns.color) in layout.colors:
            shade = color(layout.colors.index(overlay.where[layout.columns.color]))
        name = f"{overlay.label} ({overlay.citation})"
        traces.append(
            go.Scatter(
                x=[str(point[0]) if layout.bars else point[0] for point in overlay.points],
                y=[point[1] for point in overlay.points],
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=name not in shown,
                marker={"symbol": f"{marker(number)}-open", "size": 12, "color": shade, "line": {"width": 2.5}},
                hovertemplate=f"%{{x}}, %{{y}}<br>{overlay.label}<br>{overlay.citation}<extra></extra>",
            )
        )
        shown.add(name)
    return traces


def _label_axes(figure: go.Figure, layout: PlotLayout, y_title: str, rows: int, columns: int) -> None:
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    figure.update_yaxes(type="log") if layout.log_y else figure.update_yaxes(rangemode="tozero")
    if layout.log_x and not layout.bars:
        figure.update_xaxes(
            type="log", tickvals=_ticks(layout), ticktext=[f"{tick:g}" for tick in _ticks(layout)]
        )
    if layout.bars:
        figure.update_xaxes(type="category")
    for row in range(1, rows + 1):
        figure.update_yaxes(title_text=y_title, row=row, col=1)
    for column in range(1, columns + 1):
        figure.update_xaxes(title_text=parameter_title(layout.columns.x), row=rows, col=column)


def _ticks(layout: PlotLayout) -> list[float]:
    # The values of the sweep are the natural ticks: powers of two rather than of ten.
    values = sorted({float(x) for panel in layout.panels for curve in panel.curves for x in curve.x if x > 0})
    step = max(1, len(values) // 10)
    return values[::step]
