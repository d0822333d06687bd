"""What Python callers have at hand for what a file says: NumPy's numbers, arrays, tuples, ranges, paths."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pmsim
from pmsim.des import LogPart
from pmsim.errors import ConfigError
from pmsim.plain import plain

#: As written, and as a scenario file would have it.
SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a whole number": ({"parameters": {"threads": np.int64(4)}}, {"parameters": {"threads": 4}}),
    "a flag": ({"parameters": {"prefetcher": np.True_}}, {"parameters": {"prefetcher": True}}),
    "an array": ({"sweep": {"threads": np.arange(1, 4)}}, {"sweep": {"threads": [1, 2, 3]}}),
    "a column": ({"sweep": {"threads": pd.Series([1, 2])}}, {"sweep": {"threads": [1, 2]}}),
    "a range": ({"sweep": {"threads": range(1, 4)}}, {"sweep": {"threads": [1, 2, 3]}}),
    "a tuple": ({"sweep": {"memory": ("dram", "pmem")}}, {"sweep": {"memory": ["dram", "pmem"]}}),
    "numbers in a list": ({"vary": {"threads": [np.int32(2)]}}, {"vary": {"threads": [2]}}),
    "a seed": ({"seed": np.uint64(7)}, {"seed": 7}),
    "a machine": (
        {"platform": {"base": "tum-6212u", "pmem": {"dimms": np.int64(2)}}},
        {"platform": {"base": "tum-6212u", "pmem": {"dimms": 2}}},
    ),
    "a path": ({"platform": Path("mine.toml")}, {"platform": "mine.toml"}),
}


@pytest.mark.parametrize("name", SAME)
def test_a_scenario_takes_what_python_callers_have_at_hand(name: str) -> None:
    given, written = ({"kind": "bandwidth", "platform": "tum-6212u", **table} for table in SAME[name])
    assert pmsim.Scenario(**given) == pmsim.Scenario(**written)
    assert pmsim.Scenario(**given).to_toml() == pmsim.Scenario(**written).to_toml()


def test_calls_take_it_too(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text('base = "tum-6212u"\n')
    asked = {"threads": np.int64(2), "access_size": np.int64(256)}
    found = pmsim.simulate_point("bandwidth", profile, asked)
    assert found == pmsim.simulate_point("bandwidth", str(profile), {"threads": 2, "access_size": 256})
    scenario = pmsim.Scenario(kind="bandwidth", platform="tum-6212u", metrics=["bandwidth_gb_s"])
    result = pmsim.run(scenario, set={"threads": np.array([1, 2])}, jobs=np.int64(1), seed=np.int64(0))
    assert list(result.frame["threads"]) == [1, 2]
    assert LogPart(entry_size=np.int64(128)).entry_size == 128


def test_what_says_it_in_no_one_way_is_refused() -> None:
    for odd in ({1, 2}, (n for n in [1]), np.array(["a"]), np.datetime64("2026-01-01"), np.array(1 + 2j)):
        with pytest.raises(ConfigError, match=r"^sweep.threads: .* is not a list"):
            pmsim.Scenario(kind="bandwidth", platform="tum-6212u", sweep={"threads": odd})
    with pytest.raises(ConfigError, match=r"threads: 4\.0 is not a count"):
        pmsim.simulate_point("bandwidth", "tum-6212u", {"threads": np.float64(4)})


def test_a_range_that_nobody_sweeps_is_not_written_out() -> None:
    assert plain(range(10**12)) == range(10**12)
