"""Results: a tidy frame, its figure, and what makes them reproducible."""

import copy
import html
import json
import platform as host
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from pmsim import arguments
from pmsim.columns import column_of_axis
from pmsim.effects import EFFECT, effects
from pmsim.errors import ConfigError
from pmsim.kinds import Metric, find_kind
from pmsim.kinds.does_not_fit import DoesNotFit
from pmsim.kinds.metric import INTERVAL_ENDS
from pmsim.kinds.types import quantity_of
from pmsim.messages import shown
from pmsim.plot_spec import Plot
from pmsim.plots import PlotLayout, effects_figure, figure_of, front_rows, plot_layout, stack_figure
from pmsim.plots.overload import NOT_DRAWN, hidden_rows
from pmsim.plots.scales import needs_logarithms
from pmsim.plots.style import metric_title
from pmsim.point_cache import Metrics
from pmsim.points import Point
from pmsim.published import published
from pmsim.report import report_html
from pmsim.resolve import resolved_scenario
from pmsim.runner import Failure
from pmsim.scenario import Scenario
from pmsim.seeds import runs_of
from pmsim.time_stack import Unit, stacks
from pmsim.units import Quantity, format_value
from pmsim.variations import CHANGED
from pmsim.versions import native_build, native_version, package_version
from pmsim.whole_files import one_type_each, replace_file


@dataclass(frozen=True)
class RunInfo:
    """How a run went.

    Attributes
    ----------
    command : tuple of str
        The command line.
    started : str
        Date and time, UTC.
    wall_time_s : float
        Seconds of real time.
    points_from_cache : int
        Points that an earlier run had finished; of several seeds, runs.
    """

    command: tuple[str, ...]
    started: str
    wall_time_s: float
    points_from_cache: int


def _told(
    points: Sequence[Point], metrics: Sequence[Metrics | None], what: Callable[[Point, Metrics], str]
) -> tuple[Failure, ...]:
    """Return the finished points of which there is something to tell, with it."""
    return tuple(
        Failure(index, point.describe(), said)
        for index, (point, found) in enumerate(zip(points, metrics, strict=True))
        if found is not None and (said := what(point, found))
    )


