"""The scenarios of the storage engines, and the benchmarks on every engine, at tiny sizes."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import pmsim
from pmsim.api import load_scenario
from pmsim.points import Point, points_of
from pmsim.resources import scenarios_dir

SCENARIOS = sorted(
    str(path.relative_to(scenarios_dir()).with_suffix(""))
    for group in ("hymem", "capacity", "cxl", "scaling")
    for path in (scenarios_dir() / group).glob("*.toml")
    if 'kind = "bandwidth"' not in path.read_text()
)
#: As the paper's figures do: their curves end where the home of an engine is full.
ENDS_WHERE_FULL = ("hymem/fig08", "hymem/fig09")
ENGINES = ["main-memory", "nvm-direct", "basic-nvm-bm", "file-bm", "redirect-bm", "ssd-bm", "three-tier"]
ENGINES += ["spitfire"]
#: A warehouse of 105 MB in DRAM of 16 MiB: every transition between tiers happens.
SQUEEZED = {"dram_capacity": "256 MiB", "pmem_capacity": "1 GiB", "operations": 150, "warmup": 150}


def tiny(point: Point) -> dict[str, object]:
    """Return the parameters of a point, shrunk to a fraction of a second."""
    given = point.parameters.model_dump()
    shrunk = {"operations": 20, "warmup": 20, "scale": "1/256", "data_size": min(given["data_size"], 2**31)}
    if given["workload"] == "tpcc":
        shrunk |= {"scale": "1/8", "warehouses": 8}
    return given | shrunk


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_valid_and_its_ends_run(name: str) -> None:
    scenario = load_scenario(name)
    points = points_of(scenario)
    for point in (points[0], points[-1]):
        # The point's own machine is at scale already, and in memory mode has only so much DRAM.
        machine = scenario.platform if "platform" not in point.axes else point.platform
        measured = pmsim.simulate_point(point.kind, machine, tiny(point))
        assert measured["transactions_per_s"] > 0 or (measured["fits"] == 0 and name in ENDS_WHERE_FULL)


def holds(point: Point) -> bool:
    """Whether the tier that an engine keeps its pages on is as large as the data."""
    given = point.parameters.model_dump()
    home = {
        **{"main-memory": "dram_capacity", "basic-nvm-bm": "pmem_capacity", "nvm-direct": "pmem_capacity"},
        "nvm-undo": "pmem_capacity",
        **{"fptree": "pmem_capacity", "ssd-bm": "ssd_capacity", "three-tier": "ssd_capacity"},
        "spitfire": "ssd_capacity",
    }
    if given.get("memory_mode") is True:
        home["main-memory"] = "pmem_capacity"
    return bool(given[home[given["engine"]]] >= given["data_size"])


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in ENDS_WHERE_FULL])
def test_a_scenario_asks_for_nothing_that_an_engine_cannot_hold(name: str) -> None:
    # Warehouses have no data_size.
    points = [point for point in points_of(load_scenario(name)) if point.columns["workload"] != "tpcc"]
    assert [point.axes for point in points if not holds(point)] == []


def test_a_scenario_runs_by_the_command(tmp_path: Path) -> None:
    changes = {"scale": "1/64", "operations": 100, "warmup": 100, "windows": 5}
    settings = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    pmsim_command = str(Path(sys.executable).with_name("pmsim"))
    command = [pmsim_command, "run", "hymem/fig17", "--jobs", "1", "--out", str(tmp_path)]
    done = subprocess.run([*command, *settings], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    frame = pd.read_parquet(tmp_path / "results.parquet")
    assert dict(frame.groupby("engine").size()) == dict.fromkeys(frame["engine"].unique(), 5)
    assert set(frame["engine"]) == {"three-tier", "nvm-direct", "fptree", "basic-nvm-bm", "ssd-bm"}
    for _, rows in frame.groupby("engine"):
        assert list(rows["time_ms"]) == sorted(rows["time_ms"])
        assert (rows["recovery_ms"] < rows["time_ms"].max()).all()
    assert json.loads((tmp_path / "provenance.json").read_text())["points_failed"] == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_tpcc_is_consistent_after_every_engine_has_moved_its_pages(engine: str) -> None:
    given = {"engine": engine, "workload": "tpcc", "warehouses": 16, "check": True} | SQUEEZED
    if engine == "main-memory":
        given["dram_capacity"] = "4 GiB"
    if engine in ("nvm-direct", "basic-nvm-bm", "file-bm", "redirect-bm"):
        given["pmem_capacity"] = "4 GiB"
    platform = "sep-e5-4620v2"
    measured = pmsim.simulate_point("oltp", platform, given)
    assert measured["fits"] == 1
    if engine in ("basic-nvm-bm", "file-bm", "redirect-bm", "ssd-bm", "three-tier"):
        assert measured["evictions_dram_per_tx"] > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_wear_counts_the_pages_and_not_the_log(engine: str) -> None:
    given = {"engine": engine, "workload": "ycsb-a", "data_size": "256 MiB", "operations": 500, "warmup": 100}
    measured = pmsim.simulate_point("oltp", "sep-e5-4620v2", given | {"pmem_capacity": "1 GiB"})
    assert measured["log_bytes_per_tx"] > 0 or engine == "main-memory"
    if engine == "nvm-direct":
        # A field of 100 bytes lies in two lines or three, 2.55 on average; half of the transactions update one.
        assert measured["wear_writes"] / 500 == pytest.approx(0.5 * 2.55, rel=0.1)
        assert measured["wear_maximum"] > measured["wear_p50"]
    else:
        assert measured["wear_writes"] == 0  # everything fits into DRAM


def test_wear_leaves_out_the_micro_log_wherever_the_log_is() -> None:
    given = {"engine": "basic-nvm-bm", "workload": "tpcc"} | SQUEEZED | {"pmem_capacity": "4 GiB"}
    on_pmem, on_ssd = (
        pmsim.simulate_point("oltp", "sep-e5-4620v2", given | {"log_device": device})
        for device in ("pmem", "ssd")
    )
    assert on_ssd["counter.engine.micro_log_writes"] > 0
    for metric in ("wear_writes", "wear_lines", "wear_maximum"):
        assert on_ssd[metric] == on_pmem[metric], metric


def test_a_crash_costs_a_longer_recovery_than_a_clean_end() -> None:
    given = {"engine": "three-tier", "workload": "ycsb-a", "data_size": "256 MiB", "operations": 300}
    given |= {"warmup": 2_000, "windows": 4, "log_size": "512 MiB"}
    clean, crashed = (
        pmsim.simulate_point("restart", "sep-e5-4620v2", given | {"end": end}) for end in ("clean", "crash")
    )
    assert 0 < clean["recovery_ms"] < crashed["recovery_ms"]
    assert clean["steady"] == crashed["steady"] == 1
    assert 0 < clean["warmup_transactions"] == crashed["warmup_transactions"] < given["warmup"]


def test_the_windows_of_a_restart_have_tails_of_their_own() -> None:
    given = {"engine": "three-tier", "data_size": "256 MiB", "dram_capacity": "1 GiB", "operations": 8_000}
    scenario = pmsim.Scenario(
        kind="restart", platform="sep-e5-4620v2", parameters=given | {"warmup": 8_000, "windows": 10}
    )
    frame = pmsim.run(scenario, jobs=1).frame
    tails = frame["window_latency_p99_ns"]
    idle = frame["transactions_per_s"] == 0
    assert tails[~idle].gt(0).all()
    assert tails[idle].isna().all()
    # Pages come back from PMem at first.
    assert tails.dropna().iloc[0] > tails.iloc[-1]
