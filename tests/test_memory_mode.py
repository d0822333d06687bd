"""Memory mode: DRAM is a cache of PMem, whatever a program calls its memory, and nothing is persistent."""

import math
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import ConfigError, Scenario, trace
from pmsim.kinds import KINDS, find_kind
from pmsim.points import points_of
from pmsim.runner import evaluate

PLATFORM = {"base": "tum-6212u", "block_device": "nvme-p4510"}
SMALL = {
    "engine": "main-memory",
    "workload": "ycsb-a",
    "memory_mode": True,
    "data_size": "256 MiB",
    "dram_capacity": "128 MiB",
    "pmem_capacity": "1 GiB",
    "ssd_capacity": "1 GiB",
    "log_size": "256 MiB",
    "scale": "1/16",
    "operations": 3000,
    "warmup": 2000,
}


def run(**changes: Any) -> dict[str, int | float]:
    return pmsim.simulate_point("oltp", PLATFORM, SMALL | changes)


def test_dram_finds_fewer_lines_of_more_data() -> None:
    # Eight pieces of 4 MiB at scale: with few of them chance decides which share their sets. Whole rows, as the
    # warm-up goes by lines.
    larger = {"dram_capacity": "512 MiB", "pmem_capacity": "4 GiB", "ssd_capacity": "8 GiB", "access": "row"}
    sizes = ("256 MiB", "1 GiB", "3 GiB")
    measured = [run(data_size=size, workload="ycsb-c", **larger) for size in sizes]
    ratios = [row["dram_hit_ratio"] for row in measured]
    assert ratios[0] > ratios[1] + 0.05 > ratios[2] + 0.1
    latencies = [row["latency_ns"] for row in measured]
    assert latencies[0] < latencies[1] < latencies[2]
    for row, ratio in zip(measured, ratios, strict=True):
        hits, misses = row["counter.memory_mode_hits"], row["counter.memory_mode_misses"]
        assert ratio == hits / (hits + misses)
        assert row["counter.pmem_read_lines"] == misses


@pytest.mark.parametrize("capacity", ["4 GiB", "1512 GiB"])
def test_dram_holds_at_first_what_a_long_run_leaves_there_however_large_pmem_is(capacity: str) -> None:
    """As many lines as sets, at random places: 1 - 1/e of the sets have one, and so many lines are found."""
    machine = {"base": "ucsd-8260", "controller": {"memory_mode": True}}
    machine |= {"dram": {"capacity": "512 MiB"}, "pmem": {"capacity": capacity}}
    given = {"operation": "load", "pattern": "random", "memory": "pmem", "region_size": "512 MiB"}
    counted = pmsim.simulate_point("latency", machine, given)
    hits, misses = counted["counter.memory_mode_hits"], counted["counter.memory_mode_misses"]
    # 128 pieces of 4 MiB are where chance puts them.
    assert hits / (hits + misses) == pytest.approx(1 - math.exp(-1), abs=0.06)


def test_main_memory_of_memory_mode_holds_what_dram_cannot() -> None:
    larger = {"data_size": "800 MiB", "workload": "ycsb-c"}
    assert run(**larger)["fits"] == 1
    assert run(**larger, memory_mode=False)["fits"] == 0


def test_pages_have_no_wear_of_their_own_but_modules_are_written() -> None:
    row = run()
    assert math.isnan(row["wear_writes"])
    assert row["pmem_writes_per_day"] > 0
    assert row["counter.pmem_write_lines"] > 0  # updated lines that DRAM has given up


def test_the_log_goes_to_the_ssd_and_a_buffer_manager_may_use_main_memory_too() -> None:
    scenario = Scenario(kind="oltp", platform=PLATFORM, parameters=SMALL | {"engine": "ssd-bm"})
    (row,) = pmsim.run(scenario, jobs=1).frame.to_dict("records")
    assert row["log_device"] == "ssd"
    assert row["memory_mode"]
    assert row["variant"] == "ssd-bm, memory mode"
    assert row["ssd_writes_per_tx"] > 0


@pytest.mark.parametrize(
    "changes",
    [{}, {"threads": 3, "log_device": "none"}, {"threads": 3, "log_device": "none", "operations": 2000}],
    ids=["one", "three", "of few operations"],
)
def test_a_recorded_run_is_replayed_in_memory_mode(changes: dict[str, Any], tmp_path: Path) -> None:
    scenario = Scenario(kind="oltp", platform=PLATFORM, parameters=SMALL | changes)
    expected = evaluate(points_of(scenario)[0])
    trace.record(scenario, tmp_path / "a.trace")
    replayed = trace.replay(tmp_path / "a.trace").counted()
    assert {name: expected[name] for name in replayed} == replayed