class Result:
    """What a scenario gave.

    Attributes
    ----------
    scenario : Scenario
        The question.
    frame : DataFrame
        One row per finished point: parameter columns, metric columns, ``seed`` (of several the first, and
        ``seeds``, how many), ``configuration``, the hash of all that decides on the row. It is the caller's:
        figures, tables and files do not follow what is done to it.
    failures, not_held : tuple of Failure
        Points that could not be simulated, and those whose data the engine cannot hold, with the reason. The
        latter are in the frame, with `fits` 0.
    unsteady, log_not_full : tuple of Failure
        Points that were still changing, and those whose log has never been full: in the frame, with `steady`
        or `log_reused` 0; here with how long they ran.
    overloaded : tuple of Failure
        Points whose requests came faster than they were served: `keeps_up` is 0; here with their rate.
    not_durable : tuple of Failure
        Points that keep on memory without power what they take for durable: in the frame; here with what.
    cached : tuple of Failure
        Points that are about memory and that caches have served: in the frame; here with what they held.
    provenance : dict
        Versions, hashes, seeds, command and wall time.
    """

    def __init__(
        self,
        scenario: Scenario,
        points: Sequence[Point],
        metrics: Sequence[Metrics | None],
        failures: Sequence[Failure],
        info: RunInfo,
    ) -> None:
        self.scenario = copy.deepcopy(scenario)  # whose tables the caller may change
        self.failures = tuple(failures)
        told, kind = partial(_told, points, metrics), find_kind(scenario.kind)
        self.not_held = told(lambda _, found: found.reason if isinstance(found, DoesNotFit) else "")
        self.unsteady = told(lambda _, found: kind.ran_for(found) if found.get("steady") == 0 else "")
        self.log_not_full = told(lambda _, found: kind.ran_for(found) if found.get("log_reused") == 0 else "")
        self.overloaded = told(
            lambda _, found: (
                f"{found['offered_per_s']:,.0f} requests per second" if found.get("keeps_up") == 0 else ""
            )
        )
        self.not_durable = told(lambda at, found: kind.lost_without_power(at.platform, at.parameters, found))
        self.cached = told(lambda point, found: kind.kept_in_caches(point.platform, point.parameters, found))
        self._lasting = [
            found is not None and kind.lasting(found, point.parameters)
            for point, found in zip(points, metrics, strict=True)
        ]
        self._points = tuple(points)
        self._finished = tuple(metrics)
        self._changes = len(scenario.changes())
        known = self._known_metrics()
        self._metrics = self._chosen(known)
        # A figure shows them, however few metrics are chosen.
        self._interval_ends = [
            f"{metric.name}{end}"
            for metric in self._metrics
            for end in INTERVAL_ENDS
            if f"{metric.name}{end}" in known
        ]
        self._rows = self._frame(metrics)
        self.frame = self._rows.copy()
        self.provenance = self._provenance(info)

    def __repr__(self) -> str:
        told = self.provenance
        done = told["points"] - len(self.failures)
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return (
            f"<pmsim.Result of '{self.scenario.name or self.scenario.kind}': {done} of {told['points']} points"
            f"{failed}, {len(self._rows)} rows>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the table, and what failed."""
        lines = [repr(self), *map(str, self.failures)]
        table = "" if self._rows.empty else self.shown().to_html(max_rows=30, index=False)
        return "".join(f"<p>{html.escape(line)}</p>" for line in lines) + table

    def figure(self) -> go.Figure:
        """Return the figure that the scenario's ``plot`` describes, or one that follows from its sweep.

        Raises
        ------
        ConfigError : ``plot`` names an unknown column, or no point has finished.
        """
        if self._rows.empty:
            raise ConfigError("figure: no point has finished; see failures")
        if self.plot and self.plot.stack:
            return self.time_figure()
        layout = self._layout()
        compared = self.effects()
        if len(compared) and not (self.plot and self.plot.x):
            column = layout.columns.y
            what = metric_title(column, self._y_title(column)).partition(" [")[0]
            return effects_figure(compared, sweep=self._sweep_columns(), title=self.title, metric=what)
        seeds = self.scenario.seeds
        over = {"intervals_over": f"{seeds} seeds"} if seeds > 1 else {}
        notes = [NOT_DRAWN] if any(self._hidden()) else []
        y_title = self._y_title(layout.columns.y)
        return figure_of(layout, title=self.title, y_title=y_title, notes=notes, **over)

    def effects(self) -> pd.DataFrame:
        """Return what each change of ``vary`` and of the variants does to the metric of the figure.

        Returns
        -------
        DataFrame : empty where nothing is varied, or where no point has one value of that metric.
        """
        if not self._changes or self._rows.empty:
            return pd.DataFrame()
        metric = self._layout().columns.y
        found = effects(self._rows, self._row_points, metric, self._sweep_columns(), self._changes)
        return found if found[EFFECT].notna().any() else pd.DataFrame()

    def time_stack(self, unit: Unit = "share") -> pd.DataFrame:
        """Return where the time of each point went, as a stack of causes that adds up to all of it.

        Parameters
        ----------
        unit : "share" or "time"
            Per cent of the threads' time, or nanoseconds per operation, without time that had no work.

        Returns
        -------
        DataFrame : a row per finished point, with its axes and a column for each cause (docs/scenarios.md);
        empty where the rows of points are a curve.

        Raises
        ------
        ConfigError : another unit, or "time" of a kind whose metric is no rate of operations.
        """
        if unit not in ("share", "time"):
            raise ConfigError(f'stack: {shown(unit)} is not known; choose "share" or "time"')
        kind = find_kind(self.scenario.kind)
        if unit == "time" and not kind.rate:
            raise ConfigError(f"stack: kind '{kind.name}' has no rate of operations; choose \"share\"")
        if self._curve():
            return pd.DataFrame()
        axes = [name for name in self.axis_columns() if name in self._rows]
        columns = [
            {name: point.columns[name] for name in axes if name in point.columns} for point in self._points
        ]
        return stacks(columns, self._finished, unit, kind.rate)

    def time_figure(self, unit: Unit | None = None) -> go.Figure:
        """Return the figure of `time_stack`, with the axes that ``plot`` names.

        Raises
        ------
        ConfigError : as `time_stack`; no point has finished, or there are too many for a figure.
        """
        plot = self.plot or Plot()
        unit = unit or plot.stack or "share"
        found = self.time_stack(unit)
        if found.empty:
            raise ConfigError("stack: no finished point has a time of its own; see failures, or leave it out")
        axes = [name for name in self.axis_columns() if name in found and len(set(found[name])) > 1]
        x = next((name for name in (plot.x, self._layout().columns.x, *axes) if name in axes), "")
        panels: list[str] = []
        for name in axes:
            if name != x and found.groupby([x, *panels])[name].nunique().max() > 1:
                panels.append(name)  # else a bar has its place without it
        return stack_figure(self.as_written(found), x=x, panels=panels, title=self.title, unit=unit)

    def front(self) -> pd.DataFrame:
        """Return the rows that no other beats in the axes of the figure, where ``plot.front`` asks for them.

        Returns
        -------
        DataFrame : the columns of the panels, of ``plot.front`` and of both axes, and those of the colours and
        dashes where these leave them open. One front of all points, or for each value of ``plot.facet``; least
        x first. Where it is of a time, a point whose queue grows is never on it: the time is that of the length
        of its run.
        """
        plot = self.plot
        if plot is None or not plot.front or self._rows.empty:
            return pd.DataFrame()
        columns = self._layout().columns
        panels = [columns.facet] if columns.facet else []
        allowed = self._rows[self._on_front()]
        rows = front_rows(allowed, plot.x, plot.y, panels, low_y=self._low_y())
        named = [*panels, *plot.front]
        curves = [column for column in (columns.color, *columns.lines) if column and column not in named]
        # Who else would know which of them it is?
        named = [*(each for each in curves if self._rows.groupby(named)[each].nunique().max() > 1), *named]
        return rows[list(dict.fromkeys([*named, plot.x, plot.y]))]

    @property
    def front_title(self) -> str:
        """What the front is one of: ``Pareto front: least cost_usd, most transactions_per_s``.

        With more than one panel it says that each has its own: ``...; one front for each workload``.
        """
        if self.plot is None or not self.plot.front:
            return ""
        most = "least" if self._low_y() else "most"
        facet = self.plot.facet
        several = facet in self._rows and len(set(self._rows[facet])) > 1
        each = f"; one front for each {facet}" if several else ""
        return f"Pareto front: least {self.plot.x}, {most} {self.plot.y}{each}"

    def _low_y(self) -> bool:
        return any(metric.low_is_good for metric in self._metrics if metric.name == self._y())

    def _y(self) -> str:
        return (self.plot.y if self.plot else "") or find_kind(self.scenario.kind).default_metric

    def _hidden(self) -> list[bool]:
        return hidden_rows(self._row_points, self._on_front())

    def _layout(self) -> PlotLayout:
        y, frame = self._y(), self._rows
        if y in frame:
            frame = frame.assign(**{y: frame[y].mask(np.array(self._hidden()))})
        return plot_layout(
            frame,
            plot=self.plot,
            axes=self.axis_columns(),
            metrics=[metric.name for metric in self._metrics],
            default_metric=find_kind(self.scenario.kind).default_metric,
            low_y=self._low_y(),
            on_front=self._on_front(),
        )

    def _on_front(self) -> list[bool]:
        # A short run of what is overloaded would have the best tail of all that is cheap.
        every = not self._low_y()
        return [every or self._lasting[point] for point in self._row_points]

    @property
    def title(self) -> str:
        """Title of the figure and the report."""
        return self.scenario.title or self.scenario.name or find_kind(self.scenario.kind).title

    def save(self, folder: str | Path) -> Path:
        """Write results.parquet, scenario.resolved.toml, provenance.json and report.html.

        Parameters
        ----------
        folder : str or Path
            Created when needed.

        Returns
        -------
        Path : the folder.

        Raises
        ------
        ConfigError : no path, or the folder cannot be written.
        """
        folder = arguments.path("folder", folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(folder / "results.parquet", one_type_each(self._rows).to_parquet(None, index=False))
            resolved = self.resolved().written_to(folder)
            replace_file(folder / "scenario.resolved.toml", resolved.to_toml().encode())
            replace_file(folder / "provenance.json", (json.dumps(self.provenance, indent=2) + "\n").encode())
            replace_file(folder / "report.html", self.html().encode())
        except OSError as error:
            raise ConfigError(
                f"{folder}: cannot be written: {error.strerror}; choose another output directory with --out"
            ) from None
        return folder

    def resolved(self) -> Scenario:
        """Return the scenario with every default and every range written out."""
        return resolved_scenario(self.scenario, self._points)

    def html(self) -> str:
        """Return the report: one file that works offline."""
        return report_html(self)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the metric columns of the frame."""
        return self._metrics

    def _known_metrics(self) -> dict[str, Metric]:
        kind = find_kind(self.scenario.kind)
        known: dict[str, Metric] = {}
        for point in self._points:
            known |= {metric.name: metric for metric in kind.metric_list(point.parameters)}
        return known

    def _chosen(self, known: Mapping[str, Metric]) -> tuple[Metric, ...]:
        counters = find_kind(self.scenario.kind).counters()
        chosen = self.scenario.metrics or list(known)
        return tuple(known.get(name) or counters[name] for name in chosen)

    def _frame(self, metrics: Sequence[Metrics | None]) -> pd.DataFrame:
        names = dict.fromkeys([*(metric.name for metric in self._metrics), *self._interval_ends])
        kind = find_kind(self.scenario.kind)
        rows = []
        self._row_points: list[int] = []  # the point, by number, that a row belongs to
        for index, (point, finished) in enumerate(zip(self._points, metrics, strict=True)):
            own: dict[str, int | str] = {"seed": point.seed, "configuration": point.configuration}
            if self.scenario.seeds > 1:
                of_all = ":".join(run.configuration for run in runs_of([point], self.scenario.seeds))
                own |= {"seeds": self.scenario.seeds, "configuration": sha256(of_all.encode()).hexdigest()}
            for values in kind.rows(finished) if finished is not None else []:
                chosen = {name: values[name] for name in names if name in values}
                rows.append({**point.columns, **chosen, **own})
                self._row_points.append(index)
        return pd.DataFrame(rows)

    def shown(self) -> pd.DataFrame:
        """Return what a reader wants: parameters that vary, as scenarios write them (1 MiB), then metrics.

        Of the metrics those of the figure's axes come first.
        """
        known = [metric.name for metric in self._metrics if metric.name in self._rows]
        plot = self.plot
        plotted = [plot.x, plot.y] if plot else []
        metrics = sorted(known, key=lambda name: plotted.index(name) if name in plotted else len(plotted))
        axes = self.axis_columns()
        own = {*metrics, *self._interval_ends, "seed", "seeds", "configuration"}
        parameters = [name for name in map(str, self._rows) if name not in own]
        varying = [name for name in parameters if name in axes or len(set(map(str, self._rows[name]))) > 1]
        return self.as_written(self._rows[[*varying, *metrics]])

    def as_written(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame with its parameters as scenarios write them (1 MiB)."""
        model = find_kind(self.scenario.kind).parameter_model
        for name in map(str, frame):
            quantity = quantity_of(model, name) if name in model.model_fields else None
            if name.startswith("platform.") and name.endswith("_bytes"):
                quantity = Quantity.SIZE
            if quantity:
                frame = frame.assign(**{name: frame[name].map(partial(_written, quantity))})
        return frame

    @property
    def plot(self) -> Plot | None:
        """What the scenario says about the figure, in columns of the frame.

        Where it names no horizontal axis and the rows of a point are a curve, such as throughput over time, the
        figure shows that, on logarithmic axes where one of the curves could not be seen on others.
        """
        plot = self.scenario.plot
        if plot is not None and (plot.overlay or plot.mark):
            plot = published(self.scenario, self._points).drawn_in(plot)
        axes = self._curve()
        if axes and (plot is None or not plot.x) and (plot is None or not plot.y or self._is_curve(plot.y)):
            plot = plot or Plot()
            plot = self._scaled(plot, axes[0], plot.y or axes[1])
        if plot is None:
            return None
        columns = {
            key: column_of_axis(value)
            for key in ("x", "color", "line", "facet", "along")
            if (value := str(getattr(plot, key))).startswith("platform.") and value not in self._rows.columns
        }
        front = [name if name in self._rows.columns else column_of_axis(name) for name in plot.front]
        return plot.model_copy(update=columns | {"front": front})

    def axis_columns(self) -> list[str]:
        """Return the columns that the sweep varies, in its order, and what is changed one at a time."""
        return [*self._sweep_columns(), *([CHANGED] if self._changes else [])]

    def _sweep_columns(self) -> list[str]:
        axes, _ = self.scenario.axes()
        return [column_of_axis(axis) for axis in axes]

    def _curve(self) -> tuple[str, str] | None:
        kind = find_kind(self.scenario.kind)
        known = {axes for point in self._points if (axes := kind.curve(point.parameters))}
        # The points of one scenario that differ in what their rows are have no figure in common.
        axes = known.pop() if len(known) == 1 else None
        return axes if axes and set(axes) <= set(self._rows) else None

    def _scaled(self, plot: Plot, x: str, y: str) -> Plot:
        """Return what is said about the figure with the axes of a curve, logarithmic where they have to be."""
        published = [pair for overlay in plot.overlay for pair in overlay.points]
        chosen: dict[str, Any] = {"x": x, "y": y}
        for number, (key, column) in enumerate((("log_x", x), ("log_y", y))):
            # Bars begin at zero, and so may what was published.
            has_place = plot.style != "bars" and not any(_no_logarithm(pair[number]) for pair in published)
            if has_place and getattr(plot, key) is None:
                chosen[key] = needs_logarithms(self._rows[column], self._rows["configuration"])
        return plot.model_copy(update=chosen)

    def _is_curve(self, metric: str) -> bool:
        return bool(metric in self._rows and self._rows.groupby("configuration")[metric].nunique().max() > 1)

    def _y_title(self, column: str) -> str:
        metric = next((metric for metric in self._metrics if metric.name == column), None)
        if metric is None:
            return column
        return f"{metric.meaning} [{metric.unit}]" if metric.unit else metric.meaning

    def _provenance(self, info: RunInfo) -> dict[str, Any]:
        return {
            "pmsim": package_version(),
            "native": native_version(),
            "native_build": native_build(),
            "python": host.python_version(),
            "pandas": pd.__version__,
            "host": host.platform(),
            "scenario": self.scenario.name or self.scenario.kind,
            "platforms": {point.platform.hash: point.platform.name for point in self._points},
            "seed": self.scenario.seed,
            "seeds": self.scenario.seeds,
            "point_seeds": [run.seed for run in runs_of(self._points, self.scenario.seeds)],
            "points": len(self._points),
            "points_failed": len(self.failures),
            "failures": [asdict(failure) for failure in self.failures],
            **asdict(info),
            "command": list(info.command),
        }


def _no_logarithm(value: object) -> bool:
    return not isinstance(value, int | float) or value <= 0


def _written(quantity: Quantity, value: object) -> object:
    return format_value(int(value), quantity) if isinstance(value, int | np.integer) else value
