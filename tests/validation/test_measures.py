"""Each reducer gives the number it promises, and other numbers for other curves."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pmsim.errors import ConfigError, SimulationError
from pmsim.runner import Progress
from pmsim.validation.claims import Crossover, Measure, PlatformRef, Series
from pmsim.validation.measures import Curve, Point, Runs, curve, points_of, reduce, resolve, simulator
from pmsim.validation.suite_files import load_suite

RISE_AND_FALL: Curve = [(1, 4.0), (2, 8.0), (3, 9.9), (4, 10.0), (8, 9.0), (16, 5.0)]


def number(measure: dict[str, Any], series: Mapping[str, Curve] | None = None, **others: float) -> float:
    return reduce(Measure.model_validate(measure), (series or {}).__getitem__, others.__getitem__)


def test_point_gives_the_only_value() -> None:
    assert number({"point": "s"}, {"s": [(0, 7.5)]}) == 7.5


def test_point_refuses_a_sweep() -> None:
    with pytest.raises(SimulationError, match="one run"):
        number({"point": "s"}, {"s": RISE_AND_FALL})


def test_max_and_min_run_over_all_series() -> None:
    series = {"a": RISE_AND_FALL, "b": [(1, 1.5), (2, 11.0)]}
    assert number({"max": ["a", "b"]}, series) == 11.0
    assert number({"min": ["a", "b"]}, series) == 1.5
    assert number({"max": ["a"]}, series) == 10.0


def test_the_peak_is_where_two_per_cent_are_missing_at_most() -> None:
    assert number({"peak_x": "s"}, {"s": RISE_AND_FALL}) == 3
    assert number({"peak_x": "s", "within": 0.001}, {"s": RISE_AND_FALL}) == 4
    assert number({"peak_x": "s", "within": 0.25}, {"s": RISE_AND_FALL}) == 2


def test_the_decline_begins_behind_the_maximum() -> None:
    assert number({"decline_x": ["s"]}, {"s": RISE_AND_FALL}) == 8
    assert number({"decline_x": ["s"], "within": 0.2}, {"s": RISE_AND_FALL}) == 16


def test_a_curve_that_never_declines_says_never() -> None:
    assert math.isinf(number({"decline_x": ["s"]}, {"s": [(1, 1.0), (2, 2.0), (3, 2.0)]}))


def test_at_gives_the_value_at_x_and_nothing_between() -> None:
    assert number({"at": "s", "x": 8}, {"s": RISE_AND_FALL}) == 9.0
    with pytest.raises(SimulationError, match="no point at 5"):
        number({"at": "s", "x": 5}, {"s": RISE_AND_FALL})


def test_the_crossover_is_the_x_from_which_on_the_relation_holds() -> None:
    series = {"a": [(1, 1.0), (2, 3.0), (3, 5.0)], "b": [(1, 4.0), (2, 4.0), (3, 4.0)]}
    assert number({"from_x": Crossover(upper="a", lower="b")}, series) == 3
    assert number({"from_x": Crossover(upper="a", lower="b", factor=0.75)}, series) == 2
    assert number({"from_x": Crossover(upper="b", lower="a", relation="at most")}, series) == 3
    assert math.isinf(number({"from_x": Crossover(upper="a", lower="b", factor=2)}, series))


def test_a_relation_that_holds_for_a_while_is_no_crossover() -> None:
    series = {"a": [(1, 9.0), (2, 3.0), (3, 5.0)], "b": [(1, 4.0), (2, 4.0), (3, 4.0)]}
    assert number({"from_x": Crossover(upper="a", lower="b")}, series) == 3


def test_a_crossover_of_different_sweeps_is_refused() -> None:
    with pytest.raises(SimulationError, match="differ at x = 2"):
        number({"from_x": Crossover(upper="a", lower="b")}, {"a": [(1, 0.0), (2, 1.0)], "b": [(1, 4.0)]})


def test_a_median_ratio_is_taken_point_by_point() -> None:
    series = {"a": [(1, 9.0), (2, 3.0), (3, 40.0)], "b": [(1, 3.0), (2, 3.0), (3, 4.0)]}
    assert number({"median_ratio": ["a", "b"]}, series) == 3.0
    assert number({"median_ratio": ["b", "a"]}, series) == pytest.approx(1 / 3)


def test_a_median_ratio_of_different_sweeps_is_refused() -> None:
    with pytest.raises(SimulationError, match="differ in x"):
        number({"median_ratio": ["a", "b"]}, {"a": [(1, 1.0), (2, 1.0)], "b": [(1, 4.0), (3, 4.0)]})


def test_measures_of_measures() -> None:
    assert number({"ratio": ["a", "b"]}, a=6.0, b=4.0) == 1.5
    assert number({"sum": ["a", "b"]}, a=6.0, b=4.0) == 10.0
    assert number({"scaled": "a", "by": 2.5}, a=6.0) == 15.0
    assert number({"slowdown": ["a", "b"]}, a=100.0, b=65.0) == pytest.approx(35.0)


def fake(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
    answers: list[dict[str, float] | str] = []
    for point in points:
        threads = point.parameters["threads"]
        metrics = {"latency_ns": 50.0 * threads, "bandwidth_gb_s": 32.0, "bad": math.nan}
        answers.append("unlucky" if threads == 13 else metrics)
    return answers


SERIES = Series(platform="p", kind="k", metric="latency_ns", sweep={"threads": [1, 2]})


def test_a_series_is_one_run_per_swept_value() -> None:
    runs = Runs(fake)
    runs.compute(points_of(SERIES))
    assert curve(runs, SERIES) == [(1.0, 50.0), (2.0, 100.0)]


def test_a_curve_ends_where_the_data_do_not_fit() -> None:
    def small(points: Sequence[Point], _: Progress | None) -> list[dict[str, float] | str]:
        fits = [int(point.parameters["threads"]) < 2 for point in points]
        return [{"latency_ns": 5.0 if fit else math.nan, "fits": float(fit)} for fit in fits]

    runs = Runs(small)
    runs.compute(points_of(SERIES))
    assert curve(runs, SERIES) == [(1.0, 5.0)]
    assert curve(runs, SERIES.model_copy(update={"metric": "fits"})) == [(1.0, 1.0), (2.0, 0.0)]


def test_data_that_fit_nowhere_are_an_error_and_no_empty_curve() -> None:
    """Of an empty curve every ordering would hold, and a maximum would end in a traceback."""

    def backend(points: Sequence[Point], progress: Progress | None) -> list[Mapping[str, float]]:
        return [{"latency_ns": math.nan, "fits": 0.0} for _ in points]

    runs = Runs(backend)
    runs.compute(points_of(SERIES))
    with pytest.raises(SimulationError, match="the data fit the engine at no point"):
        curve(runs, SERIES)


def test_equal_runs_are_made_once() -> None:
    made: list[Point] = []

    def counted(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
        made.extend(points)
        return fake(points, progress)

    runs = Runs(counted)
    same = [Point("k", "p", {"threads": 1, "size": 2}), Point("k", "p", {"size": 2, "threads": 1})]
    runs.compute([*same, Point("k", "p", {"size": 3, "threads": 1})])
    runs.compute(same)
    assert len(made) == len(runs) == 2


def test_a_run_that_fails_leaves_the_others_intact() -> None:
    runs = Runs(fake)
    points = [Point("k", "p", {"threads": threads}) for threads in (12, 13, 14)]
    runs.compute(points)
    assert runs.value(points[0], "latency_ns") == 600.0
    with pytest.raises(SimulationError, match="unlucky"):
        runs.value(points[1], "latency_ns")


def test_runs_that_were_still_changing_are_counted() -> None:
    steady = {1: 1.0, 2: 0.0, 3: math.nan, 4: 0.0}
    runs = Runs(lambda points, _: [{"steady": steady[point.parameters["threads"]]} for point in points])
    runs.compute([Point("k", "p", {"threads": threads}) for threads in steady])
    assert runs.unsteady == 2
    assert Runs(fake).unsteady == 0


def test_unknown_and_undefined_metrics_are_refused() -> None:
    runs = Runs(fake)
    point = Point("k", "p", {"threads": 1})
    runs.compute([point])
    with pytest.raises(SimulationError, match="no metric 'speed'; known: bad, bandwidth_gb_s, latency_ns"):
        runs.value(point, "speed")
    with pytest.raises(SimulationError, match="'bad' is nan"):
        runs.value(point, "bad")


def test_derived_metrics_follow_from_the_run() -> None:
    runs = Runs(fake)
    point = Point("k", "p", {"threads": 2})
    runs.compute([point])
    assert runs.value(point, "line_time_ns") == 64 / 32.0
    assert runs.value(point, "persists_per_s") == 1e9 / 100.0


def latency(platform: PlatformRef = "tum-6212u", **parameters: object) -> Point:
    return Point("latency", platform, {"memory": "dram", "region_size": "1 MiB", **parameters})


def test_the_simulator_answers_in_order_and_keeps_what_cannot_be_run() -> None:
    slow = {"base": "tum-6212u", "llc": {"latency": "200 ns"}}
    points = [
        latency(),
        latency(region_size="400 TiB"),
        latency(slow, region_size="16 MiB"),
        latency(pattern="up"),
    ]
    runs = Runs(simulator(jobs=1))
    runs.compute(points)
    assert runs.value(points[2], "latency_ns") > runs.value(points[0], "latency_ns")
    with pytest.raises(SimulationError, match="too large"):
        runs.value(points[1], "latency_ns")
    with pytest.raises(SimulationError, match="pattern"):
        runs.value(points[3], "latency_ns")


def test_every_platform_and_parameter_of_the_suite_can_be_run() -> None:
    suite = load_suite("device")
    for name, series in suite.series.items():
        for point in points_of(series):
            try:
                resolve(point, seed=0)
            except ConfigError as error:
                raise AssertionError(f"series {name}: {error}") from None


def test_finished_points_are_kept_and_found_again(tmp_path: Path) -> None:
    first, second = Runs(simulator(jobs=1, cache=tmp_path)), Runs(simulator(jobs=1, cache=tmp_path))
    first.compute([latency()])
    kept = list(tmp_path.rglob("*"))
    second.compute([latency()])
    assert kept
    assert list(tmp_path.rglob("*")) == kept
    assert first.metrics(latency()) == pytest.approx(second.metrics(latency()), rel=0, abs=0, nan_ok=True)


def test_a_series_sweeps_a_parameter_of_the_platform_and_names_its_values() -> None:
    series = Series(
        platform={"base": "m", "pmem": {"dimms": 2}},
        kind="k",
        metric="latency_ns",
        sweep={"platform.pmem.media_read_latency": ["115 ns", "250 ns"]},
        x=[165, 300],
    )
    assert list(series.points()) == [
        (165.0, {"base": "m", "pmem": {"dimms": 2, "media_read_latency": "115 ns"}}, {}),
        (300.0, {"base": "m", "pmem": {"dimms": 2, "media_read_latency": "250 ns"}}, {}),
    ]


def test_a_curve_runs_along_x_however_its_sweep_is_written() -> None:
    rates = {1: 4.0, 2: 8.0, 4: 10.0, 8: 9.0}
    runs = Runs(lambda points, _: [{"rate": rates[point.parameters["threads"]]} for point in points])
    for threads in ([1, 2, 4, 8], [8, 4, 2, 1], [4, 1, 8, 2]):
        series = Series(platform="m", kind="k", metric="rate", sweep={"threads": threads})
        runs.compute(points_of(series))
        found = {"s": curve(runs, series), "flat": [(x, 8.0) for x in rates]}
        assert found["s"] == sorted(rates.items())
        assert number({"peak_x": "s", "within": 0.25}, found) == 2
        assert number({"from_x": {"upper": "s", "lower": "flat"}}, found) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sweep": {"threads": [1, 2]}, "x": [1]}, "1 names for 2 values"),
        ({"x": [1]}, "belongs to a sweep"),
        ({"sweep": {"threads": [1, 2]}, "x": [7, 7]}, "x: 7 twice"),
        ({"sweep": {"threads": [1, 2, 1]}}, "sweep: 1 twice"),
        ({"sweep": {"platform.dimms": [1]}}, "no platform.SECTION.NAME"),
    ],
)
def test_a_series_whose_axis_does_not_come_out_even_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Series(platform="m", kind="k", metric="latency_ns", **change)
