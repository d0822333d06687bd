"""Relations between runs that hold whatever the true numbers are: each has once been violated."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pmsim

PLATFORM = "tum-6212u"


def point(
    kind: str, platform: str | dict[str, Any] = PLATFORM, counters: list[str] | None = None, **parameters: Any
) -> dict[str, Any]:
    """The one row of a scenario, with these counters beside its bandwidth."""
    scenario = pmsim.Scenario(
        kind=kind,
        name="relation",
        platform=platform,
        parameters=parameters,
        metrics=["bandwidth_gb_s", *counters] if counters else [],
    )
    result = pmsim.run(scenario, jobs=1, progress=False)
    assert not result.failures
    row: dict[str, Any] = result.frame.iloc[0].to_dict()
    return row


def bandwidth(platform: str | dict[str, Any] = PLATFORM, **parameters: Any) -> float:
    return float(point("bandwidth", platform, **parameters)["bandwidth_gb_s"])


def test_page_walks_cost_cores_time_and_channels_no_more_than_their_lines() -> None:
    """Each walk took its channel from the end of its first level on, and the channel was idle until then."""
    big = {"memory": "dram", "region_size": "96 GiB", "threads": 24}
    small_pages = bandwidth(**big)
    assert small_pages > 0.7 * bandwidth(page_size="2 MiB", **big)
    assert small_pages > bandwidth(memory="pmem", region_size="96 GiB", threads=24)


@pytest.mark.parametrize("threads", [8, 24])
def test_half_of_the_data_in_dram_is_not_slower_than_none(threads: int) -> None:
    """A miss in memory mode took its channel from when its tag was checked on."""
    memory_mode = {"base": PLATFORM, "controller": {"memory_mode": True}}
    cached = bandwidth(memory_mode, region_size="96 GiB", threads=threads)
    assert cached > bandwidth(region_size="96 GiB", threads=threads)


def test_what_writes_displace_in_memory_mode_is_written_by_the_modules() -> None:
    """Nobody had waited for it: they took eight times as much as their medium, and most was never written."""
    capacity = 4 * 2**20
    small = {"base": PLATFORM, "controller": {"memory_mode": True}, "dram": {"capacity": f"{capacity} B"}}
    writes = {"operation": "ntstore", "threads": 24, "access_size": 4096, "length": 16}  # clean at first
    names = ["stream_stores", "pmem_write_lines", "pmem_media_write_blocks", "elapsed_ps"]
    run = point("bandwidth", small, [f"counter.{name}" for name in names], **writes)
    count = {name: run[f"counter.{name}"] for name in names}
    assert count["stream_stores"] > 10 * capacity / 64
    assert count["stream_stores"] - count["pmem_write_lines"] <= capacity / 64  # DRAM keeps the rest
    value = pmsim.load_platform(PLATFORM).value
    busy = count["pmem_media_write_blocks"] * value("pmem", "media_write_service") / value("pmem", "dimms")
    assert busy < 1.02 * count["elapsed_ps"]


def test_channels_are_not_busy_for_longer_than_there_is_time() -> None:
    """Lines that misses write into DRAM were owed, and never paid for."""
    write_burst = 100
    slow = {
        "base": PLATFORM,
        "controller": {"memory_mode": True},
        "dram": {"capacity": "4 GiB", "write_burst": f"{write_burst} ns"},
    }
    lines = ["counter.dram_write_lines", "counter.elapsed_ps"]
    run = point("bandwidth", slow, lines, region_size="700 GiB", access_size=4096, threads=24, length=4)
    busy = run["counter.dram_write_lines"] * write_burst * 1000 / 6
    assert 0.8 < busy / run["counter.elapsed_ps"] < 1.02


def test_checking_tags_is_a_latency() -> None:
    """As many reads are under way as buffers allow, a fifth longer each."""

    def with_tags(time: str) -> float:
        controller = {"memory_mode": True, "memory_mode_tag_latency": time}
        return bandwidth(
            {"base": PLATFORM, "controller": controller}, region_size="700 GiB", access_size=4096, threads=24
        )

    assert with_tags("100 ns") > 0.7 * with_tags("0 ns")


@pytest.mark.parametrize(("task", "operation"), [("read", "load"), ("write", "ntstore")])
@pytest.mark.parametrize("threads", [7, 24])
def test_a_group_alone_is_a_bandwidth(task: str, operation: str, threads: int) -> None:
    """10 GiB in 24 equal parts: those of mixed began in the middle of a block of 256 B."""
    groups = [{"task": task, "memory": "pmem", "threads": threads}]
    mixed = point("mixed", groups=groups, region_size="10 GiB")["group_1_bandwidth_gb_s"]
    alone = bandwidth(operation=operation, threads=threads, shared_region=False, region_size="10 GiB")
    assert mixed == pytest.approx(alone, rel=0.05)


@pytest.mark.parametrize("platform", ["perma-a256", "spr-cxl"])
def test_which_group_is_named_first_does_not_matter(platform: str) -> None:
    """Of two threads of a core the one with the lower number had taken all fill buffers."""
    cores = {"base": platform, "core": {"cores": 6}}
    read = {"task": "read", "memory": "dram", "threads": 6}
    write = {"task": "write", "memory": "dram", "threads": 6}
    one = point("mixed", cores, groups=[read, write])
    other = point("mixed", cores, groups=[write, read])
    for first, second in ((1, 2), (2, 1)):
        assert one[f"group_{first}_bandwidth_gb_s"] == pytest.approx(
            other[f"group_{second}_bandwidth_gb_s"], rel=0.05
        )
        assert one[f"group_{first}_bandwidth_gb_s"] > 0.3 * one[f"group_{second}_bandwidth_gb_s"]


def test_a_queue_with_a_place_for_each_thread_is_deep_enough() -> None:
    """A command waited for the place of the one so many before it, done or not."""

    def with_places(depth: int) -> float:
        device = {"base": PLATFORM, "block_device": "nvme-p4510", "block": {"queue_depth": depth}}
        engine = {"engine": "ssd-bm", "workload": "ycsb-a", "scale": "1/64", "data_size": "4 GiB", "threads": 8}
        capacities = {"dram_capacity": "1 GiB", "pmem_capacity": 0, "ssd_capacity": "16 GiB"}
        return float(point("oltp", device, operations=4000, **engine, **capacities)["transactions_per_s"])

    assert with_places(8) == with_places(4096)


@pytest.mark.parametrize("drive", ["hdd-7200", "nvme-p4510"])
def test_nothing_is_sent_before_it_has_been_read(drive: str) -> None:
    """Of a random read all but the last block had been sent while the head was on its way."""
    machine = {"base": PLATFORM, "block_device": drive}
    sent = pmsim.load_platform(machine).value("block", "read_bandwidth") / 1e9

    def latency(access_size: int) -> float:
        return float(point("block", machine, access_size=access_size)["latency_ns"])

    assert latency(2**20) > 0.99 * (latency(4096) + (2**20 - 4096) / sent)


def test_reads_pass_writes_whose_data_are_on_the_link(tmp_path: Path) -> None:
    """The parts of a drive without a cache had kept themselves free for half a millisecond."""

    def of_thread(thread: int, kind: str, count: int, size: int) -> list[dict[str, Any]]:
        transfer = {"kind": kind, "address": 0, "bytes": size, "medium": "block"}
        begin, end = {"kind": "operation_begin"}, {"kind": "operation_end"}
        return [{"thread": thread} | row for _ in range(count) for row in (begin, transfer, end)]

    def mean_us(*threads: list[dict[str, Any]]) -> float:
        table = pd.DataFrame([row for rows in threads for row in rows])
        table.astype({"address": "Int64", "bytes": "Int64"}).to_parquet(tmp_path / "table.parquet", index=False)
        pmsim.trace.import_from(tmp_path / "table.parquet", tmp_path / "table.trace")
        machine = {"base": PLATFORM, "block_device": "optane-p4800x"}
        return pmsim.trace.replay(tmp_path / "table.trace", machine).total.latency.mean_ps / 1e6

    reads, writes = (of_thread(0, "block_read", 200, 4096), of_thread(1, "block_write", 60, 2**20))
    beside = (260 * mean_us(reads, writes) - 60 * mean_us(writes)) / 200
    assert beside < 1.5 * mean_us(reads)


def test_flushes_do_not_wait_for_writes_that_wait_for_room_in_the_cache() -> None:
    """All threads flushed together and nobody wrote meanwhile, the more so the deeper the queue."""

    def with_places(depth: int) -> float:
        block = {"queue_depth": depth, "write_cache": "64 KiB", "flush_latency": "500 us"}
        quick = {"block_size": "8 KiB", "program_latency": "5 us", "units": 32, "write_cache_durable": False}
        device = {"base": PLATFORM, "block_device": "nvme-p4510", "block": block | quick}
        load = {"operation": "write+flush", "access_size": 65536, "threads": 33}
        return float(point("block", device, **load)["operations_per_s"])

    assert with_places(64) > 0.98 * with_places(16)


@pytest.mark.parametrize("engine", ["main-memory", "nvm-direct"])
def test_latches_are_never_for_nothing(engine: str) -> None:
    """Without them each thread had read from memory what another had in its cache."""

    def with_latches(latches: str) -> float:
        capacities = {"dram_capacity": "8 GiB", "pmem_capacity": "8 GiB", "ssd_capacity": 0}
        load = {"workload": "ycsb-c", "scale": "1/64", "data_size": "4 GiB", "operations": 20000, "threads": 24}
        return float(point("oltp", engine=engine, latches=latches, **load, **capacities)["transactions_per_s"])

    assert with_latches("none") > 0.98 * with_latches("optimistic")


def spitfire(scale: str = "1/256", **parameters: Any) -> float:
    """Transactions per second with data of twice PMem's size, which mini pages in DRAM can cover."""
    capacities = {"dram_capacity": "1 GiB", "pmem_capacity": "2 GiB", "ssd_capacity": "20 GiB", **parameters}
    load = {"workload": "ycsb-c", "data_size": "4 GiB", "operations": 20000, "warmup": 40000}
    ssd = {"base": PLATFORM, "block_device": "nvme-p4510"}
    return float(point("oltp", ssd, engine="spitfire", scale=scale, **load, **capacities)["transactions_per_s"])


