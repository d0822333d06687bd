"""Published values are drawn where they belong, in whatever unit they are written, or refused before a run."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import pmsim
from pmsim.api import load_scenario
from pmsim.cli import app
from pmsim.errors import ConfigError
from pmsim.overrides import with_overrides
from pmsim.points import points_of
from pmsim.published import published
from pmsim.resolve import resolved_scenario
from pmsim.scenario import Scenario
from pmsim.shipped import find_scenario, scenario_names

PARAMETERS = {"operation": "ntstore", "region_size": "1 MiB"}


def overlay(where: dict[str, Any], points: list[list[Any]] | None = None) -> dict[str, Any]:
    return {"label": "measured", "citation": "somewhere", "points": points or [[1, 5.0]], "where": where}


def mark(facet: Any) -> dict[str, Any]:
    return {"x": 2.0, "label": "crossover", "citation": "somewhere", "facet": facet}


def scenario(sweep: dict[str, Any] | None = None, **plot: Any) -> Scenario:
    plot = {"x": "threads", "facet": "access_size", **plot}
    return Scenario(
        kind="bandwidth",
        platform="tum-6212u",
        parameters=PARAMETERS,
        sweep={"threads": [1, 4], "access_size": [64, 256]} if sweep is None else sweep,
        plot={key: value for key, value in plot.items() if value},
    )


@pytest.mark.parametrize("size", [64, "64 B", "64", "0x40"])
def test_a_value_is_known_in_any_unit(size: int | str) -> None:
    figure = pmsim.run(scenario(overlay=[overlay({"access_size": size})], mark=[mark(size)]), jobs=1).figure()
    (drawn,) = (trace for trace in figure.data if trace.name == "measured")
    assert drawn.xaxis == "x"
    assert [line.xref for line in figure.layout.shapes] == ["x"]


@pytest.mark.parametrize("facet", ["", "access_size"])
def test_the_facet_of_a_mark_is_that_of_the_figure_where_nobody_names_it(facet: str) -> None:
    sweep = {"threads": [1, 4], "memory": ["dram", "pmem"], "access_size": [64, 256]}
    found = published(with_marks := scenario(sweep, facet=facet, mark=[mark("256 B")]), points_of(with_marks))
    assert [each.facet for each in found.marks.values()] == [256]


@pytest.mark.parametrize("latency", ["300 ns", "0.3 us", 300, 300.0])
@pytest.mark.parametrize("suffix", ["", "_ns"])
def test_a_swept_time_of_the_platform_is_known_by_axis_and_by_column(latency: str | float, suffix: str) -> None:
    axis = "platform.pmem.media_read_latency"
    swept = scenario({"threads": [1, 4], axis: ["100 ns", "300 ns"]}, facet=axis)
    plot = swept.model_dump(exclude_defaults=True)["plot"]
    named = Scenario(
        **swept.model_dump(exclude_defaults=True, exclude={"plot"}),
        plot={**plot, "overlay": [overlay({axis + suffix: latency})], "mark": [mark(latency)]},
    )
    result = pmsim.run(named, jobs=1)
    assert result.plot is not None
    assert [each.where for each in result.plot.overlay] == [{f"{axis}_ns": 300.0}]
    figure = result.figure()
    (drawn,) = (trace for trace in figure.data if trace.name == "measured")
    assert drawn.xaxis == "x2"
    assert [line.xref for line in figure.layout.shapes] == ["x2"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a size that no point has": (
        {"overlay": [overlay({"access_size": 7})]},
        "plot.overlay.1.where.access_size: no point has 7; choose one of 64, 256",
    ),
    "a text that no point has": (
        {"overlay": [overlay({}), overlay({"access_size": "7 KiB"})]},
        "plot.overlay.2.where.access_size: no point has '7 KiB'; choose one of 64, 256",
    ),
    "no size at all": (
        {"overlay": [overlay({"access_size": "64 ns"})]},
        "plot.overlay.1.where.access_size: no point has '64 ns'; choose one of 64, 256",
    ),
    "a parameter that has another value": (
        {"facet": "", "overlay": [overlay({"operation": "load"})]},
        "plot.overlay.1.where.operation: no point has 'load'; choose ntstore",
    ),
    "a flag is no number": (
        {"overlay": [overlay({"threads": True})]},
        "plot.overlay.1.where.threads: no point has true; choose one of 1, 4",
    ),
    "a panel that is not there": (
        {"mark": [mark("foo")]},
        "plot.mark.1.facet: no point has 'foo'; choose one of 64, 256",
    ),
    "a panel of an axis that became the colours": (
        {"facet": "", "mark": [mark("64 B")]},
        "plot.mark.1.facet: the figure has one panel; remove it, or name a column as plot.facet",
    ),
    "text on an axis of numbers": (
        {"overlay": [overlay({}, [[1, 5], ["a", 5]])]},
        "plot.overlay.1.points.2: 'a' stands on an axis of numbers; write a number, in its unit",
    ),
    "text on the axis of numbers that follows from the sweep": (
        {"x": "", "overlay": [overlay({}, [["a", 5]])]},
        "plot.overlay.1.points.1: 'a' stands on an axis of numbers; write a number, in its unit",
    ),
}


@pytest.mark.parametrize(("plot", "message"), REFUSED.values(), ids=REFUSED)
def test_what_belongs_to_no_point_is_refused_in_one_line(plot: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        points_of(scenario(**plot))
    assert str(refused.value) == message


def test_values_that_no_point_has_together_are_refused() -> None:
    zipped = {"mode": "zip", "threads": [1, 4], "access_size": [64, 256]}
    with pytest.raises(ConfigError) as refused:
        points_of(scenario(zipped, overlay=[overlay({"threads": 1, "access_size": "256 B"})]))
    assert str(refused.value) == (
        "plot.overlay.1.where: no point has threads = 1 and access_size = '256 B' together; change one of them"
    )


def test_categories_have_names() -> None:
    sweep = {"memory": ["dram", "pmem"]}
    points_of(scenario(sweep, x="memory", facet="", overlay=[overlay({}, [["pmem", 5]])]))
    points_of(scenario(facet="", style="bars", overlay=[overlay({}, [["1", 5]])]))


@pytest.mark.parametrize("style", ["auto", "bars", "lines"])
@pytest.mark.parametrize("slip", ["pmm", "PMem", 1])
def test_a_category_that_no_point_has_is_no_place_of_a_published_value(style: str, slip: object) -> None:
    plot = {"x": "memory", "facet": "", "style": style, "overlay": [overlay({}, [["pmem", 5], [slip, 5]])]}
    said = f"plot.overlay.1.points.2: no point has {slip!r}; choose one of dram, pmem"
    with pytest.raises(ConfigError) as refused:
        points_of(scenario({"memory": ["dram", "pmem"]}, **plot))
    assert str(refused.value) == said


def test_a_published_value_stands_on_its_bar_however_its_number_is_written() -> None:
    for written in (256, 256.0, "256", "256 B"):
        plot = {"x": "access_size", "facet": "", "style": "bars", "overlay": [overlay({}, [[written, 5]])]}
        figure = pmsim.run(scenario({"access_size": [64, 256]}, **plot), jobs=1).figure()
        assert [list(trace.x) for trace in figure.data] == [["64", "256"], ["256"]]


def test_of_published_categories_those_stay_that_the_user_has_not_left_out(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    given = [overlay({}, [["dram", 90], ["pmem", 5]]), overlay({}, [["dram", 91]])]
    file.write_text(scenario({"memory": ["dram", "pmem"]}, x="memory", facet="", overlay=given).to_toml())
    result = pmsim.run(file, set={"sweep.memory": ["pmem"]}, jobs=1, out=tmp_path / "out")
    again = pmsim.run(tmp_path / "out" / "scenario.resolved.toml", jobs=1)
    for figure in (result.figure(), again.figure()):
        assert [(list(trace.x), list(trace.y)) for trace in figure.data[1:]] == [(["pmem"], [5])]
        assert list(figure.data[0].x) == ["pmem"]


def test_what_the_user_has_left_out_is_left_out_of_the_figure(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        scenario(overlay=[overlay({"access_size": "64 B"})], mark=[mark("64 B"), mark(256)]).to_toml()
    )
    result = pmsim.run(file, set={"access_size": "256 B"}, jobs=1, out=tmp_path / "out")
    assert not any(trace.name == "measured" for trace in result.figure().data)
    assert len(result.figure().layout.shapes) == 1
    assert "Open markers are published values" not in result.html()
    # What was run is a scenario of its own.
    again = pmsim.run(tmp_path / "out" / "scenario.resolved.toml", jobs=1)
    assert len(again.figure().layout.shapes) == 1
    told = CliRunner().invoke(app, ["run", str(file), "--set", "access_size=256", "--dry-run"])
    assert told.exit_code == 0, told.output


def test_a_slip_in_the_file_is_one_whatever_the_user_changes(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(scenario(overlay=[overlay({"access_size": "65 B"})]).to_toml())
    with pytest.raises(ConfigError, match=r"plot\.overlay\.1\.where\.access_size: no point .* 64, 256$"):
        pmsim.run(file, set={"access_size": 256}, jobs=1)


def test_a_file_that_runs_with_changes_only_is_not_asked_for_its_points(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    broken = scenario({"threads": [1, 1000], "access_size": [64]}, overlay=[overlay({"access_size": "256 B"})])
    file.write_text(broken.to_toml())
    assert len(points_of(with_overrides(broken, ["threads=1"]), broken)) == 1


@pytest.mark.parametrize("name", scenario_names())
def test_all_that_a_shipped_scenario_cites_is_drawn_and_any_part_of_its_sweep_runs(name: str) -> None:
    shipped = load_scenario(find_scenario(name))
    points = points_of(shipped)
    assert not published(shipped, points).problems
    if shipped.plot is None or not (shipped.plot.overlay or shipped.plot.mark) or "mode" in shipped.sweep:
        return
    for axis, values in shipped.axes()[0].items():
        for value in (values[0], values[-1]):
            part = with_overrides(shipped, {f"sweep.{axis}": [value]})
            narrowed = points_of(part, shipped)
            assert points_of(resolved_scenario(part, narrowed))


def test_quickstart_runs_with_one_thread() -> None:
    result = CliRunner().invoke(app, ["run", "quickstart", "--set", "threads=1", "--dry-run"])
    assert result.exit_code == 0, result.output
