"""Kind "sorted-run": what moves and merges write and wait for, and what a transaction costs."""

from typing import Any

import pytest

import pmsim
from pmsim.errors import ConfigError

PLATFORM = "ilmenau-5215"
PAIR = 24
LINE = 64
#: 170 pairs of a run, in whole lines; a line with their number; Run_Ptr.
RUN = 4096
PAIRS = RUN // PAIR
LINES = -(-PAIRS * PAIR // LINE)


def run(**parameters: Any) -> dict[str, int | float]:
    return pmsim.simulate_point("sorted-run", PLATFORM, {"run_size": RUN} | parameters)


@pytest.mark.parametrize("c0", ["sorted", "unsorted"])
def test_a_move_writes_its_lines_once_and_waits_twice(c0: str) -> None:
    measured = run(c0=c0)
    assert measured["bytes_written"] == PAIRS * PAIR + 8 + 8
    assert measured["lines_written_per_op"] == pytest.approx(LINES + 2, rel=0.01)
    assert measured["barriers_per_op"] == pytest.approx(2, rel=0.01)
    assert measured["media_blocks_written_per_op"] * 4 == pytest.approx(LINES + 2, rel=0.1)


def test_individual_failure_atomicity_adds_a_snapshot_of_one_word() -> None:
    alone, individual = run(), run(failure_atomicity="individual")
    # The snapshot and the zeroed header behind it, and the generation of the log.
    assert individual["bytes_written"] - alone["bytes_written"] == 2 * LINE + 8
    assert individual["lines_written_per_op"] - alone["lines_written_per_op"] == pytest.approx(3, rel=0.01)
    assert individual["barriers_per_op"] - alone["barriers_per_op"] == pytest.approx(3, rel=0.01)
    assert individual["latency_ns"] > alone["latency_ns"]


def test_a_transaction_writes_the_run_twice() -> None:
    alone, transaction = run(), run(failure_atomicity="transaction")
    assert transaction["bytes_written"] > 2 * PAIRS * PAIR
    assert transaction["lines_written_per_op"] == pytest.approx(2 * alone["lines_written_per_op"], rel=0.1)
    assert transaction["latency_ns"] > 1.3 * alone["latency_ns"]


@pytest.mark.parametrize("algorithm", ["two-way", "k-way"])
@pytest.mark.parametrize("target", ["direct", "buffer"])
def test_a_merge_writes_each_key_once(algorithm: str, target: str) -> None:
    given = {"operation": "merge", "algorithm": algorithm, "target": target}
    assert run(**given)["bytes_written"] == 4 * PAIRS * PAIR + 8 + 8
    assert run(**given, duplicates=100)["bytes_written"] == PAIRS * PAIR + 8 + 8


def test_a_direct_k_way_merge_snapshots_what_no_pair_will_fill() -> None:
    given = {"operation": "merge", "failure_atomicity": "transaction", "duplicates": 100}
    snapshots = {
        (algorithm, target): run(**given, algorithm=algorithm, target=target)["bytes_written"] - PAIRS * PAIR
        for algorithm in ("two-way", "k-way")
        for target in ("direct", "buffer")
    }
    # All of the run; the pairs of both buffers; those of the result.
    for where, runs in {("k-way", "direct"): 4, ("two-way", "direct"): 2, ("two-way", "buffer"): 1}.items():
        assert snapshots[where] == pytest.approx(runs * PAIRS * PAIR, rel=0.15)
    assert snapshots["k-way", "buffer"] == snapshots["two-way", "buffer"]


def test_calls_of_the_library_cost_their_cycles() -> None:
    cycles = 3000
    machine = pmsim.load_platform(PLATFORM)
    # begin, add_range, commit; of each, the first cycles pass while a fence waits.
    expected = 3 * cycles * 1e9 / machine.value("core", "frequency")
    once, twice = (run(failure_atomicity="individual", library_cycles=times * cycles) for times in (1, 2))
    assert twice["latency_ns"] - once["latency_ns"] == pytest.approx(expected, rel=0.01)
    assert run(library_cycles=cycles)["latency_ns"] == run()["latency_ns"]


def test_runs_in_dram_cost_no_persistent_line() -> None:
    measured = run(memory="dram")
    assert measured["media_blocks_written_per_op"] == 0
    assert measured["lines_written_per_op"] == pytest.approx(LINES + 2, rel=0.05)
    assert measured["latency_ns"] < run()["latency_ns"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"run_size": 23}, r"run_size: 23 is no run of pairs of 24 B; choose 24 B to 4 MiB"),
        ({"run_size": "5 MiB"}, r"run_size: '5 MiB' is no run"),
        ({"duplicates": 50}, r"duplicates: 50 % of duplicate keys; choose 0 or 100"),
        ({"library_cycles": 1_000_001}, r"library_cycles: 1000001 cycles of a call; choose 0 to 1000000"),
    ],
)
def test_what_is_no_run_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(**given)
