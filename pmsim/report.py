"""The report: one HTML file that needs no network."""

import html
import json
from typing import TYPE_CHECKING

import pandas as pd
import plotly.io

from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.units import number

if TYPE_CHECKING:
    from pmsim.results import Result

_ROWS_SHOWN = 500
_STYLE = """
body { font: 15px/1.5 Helvetica, Arial, sans-serif; color: #222;
  max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; font-size: 13px; } .scroll { overflow: auto; max-height: 30em; }
th, td { border-bottom: 1px solid #ddd; padding: .25em .7em; text-align: right; white-space: nowrap; }
th { position: sticky; top: 0; background: #fff; } pre { background: #f6f6f6; padding: 1em;
  overflow: auto; max-height: 30em; white-space: pre-wrap; }
.warning { border-left: 4px solid #D55E00; padding: .5em 1em; background: #fdf3ec; }
"""


def report_html(result: "Result") -> str:
    """Return the report of a result as HTML, with Plotly inside."""
    parts = [
        f"<h1>{_text(result.title)}</h1>",
        f"<p>{_text(result.scenario.description)}</p>" if result.scenario.description else "",
        _warnings(result),
        _figure(result),
        _citations(result),
        _front(result),
        _effects(result),
        _time(result),
        "<h2>Values</h2>",
        _table(result.shown()),
        "<p>Parameters that are the same in all rows are below; results.parquet has all columns.</p>",
        "<h2>Scenario, resolved</h2>",
        f"<pre>{_text(result.resolved().to_toml())}</pre>",
        "<h2>Provenance</h2>",
        f"<pre>{_text(json.dumps(result.provenance, indent=2))}</pre>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{_text(result.title)} - pmsim</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _figure(result: "Result") -> str:
    if result.frame.empty:
        return ""
    try:
        figure = result.figure()
    except ConfigError as error:
        if not (result.plot and result.plot.stack):
            raise
        return f"<p>No figure: {_text(str(error))}</p>"  # the values are worth a report all the same
    return str(plotly.io.to_html(figure, full_html=False, include_plotlyjs=True, div_id="figure"))


def _time(result: "Result") -> str:
    """Where the time goes, where that is not the figure itself and has one."""
    if result.frame.empty or (result.plot and result.plot.stack):
        return ""
    try:
        figure = result.time_figure()
    except ConfigError:
        return ""
    drawn = plotly.io.to_html(figure, full_html=False, include_plotlyjs=False, div_id="time")
    return f"<h2>Where the time goes</h2>{drawn}"


def unsteady(result: "Result") -> str:
    """Say how many points were still changing."""
    return (
        f"in {len(result.unsteady)} of {result.provenance['points']} points `steady` is 0: "
        f"{find_kind(result.scenario.kind).unsteady}; the first is {result.unsteady[0]}"
    )


def log_not_full(result: "Result") -> str:
    """Say in how many points few pages, or none, have had to be written back for room in the log."""
    return (
        f"in {len(result.log_not_full)} of {result.provenance['points']} points `log_reused` is 0: the log has "
        "never been full, so fewer pages, if any, have been written back for its reuse than in a longer run; "
        f"to see these raise warmup and operations, or lower log_size; the first is {result.log_not_full[0]}"
    )


def overloaded(result: "Result") -> str:
    """Say in how many points requests came faster than they were served."""
    return (
        f"in {len(result.overloaded)} of {result.provenance['points']} points `keeps_up` is 0: requests came "
        "faster than they were served, and their latency says how long the run was; the first is "
        f"{result.overloaded[0]}"
    )


def not_durable(result: "Result") -> str:
    """Say in how many points a power failure takes along what was to survive it."""
    return (
        f"in {len(result.not_durable)} of {result.provenance['points']} points pmem is volatile, and a power "
        "failure takes along what was to survive it: a comparison of speeds; the first is "
        f"{result.not_durable[0]}"
    )


def cached(result: "Result") -> str:
    """Say in how many points caches held what memory was to be asked for."""
    return (
        f"in {len(result.cached)} of {result.provenance['points']} points chunks far apart are so few "
        "that the caches hold them, and the bandwidth is theirs; raise region_size or shorten stride or "
        f"alignment; the first is {result.cached[0]}"
    )


def _warnings(result: "Result") -> str:
    lines = [f"Failed: {failure}" for failure in result.failures]
    outside = int((result.frame["out_of_range_count"] > 0).sum()) if "out_of_range_count" in result.frame else 0
    if outside:
        lines.append(
            f"{outside} of {len(result.frame)} points left the range that the model was validated for."
        )
    if result.unsteady:
        lines.append(f"Still changing: {unsteady(result)}.")
    if result.log_not_full:
        lines.append(f"Log not full: {log_not_full(result)}.")
    if result.overloaded:
        lines.append(f"Overload: {overloaded(result)}.")
    if result.not_durable:
        lines.append(f"Not durable: {not_durable(result)}.")
    if result.cached:
        lines.append(f"Cached: {cached(result)}.")
    return '<p class="warning">' + "<br>".join(_text(line) for line in lines) + "</p>" if lines else ""


def _citations(result: "Result") -> str:
    overlays = result.plot.overlay if result.plot else []
    citations = dict.fromkeys(overlay.citation for overlay in overlays)
    if not citations:
        return ""
    items = "".join(f"<li>{_text(citation)}</li>" for citation in citations)
    return f"<p>Open markers are published values:</p><ul>{items}</ul>"


def _front(result: "Result") -> str:
    front = result.front()
    return f"<h2>{html.escape(result.front_title)}</h2>{_table(front)}" if len(front) else ""


def _effects(result: "Result") -> str:
    compared = result.effects()
    return f"<h2>One change at a time</h2>{_table(result.as_written(compared))}" if len(compared) else ""


def _table(frame: pd.DataFrame) -> str:
    shown = frame.head(_ROWS_SHOWN)
    more = ""
    if len(frame) > _ROWS_SHOWN:
        more = f"<p>The first {_ROWS_SHOWN} of {len(frame)} rows; all are in results.parquet.</p>"
    return f'<div class="scroll">{shown.to_html(index=False, border=0, float_format=number)}</div>{more}'


def _text(text: str) -> str:
    return html.escape(text)
