"""Pages on PMem that are copied, read by system calls or pointed to; scans of tables; where the time goes."""

import math
from typing import Any

import pytest

import pmsim
from pmsim import _native
from pmsim.errors import ConfigError

PLATFORM = "pmfs-e5-2670"
#: 15 MiB of rows of 144 B, behind caches of 1/16 and buffers for 48 pages.
SCAN = {
    "workload": "table-scan",
    "row_size": 136,
    "page_size": 8192,
    "fill_factor": 1,
    "data_size": "240 MiB",
    "dram_capacity": "6336 KiB",
    "pmem_capacity": "512 MiB",
    "ssd_capacity": 0,
    "cpu_cycles": 0,
    "transaction_cycles": 0,
    "scan_length": 500,
    "scan_hint": True,
    "row_cycles": 300,
    "warmup": 20,
    "operations": 100,
    "breakdown": True,
}
#: Fptree has no tables to scan.
ENGINES = {name: home for name, (_, home) in _native.engines().items() if name != "fptree"}
ON_PMEM = [name for name, home in ENGINES.items() if home == "pmem"]


def measure(**given: Any) -> dict[str, int | float]:
    return pmsim.simulate_point("oltp", PLATFORM, SCAN | given)


@pytest.mark.parametrize("engine", ON_PMEM)
def test_a_scan_finds_every_row_however_pages_come(engine: str) -> None:
    plain, prefetching = (
        measure(engine=engine, check=True, scan_prefetch=prefetch) for prefetch in (False, True)
    )
    assert plain["table_rows"] == prefetching["table_rows"] > 100_000
    assert prefetching["latency_ns"] != plain["latency_ns"]


def test_every_engine_scans_tables() -> None:
    room = {"dram_capacity": "1 GiB", "ssd_capacity": "1 GiB"}
    platform = {"base": PLATFORM, "block_device": "sata-s3700"}
    for engine in ENGINES.keys() - ON_PMEM:
        given = SCAN | room | {"engine": engine, "check": True, "scan_prefetch": True}
        assert pmsim.simulate_point("oltp", platform, given)["transactions_per_s"] > 0


def test_a_copy_less_is_faster_and_so_is_a_row_that_is_asked_for_early() -> None:
    two, one = (measure(engine="file-bm", system_call_copies=copies) for copies in (2, 1))
    mapped, pointer = (measure(engine=engine) for engine in ("basic-nvm-bm", "redirect-bm"))
    early = measure(engine="redirect-bm", scan_prefetch=True)
    times = [run["latency_ns"] for run in (two, one, mapped, pointer, early)]
    assert times == sorted(times, reverse=True)
    misses = [run["counter.engine.pages_loaded_pmem"] for run in (two, one, mapped, pointer)]
    assert min(misses) == max(misses) > 0
    copies = [run["counter.engine.page_copies_in"] for run in (two, one, mapped, pointer)]
    assert copies == [count * misses[0] for count in (2, 1, 1, 0)]


def test_the_time_of_a_row_is_that_of_its_cpu_cycles() -> None:
    short, long = (measure(engine="redirect-bm", row_cycles=cycles) for cycles in (1_000, 3_000))
    rows = 500
    assert (long["latency_ns"] - short["latency_ns"]) / rows == pytest.approx(2_000 / 2.6, rel=0.01)


def test_a_system_call_costs_its_cycles_once_per_page() -> None:
    free, paid = (measure(engine="file-bm", system_call_cycles=cycles) for cycles in (0, 26_000))
    pages = paid["pages_pmem_to_dram_per_tx"]
    assert (paid["latency_ns"] - free["latency_ns"]) / pages == pytest.approx(10_000, rel=0.02)


def test_the_breakdown_tells_pages_from_the_log_and_both_from_the_rest() -> None:
    read = measure(engine="file-bm")
    assert 0.05 < read["pages_time_share"] < 0.5
    assert read["log_time_share"] < 0.01
    assert measure(engine="redirect-bm")["pages_time_share"] < 0.01
    updates = {"workload": "ycsb-rw", "update_percent": 100, "operations": 500, "warmup": 500}
    cached = measure(engine="basic-nvm-bm", **updates, dram_capacity="1 GiB")
    assert cached["pages_time_share"] < 0.01 < 0.1 < cached["log_time_share"]
    spilling = measure(engine="basic-nvm-bm", **updates)
    assert spilling["pages_time_share"] > 0.3
    direct = measure(engine="nvm-direct", **updates)
    assert direct["log_time_share"] > 0.2
    for run in (read, cached, spilling, direct):
        sections = [run[f"counter.{name}_ps"] for name in ("work", "pages", "log")]
        # What threads do in the measured part, up to a section that is open at either end.
        assert sum(sections) == pytest.approx(run["counter.elapsed_ps"], rel=0.03)


def test_to_ask_where_the_time_goes_hardly_changes_it() -> None:
    given = {"engine": "basic-nvm-bm", "workload": "ycsb-a", "operations": 500, "warmup": 500}
    asked, not_asked = (measure(**given, breakdown=breakdown) for breakdown in (True, False))
    assert asked["latency_ns"] == pytest.approx(not_asked["latency_ns"], rel=0.01)
    assert math.isnan(not_asked["pages_time_share"])
    assert math.isnan(not_asked["log_time_share"])
    assert not_asked["counter.work_ps"] == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"row_size": 4_096},
            "row_size: 4096 B; a row has 8 B at least and a page four rows, choose 8 to 2048 B",
        ),
        ({"system_call_copies": 3}, "system_call_copies: 3"),
        ({"system_call_cycles": -1}, "system_call_cycles: -1"),
        ({"row_cycles": 2_000_000}, "row_cycles: 2000000"),
    ],
)
def test_what_cannot_be_is_one_clear_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        measure(engine="file-bm", **given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_frame_that_points_to_pmem_is_no_hit() -> None:
    given = {"engine": "redirect-bm", "data_size": "256 MiB", "dram_capacity": "64 MiB"}
    given |= {"pmem_capacity": "1 GiB", "operations": 500, "warmup": 500}
    read, updated = (
        pmsim.simulate_point("oltp", "sep-e5-4620v2", given | {"workload": workload})
        for workload in ("ycsb-ro", "ycsb-a")
    )
    assert read["dram_hit_ratio"] == 0
    assert 0 < updated["dram_hit_ratio"] < 1
    for run in (read, updated):
        of_all = sum(run[f"counter.engine.{name}"] for name in ("dram_hits", "dram_misses", "direct_fixes"))
        assert of_all == run["counter.engine.fixes"] - run["counter.engine.pages_allocated"]
