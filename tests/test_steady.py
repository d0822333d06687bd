"""`steady` of kinds that measure one rate or mean, and `length`, which makes their runs longer."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pmsim
from pmsim.cli import main
from pmsim.kinds.intervals import is_steady, starts_apart, times_of_batches
from pmsim.points import points_of
from pmsim.scenario import Scenario

PLATFORM = {"base": "ucsd-8260", "block_device": "nvme-p4510"}

#: A point of each kind with `length`, as small as can be.
SMALL: dict[str, dict[str, Any]] = {
    "bandwidth": {"region_size": "64 MiB"},
    "block": {"region_size": "64 MiB"},
    "contention": {},
    "in-place": {"region_size": "64 MiB", "algorithm": "log"},
    "interleave": {"region_size": "64 MiB"},
    "latency": {"region_size": "64 MiB"},
    "log": {},
    "mixed": {
        "groups": [{"task": "read", "threads": 2}, {"task": "write", "threads": 1}],
        "region_size": "64 MiB",
    },
    "node": {"region_size": "1 MiB"},
    "operations": {"operations": "rp_64,wp_64_cache", "region_size": "64 MiB"},
    "page-flush": {"pages": 64},
    "persist": {"region_size": "64 MiB"},
    "sorted-run": {},
}


def test_a_step_of_more_than_5_percent_is_not_steady() -> None:
    assert is_steady([100, 101, 100, 101, 100, 101]) == 1
    assert is_steady([100, 101, 100, 104, 105, 104]) == 1
    assert is_steady([100, 101, 100, 106, 107, 106]) == 0
    assert is_steady([107, 106, 106, 100, 101, 100]) == 0
    # Far apart, but so are the values of one half.
    assert is_steady([50, 100, 150, 80, 120, 160]) == 1
    assert math.isnan(is_steady([100, 200, 300]))


def test_chance_is_taken_for_a_drift_in_about_one_of_a_hundred_runs() -> None:
    random = np.random.default_rng(1)
    found = [is_steady(random.normal(1000, 200, size=10)) for _ in range(2_000)]
    assert 5 <= found.count(0) <= 40


#: Eighteen batches within 2 % of each other, without a drift.
CALM = [100, 101, 99, 100, 101, 99] * 3


def test_a_short_and_violent_start_is_not_steady() -> None:
    """Student's test takes it for chance, as the variance of its half is that large."""
    assert is_steady(CALM) == 1
    assert is_steady([6_000, 1_000, *CALM]) == 0
    assert is_steady([1_000, 6_000, *CALM]) == 0
    assert is_steady([1, 20, *CALM]) == 0  # faster than what follows
    assert is_steady([6_000, 1_000, 2_000, *CALM]) == 0
    # Two of twenty lie anywhere, one is the first of twenty: chance, as far as ranks can say.
    assert is_steady([*CALM[:5], 6_000, *CALM[5:12], 1_000, *CALM[12:]]) == 1
    assert is_steady([6_000, *CALM, 1_000]) == 1
    assert is_steady([6_000, *CALM, 100]) == 1


def test_a_start_apart_that_changes_no_result_is_steady() -> None:
    """Two of twenty batches that take half as long again make the mean 5 % larger; 40 % more make it 4 %."""
    assert is_steady([152, 152, *CALM]) == 0
    assert is_steady([140, 140, *CALM]) == 1
    assert is_steady([140, 140, *CALM], result=lambda first: 100 if first else 106) == 0


def test_the_fewer_batches_the_longer_a_start_has_to_be() -> None:
    """By chance two of ten are the furthest in one of 45 runs, three in one of 120; four of nine: of 126."""
    slow = [1_000, 2_000, 1_500, 3_000]
    for batches, least in ((20, 2), (10, 3), (9, 4)):
        for first in range(1, least + 1):
            found = starts_apart(np.array(slow[:first] + CALM[: batches - first], dtype=float))
            assert found == ([first] if first == least else [])
    assert starts_apart(np.array(slow[:3] + CALM[:5], dtype=float)) == []


def test_ties_are_not_further() -> None:
    """Percentiles are ends of buckets, and often the same."""
    assert starts_apart(np.array([5.0, 5, *[1] * 18])) == [2]
    assert starts_apart(np.array([5.0, 5, *[1] * 17, 5])) == []
    assert starts_apart(np.array([5.0, 5, *[3] * 16, 1, 1])) == []  # the last two are as far
    assert starts_apart(np.ones(20)) == []


