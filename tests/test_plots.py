"""What figures say: units on axes and in legends, and no dash for what a colour says."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import pmsim
from pmsim.api import load_scenario
from pmsim.cli import app
from pmsim.columns import column_of_axis
from pmsim.effects import effects
from pmsim.errors import ConfigError
from pmsim.kinds import KINDS, find_kind
from pmsim.kinds.types import quantity_of
from pmsim.plot_spec import Mark, Overlay, Plot
from pmsim.plots.effects import effects_figure
from pmsim.plots.figure import figure_of
from pmsim.plots.layout import plot_layout
from pmsim.plots.style import parameter_title, value_label
from pmsim.points import points_of
from pmsim.shipped import find_scenario, scenario_names
from pmsim.units import Quantity
from pmsim.variations import CHANGED


@pytest.mark.parametrize(
    ("column", "title"),
    [
        ("time_ms", "time [ms]"),
        ("data_gib", "data [GiB]"),
        ("dram_gib", "DRAM [GiB]"),
        ("cost_usd", "cost [USD]"),
        ("update_percent", "update [%]"),
        ("rate", "arrivals [1/s]"),
        ("platform.pmem.read_latency_ns", "PMem read latency [ns]"),
        ("platform.pmem.dimms", "PMem modules"),
        ("group_size", "group size"),
        ("update_size", "update size [B]"),
    ],
)
def test_an_axis_names_its_unit(column: str, title: str) -> None:
    assert parameter_title(column) == title


def test_every_size_and_every_time_among_the_parameters_has_its_unit() -> None:
    units = {Quantity.SIZE: "[B]", Quantity.TIME: "[ps]"}
    for kind in KINDS.values():
        for name in kind.parameter_model.model_fields:
            if (quantity := quantity_of(kind.parameter_model, name)) in units:
                assert parameter_title(name).endswith(units[quantity]), (kind.name, name)


def test_an_axis_of_one_value_is_neither_colour_nor_panel() -> None:
    frame = pd.DataFrame({"x": [1, 2] * 2, "one": 5, "engine": ["a", "a", "b", "b"], "y": 1.0})
    columns = plot_layout(
        frame, plot=Plot(x="x", y="y"), axes=["one", "engine", "x"], metrics=["y"], default_metric="y"
    ).columns
    assert (columns.color, columns.facet, columns.lines) == ("engine", "", ())


def test_a_legend_keeps_the_unit() -> None:
    assert value_label("pmem_capacity", 128 << 30) == "PMem capacity 128 GiB"
    assert value_label("duration", 36 * 10**14) == "duration 1 h"
    assert value_label("timeout_us", 0.1) == "timeout 0.1 us"
    assert value_label("access_size", 65536) == "access size 64 KiB"
    assert value_label("threads", 4) == "threads 4"
    assert value_label("dram_gib", 1.5) == "DRAM 1.5 GiB"
    assert value_label("dram_gib", 1 / 128) == "DRAM 8 MiB"
    assert value_label("dram_gib", 1e9 / 2**30) == "DRAM 0.9313 GiB"
    assert value_label("dram_gib", 2e9 / 2**30) == "DRAM 1.863 GiB"
    assert value_label("group_size", 16) == "group size 16"
    assert value_label("prefetcher", False) == "prefetcher off"
    assert value_label("background", "none") == "background: none"
    assert value_label("fence", "mfence") == "mfence"


def test_a_legend_says_what_a_word_is_about_that_does_not_say_it_itself() -> None:
    assert value_label("latches", "none") == "latches: none"
    assert value_label("service", "log") == "service: log"
    assert value_label("position", "last") == "position: last"
    assert value_label("engine", "three-tier") == "three-tier"
    assert value_label("memory", "pmem") == "PMem"


def test_a_legend_says_what_a_chain_of_operations_does() -> None:
    chain = "rd_512,rp_512, rp_512,wp_64_cache_320,wp_64_nocache_-64,w_64_none"
    assert value_label("operations", chain) == (
        "read 512 B (DRAM) + 2 x read 512 B (PMem) + write 64 B (PMem, clwb, at +320 B) + "
        "write 64 B (PMem, ntstore, at -64 B) + write 64 B (PMem, no flush)"
    )


@pytest.mark.parametrize("style", ["lines", "bars"])
def test_a_metric_with_a_confidence_interval_has_error_bars(style: str) -> None:
    frame = pd.DataFrame(
        {
            "x": [1, 2, 3, 3],
            "engine": "a",
            "rate": [10.0, 20.0, 30.0, 30.0],
            "rate_low": [9.0, 18.0, math.nan, math.nan],
            "rate_high": [12.0, math.inf, math.nan, math.nan],
        }
    )
    layout = plot_layout(
        frame, plot=Plot(x="x", y="rate", style=style), axes=["x"], metrics=["rate"], default_metric="rate"
    )
    (curve,) = layout.panels[0].curves
    assert (curve.x, curve.y) == ((1, 2, 3), (10.0, 20.0, 30.0))
    figure = figure_of(layout, title="t", y_title="rate")
    (trace,) = figure.data
    assert (trace.error_y.array, trace.error_y.arrayminus) == ((2.0, None, None), (1.0, 2.0, None))
    assert "95 % confidence interval" in figure.layout.title.subtitle.text
    without = plot_layout(
        frame.drop(columns="rate_low"), plot=None, axes=["x"], metrics=["rate"], default_metric="rate"
    )
    plain = figure_of(without, title="t", y_title="rate")
    assert plain.data[0].error_y.array is None
    assert not plain.layout.title.subtitle.text


def test_a_curve_and_a_front_may_be_along_an_axis_of_the_machine(tmp_path: Path) -> None:
    scenario = pmsim.Scenario(
        kind="latency",
        platform="tum-6212u",
        parameters={"region_size": "64 MiB"},
        sweep={"platform.pmem.media_read_latency": ["100 ns", "200 ns"]},
        plot={
            "x": "latency_ns",
            "y": "latency_max_ns",
            "along": "platform.pmem.media_read_latency",
            "front": ["platform.pmem.media_read_latency"],
        },
    )
    result = pmsim.run(scenario, jobs=1, out=tmp_path)
    column = "platform.pmem.media_read_latency_ns"
    assert list(result.front()[column]) == [100]
    assert len(result.figure().data) == 2


def test_what_a_colour_or_a_panel_says_has_no_dash_of_its_own() -> None:
    frame = pd.DataFrame(
        {"x": [1, 2] * 2, "ps": [5, 5, 7, 7], "us": [5e-6] * 2 + [7e-6] * 2, "other": [0, 1, 1, 0], "y": 1.0}
    )

    def lines(plot: Plot) -> tuple[str, ...]:
        axes = ["ps", "other", "x"]
        return plot_layout(frame, plot=plot, axes=axes, metrics=["y"], default_metric="y").columns.lines

    assert lines(Plot(x="x", y="y", color="us")) == ("other",)
    assert lines(Plot(x="x", y="y", color="other", facet="us")) == ()


def test_an_axis_in_another_unit_makes_no_panels() -> None:
    frame = pd.DataFrame({"size": [1 << 30, 2 << 30] * 2, "gib": [1, 2] * 2, "engine": list("aabb"), "y": 1.0})
    plot = Plot(x="gib", y="y", color="engine")
    layout = plot_layout(frame, plot=plot, axes=["engine", "size"], metrics=["y"], default_metric="y")
    (panel,) = layout.panels
    assert [curve.x for curve in panel.curves] == [(1, 2), (1, 2)]


def test_a_curve_over_a_metric_runs_along_the_axis_that_is_named() -> None:
    """Latency against throughput, by load: beyond the saturation throughput falls, and the curve turns back."""
    frame = pd.DataFrame(
        {
            "log": list("aaabbb"),
            "load": [1, 2, 3] * 2,
            "rate": [10.0, 20.0, 18.0, 5.0, 6.0, 5.5],
            "y": [1.0, 2.0, 9.0] * 2,
        }
    )
    plot = Plot(x="rate", y="y", color="log", along="load")
    layout = plot_layout(frame, plot=plot, axes=["log", "load"], metrics=["rate", "y"], default_metric="y")
    assert (layout.columns.facet, layout.columns.lines) == ("", ())
    assert [curve.x for curve in layout.panels[0].curves] == [(10.0, 20.0, 18.0), (5.0, 6.0, 5.5)]
    wrong = plot.model_copy(update={"along": "lod"})
    with pytest.raises(ConfigError, match=r"plot\.along: unknown column 'lod'"):
        plot_layout(frame, plot=wrong, axes=["log", "load"], metrics=["rate", "y"], default_metric="y")


@pytest.mark.parametrize("name", scenario_names())
def test_the_figure_of_a_scenario_is_a_few_panels_of_curves(name: str) -> None:
    scenario = load_scenario(find_scenario(name))
    points = points_of(scenario)
    kind = find_kind(scenario.kind)
    metrics = [metric.name for metric in kind.metric_list(points[0].parameters)]
    columns = pd.DataFrame([dict(point.columns) for point in points])
    frame = columns.assign(**dict.fromkeys(metrics, 1.0))
    axes = [column_of_axis(axis) for axis in scenario.axes()[0]]
    changes = len(scenario.changes())
    if changes and not (scenario.plot and scenario.plot.x):
        compared = effects(frame, range(len(frame)), kind.default_metric, axes, changes)
        bars = effects_figure(compared, sweep=axes, title="t", metric="m").data
        assert 1 <= len(bars) <= 4
        assert all(len(trace.x) == changes for trace in bars)
        return
    layout = plot_layout(
        frame,
        plot=scenario.plot,
        axes=[*axes, *([CHANGED] if changes else [])],
        metrics=metrics,
        default_metric=kind.default_metric,
    )
    assert len(layout.panels) <= 2
    for panel in layout.panels:
        assert 1 <= len(panel.curves) <= 8
        if layout.columns.x not in metrics and not layout.bars:  # rows along a metric come from the run
            assert all(len(curve.x) > 1 for curve in panel.curves)


def test_the_front_joins_the_points_that_no_other_beats_in_each_panel() -> None:
    frame = pd.DataFrame(
        {
            "cost": [1, 2, 3, 3, 4, 5, 1, 2],
            "rate": [10.0, 9.0, 30.0, 20.0, math.nan, 30.0, 5.0, 6.0],
            "variant": list("abcdefgh"),
            "panel": [0] * 6 + [1] * 2,
        }
    )
    plot = Plot(x="cost", y="rate", color="panel", facet="panel", front=["variant", "panel"])
    layout = plot_layout(frame, plot=plot, axes=["panel"], metrics=["rate"], default_metric="rate")
    assert [[(p.x, p.y) for p in panel.front] for panel in layout.panels] == [
        [(1, 10), (3, 30)],
        [(1, 5), (2, 6)],
    ]
    figure = figure_of(layout, title="t", y_title="y")
    first, second = (trace for trace in figure.data if trace.name == "Pareto front")
    # The colour says the panel already.
    assert (list(first.text), list(second.text)) == (["a", "c"], ["g", "h"])
    assert (first.line.shape, first.xaxis, second.xaxis) == ("hv", "x", "x2")
    assert [trace.showlegend for trace in (first, second)] == [True, False]


def test_a_result_tells_its_front(tmp_path: Path) -> None:
    scenario = pmsim.Scenario(
        kind="bandwidth",
        platform="tum-6212u",
        parameters={"memory": "pmem", "operation": "ntstore", "region_size": "64 MiB"},
        sweep={"threads": [1, 4, 24]},
        plot={"x": "threads", "y": "bandwidth_gb_s", "front": ["access_size"]},
    )
    result = pmsim.run(scenario, jobs=1)
    front = result.front()
    # Many writers are slower than a few, and more of them.
    assert list(front.columns) == ["access_size", "threads", "bandwidth_gb_s"]
    assert list(front["threads"]) == [1, 4]
    assert "<h2>Pareto front: least threads, most bandwidth_gb_s</h2>" in result.html()
    path = tmp_path / "front.toml"
    path.write_text(scenario.to_toml())
    told = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out"), "--jobs", "1"])
    assert "Pareto front: least threads, most bandwidth_gb_s" in " ".join(told.stdout.split())


def test_long_names_of_categories_stand_in_lines_below_the_bars_and_above_the_legend() -> None:
    names = ["short", "a name (with words, and more words, and even more of them)", *"cdef"]
    frame = pd.DataFrame({"variant": names, "y": 1.0})
    plot = Plot(x="variant", y="y")
    layout = plot_layout(frame, plot=plot, axes=["variant"], metrics=["y"], default_metric="y")
    figure = figure_of(layout, title="t", y_title="y")
    lines = figure.layout.xaxis.ticktext[1].split("<br>")
    assert len(lines) > 1
    assert " ".join(lines) == names[1]
    assert figure.layout.xaxis.tickangle == 0
    plain = figure_of(
        plot_layout(frame.head(1), plot=plot, axes=["variant"], metrics=["y"], default_metric="y"),
        title="t",
        y_title="y",
    )
    assert figure.layout.margin.b > plain.layout.margin.b


def test_ticks_of_what_follows_from_the_sweep_are_round() -> None:
    frame = pd.DataFrame({"cost_usd": [24.266565222, 331.94728489], "size": [1, 2], "y": 1.0})
    plot = Plot(x="cost_usd", y="y", log_x=True)
    layout = plot_layout(frame, plot=plot, axes=["size"], metrics=["y"], default_metric="y")
    ticks = figure_of(layout, title="t", y_title="y").layout.xaxis.ticktext
    assert {"50", "100", "200"} <= set(ticks)


def test_a_figure_of_no_scenario_is_refused_in_one_line(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "scripts" / "render_figure.py"
    command = [sys.executable, str(script), "nothere", str(tmp_path / "figure.png")]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert refused.stderr.startswith("render_figure: nothere: no such file or shipped scenario")
    assert refused.stderr.count("\n") == 1


def test_the_front_is_told_as_it_is_drawn_panel_by_panel_and_names_what_the_colour_says() -> None:
    scenario = pmsim.Scenario(
        kind="bandwidth",
        platform="tum-6212u",
        parameters={"operation": "ntstore", "region_size": "64 MiB"},
        sweep={"threads": [1, 4, 24], "pattern": ["sequential", "random"], "memory": ["dram", "pmem"]},
        plot={"x": "threads", "y": "bandwidth_gb_s", "front": ["access_size"]},
    )
    result = pmsim.run(scenario, jobs=1)
    front = result.front()
    # Colours and panels are chosen by the order of the sweep: nobody has named them.
    assert list(front.columns) == ["pattern", "memory", "access_size", "threads", "bandwidth_gb_s"]
    drawn = [trace for trace in result.figure().data if trace.name == "Pareto front"]
    assert [x for trace in drawn for x in trace.x] == list(front["threads"])
    assert {"dram", "pmem"} == set(front["memory"])


@pytest.mark.parametrize(("panels", "labels"), [(1, 11), (2, 6)])
def test_labels_of_sizes_stand_side_by_side(panels: int, labels: int) -> None:
    sizes = [2**power for power in range(6, 17)]
    frame = pd.DataFrame(
        [{"access_size": size, "memory": f"m{panel}", "y": 1.0} for size in sizes for panel in range(panels)]
    )
    plot = Plot(x="access_size", y="y", facet="memory", log_x=True)
    layout = plot_layout(frame, plot=plot, axes=["access_size", "memory"], metrics=["y"], default_metric="y")
    ticks = figure_of(layout, title="t", y_title="y").layout.xaxis.ticktext
    assert len(ticks) == labels
    assert ticks[0] == "64 B"
    assert ticks[-1] == "64 KiB"


def windows(**plot: Any) -> pmsim.Result:
    scenario = pmsim.Scenario(
        kind="system",
        platform="tum-6212u",
        parameters={"study": "restart", "rate": 100_000, "windows": 20},
        sweep={"algorithm": ["poplog", "classic"]},
        plot=plot or None,
    )
    return pmsim.run(scenario, jobs=1)


@pytest.mark.parametrize(
    ("plot", "y", "unit"),
    [
        ({}, "window_throughput_per_s", 1),
        ({"y": "window_latency_ns"}, "window_latency_ns", 1_000),  # drawn in us
    ],
)
def test_rows_that_are_a_curve_are_drawn_as_one_for_each_point(plot: dict[str, str], y: str, unit: int) -> None:
    result = windows(**plot)
    first, second = result.figure().data
    assert (first.name, second.name) == ("poplog", "classic")
    poplog = result.frame[result.frame["algorithm"] == "poplog"]
    assert list(first.x) == list(poplog["time_ms"])
    assert list(first.y) == pytest.approx(list(poplog[y] / unit), nan_ok=True)


def test_what_a_point_has_once_is_one_bar_and_not_one_on_top_of_the_other() -> None:
    result = windows(y="recovery_ms")
    (bars,) = result.figure().data
    assert list(bars.x) == ["poplog", "classic"]
    assert list(bars.y) == list(result.frame.groupby("algorithm", sort=False)["recovery_ms"].first())


@pytest.mark.parametrize(
    ("sizes", "title", "ticks"),
    [
        ([256 << 20, 512 << 20, 1 << 30], "DRAM capacity [GiB]", ["0.25", "0.375", "0.5"]),
        ([2 << 20, 3 << 20, 4 << 20], "DRAM capacity [MiB]", ["2", "2.25", "2.5"]),
        ([0, 64, 100], "DRAM capacity [B]", ["0", "16", "32"]),
        ([0, math.nan, 100], "DRAM capacity [B]", ["0", "16", "32"]),
    ],
)
def test_capacities_on_a_linear_axis_have_a_unit_of_their_size(
    sizes: list[float], title: str, ticks: list[str]
) -> None:
    """They had been bytes in billions, whose letter is B, too."""
    frame = pd.DataFrame({"dram_capacity": sizes, "y": 1.0})
    layout = plot_layout(
        frame, plot=Plot(log_x=False), axes=["dram_capacity"], metrics=["y"], default_metric="y"
    )
    axis = figure_of(layout, title="t", y_title="y").layout.xaxis
    assert axis.title.text == title
    assert list(axis.ticktext)[: len(ticks)] == ticks
    assert axis.tickvals[0] <= sizes[0]
    assert axis.tickvals[-1] >= sizes[-1]


@pytest.mark.parametrize(
    ("unit", "times", "shown", "drawn"),
    [
        ("ns", [90.0, 9_999.0], "ns", [90.0, 9_999.0]),
        ("ns", [90.0, 12_000.0], "us", [0.09, 12.0]),
        ("ns", [5e5, 9e7], "ms", [0.5, 90.0]),
        ("ps", [1e9, math.nan, 36e14], "s", [0.001, math.nan, 3600.0]),
        ("1/s", [1e6, 2e6], "1/s", [1e6, 2e6]),
    ],
)
def test_times_are_drawn_in_a_unit_of_their_size(
    unit: str, times: list[float], shown: str, drawn: list[float]
) -> None:
    frame = pd.DataFrame({"duration": [10**10 * (number + 1) for number in range(len(times))], "y": times})
    overlay = Overlay(label="published", citation="somewhere", points=[[10**10, times[0]]])
    plot = Plot(
        x="duration", y="y", overlay=[overlay], mark=[Mark(x=2e10, label="there", citation="somewhere")]
    )
    layout = plot_layout(frame, plot=plot, axes=["duration"], metrics=["y"], default_metric="y")
    figure = figure_of(layout, title="", y_title=f"a time [{unit}]")
    curve, published = figure.data
    assert figure.layout.yaxis.title.text == f"a time [{shown}]"
    assert figure.layout.xaxis.title.text == "duration [ms]"
    assert list(curve.x) == [10 * (number + 1) for number in range(len(times))]
    assert list(curve.y) == pytest.approx(drawn, nan_ok=True)
    assert (published.x[0], published.y[0]) == (10, pytest.approx(drawn[0]))
    assert figure.layout.shapes[0].x0 == 20


def test_times_on_a_logarithmic_axis_have_the_unit_of_its_middle() -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": [300.0, 1e8]})
    layout = plot_layout(frame, plot=Plot(x="x", log_y=True), axes=["x"], metrics=["y"], default_metric="y")
    figure = figure_of(layout, title="", y_title="a time [ns]")
    assert figure.layout.yaxis.title.text == "a time [us]"
    assert list(figure.data[0].y) == pytest.approx([0.3, 1e5])


def test_no_curve_joins_all_points_of_a_sweep_that_differ_in_cost() -> None:
    """Whether two of them happened to cost the same had decided: if none did, one line went through all."""
    grid = [(dram, pmem) for dram in (1, 2, 4) for pmem in (0, 8, 16)]
    frame = pd.DataFrame(grid, columns=["dram", "pmem"])
    frame["cost"] = 35.2 * frame["dram"] + 4.51 * frame["pmem"]
    frame["y"] = 1.0
    assert frame["cost"].is_unique
    options: dict[str, Any] = {"plot": Plot(x="cost"), "metrics": ["y"], "default_metric": "y"}
    layout = plot_layout(frame, axes=["dram", "pmem"], **options)
    assert (layout.columns.color, layout.columns.facet, layout.columns.lines) == ("dram", "", ())
    assert [curve.x for curve in layout.panels[0].curves] == [
        tuple(35.2 * dram + 4.51 * pmem for pmem in (0, 8, 16)) for dram in (1, 2, 4)
    ]
    # Designs have names; the same size in another unit needs no colour, as before.
    designs = frame.head(3).assign(design=["as it is", "more", "most"], size=[0, 8, 16])
    assert plot_layout(designs, axes=["design"], **options).columns.color == "design"
    assert plot_layout(designs, axes=["size"], **options).columns.color == ""


def test_a_front_of_times_is_of_the_least() -> None:
    """It had been of the longest latencies, silently."""
    scenario = pmsim.Scenario(
        kind="system",
        platform={"base": "tum-6212u", "block_device": "nvme-p4510"},
        parameters={"service": "engine", "rate": 1000, "requests": 200, "rows": 1000, "ssd_capacity": "1 GiB"},
        sweep={"engine": ["main-memory", "ssd-bm"], "dram_capacity": ["64 MiB", "128 MiB"]},
        plot={"x": "cost_usd", "y": "latency_ns", "front": ["engine", "dram_gib"]},
    )
    result = pmsim.run(scenario, jobs=1, progress=False)
    assert result.front_title == "Pareto front: least cost_usd, least latency_ns"
    best = result.frame.sort_values(["cost_usd", "latency_ns"]).iloc[0]
    front = result.front()
    assert front.iloc[0]["engine"] == best["engine"]
    assert list(front["latency_ns"]) == sorted(front["latency_ns"], reverse=True)
    (drawn,) = [trace for trace in result.figure().data if trace.name == "Pareto front"]
    assert list(drawn.x) == list(front["cost_usd"])
