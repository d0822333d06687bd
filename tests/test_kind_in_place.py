"""Kind "in-place": Table 3 by the machine's own counters, and figures that follow from its parameters."""

from typing import Any

import pytest

import pmsim
from pmsim.errors import ConfigError

PLATFORM = "tum-6212u"
ARRAY = "64 MiB"


def run(**parameters: Any) -> dict[str, int | float]:
    return pmsim.simulate_point("in-place", PLATFORM, {"region_size": ARRAY} | parameters)


# van Renen et al., VLDB Journal 2020, Table 3: cache lines written for 16, 32 and 64 B; persistency barriers.
TABLE_3 = {"cow": ((2, 2, 3), 2), "log": ((2, 2, 3), 2), "fam": ((1, 2, 3), 1)}


@pytest.mark.parametrize("pattern", ["sequential", "random"])
@pytest.mark.parametrize("algorithm", sorted(TABLE_3))
def test_table_3_is_what_the_counters_say(algorithm: str, pattern: str) -> None:
    lines, barriers = TABLE_3[algorithm]
    for size, expected in zip((16, 32, 64), lines, strict=True):
        measured = run(algorithm=algorithm, update_size=size, pattern=pattern)
        # The counters run up to the batch in which the last operation ends: one more or less in 50,000.
        assert measured["lines_written_per_op"] == pytest.approx(expected, rel=1e-3)
        assert measured["barriers_per_op"] == pytest.approx(barriers, rel=1e-3)


def test_eight_bytes_need_one_line_and_one_barrier() -> None:
    measured = run(algorithm="word", update_size=8)
    assert measured["lines_written_per_op"] == pytest.approx(1, rel=1e-3)
    assert measured["barriers_per_op"] == pytest.approx(1, rel=1e-3)


def test_reads_write_nothing() -> None:
    for algorithm in ("cow", "log", "fam"):
        measured = run(algorithm=algorithm, operation="read")
        assert measured["lines_written_per_op"] == 0
        assert measured["barriers_per_op"] == 0
        assert measured["media_blocks_written_per_op"] == 0


def test_a_random_line_costs_a_block_of_the_medium_and_four_neighbours_share_one() -> None:
    # 16 B: one line for each record. 256-byte blocks hold four of them.
    assert run(pattern="random", region_size="1 GiB")["media_blocks_written_per_op"] == pytest.approx(
        1, rel=0.03
    )
    assert run(pattern="sequential")["media_blocks_written_per_op"] == pytest.approx(0.25, rel=0.03)


def test_dependent_random_reads_take_one_memory_latency_each() -> None:
    given = {"operation": "dependent-read", "pattern": "random", "region_size": "8 GiB"}
    pointer = pmsim.simulate_point(
        "latency", PLATFORM, {"operation": "load", "pattern": "random", "region_size": "8 GiB"}
    )
    for algorithm in ("cow", "log", "fam"):
        measured = pmsim.simulate_point("in-place", PLATFORM, given | {"algorithm": algorithm})
        assert 1e9 / measured["ops_per_s"] == pytest.approx(pointer["latency_ns"], rel=0.15)


def test_independent_reads_overlap_and_dependent_ones_do_not() -> None:
    given = {"pattern": "random", "region_size": "1 GiB", "algorithm": "log"}
    overlapped, chained = run(**given, operation="read"), run(**given, operation="dependent-read")
    # A core has about ten lines under way.
    assert 5 < overlapped["ops_per_s"] / chained["ops_per_s"] < 15


def test_avx2_takes_fewer_instructions_than_the_scalar_path_and_writes_the_same() -> None:
    given = {"pattern": "sequential", "operation": "read", "update_size": 64}
    vector, scalar = run(**given, algorithm="fam"), run(**given, algorithm="fam-scalar")
    assert vector["ops_per_s"] > scalar["ops_per_s"]
    assert vector["counter.loads"] == pytest.approx(scalar["counter.loads"], rel=1e-3)


def test_instructions_around_an_operation_leave_less_of_the_window_to_run_ahead() -> None:
    rates = [run(extra_instructions=extra, region_size="1 GiB")["ops_per_s"] for extra in (0, 100, 1000)]
    assert rates[0] > rates[1] > rates[2]


def test_threads_share_the_array_and_scale_while_the_medium_has_room() -> None:
    one, four = (run(pattern="sequential", threads=threads)["ops_per_s"] for threads in (1, 4))
    assert 2 < four / one <= 4.1


def test_a_huge_array_costs_no_memory_that_is_not_touched() -> None:
    measured = run(region_size="700 GB", algorithm="cow")
    assert measured["simulated_ops"] >= 50_000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"update_size": 12}, "update_size: 12 B is not an update in place; choose a multiple of 8 B"),
        ({"update_size": "2 KiB"}, "update_size: 2048 B is not an update in place"),
        ({"algorithm": "word"}, "update_size: 16 B are not written atomically by the hardware; choose 8 B"),
        ({"region_size": "800 GiB"}, "region_size: "),
        ({"extra_instructions": -1}, "extra_instructions: "),
        ({"region_size": 64, "update_size": 64}, "region_size"),
    ],
)
def test_what_cannot_be_is_refused_by_name(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(**parameters)