def test_whatever_the_distribution_one_choice_of_the_first_batches_is_apart() -> None:
    random = np.random.default_rng(1)
    for values in (
        random.normal(size=10),
        random.pareto(0.5, size=10),
        -random.pareto(0.5, size=10),
        random.integers(3, size=10).astype(float),
    ):
        orders = [[*first, *sorted(set(range(10)) - {*first})] for first in combinations(range(10), 3)]
        assert sum(bool(starts_apart(values[order])) for order in orders) <= 1


def test_a_start_of_any_length_is_found_by_chance_in_less_than_one_of_a_hundred_runs() -> None:
    random = np.random.default_rng(1)
    found = sum(bool(starts_apart(random.pareto(0.5, size=20))) for _ in range(2_000))
    # Two of twenty in one of 190 runs, three in one of 1,140, ...: 13 of 2,000, within three deviations.
    assert 2 <= found <= 24


def test_a_cold_server_whose_first_requests_queue_is_not_steady() -> None:
    given = {"service": "table", "warmup": 0, "workers": 4, "rows": 262_144, "zipf": 1, "requests": 300_000}
    cold = pmsim.simulate_point("system", "tum-6212u", given | {"load_percent": 90})
    assert cold["keeps_up"] == 1
    # The queue of the start is most of the tail: a warm server's, at this load, is about 1 us.
    assert cold["latency_p99_ns"] > 10_000
    assert cold["steady"] == 0


def test_batches_have_as_many_operations_as_can_be() -> None:
    assert times_of_batches([10, 20, 40], 9) == [pytest.approx(time) for time in (10 / 3, 10 / 3, 20 / 3)]
    assert times_of_batches([10, 20, 40], 2) == []


@pytest.mark.parametrize("kind", sorted(SMALL))
def test_length_multiplies_what_is_measured_and_is_no_other_run(kind: str) -> None:
    usual, longer = (
        pmsim.simulate_point(kind, PLATFORM, SMALL[kind] | {"length": length}) for length in (1, 3)
    )
    assert longer["simulated_ops"] == 3 * usual["simulated_ops"]
    assert usual["steady"] == longer["steady"] == 1


def test_runs_of_different_lengths_draw_the_same() -> None:
    short, long = (
        points_of(Scenario(kind="log", platform=PLATFORM, parameters={"length": length}))[0]
        for length in (1, 3)
    )
    assert short.seed == long.seed
    assert short.configuration != long.configuration


def test_a_longer_log_of_updates_in_place_is_not_full_before_the_end() -> None:
    """Truncation would cost lines, and the paper's log never has to be emptied."""
    given = SMALL["in-place"] | {"region_size": "1 MiB", "update_size": 64}
    usual, longer = (
        pmsim.simulate_point("in-place", PLATFORM, given | {"length": length}) for length in (1, 20)
    )
    assert longer["lines_written_per_op"] == pytest.approx(usual["lines_written_per_op"], rel=1e-3)


def test_batches_hold_whole_windows() -> None:
    """Stores to the caches take other times than the flushes behind them, and that is no chance."""
    given = {
        "memory": "pmem",
        "operation": "store+clwb",
        "pattern": "sequential",
        "access_size": 64,
        "region_size": "64 MiB",
        "flush_every": "16 MiB",
    }
    one = pmsim.simulate_point("bandwidth", PLATFORM, given)
    assert math.isnan(one["bandwidth_gb_s_low"])
    assert math.isnan(one["steady"])
    several = pmsim.simulate_point("bandwidth", PLATFORM, given | {"length": 4})
    assert several["bandwidth_gb_s_low"] > 0.9 * several["bandwidth_gb_s"]
    assert several["steady"] == 1


def test_a_run_says_of_how_many_points_the_log_has_never_been_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs.toml").write_text(
        'kind = "oltp"\nplatform = "tum-6212u"\nmetrics = ["log_reused"]\n[parameters]\n'
        'engine = "main-memory"\nworkload = "ycsb-a"\ndata_size = "256 MiB"\ndram_capacity = "1 GiB"\n'
        'ssd_capacity = 0\nwarmup = 0\noperations = 40_000\n[sweep]\nlog_size = ["64 MiB", "1 GiB"]\n'
    )
    assert main(["run", str(tmp_path / "logs.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    told = "in 1 of 2 points `log_reused` is 0: the log has never been full"
    assert told in " ".join(capsys.readouterr().err.split())
    assert told in (tmp_path / "out" / "report.html").read_text()
