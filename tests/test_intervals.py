"""Confidence intervals from batches: Student's, and as often right as they say."""

import math
import statistics
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pmsim
from pmsim.kinds import intervals
from pmsim.kinds.intervals import Latencies

SECOND = 10**12
#: Lookups beside a writer, in little.
MIXED: dict[str, Any] = {
    "groups": [
        {"task": "lookup", "memory": "pmem", "threads": 2},
        {"task": "write", "memory": "pmem", "threads": 1},
    ],
    "region_size": 2**31,
}


def test_the_interval_of_a_throughput_is_students() -> None:
    # Batches of 10 operations in 10, 11 and 12 s: mean 11 s, standard error 1/sqrt(3), t(2) = 4.303.
    low, high = intervals.of_throughput([10 * SECOND, 21 * SECOND, 33 * SECOND], 30)
    reach = 4.303 / math.sqrt(3)
    assert (low, high) == (pytest.approx(10 / (11 + reach)), pytest.approx(10 / (11 - reach)))
    # Of 1, 2 and 3 s the interval of the time reaches below zero: it bounds nothing.
    assert all(math.isnan(end) for end in intervals.of_throughput([SECOND, 3 * SECOND, 6 * SECOND], 30))
    low, high = intervals.of_throughput([SECOND * n for n in range(1, 21)], 200)
    assert (low, high) == (pytest.approx(10), pytest.approx(10))
    # 30 operations of a second each: batches of one and of two.
    low, high = intervals.of_throughput([SECOND * (30 * n // 20) for n in range(1, 21)], 30)
    assert (low, high) == (pytest.approx(1), pytest.approx(1))
    assert all(math.isnan(end) for end in intervals.of_throughput([SECOND], 10))
    # Two operations in four batches: some have none.
    assert all(math.isnan(end) for end in intervals.of_throughput([0, SECOND, SECOND, 2 * SECOND], 2))


def table(counts: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> Latencies:
    """Every operation takes what is the most in its bucket."""
    return Latencies(counts, edges, counts @ edges)


def latencies(times: npt.NDArray[np.float64]) -> Latencies:
    """Times by batches, in buckets of a hundredth."""
    buckets = np.ceil(times * 100).astype(np.int64)
    edges = np.arange(buckets.max() + 1)
    return table(np.stack([np.bincount(batch, minlength=len(edges)) for batch in buckets]), edges)


def test_some_95_of_100_intervals_have_the_percentile_of_independent_times() -> None:
    random = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        low, high = latencies(random.exponential(size=(20, 300))).percentile_intervals([0.99])[0]
        found += low - 1 <= 100 * math.log(100) <= high
    assert 0.88 <= found / 200 <= 0.98  # of twenty batches the bootstrap's are somewhat too narrow


def test_the_interval_of_a_mean_is_students() -> None:
    edges = np.array([100])
    # Batches with means of 10, 11 and 12: standard error 1/sqrt(3), t(2) = 4.303.
    low, high = Latencies(np.array([[10], [10], [10]]), edges, np.array([100, 110, 120])).mean_interval()
    reach = 4.303 / math.sqrt(3)
    assert (low, high) == (pytest.approx(11 - reach), pytest.approx(11 + reach))
    # Ten operations of 10 and twenty of 13: the mean is 12, not that of the batches' means, and they deviate by
    # 20 in all, over fifteen operations on average, t(1) = 12.706.
    few = Latencies(np.array([[10], [20]]), edges, np.array([100, 260]))
    assert all(math.isnan(end) for end in few.mean_interval())  # wider than the mean
    many = Latencies(np.array([[1000], [2000]]), edges, np.array([11_900, 24_100]))
    assert many.mean_interval() == (pytest.approx(12 - 12.706 / 15), pytest.approx(12 + 12.706 / 15))
    assert Latencies(np.array([[3], [3]]), edges, np.array([10, 10])).mean_interval() == (10 / 3, 10 / 3)


def test_the_interval_of_a_quotient_adds_relative_widths_by_their_squares() -> None:
    assert intervals.of_quotient((10, 5, 30), (5, 5, 5)) == pytest.approx((2, 1, 6))
    assert intervals.of_quotient((10, 10, 10), (5, 1, 20)) == pytest.approx((2, 0.5, 10))
    both = 2 ** math.sqrt(2)
    assert intervals.of_quotient((10, 5, 20), (5, 2.5, 10)) == pytest.approx((2, 2 / both, 2 * both))
    assert intervals.of_quotient((10, 10 + 2e-15, 10 + 2e-15), (5, 5, 5)) == pytest.approx((2, 2, 2))
    for unknown in ((10, math.nan, math.nan), (10, -1, 21)):
        value, *ends = intervals.of_quotient(unknown, (5, 4.8, 5.2))
        assert value == 2
        assert all(end is math.nan for end in ends)
    assert intervals.of_quotient((10, 9, 11), (0, 0, 0))[0] == math.inf


def test_a_mean_of_one_batch_or_beside_an_empty_one_has_no_interval() -> None:
    for counts in ([[5]], [[5], [0]]):
        sums = np.array(counts)[:, 0] * 10
        assert all(math.isnan(end) for end in Latencies(np.array(counts), np.array([10]), sums).mean_interval())


def test_an_interval_is_as_wide_as_what_one_bad_batch_does() -> None:
    counts = np.zeros((20, 2), dtype=np.int64)
    counts[:, 0] = 1_000
    counts[7] = [700, 300]  # 1.5 % of all are slow
    low, high = table(counts, np.array([10, 500])).percentile_intervals([0.99])[0]
    assert (low, high) == (10, 500)
    counts[:] = [980, 20]
    assert table(counts, np.array([10, 500])).percentile_intervals([0.99])[0] == (500, 500)


def test_latencies_are_alike_where_all_counts_are() -> None:
    """`Measurement`, of which they are a part, is compared: a replay is the recorded run."""
    one, same, other = (table(np.array([counts]), np.array([10, 20])) for counts in ([1, 2], [1, 2], [1, 3]))
    assert one == same
    assert one != other
    assert one != 1


def test_a_percentile_that_few_are_beyond_has_no_interval() -> None:
    few = table(np.full((20, 2), 90, dtype=np.int64), np.array([10, 20]))
    assert all(math.isnan(end) for end in few.percentile_intervals([0.99])[0])
    assert math.isnan(few.is_steady(0.99))
    assert few.percentile_intervals([0.9])[0] == (20, 20)


def test_a_run_whose_latency_drifts_is_not_steady() -> None:
    random = np.random.default_rng(1)
    times = random.exponential(size=(20, 500))
    assert latencies(times).is_steady(0.99) == 1
    assert latencies(times * np.linspace(2, 1, 20)[:, None]).is_steady(0.99) == 0
    assert sum(latencies(random.exponential(size=(20, 500))).is_steady(0.99) for _ in range(100)) >= 97


def test_a_start_that_raises_a_percentile_of_all_is_not_steady() -> None:
    """What counts is the percentile of all operations, not the mean of the batches': 200, or 107."""
    counts = np.tile([980, 20, 0], (20, 1))
    counts[:2] = [850, 0, 150]
    one = table(counts, np.array([10, 100, 200]))
    assert one.percentile_intervals([0.99])[0][1] == 200
    assert one.is_steady(0.99) == 0
    assert table(counts[::-1], np.array([10, 100, 200])).is_steady(0.99) == 1
    assert table(counts, np.array([10, 100, 110])).is_steady(0.99) == 1


def test_a_window_has_the_percentile_of_its_batches() -> None:
    counts = np.array([[3, 0], [0, 1], [0, 2]])
    found = table(counts, np.array([10, 20])).of_windows([0, 0, 2], 3, 0.5)
    assert found[0] == 10
    assert math.isnan(found[1])
    assert found[2] == 20


def test_the_interval_of_a_bandwidth_is_as_wide_as_seeds_differ() -> None:
    def simulated(access_size: int, seed: int) -> dict[str, float]:
        given = {"memory": "pmem", "operation": "load", "access_size": access_size, "threads": 24}
        return pmsim.simulate_point("bandwidth", "tum-6212u", given, seed=seed)

    widths = {}
    for access_size, seeds in ((64, 8), (4096, 24)):
        runs = [simulated(access_size, seed) for seed in range(1, seeds + 1)]
        mean = statistics.fmean(run["bandwidth_gb_s"] for run in runs)
        # Of 40 such intervals 35 to 38 hold the mean (CHANGELOG), of 95 % ones half as wide 27: between these.
        # (Of 64 of 4 KiB 53 do, so eight would say little.)
        held = sum(run["bandwidth_gb_s_low"] <= mean <= run["bandwidth_gb_s_high"] for run in runs)
        assert held >= seeds * (35 + 27) / 2 / 40, access_size
        widths[access_size] = runs[0]["bandwidth_gb_s_high"] / runs[0]["bandwidth_gb_s_low"] - 1
    # Which modules long chunks share is chance for a whole chunk.
    assert widths[64] < 0.05 < widths[4096]


@pytest.mark.parametrize(
    ("kind", "parameters", "metrics"),
    [
        ("log", {"threads": 16}, "ops_per_s"),  # with seven no line waits, so nothing is drawn
        ("page-flush", {"threads": 7, "technique": "microlog", "dirty_lines": 32}, "ops_per_s"),
        ("in-place", {"pattern": "random"}, "ops_per_s"),
        ("block", {"threads": 4}, "bandwidth_gb_s"),
        ("latency", {}, "latency_ns"),
        ("node", {"operation": "insert"}, "latency_ns"),
        ("mixed", MIXED, "group_1_bandwidth_gb_s group_1_slowdown"),
    ],
)
def test_throughputs_and_latencies_of_seeds_are_in_each_others_intervals(
    kind: str, parameters: dict[str, Any], metrics: str
) -> None:
    machine = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    runs = [pmsim.simulate_point(kind, machine, parameters, seed=seed) for seed in range(1, 9)]
    for metric in metrics.split():
        mean = statistics.fmean(run[metric] for run in runs)
        assert sum(run[f"{metric}_low"] <= mean <= run[f"{metric}_high"] for run in runs) >= 7
        assert all(run[f"{metric}_low"] < run[metric] < run[f"{metric}_high"] for run in runs)
        widths = [run[f"{metric}_high"] / run[f"{metric}_low"] - 1 for run in runs]
        # As wide as they have to be: twice Student's t of ten batches, 4.5 standard deviations, which eight
        # seeds tell within a factor of two.
        deviation = statistics.stdev(run[metric] for run in runs) / mean
        assert 4.5 / 2 < statistics.median(widths) / deviation < 4.5 * 2
