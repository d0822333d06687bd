"""Laws that every run keeps, whatever the numbers of the machine are."""

from __future__ import annotations

from typing import Any

import pytest

import pmsim

PS_PER_S = 10**12
POINTS = [
    ("bandwidth", {"operation": "load+store+clwb", "threads": 4, "fence_every": 256}),
    ("bandwidth", {"operation": "load", "threads": 4, "access_size": 4096, "prefetcher": True}),
    ("persist", {"threads": 3, "operation": "ntstore"}),
    ("in-place", {"threads": 2, "algorithm": "log", "update_size": 64}),
    ("contention", {"threads": 4, "operation": "latch", "read_percent": 50}),
    ("mixed", {"groups": [{"task": "scan", "memory": "dram", "threads": 2}, {"task": "page", "threads": 2}]}),
]


def in_units_of(unit: int, base: str) -> dict[str, Any]:
    """A platform with all of its times so many times as long, and a cycle that divides them."""
    machine = pmsim.load_platform(base)
    changed: dict[str, dict[str, Any]] = {}
    for row in machine.rows():
        is_time = row.value.endswith((" ps", " ns", " us", " ms", " s"))
        if is_time and (value := machine.value(row.section, row.name)):
            changed.setdefault(row.section, {})[row.name] = f"{value * unit} ps"
    changed.setdefault("core", {}).update(frequency=f"{15000 // unit} MHz", dispatch_width=4)
    return {"base": base, **changed}


@pytest.mark.parametrize(("kind", "parameters"), POINTS)
def test_a_machine_whose_times_are_twice_as_long_takes_twice_as_long(
    kind: str, parameters: dict[str, Any]
) -> None:
    """No time is written in the core, and none is left out: bit by bit."""
    once, twice = (pmsim.simulate_point(kind, in_units_of(unit, "tum-6212u"), parameters) for unit in (6, 12))
    counters = {name: value for name, value in once.items() if name.startswith("counter.")}
    assert counters["counter.elapsed_ps"] > 0
    for name, value in counters.items():
        assert twice[name] == (2 * value if name.endswith("_ps") else value), name


@pytest.mark.parametrize(("kind", "parameters"), POINTS)
@pytest.mark.parametrize("base", ["tum-6212u", "spr-cxl"])
def test_the_books_of_a_run_balance(kind: str, parameters: dict[str, Any], base: str) -> None:
    machine = pmsim.load_platform(base)
    run = pmsim.simulate_point(kind, base, parameters)
    count = {name.removeprefix("counter."): value for name, value in run.items() if name.startswith("counter.")}
    threads = parameters.get("threads") or sum(group["threads"] for group in parameters["groups"])
    elapsed = count["elapsed_ps"]

    # Time: each thread has spent all of it on something; operations at the two ends are cut off.
    spent = sum(value for name, value in count.items() if name.startswith("time_"))
    assert spent == pytest.approx(threads * elapsed, rel=0.005)

    # Accesses: each is found in one place.
    found = ("l1_hits", "l2_hits", "llc_hits", "core_transfers", "memory_reads")
    asked = ("loads", "stores", "atomics")
    assert sum(count[name] for name in found) == sum(count[name] for name in asked)

    # Blocks of the media: read for lines that no buffer has, and to complete blocks that are written in part.
    lines_read_there = count["pmem_read_lines"] - count["pmem_buffer_read_hits"]
    assert count["pmem_media_read_blocks"] - count["pmem_partial_writes"] == lines_read_there

    # Lines: what is written back is written, what is missed is read; some are on their way at the two ends.
    on_their_way = threads * 2048
    written = count["dram_write_lines"] + count["pmem_write_lines"]
    assert count["writebacks"] - on_their_way <= written
    assert written <= count["writebacks"] + count["lines_persisted"] + on_their_way
    read = count["dram_read_lines"] + count["pmem_read_lines"]
    wanted = count["memory_reads"] + count["prefetches"] + count["l2_hits"] + 2 * count["tlb_walks"]
    assert count["memory_reads"] - on_their_way <= read <= wanted + on_their_way

    # Channels are not busy for longer than there is time.
    value = machine.value
    busy = count["dram_read_lines"] * value("dram", "read_burst")
    busy += count["dram_write_lines"] * value("dram", "write_burst")
    if not value("pmem", "own_path"):
        busy += count["pmem_read_lines"] * value("pmem", "bus_read")
        busy += count["pmem_write_lines"] * value("pmem", "bus_write")
    assert busy <= 1.02 * value("controller", "channels") * elapsed


@pytest.mark.parametrize("threads", [2, 8])
def test_a_head_is_over_one_command_at_a_time(threads: int) -> None:
    """It had sought for the next command while it passed over the blocks of the last one: 80 a second."""
    platform = {"base": "tum-6212u", "block_device": "hdd-7200"}
    size = 2**20
    run = pmsim.simulate_point(
        "block", platform, {"operation": "read", "access_size": size, "threads": threads}
    )
    value = pmsim.load_platform(platform).value
    seeks = (value("block", "seek_latency") + value("block", "rotation_latency")) / PS_PER_S
    assert run["operations_per_s"] * (seeks + size / value("block", "read_bandwidth")) < 1.02