def test_spitfire_with_threads_does_not_depend_on_the_scale() -> None:
    """For each page from the SSD all frames of PMem were looked at, each with a latch, and all were kept."""
    small = spitfire("1/256", threads=16)
    assert spitfire("1/64", threads=16) == pytest.approx(small, rel=0.3)
    assert small > 4 * spitfire("1/256", threads=1)


def test_spitfire_with_threads_gains_by_more_dram() -> None:
    """The more mini pages, the longer nothing of PMem could be evicted."""
    rates = [spitfire(threads=16, dram_capacity=f"{gib} GiB") for gib in (0.25, 0.5, 1, 2)]
    for less, more in itertools.pairwise(rates):
        assert more > 0.95 * less


def test_tenants_without_scanners_are_a_load() -> None:
    """Lookups had begun with cold caches there, and scans seemed to make them faster."""
    load = {"service": "table", "rate": 2_000_000, "workers": 4, "rows": 200_000, "requests": 20_000}
    alone = point("system", study="load", **load)
    for scanners in (0, 2):
        tenants = point("system", study="tenants", scanners=scanners, **load)
        assert tenants["latency_ns"] == pytest.approx(alone["latency_ns"], rel=0.25)
        assert tenants["latency_ns"] > 0.97 * alone["latency_ns"]


