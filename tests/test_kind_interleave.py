"""Kind "interleave": structure by the machine's own counters, and what interleaving must and must not do."""

from typing import Any

import pytest

import pmsim
from pmsim.errors import ConfigError

PLATFORM = "tum-6212u"
REGION = "256 MiB"  # far beyond the shared cache


def run(**parameters: Any) -> dict[str, int | float]:
    return pmsim.simulate_point("interleave", PLATFORM, {"region_size": REGION} | parameters)


@pytest.mark.parametrize("fence", ["sfence", "mfence"])
def test_an_insert_has_two_phases_with_a_barrier_each(fence: str) -> None:
    measured = run(operation="insert", interleave="none", fence=fence)
    assert measured["barriers_per_op"] == pytest.approx(2, rel=1e-3)
    # Pair and header in phase 1, header in phase 2.
    assert measured["lines_written_per_op"] == pytest.approx(3, rel=2e-3)
    assert measured["suspensions_per_op"] == 0
    assert measured["speedup"] == 1


@pytest.mark.parametrize("group_size", [1, 7, 32])
@pytest.mark.parametrize("interleave", ["writes", "both"])
def test_a_group_shares_one_barrier_per_phase(group_size: int, interleave: str) -> None:
    measured = run(operation="insert", interleave=interleave, group_size=group_size)
    assert measured["barriers_per_op"] * group_size == pytest.approx(2, rel=0.01)
    assert measured["suspensions_per_op"] == (2 if interleave == "writes" else 4)


def test_an_insert_that_finds_its_leaf_full_is_none() -> None:
    """With as many leaves as inserts in a group, a group often chooses one of them twice."""
    measured = run(
        operation="insert", interleave="writes", group_size=64, region_size=64 * 576, memory="dram", threads=1
    )
    # What finds no slot is not suspended and writes nothing.
    assert measured["suspensions_per_op"] == 2
    assert measured["barriers_per_op"] * 64 == pytest.approx(2, rel=0.01)


def test_interleaved_reads_alone_share_no_barrier() -> None:
    measured = run(operation="insert", interleave="reads", group_size=16)
    assert measured["barriers_per_op"] == pytest.approx(2, rel=1e-3)
    assert measured["suspensions_per_op"] == 2


def test_the_fingerprint_needs_no_flush_of_its_own() -> None:
    measured = run(operation="insert", interleave="none", first_flush="pair")
    assert measured["lines_written_per_op"] == pytest.approx(2, rel=2e-3)
    assert measured["time_per_op_ns"] < run(operation="insert", interleave="none")["time_per_op_ns"]


@pytest.mark.parametrize("memory", ["dram", "pmem"])
def test_a_lookup_is_suspended_twice_and_writes_nothing(memory: str) -> None:
    measured = run(operation="lookup", interleave="reads", group_size=20, memory=memory)
    assert measured["suspensions_per_op"] == 2
    assert measured["barriers_per_op"] == 0
    assert measured["lines_written_per_op"] == 0


def test_plain_lookups_wait_for_each_header_but_overlap_with_the_next_ones_pair() -> None:
    far = "10 GiB"  # nearly every line is a miss
    latency = pmsim.simulate_point(
        "latency", PLATFORM, {"memory": "pmem", "pattern": "random", "region_size": far}
    )["latency_ns"]
    plain = run(operation="lookup", interleave="none", region_size=far)["time_per_op_ns"]
    assert latency < plain < 1.2 * latency


def test_many_outstanding_misses_are_what_interleaving_gains() -> None:
    alone = run(operation="lookup", group_size=1)["speedup"]
    grouped = run(operation="lookup", group_size=20)["speedup"]
    assert alone < 1
    assert grouped > 3
    fewer_buffers = {"base": PLATFORM, "core": {"line_fill_buffers": 2}}
    limited = pmsim.simulate_point("interleave", fewer_buffers, {"region_size": REGION, "group_size": 20})
    # Two misses per lookup, two at a time: hardly more than plain code, of which one is waited for.
    assert limited["speedup"] < 1.5


def test_a_switch_costs_cpu_cycles_where_nothing_else_is_the_limit() -> None:
    given = {"memory": "dram", "group_size": 32}
    cheap, dear = (run(cpu_cycles=cycles, **given)["time_per_op_ns"] for cycles in (100, 200))
    # Three switches of 100 cycles more at 3.1 GHz.
    assert dear - cheap == pytest.approx(300 / 3.1, rel=0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"operation": "lookup", "interleave": "both"}, "interleave: a lookup has no writes"),
        ({"group_size": 65}, "group_size: 65 coroutines in a group; choose 1 to 64"),
        ({"cpu_cycles": 100_001}, "cpu_cycles: 100001 cycles of a switch; choose 0 to 100000"),
        ({"threads": 49}, "threads: 49 threads on platform 'tum-6212u'"),
        ({"region_size": "512 B"}, "region_size: each of 1 threads needs a leaf of 576 B"),
        (
            {"operation": "insert", "interleave": "both", "group_size": 16, "region_size": 15 * 576},
            "region_size: each of 1 threads needs 16 leaves of 576 B, one for each insert of a group; "
            "choose a larger region, smaller groups or fewer threads",
        ),
        ({"operation": "delete"}, "operation"),
    ],
)
def test_bad_input_is_refused_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        run(**given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
