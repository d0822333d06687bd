"""One front of all points, or one for each panel that is asked for: ties in what they cost change neither."""

import itertools
import random

import pandas as pd
import pytest

import pmsim
from pmsim.capacity import pareto_front
from pmsim.errors import ConfigError
from pmsim.plot_spec import Plot
from pmsim.plots.layout import Columns, PlotLayout, plot_layout
from pmsim.points import points_of

_AXES = ("dram", "pmem", "ssd")
#: Prices of a unit of each axis: with the first many mixes cost the same, with the second none.
_TIES, _NO_TIES = (4.0, 2.0, 1.0), (4.0, 2.01, 0.977)


def _mixes(axes: tuple[str, ...], prices: tuple[float, ...], seed: int) -> pd.DataFrame:
    """Return every mix of the axes with its cost, and rates that are the same for every price."""
    draw = random.Random(seed)
    sizes = [sorted(draw.sample(range(1, 9), draw.randint(2, 4))) for _ in axes]
    frame = pd.DataFrame(list(itertools.product(*sizes)), columns=list(axes))
    cost = sum(price * frame[axis] for price, axis in zip(prices, axes, strict=False))
    rates = [float(draw.randint(1, 9)) for _ in range(len(frame))]
    named = {f"{axis}_gib": frame[axis] / 1.0 for axis in axes}
    return frame.assign(**named, cost=cost, rate=rates)


def _layout(frame: pd.DataFrame, axes: tuple[str, ...], **plot: object) -> PlotLayout:
    said = {"x": "cost", "y": "rate", "front": [f"{axis}_gib" for axis in axes]} | plot
    return plot_layout(
        frame, plot=Plot.model_validate(said), axes=axes, metrics=["rate"], default_metric="rate"
    )


@pytest.mark.parametrize("color", ["", "pmem_gib", "dram"])
@pytest.mark.parametrize("front", [["dram_gib", "pmem_gib", "ssd_gib"], ["dram_gib"]])
@pytest.mark.parametrize("prices", [_TIES, _NO_TIES])
@pytest.mark.parametrize("count", [2, 3])
def test_a_front_is_over_all_points_of_the_figure(
    count: int, prices: tuple[float, ...], front: list[str], color: str
) -> None:
    axes = _AXES[:count]
    for seed in range(12):
        frame = _mixes(axes, prices, seed)
        layout = _layout(frame, axes, front=front[:count], color=color)
        (panel,) = layout.panels
        best = frame[pareto_front(frame, minimise=["cost"], maximise=["rate"])]
        assert sorted((point.x, point.y) for point in panel.front) == sorted(
            zip(best["cost"], best["rate"], strict=True)
        )
        drawn = [point for curve in panel.curves for point in zip(curve.x, curve.y, strict=True)]
        assert set(drawn) == set(zip(frame["cost"], frame["rate"], strict=True))


@pytest.mark.parametrize("color", ["", "pmem_gib", "dram"])
@pytest.mark.parametrize("count", [2, 3])
def test_mixes_that_cost_the_same_leave_a_figure_as_it_is(count: int, color: str) -> None:
    axes = _AXES[:count]
    ties = 0
    for seed in range(12):
        equal, different = (_mixes(axes, prices, seed) for prices in (_TIES, _NO_TIES))
        ties += equal["cost"].nunique() < len(equal)
        found, expected = (_layout(frame, axes, color=color).columns for frame in (equal, different))
        assert found == expected
    assert ties > 3


def test_a_list_of_mixes_with_ties_is_drawn_as_one_without() -> None:
    """Engine and capacities change together: 16 and 4, and 4 and 28, cost the same."""
    frame = pd.DataFrame(
        {
            "engine": list("abbabb"),
            "dram": [16, 4, 4, 32, 16, 16],
            "pmem": [0, 8, 24, 0, 8, 24],
            "rate": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        }
    )
    axes = ("engine", "dram", "pmem")
    for price in (2.0, 2.01):
        mixes = frame.assign(
            dram_gib=frame["dram"], pmem_gib=frame["pmem"], cost=4.0 * frame["dram"] + price * frame["pmem"]
        )
        layout = _layout(mixes, axes, front=["dram_gib", "pmem_gib"], color="pmem_gib")
        assert layout.columns == Columns("cost", "rate", "pmem_gib", (), "")


def test_what_is_no_part_of_the_mix_is_a_colour_and_then_a_dash() -> None:
    mixes = [_mixes(("dram", "pmem"), _TIES, 3).assign(load=load, threads=threads)
             for load in ("a", "b") for threads in (1, 4)]  # fmt: skip
    layout = plot_layout(
        pd.concat(mixes, ignore_index=True),
        plot=Plot(x="cost", y="rate", front=["dram_gib", "pmem_gib"]),
        axes=["load", "threads", "dram", "pmem"],
        metrics=["rate"],
        default_metric="rate",
    )
    assert layout.columns == Columns("cost", "rate", "load", ("threads",), "")


def test_a_capacity_on_the_horizontal_axis_leaves_the_other_its_colour() -> None:
    frame = _mixes(("dram", "pmem"), _TIES, 1)
    assert _layout(frame, ("dram", "pmem"), x="dram_gib").columns.color == "pmem"


@pytest.mark.parametrize(("facet", "each"), [("", ""), ("operation", "; one front for each operation")])
def test_a_front_for_each_panel_is_called_so(facet: str, each: str) -> None:
    result = pmsim.run(
        pmsim.Scenario(
            kind="bandwidth",
            platform="tum-6212u",
            parameters={"memory": "pmem", "region_size": "64 MiB"},
            sweep={"operation": ["ntstore", "load"], "access_size": [64, 256], "threads": [1, 4]},
            plot={"x": "threads", "y": "bandwidth_gb_s", "facet": facet, "front": ["access_size"]},
        ),
        jobs=1,
    )
    assert result.front_title == f"Pareto front: least threads, most bandwidth_gb_s{each}"
    assert f"<h2>{result.front_title}</h2>" in result.html()
    front = result.front()
    if facet:
        assert set(front["operation"]) == {"ntstore", "load"}
    else:
        # What is named by no column of the front, but by colour and dash, is told as well.
        assert list(front.columns) == ["operation", "access_size", "threads", "bandwidth_gb_s"]
        assert len(front) == pareto_front(result.frame, minimise=["threads"], maximise=["bandwidth_gb_s"]).sum()


def test_a_counter_on_the_front_is_no_panel_for_a_mark() -> None:
    plot = {"x": "threads", "y": "bandwidth_gb_s", "front": ["counter.memory_reads"]}
    mark = {"label": "paper", "citation": "a paper", "facet": 64, "x": 1}
    scenario = pmsim.Scenario(
        kind="bandwidth",
        platform="tum-6212u",
        sweep={"threads": [1, 2], "access_size": [64, 256]},
        metrics=["bandwidth_gb_s", "counter.memory_reads"],
        plot=plot | {"mark": [mark]},
    )
    with pytest.raises(ConfigError, match=r"plot\.mark\.1\.facet: the figure has one panel"):
        points_of(scenario)
