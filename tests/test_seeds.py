"""Several seeds: means over runs, intervals over seeds, and nothing lost or hidden on the way."""

import math
import statistics
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim.api import load_scenario
from pmsim.cli import main
from pmsim.errors import ConfigError
from pmsim.kinds.does_not_fit import DoesNotFit
from pmsim.runner import Failure, Outcome
from pmsim.scenario import Scenario
from pmsim.seeds import joined, mean
from pmsim.trace import record
from pmsim.tuning import tune
from pmsim.unused import checked_points

SCENARIO = Scenario(
    kind="bandwidth",
    platform="tum-6212u",
    parameters={"memory": "pmem", "access_size": "4 KiB", "threads": 8, "region_size": "64 MiB"},
    sweep={"operation": ["load", "ntstore"]},
)


def run(scenario: Scenario = SCENARIO, **given: Any) -> pmsim.Result:
    return pmsim.run(scenario, jobs=1, progress=False, **given)


def test_a_point_of_several_seeds_has_means_and_students_interval_over_them() -> None:
    several = run(seed=7, seeds=3).frame
    single = [run(seed=seed).frame for seed in (7, 8, 9)]
    assert list(several["operation"]) == ["load", "ntstore"]
    for row in range(2):
        values = [frame["bandwidth_gb_s"][row] for frame in single]
        middle, reach = statistics.fmean(values), 4.303 * statistics.stdev(values) / math.sqrt(3)
        assert several["bandwidth_gb_s"][row] == pytest.approx(middle)
        assert several["bandwidth_gb_s_low"][row] == pytest.approx(middle - reach)
        assert several["bandwidth_gb_s_high"][row] == pytest.approx(middle + reach)
        amplification = statistics.fmean(frame["read_amplification"][row] for frame in single)
        assert several["read_amplification"][row] == pytest.approx(amplification)
    assert list(several["seeds"]) == [3, 3]
    assert list(several["seed"]) == list(single[0]["seed"])
    assert set(several["configuration"]).isdisjoint(single[0]["configuration"])


def test_one_seed_is_a_run_as_ever() -> None:
    assert run(seeds=1).frame.equals(run().frame)
    assert "seeds" not in run(seeds=1).frame


def test_seeds_that_have_been_run_are_kept_and_the_written_scenario_asks_for_the_same(tmp_path: Path) -> None:
    run(out=tmp_path, seeds=2)
    more = run(out=tmp_path, seeds=3)
    assert more.provenance["points_from_cache"] == 4
    assert len(more.provenance["point_seeds"]) == len(set(more.provenance["point_seeds"])) == 6
    again = run(load_scenario(tmp_path / "scenario.resolved.toml"), out=tmp_path)
    assert again.provenance["points_from_cache"] == 6
    assert again.frame.equals(more.frame)


def test_the_figure_says_what_its_error_bars_are_over() -> None:
    for seeds, over in ((3, "3 seeds"), (1, "batches of a run")):
        assert f"95 % confidence interval over {over}" in run(seeds=seeds).figure().layout.title.subtitle.text


def test_the_command_says_how_many_runs_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO.to_toml())
    out = tmp_path / "out"
    command = ["run", str(file), "--seeds", "3", "--jobs", "1", "--out", str(out)]
    assert main([*command, "--dry-run"]) == 0
    assert f"2 points, 3 seeds each, 0 of 6 runs finished in {out}; nothing was run" in capsys.readouterr().out
    assert main(command) == 0
    assert "2 of 2 points (3 seeds each, runs: 0 kept from before)" in capsys.readouterr().out


@pytest.mark.parametrize("seeds", [0, -1, 10_001, 1.5, "2", True])
def test_an_odd_number_of_seeds_is_refused_in_one_line(seeds: Any) -> None:
    with pytest.raises(ConfigError, match=r"^seeds: [^\n]*$"):
        run(seeds=seeds)


def test_curves_have_one_seed_and_so_has_a_search() -> None:
    with pytest.raises(ConfigError, match=r"seeds: rows of these points are a curve .* remove it"):
        run(load_scenario("hymem/fig17"), seeds=2)
    with pytest.raises(ConfigError, match=r"seeds: a search visits each point with one seed; remove it"):
        tune(SCENARIO, set={"seeds": 2}, steps=1)


def test_a_replay_draws_what_was_drawn_and_has_one_seed(tmp_path: Path) -> None:
    record(SCENARIO, tmp_path / "t.trace")
    replay = Scenario(kind="trace", platform="tum-6212u", parameters={"file": str(tmp_path / "t.trace")})
    with pytest.raises(ConfigError, match=r"seeds: a run of kind 'trace' draws nothing from a seed; remove it"):
        run(replay, seeds=2)


def test_a_point_fails_with_one_of_its_runs_and_names_the_seed() -> None:
    points = checked_points(SCENARIO)
    whole, values = Failure(3, "a point", "no room"), {"bandwidth_gb_s": 1.0}
    outcome = joined(points, 2, Outcome([values, values, values, None], [whole], from_cache=1))
    assert outcome.failures == [Failure(1, "a point", "seed 1: no room")]
    assert outcome.metrics[0] is not None
    assert outcome.metrics[1] is None
    assert outcome.from_cache == 1


def test_what_is_0_or_1_is_1_where_it_is_in_all_runs() -> None:
    runs = [{"steady": 1, "simulated_ops": 5, "x": 1.0}, {"steady": 0, "simulated_ops": 5, "x": math.nan}]
    found = mean(runs, [])
    assert (found["steady"], found["simulated_ops"]) == (0, 5)
    assert math.isnan(found["x"])
    assert mean([{"x": 1.0}, {"x": 3.0}], []) == {"x": 2.0}


def test_data_that_do_not_fit_with_one_seed_do_not_fit() -> None:
    refused = DoesNotFit({"fits": 0}, "too large")
    assert mean([{"fits": 1}, refused], []) is refused


def test_lookups_beside_more_and_longer_scans_are_the_same_lookups() -> None:
    """So that a sweep over the scans compares what these do alone, and seeks one saturation."""
    scenario = pmsim.Scenario(
        kind="system",
        platform="ucsd-8260",
        parameters={"study": "tenants", "service": "table", "workers": 2, "rows": 1000, "requests": 500},
        sweep={"scanners": [0, 2], "scan_rows": [100, 200]},
    )
    frame = pmsim.run(scenario, jobs=1, progress=False).frame
    assert frame[["seed", "saturation_per_s"]].nunique().tolist() == [1, 1]