@pytest.mark.parametrize("region_size", ["4 GiB", "10 GiB"])
def test_a_bandwidth_does_not_depend_on_how_long_it_is_measured(region_size: str) -> None:
    """Entries of page tables had not all been in the caches when it began."""
    shared = {"memory": "dram", "access_size": 64, "threads": 24, "shared_region": False}
    short = bandwidth(region_size=region_size, **shared)
    assert short == pytest.approx(bandwidth(region_size=region_size, length=4, **shared), rel=0.03)


@pytest.mark.parametrize(("memory", "threads"), [("dram", 32), ("dram", 36), ("pmem", 32)])
def test_each_line_of_a_scan_is_read_from_memory(memory: str, threads: int) -> None:
    """A dropped prefetch was forgotten where the stream of the sibling came by, and its line was a hit."""
    counters = ["counter.user_bytes", f"counter.{memory}_read_lines"]
    scan = {"memory": memory, "pattern": "sequential", "access_size": 16384, "region_size": "10 GiB"}
    found = point("bandwidth", "perma-a256", counters, threads=threads, length=2, **scan)
    ahead = threads * 64  # when it begins: each prefetcher stays within a page
    assert found[counters[1]] >= found["counter.user_bytes"] / 64 - ahead


def test_a_thread_alone_waits_for_no_latch() -> None:
    """It waited for its own release to commit, a quarter of the time, and was faster with more to do."""
    alone = {"operation": "latch", "readers": "optimistic", "read_percent": 50}
    idle, busy = (point("contention", work=work, **alone) for work in (0, 1))
    assert idle["latch_waits_per_op"] == idle["latch_restarts_per_op"] == 0
    assert idle["ops_per_s"] > busy["ops_per_s"]


@pytest.mark.parametrize("threads", [2, 4])
def test_a_writer_among_optimistic_readers_is_not_alone(threads: int) -> None:
    """Readers that began again left it its lines: two threads were as fast as one, and readers starved."""
    latch = {"operation": "latch", "threads": threads, "length": 4}
    writers = point("contention", **latch)
    mixed = point("contention", readers="optimistic", read_percent=50, **latch)
    # Writers alone hand the line on each time. Here half of the operations write, of which one in as many as
    # there are threads follows one of its own thread.
    most = 2 / (1 - 1 / threads)
    assert writers["ops_per_s"] < mixed["ops_per_s"] < most * writers["ops_per_s"]
    assert mixed["latency_max_ns"] < 0.01 * mixed["simulated_ops"] / mixed["ops_per_s"] * 1e9


@pytest.mark.parametrize("threads", [1, 24])
def test_a_contention_of_many_objects_does_not_depend_on_how_long_it_is_measured(threads: int) -> None:
    """One warm-up fitted all, and it did not meet a tenth of them: longer runs were twice as fast."""
    many = {"objects": 100_000, "threads": threads}
    usual, longer = (point("contention", length=length, **many) for length in (1, 4))
    assert usual["steady"] == 1
    assert longer["ops_per_s"] == pytest.approx(usual["ops_per_s"], rel=0.03)
    assert longer["latency_ns"] == pytest.approx(usual["latency_ns"], rel=0.03)
