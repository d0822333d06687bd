"""What ``pmsim run`` prints at the end."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from pmsim.effects import AFTER, BEFORE, EFFECT, HIGH, LOW
from pmsim.kinds import find_kind
from pmsim.kinds.metric import INTERVAL_ENDS
from pmsim.report import cached, log_not_full, not_durable, overloaded, unsteady
from pmsim.results import Result
from pmsim.terminal import Column, complaints, output, print_table
from pmsim.time_stack import CAUSES, STACK_TITLES
from pmsim.units import number

_ROWS_SHOWN = 30
_METRICS_SHOWN = 3


def print_result(result: Result, folder: Path) -> None:
    """Print what a run gave: its values or effects, the front, what failed, and where the report is."""
    console = output()
    stacked = result.plot.stack if result.plot and not result.frame.empty else None
    if stacked and not (times := result.time_stack(stacked)).empty:
        causes = [name for name in times if name in CAUSES]
        title = f"{result.title}: {STACK_TITLES[stacked]}"
        _print_rows(console, result.as_written(times), causes, causes, title)
    elif len(compared := result.effects()):
        numbers = [BEFORE, AFTER, EFFECT, LOW, HIGH]
        _print_rows(console, result.as_written(compared), numbers, [], f"{result.title}: one change at a time")
    elif not result.frame.empty:
        _print_frame(console, result)
    if len(front := result.front()):
        console.print()
        _print_rows(console, front, list(front.columns), [], result.front_title)
    errors = complaints()
    told = result.provenance
    for failure in result.failures:
        errors.print(f"pmsim: {failure}")
    if result.not_held:
        errors.print(
            f"pmsim: in {len(result.not_held)} of {told['points']} points `fits` is 0: the engine cannot hold "
            f"the data; the first is {result.not_held[0]}"
        )
    if result.unsteady:
        errors.print(f"pmsim: {unsteady(result)}")
    if result.log_not_full:
        errors.print(f"pmsim: {log_not_full(result)}")
    if result.overloaded:
        errors.print(f"pmsim: {overloaded(result)}")
    if result.not_durable:
        errors.print(f"pmsim: {not_durable(result)}")
    if result.cached:
        errors.print(f"pmsim: {cached(result)}")
    done = told["points"] - len(result.failures)
    kept = f"{told['points_from_cache']} kept from before"
    if told["seeds"] > 1:
        kept = f"{told['seeds']} seeds each, runs: {kept}"
    console.print(
        f"{done} of {told['points']} points ({kept}) in {told['wall_time_s']:.1f} s: {folder / 'report.html'}",
        soft_wrap=True,
    )


def _print_frame(console: Console, result: Result) -> None:
    plot = result.plot
    kind = find_kind(result.scenario.kind)
    shown = plot.y if plot and plot.y else kind.default_metric
    metrics = [metric.name for metric in result.metrics()]
    # Rows of one point differ in a metric, too: wear by rank, throughput by window.
    first = [plot.x, shown] if plot and plot.x in metrics else [shown]
    frame = result.shown()
    ends = {name + end for name in metrics for end in INTERVAL_ENDS}
    # A parameter may be an axis of the figure: the sweep has its column already, or all points have one value.
    known = [name for name in dict.fromkeys([*first, *metrics]) if name in frame and name not in ends]
    chosen = [name for name in known if name not in result.axis_columns()][:_METRICS_SHOWN]
    rows = frame[[*result.axis_columns(), *chosen]].assign(
        # The ends are in the results also where the scenario's `metrics` leaves them out of what is shown.
        **{name: _with_reach(result.frame, name) for name in chosen}
    )
    _print_rows(console, rows, chosen, chosen[len(first) :], result.title)


def per_cent_of_interval(reach: float) -> str:
    """Return it with a decimal, or, where that is 0.0, with a digit that says something."""
    return f"{reach:.1f}" if reach == 0 or reach >= 0.05 else f"{reach:.1g}"


def _with_reach(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return a metric, where it has a confidence interval with half of that in per cent."""
    low, high = (name + end for end in INTERVAL_ENDS)
    if low not in frame or high not in frame:
        return frame[name]
    reach = 50 * (frame[high] - frame[low]) / frame[name].abs()
    texts = [
        f"{number(value)} ± {per_cent_of_interval(percent)} %" if math.isfinite(percent) else number(value)
        for value, percent in zip(frame[name], reach, strict=True)
    ]
    return pd.Series(texts, index=frame.index)


def _print_rows(
    console: Console, rows: pd.DataFrame, numbers: Sequence[str], spare: Sequence[str], title: str
) -> None:
    columns = [
        Column(str(name), right=name in numbers, narrow="left out" if name in spare else "whole")
        for name in rows.columns
    ]
    shown = rows.head(_ROWS_SHOWN).itertuples(index=False)
    cells = [[number(value) if isinstance(value, float) else str(value) for value in row] for row in shown]
    print_table(console, columns, cells, title)
    if len(rows) > _ROWS_SHOWN:
        console.print(f"the first {_ROWS_SHOWN} of {len(rows)} rows; all are in results.parquet", style="dim")
