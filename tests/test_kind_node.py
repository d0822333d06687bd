"""Kind "node": Table 4 of the paper, bytes that follow from the layouts, times that follow from the machine."""

from typing import Any

import pytest

import pmsim
from pmsim.errors import ConfigError, HostMemoryError
from pmsim.points import points_of

PLATFORM = "ilmenau-5215"
LAYOUTS = ("sorted", "unsorted", "indirection", "hashing", "bitmap")
REGION = "4 MiB"


def run(platform: Any = PLATFORM, **parameters: Any) -> dict[str, int | float]:
    return pmsim.simulate_point("node", platform, {"region_size": REGION} | parameters)


def latency(**parameters: Any) -> float:
    return run(**parameters)["latency_ns"]


# Götze et al., DaMoN 2020, Table 4: pairs in nodes of 256 B, 1 KiB and 4 KiB.
TABLE_4 = {
    ("sorted", "packed"): (9, 41, 169),
    ("unsorted", "padded"): (8, 40, 168),
    ("indirection", "padded"): (8, 37, 160),
    ("hashing", "padded"): (8, 37, 160),
}


@pytest.mark.parametrize(("layout", "header"), sorted(TABLE_4))
def test_table_4_is_what_fits(layout: str, header: str) -> None:
    for size, entries in zip((256, 1024, 4096), TABLE_4[layout, header], strict=True):
        measured = run(layout=layout, header=header, node_size=size)
        assert measured["entries"] == entries
        assert measured["bytes_per_pair"] == size / entries


def test_a_sorted_node_moves_all_that_lies_behind_and_others_write_a_pair() -> None:
    given = {"operation": "insert", "position": "first", "node_size": "4 KiB"}
    changed = {layout: run(layout=layout, **given)["bytes_changed_per_op"] for layout in LAYOUTS}
    # 24 bytes a pair, an 8-byte count, a byte each for slots, hashes and bits.
    assert changed == {
        "sorted": 24 * 168 + 8,
        "unsorted": 24 + 8,
        "indirection": 24 + 159 + 2 + 1,
        "hashing": 24 + 1 + 1,
        "bitmap": 24 + 1,
    }
    erased = run(layout="hashing", operation="erase")
    assert (erased["bytes_changed_per_op"], erased["lines_written_per_op"]) == (1, 1)


def test_lines_written_back_are_those_of_pair_and_front() -> None:
    given = {"operation": "insert", "position": "last", "node_size": "1 KiB"}
    # The key's line, the value's, and the line of count or bitmap; hashes share it at this size.
    for layout in ("unsorted", "hashing", "bitmap"):
        assert run(layout=layout, **given)["lines_written_per_op"] == 3
    assert (
        run(layout="bitmap", operation="split", split="copy", node_size="1 KiB")["lines_written_per_op"] == 17
    )


def test_nodes_that_the_caches_hold_are_searched_without_the_memory() -> None:
    given = {"layout": "sorted", "position": "last", "node_size": "4 KiB"}
    cached = run(**given | {"region_size": "512 KiB"})
    load = {"operation": "load", "pattern": "random", "region_size": "64 MiB", "memory": "dram"}
    one_load = pmsim.simulate_point("latency", PLATFORM, load)["latency_ns"]
    assert cached["counter.memory_reads"] == 0
    dram, pmem = (latency(**given | {"region_size": "64 MiB", "memory": memory}) for memory in ("dram", "pmem"))
    assert cached["latency_ns"] < one_load < dram < pmem


def test_a_binary_search_waits_for_the_count_and_a_linear_one_does_not() -> None:
    given = {"position": "first", "region_size": "64 MiB"}
    pointer = pmsim.simulate_point(
        "latency", PLATFORM, {"operation": "load", "pattern": "random", "region_size": "64 MiB"}
    )["latency_ns"]
    linear = latency(layout="unsorted", **given)
    assert linear < 1.25 * pointer  # one latency: the loads overlap
    assert latency(layout="sorted", **given) > 1.25 * linear


def test_a_level_of_the_tree_costs_the_latency_of_its_memory() -> None:
    given = {"operation": "traverse", "node_size": "256 B", "region_size": "64 MiB"}

    def per_level(memory: str) -> float:
        return (
            latency(**given, inner_memory=memory, depth=5) - latency(**given, inner_memory=memory, depth=2)
        ) / 3

    def pointer(memory: str) -> float:
        load = {"operation": "load", "pattern": "random", "region_size": "320 MiB", "memory": memory}
        return pmsim.simulate_point("latency", PLATFORM, load)["latency_ns"]

    for memory in ("dram", "pmem"):
        assert per_level(memory) == pytest.approx(pointer(memory), rel=0.15)


def test_failure_atomicity_costs_a_barrier_by_order_and_much_more_by_transactions() -> None:
    given = {"operation": "insert", "layout": "hashing"}
    once, ordered = latency(**given), latency(**given, persist="ordered")
    bare = latency(**given, persist="transaction", library_cycles=0)
    called = latency(**given, persist="transaction")
    assert once < ordered < bare < called


def test_allocation_is_most_of_the_split_of_a_small_node_and_copies_are_of_no_use_without_a_bitmap() -> None:
    given = {"operation": "split", "layout": "sorted", "node_size": "256 B"}
    with_it, without = latency(**given), latency(**given, allocation="none")
    assert without < 0.25 * with_it
    with pytest.raises(ConfigError, match="split"):
        run(**given, split="copy")


def test_what_the_core_cannot_know_costs_a_search_of_hashes_another_latency() -> None:
    given = {"layout": "hashing", "region_size": "64 MiB"}
    assert latency(**given, position="random") > latency(**given, position="middle") + 50


def test_iterating_reads_keys_alone() -> None:
    given = {"operation": "iterate", "chain": 8, "node_size": "4 KiB", "region_size": "16 MiB"}
    measured = run(layout="sorted", iterate_by="count", **given)
    # 168 keys are 21 lines, besides count and pointer, and what says that a node waits for the one before it.
    # The loop reads where the chain begins.
    assert measured["counter.loads"] / measured["simulated_ops"] == 8 * (21 + 2) + 7 + 1


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"operation": "insert", "layout": "sorted", "persist": "ordered"}, "persist"),
        ({"operation": "erase", "layout": "unsorted", "persist": "ordered"}, "persist"),
        ({"operation": "merge", "persist": "ordered"}, "persist"),
        ({"operation": "iterate", "layout": "hashing", "iterate_by": "slots"}, "iterate_by"),
        ({"layout": "sorted", "node_size": "80 B"}, "node_size"),
        ({"node_size": "16 KiB"}, "8 KiB"),
        ({"node_size": "1 KiB", "entries": 40}, "entries"),
        ({"region_size": "64 KiB"}, "region_size"),
        ({"operation": "iterate", "chain": 100_000, "layout": "bitmap"}, "region_size"),
        ({"operation": "traverse", "node_size": "100 B"}, "node_size"),
        ({"operation": "traverse", "depth": 0}, "depth"),
        ({"operation": "traverse", "region_size": "1 TiB"}, "region_size"),
    ],
)
def test_what_cannot_be_is_refused_by_name(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        run(**parameters)


@pytest.mark.parametrize("operation", ["insert", "traverse"])
def test_a_point_is_checked_without_its_nodes(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMSIM_HOST_MEMORY", "100 MiB")
    given = {"operation": operation, "region_size": "1 GiB"}
    points_of(pmsim.Scenario(kind="node", platform="ilmenau-5215", parameters=given))
    with pytest.raises(HostMemoryError):
        pmsim.simulate_point("node", "ilmenau-5215", given)
