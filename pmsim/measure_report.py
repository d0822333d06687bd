"""Files and figure of a measurement."""

import html
import json
import math
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import plotly.io
from plotly.subplots import make_subplots

from pmsim.errors import ConfigError
from pmsim.measure import MeasureResult, Row
from pmsim.plots.style import AXIS, LAYOUT, MEASURED, color, log_ticks
from pmsim.whole_files import replace_file

_ROW_HEIGHT = 21
_PANEL_EXTRA = 70
_MARGIN = 110
#: Values that span more than this factor stand on a logarithmic axis.
_LOGARITHMIC = 20
_AXIS_TITLES = {"ns": "nanoseconds", "GB/s": "GB/s", "op/s": "operations per second"}


def frame_of(result: MeasureResult) -> pd.DataFrame:
    """Return one row per subject: set-up, measurement with its quartiles, simulation, ratio."""
    return pd.DataFrame(
        [
            {
                "block": row.subject.block,
                "subject": row.subject.name,
                "metric": row.subject.metric,
                "unit": row.subject.unit,
                "measured": row.measured,
                "spread": row.spread,
                "repetitions": row.timing.repetitions,
                "cpu_share": row.timing.cpu_share,
                "is_dax": row.timing.is_dax,
                "simulated": row.simulated,
                "ratio": row.ratio,
                "message": row.message,
                "parameters": json.dumps(dict(row.subject.host), sort_keys=True),
            }
            for row in result.rows
        ]
    )


def figure_of(result: MeasureResult) -> go.Figure:
    """Draw measured (open markers) beside simulated values (filled), a panel per block and unit."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in result.rows:
        groups.setdefault((row.subject.block, row.subject.unit), []).append(row)
    heights = [len(rows) * _ROW_HEIGHT + _PANEL_EXTRA for rows in groups.values()]
    figure = make_subplots(
        rows=len(groups),
        cols=1,
        row_heights=heights,
        vertical_spacing=min(0.9 / len(groups), _PANEL_EXTRA / sum(heights)) if len(groups) > 1 else 0.0,
    )
    for number, ((block, unit), rows) in enumerate(groups.items(), start=1):
        names = [row.subject.name for row in rows]
        place = {"row": number, "col": 1}
        simulated = {"color": color(0), "size": 9}
        measured = {"symbol": "circle-open", "color": MEASURED, "size": 11, "line": {"width": 2}}
        for name, values, marker in (
            ("simulated", [row.simulated for row in rows], simulated),
            ("measured on this machine", [row.measured for row in rows], measured),
        ):
            trace = go.Scatter(
                x=values,
                y=names,
                mode="markers",
                name=name,
                marker=marker,
                legendgroup=name,
                showlegend=number == 1,
                hovertemplate=f"%{{y}}<br>{name}: %{{x:.4g}} {unit}<extra></extra>",
            )
            figure.add_trace(trace, **place)
        values = [value for row in rows for value in (row.measured, row.simulated) if value > 0]
        title = f"{block}: {_AXIS_TITLES.get(unit, unit)}"
        if max(values) < _LOGARITHMIC * min(values):
            figure.update_xaxes(rangemode="tozero", title_text=title, **AXIS, **place)
        else:
            ticks = log_ticks(values)
            labels = [f"{tick:,.12g}" for tick in ticks]
            figure.update_xaxes(type="log", tickvals=ticks, ticktext=labels, title_text=title, **AXIS, **place)
        figure.update_yaxes(**AXIS, autorange="reversed", tickfont={"size": 11}, **place)
    height = sum(heights) + _MARGIN
    figure.update_layout(**LAYOUT, height=height)
    figure.update_layout(margin={"l": 250, "t": 50}, legend={"y": 1 + 10 / height, "yanchor": "bottom"})
    return figure


def report_html(result: MeasureResult) -> str:
    """Return the report: one file that works offline."""
    near, of = result.near()
    orders = "".join(f"<li>{html.escape(order.told())}</li>" for order in result.orders())
    warnings = "".join(f"<p><b>Note:</b> {html.escape(warning)}.</p>" for warning in result.warnings)
    table = frame_of(result).drop(columns=["parameters", "message"])
    shown = table.to_html(index=False, border=0, float_format="{:.4g}".format)
    figure = plotly.io.to_html(figure_of(result), full_html=False, include_plotlyjs=True, div_id="figure")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>pmsim measure</title><style>'
        "body { font: 15px/1.5 Helvetica, Arial, sans-serif; max-width: 1100px; margin: 2em auto; "
        "padding: 0 1em; }"
        "td, th { border-bottom: 1px solid #ddd; padding: .25em .7em; text-align: right; font-size: 13px; }"
        "table { border-collapse: collapse; } pre { background: #f6f6f6; padding: 1em; overflow: auto; }"
        f"</style></head>\n<body><h1>{html.escape(result.platform.title)}: measured and simulated</h1>\n"
        f"{warnings}<p>{near} of {of} predictions are within a factor of two.</p><ul>{orders}</ul>\n{figure}\n"
        f"<h2>Values</h2>{shown}\n<h2>Provenance</h2><pre>"
        f"{html.escape(json.dumps(result.provenance(), indent=2))}</pre></body></html>\n"
    )


def save(result: MeasureResult, folder: Path) -> None:
    """Write measurements.parquet, measurements.csv, provenance.json and report.html.

    Raises
    ------
    ConfigError : the folder cannot be written.
    """
    frame = frame_of(result)
    try:
        replace_file(folder / "measurements.parquet", frame.to_parquet(None, index=False))
        replace_file(folder / "measurements.csv", frame.to_csv(index=False).encode())
        replace_file(folder / "provenance.json", (json.dumps(result.provenance(), indent=2) + "\n").encode())
        replace_file(folder / "report.html", report_html(result).encode())
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be written: {error.strerror or error}; choose another with --out"
        ) from error


def shown(value: float) -> str:
    """Write a value with four digits; nothing where there is none."""
    return "" if math.isnan(value) else f"{value:,.4g}" if value < 1e5 else f"{value:,.0f}"
