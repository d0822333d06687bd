"""Figures of latencies leave out what is overloaded: it says how long the run was."""

import math

import pmsim
from pmsim import Scenario
from pmsim.plots.overload import NOT_DRAWN, hidden_rows

LOG = {"service": "log", "workers": 1, "requests": 2_000}
SLOW, FAST, FASTER = 1_000_000, 20_000_000, 40_000_000


def result(*rates: int, y: str = "latency_p99_ns") -> pmsim.Result:
    plot = {"x": "rate", "y": y}
    scenario = Scenario(
        kind="system", platform="tum-6212u", parameters=LOG, sweep={"rate": [*rates]}, plot=plot
    )
    return pmsim.run(scenario, jobs=1)


def test_a_curve_of_latencies_ends_where_the_queue_grows() -> None:
    found = result(SLOW, FAST)
    figure = found.figure()
    (curve,) = figure.data
    assert [math.isnan(y) for y in curve.y] == [False, True]
    assert NOT_DRAWN in figure.layout.title.subtitle.text
    assert found.frame["latency_p99_ns"].notna().all()  # the numbers are there


def test_throughputs_of_an_overload_are_drawn() -> None:
    figure = result(SLOW, FAST, y="throughput_per_s").figure()
    assert not any(math.isnan(y) for y in figure.data[0].y)
    assert NOT_DRAWN not in (figure.layout.title.subtitle.text or "")


def test_where_all_is_overload_all_is_drawn() -> None:
    assert not any(math.isnan(y) for y in result(FAST, FASTER).figure().data[0].y)


def test_windows_show_how_a_queue_grows() -> None:
    assert hidden_rows([0, 1, 2, 2], [True, False, False, False]) == [False, True, False, False]
