"""Points whose rows are a curve: the order of the rows, and the axes of their figure."""

from typing import Any

import pandas as pd
import pytest

import pmsim
from pmsim.plot_spec import Overlay, Plot
from pmsim.plots.scales import needs_logarithms


def wear(plot: Plot | None = None) -> pmsim.Result:
    parameters = {"rows": "wear", "engine": "nvm-direct", "workload": "ycsb-rw", "data_size": "64 MiB"}
    parameters |= {
        "update_percent": 100,
        "scale": 1,
        "pmem_capacity": "256 MiB",
        "operations": 50_000,
        "warmup": 1,
    }
    scenario = pmsim.Scenario(kind="oltp", platform="sep-e5-4620v2", parameters=parameters, plot=plot)
    return pmsim.run(scenario, jobs=1, progress=False)


def test_rows_of_wear_are_in_the_order_of_their_ranks() -> None:
    frame = wear().frame
    assert list(frame.wear_rank[:7]) == [1, 2, 5, 10, 20, 50, 100]
    assert frame.wear_rank.is_monotonic_increasing
    assert frame.wear_rank_writes.is_monotonic_decreasing
    assert frame.wear_rank_writes.iloc[0] == frame.wear_maximum.iloc[0]


def test_wear_is_drawn_by_powers_of_ten() -> None:
    figure = wear().figure()
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ({"log_x": False}, (None, "log")),
        ({"log_y": False}, ("log", None)),
        ({"y": "wear_rank_writes"}, ("log", "log")),
        ({"style": "bars"}, ("category", None)),
        ({"overlay": [Overlay(label="none", citation="c", points=[[1, 0]])]}, ("log", None)),
        ({"overlay": [Overlay(label="one", citation="c", points=[[1, 1]])]}, ("log", "log")),
    ],
)
def test_a_scenario_decides_otherwise_and_so_does_what_has_no_logarithm(
    said: dict[str, Any], kinds: tuple[str | None, str | None]
) -> None:
    figure = wear(Plot(**said)).figure()
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == kinds


def test_a_restart_that_takes_long_leaves_a_quick_one_to_be_seen() -> None:
    parameters = {"data_size": "16 MiB", "dram_capacity": "8 MiB", "pmem_capacity": "32 MiB", "scale": 1}
    parameters |= {"workload": "ycsb-a", "log_size": "1 MiB", "operations": 1_000, "warmup": 100, "windows": 20}
    machine = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    both = {"engine": ["three-tier", "ssd-bm"]}
    for sweep, kinds in ((both, ("log", "log")), ({"engine": ["three-tier"]}, (None, None))):
        scenario = pmsim.Scenario(kind="restart", platform=machine, parameters=parameters, sweep=sweep)
        figure = pmsim.run(scenario, jobs=1, progress=False).figure()
        assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == kinds


@pytest.mark.parametrize(
    ("curves", "needed"),
    [
        (
            [[10, 20, 30], [100, 200, 300]],
            True,
        ),  # the first is below 30, a tenth of the largest, but at its end
        ([[10, 40, 50], [100, 200, 300]], False),
        ([[0, 0, 0, 200, 250], [100, 200, 300]], False),  # nothing before the recovery
        ([[1, 1, 1, 1, 300]], True),
        ([[0, 0]], False),
    ],
)
def test_a_curve_most_of_which_lies_along_the_axis_needs_logarithms(
    curves: list[list[float]], needed: bool
) -> None:
    rows = [(value, number) for number, values in enumerate(curves) for value in values]
    frame = pd.DataFrame(rows, columns=["value", "curve"])
    assert needs_logarithms(frame.value, frame.curve) is needed
