"""Runs are long enough: what a program that runs for minutes has left behind is there when they measure."""

from typing import Any

import pytest

import pmsim
from pmsim.crash import check_block

PLATFORM = "tum-6212u"


@pytest.mark.parametrize("given", [{}, {"algorithm": "log", "threads": 4}, {"operation": "read"}])
def test_updates_in_place_meet_page_tables_as_reads_leave_them(given: dict[str, Any]) -> None:
    measured = pmsim.simulate_point("in-place", PLATFORM, {"pattern": "random"} | given)
    walks = measured["counter.tlb_walks"] / measured["simulated_ops"]
    assert walks == pytest.approx(1, abs=0.05)
    # Page tables are in DRAM, and 20 MB of them compete with the records for a cache of 36 MB.
    assert 0.2 < measured["counter.dram_read_lines"] / measured["simulated_ops"] < 0.4


def test_searches_meet_the_lines_that_searches_leave_in_the_caches() -> None:
    given = {"operation": "search", "layout": "hashing"}  # three or four lines of each of 65,536 nodes
    measured = pmsim.simulate_point("node", PLATFORM, given)
    assert measured["counter.memory_reads"] / measured["simulated_ops"] < 0.8  # 2.0 after loads of random lines


def test_threads_that_append_settle_to_each_other() -> None:
    runs = [pmsim.simulate_point("log", PLATFORM, {"threads": 24}, seed=seed) for seed in range(1, 5)]
    assert all(run["simulated_ops"] == 24 * 2_500 for run in runs)
    longer = pmsim.simulate_point("log", PLATFORM, {"threads": 24, "length": 4})
    rates = [run["ops_per_s"] for run in runs]
    assert sum(rates) / len(rates) == pytest.approx(longer["ops_per_s"], rel=0.08)


def test_a_crash_check_that_asks_for_few_states_draws_few_images_of_a_step() -> None:
    # One small program has steps with more images than anybody counts; 256 of each are 88,000.
    assert check_block("pages-three-tier-clwb", states=1_000, mutate=False).check.states < 25_000


@pytest.mark.parametrize(
    ("kind", "metric", "given"),
    [
        # Each of 16 threads has TLBs of its own: until their 1,536 entries are full it is half as fast.
        ("operations", "operations_per_s", {"operations": "rd_256", "threads": 16}),
        ("bandwidth", "bandwidth_gb_s", {"memory": "dram", "pattern": "random", "threads": 24}),
        # Half of the region is in the caches of a long run.
        (
            "mixed",
            "group_1_bandwidth_gb_s",
            {"groups": [{"task": "read", "threads": 2}], "region_size": "64 MiB"},
        ),
        ("in-place", "ops_per_s", {"algorithm": "log", "region_size": "64 MiB"}),
        # Threads that share a core warm up at half the pace of the others; none of it counts.
        ("in-place", "ops_per_s", {"threads": 32}),
        ("operations", "operations_per_s", {"operations": "rp_64,wp_64_cache", "region_size": "64 MiB"}),
        # Pages that fit into the caches are there when they are flushed again.
        ("page-flush", "ops_per_s", {"pages": 1_000}),
        # A merge finds its tree as other merges have left it.
        ("sorted-run", "latency_ns", {"operation": "merge", "run_size": 1024}),
    ],
)
def test_longer_runs_give_the_same(kind: str, metric: str, given: dict[str, Any]) -> None:
    usual, longer = (
        pmsim.simulate_point(kind, PLATFORM, given | {"length": length})[metric] for length in (1, 4)
    )
    assert usual == pytest.approx(longer, rel=0.03)


