"""Laws that every run keeps, whatever the numbers of the machine are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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


def replay(
    path: Path, threads: list[list[tuple[str, int, str | None]]], machine: dict[str, Any], memory: str
) -> pmsim.trace.Replay:
    """Time these operations of each thread, kind, address and flags, in pages that no thread walks for."""
    rows = [
        {
            "thread": thread,
            "kind": kind,
            "address": address,
            "bytes": 0 if "begin" in kind else 64,
            "flags": flags,
        }
        | {"medium": memory, "batch": step // 3}
        for thread, operations in enumerate(threads)
        for step, (kind, address, flags) in enumerate(operations)
    ]
    table = pd.DataFrame(rows).astype({"address": "Int64", "bytes": "Int64", "flags": "string"})
    table.to_parquet(path / "laws.parquet", index=False)
    pmsim.trace.import_from(path / "laws.parquet", path / "laws.trace")
    pages = {"tlb": {"page_size": "1 GiB", "dram_page_size": "1 GiB"}}
    return pmsim.trace.replay(path / "laws.trace", {"base": "tum-6212u", **pages, **machine})


@pytest.mark.parametrize("streams", [8, 24])
@pytest.mark.parametrize("apart", [1, 1 << 20])
def test_every_line_of_many_scans_is_read_though_most_prefetches_are_dropped(
    streams: int, apart: int, tmp_path: Path
) -> None:
    """Dropped ones that nobody remembered had been in the caches: of 24 scans every other line.

    Scans of equal parts of their regions compete for the sets of L2, which loses lines before their turn.
    """
    begins = np.random.default_rng(streams).integers(apart, size=streams) * 64
    loads: list[tuple[str, int, str | None]] = [
        ("load", (stream << 27) + int(begins[stream]) + 64 * line, None)
        for line in range(12_800 // streams)
        for stream in range(streams)
    ]
    machine = {"prefetcher": {"enabled": True, "queue": 1}}
    read = replay(tmp_path, [loads], machine, "dram").counters["dram_read_lines"]
    assert read >= len(loads)


@pytest.mark.parametrize("threads", [2, 4])
def test_nobody_has_a_line_before_memory_has_delivered_it(threads: int, tmp_path: Path) -> None:
    """Who took it from another core had it at once: four threads walked three times as fast as one."""
    loads: list[tuple[str, int, str | None]] = [
        operation
        for step in range(1000)
        for operation in (
            ("operation_begin", 0, "serialising"),
            ("load", 64 * 67 * step, None),
            ("operation_end", 0, None),
        )
    ]
    machine = {"core": {"cores": 4}, "prefetcher": {"enabled": False}}
    alone, together = (replay(tmp_path, [loads] * count, machine, "pmem").total for count in (1, threads))
    assert together.elapsed_ps > 0.99 * alone.elapsed_ps


def test_reads_do_not_wait_for_writes_that_have_not_come() -> None:
    """A writer whose lines are long on their way sends next to nothing, and had stopped whoever reads."""
    groups = [
        {"task": "lookup", "memory": "dram", "threads": 1},
        {"task": "overwrite", "memory": "dram", "threads": 1},
    ]
    machine = {"base": "tum-6212u", "core": {"shared_write_latency": "4 us"}}
    assert pmsim.simulate_point("mixed", machine, {"groups": groups})["group_1_slowdown"] < 1.02


def test_a_prefetch_from_the_last_level_takes_its_time() -> None:
    """Lines had moved to L2 in no time: 205 GB/s for one core."""
    value = pmsim.load_platform("tum-6212u").value
    under_way = value("core", "line_fill_buffers") + value("prefetcher", "queue")
    scan = {"memory": "dram", "pattern": "sequential", "access_size": 65536, "region_size": "8 MiB"}
    run = pmsim.simulate_point("bandwidth", "tum-6212u", {**scan, "prefetcher": True, "page_size": "2 MiB"})
    assert run["bandwidth_gb_s"] * 1e9 < under_way * 64 * PS_PER_S / value("llc", "latency")


@pytest.mark.parametrize("threads", [1, 2, 48])
def test_no_core_reads_its_l2_faster_than_it_gives_lines(threads: int) -> None:
    """Each thread's part of the region is larger than L1 and at home in L2; 48 are two on each core."""
    machine = pmsim.load_platform("tum-6212u")
    cores = min(threads, machine.value("core", "cores"))
    parameters = {"operation": "load", "memory": "dram", "region_size": 131072 * threads, "threads": threads}
    read = pmsim.simulate_point("bandwidth", "tum-6212u", parameters | {"pattern": "sequential"})
    most = cores * 64 / (machine.value("l2", "read_interval") / 1000)
    assert 0.9 * most < read["bandwidth_gb_s"] <= 1.001 * most