def test_data_that_do_not_fit_main_memory_are_said_to_exceed_pmem() -> None:
    scenario = Scenario(kind="oltp", platform=PLATFORM, parameters=SMALL | {"data_size": "2 GiB"})
    result = pmsim.run(scenario, jobs=1)
    assert result.frame["fits"][0] == 0
    assert "pmem_capacity: the data do not fit" in result.not_held[0].message


@pytest.mark.parametrize("capacity", [0, "512 MiB"])
@pytest.mark.parametrize("pmem_capacity", ["1 GiB", "4 GiB"])
def test_room_for_the_image_of_main_memory_is_on_the_ssd(capacity: int | str, pmem_capacity: str) -> None:
    """More PMem had been advised, of which the image needs as much again, and an image on PMem."""
    changes = {"ssd_capacity": capacity, "pmem_capacity": pmem_capacity}
    result = pmsim.run(Scenario(kind="oltp", platform=PLATFORM, parameters=SMALL | changes), jobs=1)
    assert result.frame["fits"][0] == 0
    message = result.not_held[0].message
    assert message.startswith("ssd_capacity: ")
    assert "pmem_capacity" in message
    assert "on PMem" not in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"engine": "three-tier"}, "engine: three-tier has pages on PMem, and memory mode leaves it none"),
        ({"log_device": "pmem"}, "log_device: pmem; nothing survives a power failure in memory mode"),
        ({"rows": "wear"}, "rows: wear; in memory mode no page has its place on PMem"),
        ({"dram_capacity": 0}, "dram_capacity: 0; in memory mode it is the cache of main memory, choose more"),
        ({"pmem_capacity": 0}, "pmem_capacity: 0; in memory mode it is main memory, choose more"),
        ({"dram_capacity": "1 TiB"}, "dram_capacity: 1 TiB do not fit the 192 GiB of dram"),
        ({"memory_mode": "on"}, "memory_mode: 'on' is not a flag; write true, false or 'platform'"),
    ],
)
def test_what_memory_mode_cannot_be_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        run(**changes)
    assert message in str(refused.value)


def test_machines_without_modules_have_no_memory_mode() -> None:
    platform = PLATFORM | {"pmem": {"dimms": 0}}
    with pytest.raises(ConfigError, match="pmem"):
        pmsim.simulate_point("oltp", platform, SMALL)


PERSISTENT = sorted(name for name, kind in KINDS.items() if kind.app_direct)


@pytest.mark.parametrize("kind", PERSISTENT)
def test_kinds_about_persistent_memory_refuse_a_machine_that_has_none(kind: str) -> None:
    platform = pmsim.load_platform(PLATFORM | {"controller": {"memory_mode": True}})
    with pytest.raises(ConfigError, match=f"kind '{kind}' is about; remove it"):
        find_kind(kind).prepared(platform, {})
    assert {"log", "page-flush", "in-place", "restart", "system"} <= set(PERSISTENT)


@pytest.mark.parametrize("kind", ["operations", "mixed"])
def test_what_a_microbenchmark_calls_dram_is_main_memory_too(kind: str) -> None:
    platform = {"base": "tum-6212u", "controller": {"memory_mode": True}, "dram": {"capacity": "64 MiB"}}
    given: dict[str, Any] = {"region_size": "512 MiB"}
    if kind == "operations":
        given["operations"] = "rd_64"
    else:
        given["groups"] = [{"task": "read", "memory": "dram", "threads": 2}]
    row = pmsim.simulate_point(kind, platform, given)
    assert row["counter.memory_mode_misses"] > row["counter.memory_mode_hits"]


def test_a_trace_of_another_mode_finds_all_that_it_touches_in_a_dram_that_is_large_enough(
    tmp_path: Path,
) -> None:
    # A line of each of 64 KiB of DRAM and of PMem, at the same places of their windows.
    rows = [f"load,{line * 64},8,{medium}" for medium in ("dram", "pmem") for line in range(1024)]
    (tmp_path / "t.csv").write_text("kind,address,bytes,medium\n" + "\n".join(rows) + "\n")
    trace.import_from(tmp_path / "t.csv", tmp_path / "t.trace")
    # Two pieces of 4 MiB, in the gibibyte of a DRAM as large as PMem: they share no set.
    machine = {
        "base": "tum-6212u",
        "controller": {"memory_mode": True},
        "dram": {"capacity": "1 GiB"},
        "pmem": {"capacity": "1 GiB"},
        "prefetcher": {"enabled": False},
    }
    count = trace.replay(tmp_path / "t.trace", machine).counters
    assert (count["memory_mode_hits"], count["memory_mode_misses"]) == (2048, 0)