PERSISTENT_CACHES = {"base": PLATFORM, "controller": {"eadr": True}}
#: With the share of the stores that are to a line which the caches do not have: a micro log is written to the
#: same lines each time, of a log's stores some are to lines that have just been stored to.
PERSISTS: list[tuple[str, dict[str, Any], float]] = [
    ("bandwidth", {"operation": "store+clwb", "pattern": "sequential"}, 1),
    ("bandwidth", {"operation": "load+store+clwb", "access_size": 64}, 1),
    ("persist", {"operation": "store+clwb", "access_size": 1024}, 1),
    ("operations", {"operations": "rp_256,wp_256_cache"}, 1),
    ("log", {"entry_size": 512}, 0.7),
    ("mixed", {"groups": [{"task": "log", "threads": 4, "memory": "pmem"}]}, 0.65),
    ("in-place", {"algorithm": "fam", "pattern": "random"}, 1),
    ("page-flush", {"write": "store+clwb"}, 1),
    ("page-flush", {"write": "store+clwb", "technique": "microlog", "dirty_lines": 32}, 0.24),
    ("page-flush", {"write": "store+clwb", "technique": "hybrid", "dirty_lines": 32}, 0.24),
]


@pytest.mark.parametrize(("kind", "given", "new"), PERSISTS, ids=[kind for kind, *_ in PERSISTS])
def test_what_persistent_caches_keep_reaches_the_medium_when_they_are_full(
    kind: str, given: dict[str, Any], new: float
) -> None:
    """Flushes do nothing there, so lines leave as those of plain stores do: for each that comes one goes."""
    threads = {} if kind == "mixed" else {"threads": 4}
    counted = pmsim.simulate_point(kind, PERSISTENT_CACHES, given | threads)
    stored = counted["counter.stores"] + counted["counter.stream_stores"]
    assert counted["counter.pmem_write_lines"] / stored > 0.95 * new


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("interleave", {"operation": "insert", "threads": 4}),
        ("node", {"operation": "insert", "region_size": "1 GiB"}),
        ("sorted-run", {"operation": "move"}),
    ],
)
def test_lines_leave_persistent_caches_as_often_in_a_longer_run(kind: str, given: dict[str, Any]) -> None:
    runs = [pmsim.simulate_point(kind, PERSISTENT_CACHES, given | {"length": times}) for times in (1, 3)]
    usual, longer = (run["counter.pmem_write_lines"] / run["simulated_ops"] for run in runs)
    assert usual > 1
    assert usual == pytest.approx(longer, rel=0.04)


@pytest.mark.parametrize("blocks", [64, 4096])
def test_buffers_of_the_modules_are_full_however_large_they_are(blocks: int) -> None:
    machine = {"base": "ucsd-8260", "pmem": {"write_buffer_blocks": blocks}}
    given = {"operation": "ntstore", "pattern": "random", "access_size": 256, "threads": 8}
    counted = pmsim.simulate_point("bandwidth", machine, given)
    assert counted["write_amplification"] > 0.98
    assert counted["bandwidth_gb_s"] < 13.4  # what the medium takes, in any order


@pytest.mark.parametrize("operation", ["read", "dependent-read"])
def test_who_reads_meets_no_lines_that_others_have_stored(operation: str) -> None:
    given = {"operation": operation, "pattern": "random", "region_size": "1 GiB"}
    assert pmsim.simulate_point("in-place", PERSISTENT_CACHES, given)["counter.pmem_write_lines"] == 0


@pytest.mark.parametrize("operation", ["load", "store", "load+store"])
def test_what_fits_into_the_caches_is_there_when_a_run_measures(operation: str) -> None:
    given = {"operation": operation, "access_size": 64, "region_size": "8 MiB", "threads": 2}
    counted = pmsim.simulate_point("bandwidth", PLATFORM, given)
    assert counted["read_amplification"] < 0.02
    assert counted["write_amplification"] < 0.02


@pytest.mark.parametrize(
    ("kind", "given"),
    [("bandwidth", {"access_size": 64}), ("operations", {"operations": "rp_64,rp_64"})],
)
def test_threads_that_share_a_small_region_share_a_cache(kind: str, given: dict[str, Any]) -> None:
    """What one core has brought, others find in the last-level cache, and nobody reads it from memory again."""
    several = pmsim.simulate_point(kind, PLATFORM, given | {"region_size": "4 MiB", "threads": 4})
    assert several["counter.pmem_read_lines"] < 0.02 * several["counter.loads"]


def test_a_long_persist_comes_to_its_end() -> None:
    counted = pmsim.simulate_point("persist", PLATFORM, {"access_size": "16 MiB", "region_size": "1 GiB"})
    assert counted["bandwidth_gb_s"] == pytest.approx(7.7, rel=0.2)  # what one thread streams
