"""Writes a validation as one HTML file that works without a network: tables, and measured over predicted."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from pmsim.plots.style import AXIS, LAYOUT, log_ticks, metric_title, parameter_title
from pmsim.validation.claims import Claim
from pmsim.validation.percent import percent, with_range
from pmsim.validation.summary import Accuracy, Compared, Validation
from pmsim.whole_files import replace_file

_STYLE = """
body { font: 15px/1.5 Helvetica, Arial, sans-serif; color: #222;
  max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
td, th { padding: .25em .7em; text-align: left; vertical-align: top; }
tr.end td, thead th { border-bottom: 1px solid #ddd; }
td.number, th.number { text-align: right; white-space: nowrap; }
thead th { position: sticky; top: 0; background: #fff; vertical-align: bottom; }
td.name { font-weight: 600; } td.name, td.verdict { white-space: nowrap; }
td.about { color: #555; padding: 0 .7em .5em 2em; }
tr.fail, tr.error { background: #fdecea; } .note { color: #666; }
"""
_SYMBOLS = {"calibration": "circle-open", "prediction": "circle"}
_COLOURS = {"pmem": "#c44e00", "dram": "#1f5fa8"}


def write_report(validation: Validation, path: Path) -> None:
    """Write the report; the folder exists."""
    parts = [
        f"<h1>Validation: {escape(validation.suite.title)}</h1>",
        "<p>Errors are relative to the published value. <b>Calibration</b>: the value was used to set a "
        "parameter of the platform, or follows from values that were; <b>prediction</b>: neither. A claim is "
        "judged by the tolerance that its rule gives.</p>",
        _counts(validation),
        *_about_seeds(validation),
        "<h2>Accuracy</h2>",
        _accuracy_table(validation.accuracy()),
    ]
    library: bool = True
    for name in dict.fromkeys(row.measurement.dataset for row in validation.compared):
        rows = [row for row in validation.compared if row.measurement.dataset == name]
        data_sets = [data_set for data_set in validation.data_sets if data_set.name == name]
        parts.append(f"<h2>Data set {escape(name)}</h2><p>{escape(data_sets[0].citation)}</p>")
        notes = [note for data_set in data_sets for note in data_set.notes]
        counts = [
            (reason, number) for data_set in data_sets for reason, number in data_set.skipped.counts.items()
        ]
        notes += [f"left out, {number}: {reason}" for reason, number in counts]
        parts.append("".join(f'<p class="note">{escape(note)}</p>' for note in notes))
        for metric in dict.fromkeys(row.measurement.metric for row in rows):
            shown = [row for row in rows if row.measurement.metric == metric]
            figure = scatter(shown, f"{name}: {metric_title(metric, parameter_title(metric))}")
            parts.append(figure.to_html(full_html=False, include_plotlyjs=library))
            library = False
    if validation.compared:
        parts += ["<h2>By experiment</h2>", _accuracy_table(validation.by_experiment())]
    else:
        parts.append('<p class="note">Without measurement data: claims of the publications alone.</p>')
    parts += ["<h2>Claims</h2>", _claims_table(validation), "<h2>Sources</h2>"]
    for name, source in validation.suite.sources.items():
        parts.append(f"<p>[{escape(name)}] {escape(source.citation)}</p>")
    head = f"<meta charset='utf-8'><title>pmsim validation</title><style>{_STYLE}</style>"
    page = f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"
    replace_file(path, page.encode())


def _counts(validation: Validation) -> str:
    verdicts = [outcome.verdict for outcome in validation.outcomes]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    failed = [outcome.claim.id for outcome in validation.outcomes if outcome.verdict in ("fail", "error")]
    links = ", ".join(f"<a href='#{escape(name)}'>{escape(name)}</a>" for name in failed)
    return f"<p>{len(verdicts)} claims: {counts}.{f' Not held: {links}.' if links else ''}</p>"


def _about_seeds(validation: Validation) -> list[str]:
    if not validation.each:
        return []
    number = len(validation.each)
    found = ", ".join(f"{escape(share.claim)} {share}" for share in validation.by_chance())
    return [
        f"<p>Every run was repeated with {number} seeds. Predictions are medians over them; errors and "
        "verdicts follow from these. <b>Seeds</b>: with how many of them alone a claim passes; <b>spread</b>: "
        "smallest and largest value of the numbers that decide. Brackets: range over the seeds.</p>",
        f"<p><b>Decided by chance</b>: {found or 'none'}.</p>",
    ]


def scatter(rows: Sequence[Compared], title: str) -> go.Figure:
    """Draw measured over predicted on logarithmic axes; hovering shows the set-up."""
    good = [row for row in rows if not row.message and row.predicted > 0]
    figure = go.Figure()
    for medium in ("pmem", "dram"):
        for use in ("prediction", "calibration"):
            chosen = [row for row in good if row.measurement.medium == medium and row.measurement.use == use]
            if not chosen:
                continue
            figure.add_scatter(
                x=[row.predicted for row in chosen],
                y=[row.measurement.value for row in chosen],
                mode="markers",
                name=f"{medium}, {use}",
                marker={"symbol": _SYMBOLS[use], "color": _COLOURS[medium], "size": 7},
                text=[f"{row.measurement.experiment}<br>{row.measurement.setup}" for row in chosen],
                customdata=[percent(row.error, signed=True) for row in chosen],
                hovertemplate="%{text}<br>predicted %{x:.4g}, measured %{y:.4g}, error %{customdata}"
                "<extra></extra>",
            )
    values = [value for row in good for value in (row.predicted, row.measurement.value)]
    if values:
        ends = [min(values) * 0.8, max(values) * 1.25]
        for factor, dash in ((1.0, "solid"), (1.2, "dot"), (1 / 1.2, "dot")):
            figure.add_scatter(
                x=ends,
                y=[factor * end for end in ends],
                mode="lines",
                line={"color": "#888", "dash": dash, "width": 1},
                name="equal" if dash == "solid" else "± 20 %",
                showlegend=factor >= 1,
                hoverinfo="skip",
            )
    unit = rows[0].measurement.unit
    # Ticks of our own: Plotly writes the digits between two powers of ten over each other.
    ticks = log_ticks(values)
    axis = {**AXIS, "type": "log", "tickvals": ticks, "ticktext": [f"{tick:,.12g}" for tick in ticks]}
    figure.update_layout(**LAYOUT, title=title, height=560)
    figure.update_layout(legend={"y": -0.16})
    figure.update_xaxes(title=f"predicted [{unit}]", **axis)
    figure.update_yaxes(title=f"measured [{unit}]", **axis)
    return figure


def _accuracy_table(rows: Iterable[Accuracy]) -> str:
    texts = ["group", "medium", "use"]
    numbers = ["points", "median error", "90th percentile", "rank correlation", "failed"]
    cells = [
        [
            *(row.group, row.medium, row.use, str(row.rows)),
            *(with_range(row.median, row.median_range), with_range(row.p90, row.p90_range)),
            "" if math.isnan(row.rank_correlation) else f"{row.rank_correlation:.3f}",
            str(row.failed or ""),
        ]
        for row in rows
    ]
    # Columns that no row fills are none of a reader's business.
    names = [*texts, *numbers]
    filled = [place for place in range(len(names)) if any(row[place] for row in cells)]
    styles = ["number" if name in numbers else "" for name in names]
    rows_shown = [[(row[place], styles[place]) for place in filled] for row in [names, *cells]]
    return _table(_row("", rows_shown[0]), [_row("end", row) for row in rows_shown[1:]])


def _claims_table(validation: Validation) -> str:
    """Give each claim a line with its numbers and, over the whole width, one with what it is about."""
    seeds = bool(validation.each)
    head = [("claim", ""), ("measured", ""), ("predicted", ""), *([("spread", "")] if seeds else [])]
    head += [("error", "number"), ("tolerance", "number"), ("verdict", ""), ("use", "")]
    head += [("seeds", "number")] if seeds else []
    body = []
    for outcome, share in zip(validation.outcomes, validation.shares(), strict=True):
        claim = outcome.claim
        predicted = outcome.predicted if claim.checks else ""
        cells = [(claim.id, "name"), (claim.expected_text(), ""), (predicted, "")]
        cells += [("" if share is None else share.spread or "none", "")] if seeds else []
        cells += [
            (percent(outcome.error, signed=True), "number"),
            (claim.tolerance.describe() if claim.checks else "", "number"),
            (outcome.verdict, "verdict"),
            (claim.use if claim.checks else "", ""),
        ]
        cells += [("" if share is None else str(share), "number")] if seeds else []
        body.append(_row(outcome.verdict, cells, claim.id))
        about = f'<td class="about" colspan="{len(head)}">{escape(_about(claim))}</td>'
        body.append(f'<tr class="end {outcome.verdict}">{about}</tr>')
    return _table(_row("", head), body)


def _about(claim: Claim) -> str:
    why = claim.not_simulated and f"Not simulated: {claim.not_simulated}"
    parts = [claim.quantity, claim.setup, claim.interpretation, why]
    text = ". ".join(part.rstrip(" .") for part in parts if part)
    return f"{text}. [{'; '.join(f'{cited.ref}, {cited.where}' for cited in claim.source)}]"


def _row(kind: str, cells: Sequence[tuple[str, str]], name: str = "") -> str:
    """Write a row of cells, each with its class."""
    texts = "".join(f'<td class="{style}">{escape(text)}</td>' for text, style in cells)
    texts = texts.replace(' class=""', "")
    attributes = (f' id="{escape(name)}"' if name else "") + (f' class="{kind}"' if kind else "")
    return f"<tr{attributes}>{texts}</tr>"


def _table(head: str, body: Sequence[str]) -> str:
    header = head.replace("<td", "<th").replace("</td>", "</th>")
    return f"<table><thead>{header}</thead><tbody>{''.join(body)}</tbody></table>"
