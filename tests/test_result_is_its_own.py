"""What callers do to a scenario or a frame does not reach a result, and copies of scenarios are checked."""

import numpy as np
import pandas as pd
import pytest

import pmsim
from pmsim.errors import ConfigError
from pmsim.points import points_of

GIVEN = {"memory": "pmem", "operation": "ntstore", "access_size": 256}
SCENARIO = pmsim.Scenario(kind="bandwidth", platform="tum-6212u", parameters=GIVEN, sweep={"threads": [1, 2]})
UCSD = pmsim.load_platform("ucsd-8260")


def bandwidths(**given):
    return pmsim.Scenario(kind="bandwidth", platform="tum-6212u", **given)


def test_a_frame_is_the_callers(tmp_path):
    result = pmsim.run(bandwidths(parameters=GIVEN, vary={"dimms": [1, 3]}), jobs=1)
    effects, figure, shown = result.effects(), result.figure().to_json(), result.shown()
    result.frame = result.frame.sort_values("bandwidth_gb_s", ignore_index=True).iloc[:2]
    pd.testing.assert_frame_equal(result.effects(), effects)
    pd.testing.assert_frame_equal(result.shown(), shown)
    assert result.figure().to_json() == figure
    assert len(pd.read_parquet(result.save(tmp_path) / "results.parquet")) == 3


def test_a_result_keeps_the_scenario_that_was_run(tmp_path):
    scenario = bandwidths(parameters=dict(GIVEN), sweep={"threads": [1, 2]})
    result = pmsim.run(scenario, jobs=1)
    scenario.sweep["threads"] = [4, 8]
    scenario.parameters["access_size"] = 64
    again = pmsim.Scenario.from_file(result.save(tmp_path) / "scenario.resolved.toml")
    assert again.sweep["threads"] == [1, 2]
    assert again.parameters["access_size"] == 256


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"sweeps": {}}, "^sweeps: unknown key; did you mean 'sweep'"),
        ({"parameters": {"threads": 4}}, r"^sweep\.threads: is also set in parameters"),
        ({"seeds": "3"}, "^seeds: '3' is not an integer"),
        ({"seeds": 0}, "^seeds: "),
        ({"sweep": None}, "^sweep: None is not a table"),
        ({"variant": [{"label": "x"}]}, r"^variant\.1"),
        (
            {"sweep": {"platform": [UCSD]}},
            r"^sweep\.platform\.1: a Platform object \('ucsd-8260'\) has no place",
        ),
        ({"vary": {"platform": [UCSD]}}, r"^vary\.platform\.1: a Platform object"),
        ({"variant": [{"label": "x", "set": {"platform": UCSD}}]}, r"^variant\.1\.set\.platform: a Platform"),
    ],
)
def test_a_copy_with_other_values_is_checked_as_a_new_scenario(update, message):
    with pytest.raises(ConfigError, match=message):
        SCENARIO.model_copy(update=update)


def test_a_copy_with_other_values_takes_what_a_new_scenario_takes():
    copy = SCENARIO.model_copy(update={"sweep": {"threads": np.array([2, 4])}, "plot": {"x": "threads"}})
    assert copy.sweep == {"threads": [2, 4]}
    assert copy.plot.x == "threads"
    assert (copy.parameters, copy.platform) == (SCENARIO.parameters, SCENARIO.platform)
    assert SCENARIO.model_copy() == SCENARIO


def test_bars_of_points_that_come_to_the_same_setup_do_not_add_up():
    given = {"operation": "load", "pattern": "sequential"}
    swept = {"prefetcher": ["platform", True, False]}
    result = pmsim.run(bandwidths(parameters=given, sweep=swept), jobs=1)
    first, _, without = result.frame["bandwidth_gb_s"]
    (bars,) = result.figure().data
    assert dict(zip(bars.x, bars.y, strict=True)) == {"True": first, "False": without}
    for bars in result.time_figure().data:
        assert list(bars.x) == ["True", "False"]
    # Also over numbers. Curves do not add up, and have all points.
    swept, plotted = {"dimms": ["all", 6, 1]}, {"style": "bars", "x": "dimms"}
    (bars,) = pmsim.run(bandwidths(parameters=given, sweep=swept, plot=plotted), jobs=1).figure().data
    assert [float(x) for x in bars.x] == [6, 1]
    lines = SCENARIO.model_copy(
        update={"sweep": {"prefetcher": ["platform", True]}, "plot": {"style": "lines"}}
    )
    (curve,) = pmsim.run(lines, jobs=1).figure().data
    assert len(curve.x) == 2


def test_bars_of_where_the_time_goes_stand_along_an_axis():
    plotted = {"plot": {"stack": "share", "x": "dimms"}}
    with pytest.raises(ConfigError, match=r"plot\.x: 'dimms' is no axis of the sweep, .*known: threads"):
        points_of(SCENARIO.model_copy(update=plotted))
    points_of(SCENARIO.model_copy(update={"plot": {"stack": "share", "x": "threads"}}))
