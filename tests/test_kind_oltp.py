"""Kind "oltp": scale, capacities, counts and the statistics of what it reports."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import pmsim
from pmsim import _native
from pmsim.cli import app, main
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind, measurement
from pmsim.kinds.oltp import OltpParameters
from pmsim.points import points_of
from pmsim.profiles import load_platform

PLATFORM = "sep-e5-4620v2"
SMALL = {"engine": "main-memory", "data_size": "256 MiB", "operations": 2_000, "warmup": 1_000}


def measure(**given: Any) -> dict[str, int | float]:
    return pmsim.simulate_point("oltp", PLATFORM, SMALL | given)


def test_rows_are_those_of_the_paper_at_full_size() -> None:
    # 6.5 million tuples "amount to roughly 10 GB"; at 1/64 a sixty-fourth of them.
    measured = measure(data_size="10 GB", scale="1/64", dram_capacity="12 GiB", operations=100, warmup=100)
    assert measured["table_rows"] * 64 == pytest.approx(6.5e6, rel=0.01)


@pytest.mark.parametrize(
    ("engine", "given"),
    [
        *(("nvm-direct", {"fill_factor": fill}) for fill in (0.66, 1.0)),
        ("nvm-direct", {"workload": "table-scan", "row_size": 4000}),
        *(("nvm-direct", {"workload": "lookup8", "leaf_layout": leaves}) for leaves in ("sorted", "hash")),
        ("fptree", {"workload": "lookup8"}),
    ],
)
def test_data_fill_a_tier_of_their_size(engine: str, given: dict[str, Any]) -> None:
    fixed = {"engine": engine, "data_size": "64 MiB", "scale": 1, "operations": 10, "warmup": 0, **given}
    assert measure(**fixed, pmem_capacity="64 MiB")["fits"] == 1
    assert measure(**fixed, pmem_capacity="63.5 MiB")["fits"] == 0


def test_batches_divide_the_latencies_of_a_run() -> None:
    found = measurement.measure(
        "oltp",
        load_platform(PLATFORM),
        OltpParameters.model_validate(
            SMALL | {"threads": 2, "log_device": "pmem", "commits": "single", "locks": "none"}
        ).native()
        | {"operations": 8_000, "warmup": 1_000, "batches": 20, "wear": 0, "check": 0, "breakdown": 0},
        seed=1,
    )
    batches = found.batch_latencies
    assert len(batches.counts) == len(found.batch_ends_ps) == 20
    # Every operation once, and 400 a batch, but for the few of the other thread that are under way at its end.
    assert batches.counts.sum() == found.total.operations
    assert all(abs(done - 400) <= 2 for done in batches.counts.sum(axis=1))
    assert batches.of_windows([0] * 20, 1, 0.5) == [found.total.latency.p50_ps]
    assert batches.of_windows([0] * 20, 1, 0.999) == [found.total.latency.p999_ps]
    assert batches.edges[-1] == found.total.latency.max_ps
    assert batches.sums.sum() / batches.counts.sum() == found.total.latency.mean_ps


def test_tails_have_an_interval_where_enough_is_beyond_them() -> None:
    measured = measure(operations=8_000, scale=1)
    assert measured["latency_p99_ns_low"] <= measured["latency_p99_ns"] <= measured["latency_p99_ns_high"]
    assert math.isnan(measured["latency_p999_ns_low"])
    assert measured["latency_ns_low"] < measured["latency_ns"] < measured["latency_ns_high"]


def test_data_that_do_not_fit_end_a_curve_and_not_a_sweep(tmp_path: Path) -> None:
    scenario = pmsim.Scenario(
        kind="oltp",
        platform=PLATFORM,
        parameters={"engine": "main-memory", "operations": 200, "warmup": 0, "scale": "1/64"},
        sweep={"data_size": ["1 GiB", "4 GiB"]},
    )
    result = pmsim.run(scenario, jobs=1, out=tmp_path)
    assert not result.failures
    assert list(result.frame["fits"]) == [1, 0]
    throughput = list(result.frame["transactions_per_s"])
    assert throughput[0] > 0
    assert math.isnan(throughput[1])
    assert len(result.figure().data) == 1
    again = pmsim.run(scenario, jobs=1, out=tmp_path)
    assert again.provenance["points_from_cache"] == 2
    assert math.isnan(list(again.frame["transactions_per_s"])[1])


def run_file(folder: Path, **parameters: object) -> Any:
    lines = [f"{name} = {value!r}" for name, value in parameters.items()]
    path = folder / "point.toml"
    path.write_text("\n".join(['kind = "oltp"', f'platform = "{PLATFORM}"', "[parameters]", *lines]))
    return CliRunner().invoke(app, ["run", str(path), "--out", str(folder / "out")])


DRAM_TOO_SMALL = "dram_capacity: 64 KiB cannot hold the 8 pages of "


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    result = run_file(tmp_path, engine="main-memory", operations=200, warmup=0, scale="1/64", data_size="4 GiB")
    assert result.exit_code == 0
    assert "pmsim: in 1 of 1 points `fits` is 0" in result.stderr
    assert "dram_capacity: the data do not fit into 2 GiB; raise it\n" in result.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_reason_why_data_do_not_fit_is_kept_with_the_point(tmp_path: Path, jobs: int) -> None:
    # Not for want of a home: all three tiers could hold the data. DRAM has no room for an operation.
    scenario = pmsim.Scenario(
        kind="oltp",
        platform=PLATFORM,
        parameters={"data_size": "64 MiB", "scale": 1, "operations": 200, "warmup": 0},
        sweep={"dram_capacity": ["8 MiB", "64 KiB"], "ssd_capacity": ["1 GiB", "2 GiB"]},
    )
    for kept in (0, 4):
        result = pmsim.run(scenario, jobs=jobs, out=tmp_path)
        assert result.provenance["points_from_cache"] == kept
        assert list(result.frame["fits"]) == [1, 1, 0, 0]
        first, _ = map(str, result.not_held)
        assert first.startswith(f"point 3 (dram_capacity = 64 KiB, ssd_capacity = 1 GiB): {DRAM_TOO_SMALL}")
        assert first.endswith("; choose at least 144 KiB")
    least = pmsim.run(scenario, set={"sweep": {}, "dram_capacity": "144 KiB"}, jobs=1)
    assert list(least.frame["fits"]) == [1]


def test_a_kept_point_without_its_reason_is_simulated_again(tmp_path: Path) -> None:
    given = {"data_size": "64 MiB", "scale": 1, "dram_capacity": "64 KiB"}
    scenario = pmsim.Scenario(kind="oltp", platform=PLATFORM, parameters=given)
    pmsim.run(scenario, jobs=1, out=tmp_path)
    (file,) = (tmp_path / "points").glob("*.json")
    entry = json.loads(file.read_text())
    assert entry.pop("reason").startswith(DRAM_TOO_SMALL)
    file.write_text(json.dumps(entry))
    again = pmsim.run(scenario, jobs=1, out=tmp_path)
    assert again.provenance["points_from_cache"] == 0
    assert len(again.not_held) == 1


def test_a_restart_says_why_its_data_do_not_fit() -> None:
    given = {"data_size": "64 MiB", "scale": "1/4", "engine": "ssd-bm", "dram_capacity": 0}
    result = pmsim.run(pmsim.Scenario(kind="restart", platform=PLATFORM, parameters=given), jobs=1)
    (reason,) = (each.message for each in result.not_held)
    assert reason.startswith("dram_capacity: 0 B at scale 1/4 cannot hold the 8 pages")
    assert reason.endswith("choose at least 576 KiB")


@pytest.mark.parametrize("engine", sorted(_native.engines()))
def test_data_that_fit_into_the_home_of_all_pages_fit(engine: str) -> None:
    home = f"{_native.engines()[engine][1]}_capacity"
    sizes = dict.fromkeys(("dram_capacity", "pmem_capacity", "ssd_capacity"), "8 GiB")
    workload = {"workload": "lookup8", "data_size": "1 GiB", "operations": 200, "warmup": 0, "scale": "1/64"}
    given = {"engine": engine, **workload, **sizes}
    assert pmsim.simulate_point("oltp", PLATFORM, given, 1)["fits"] == 1
    assert pmsim.simulate_point("oltp", PLATFORM, given | {home: "256 MiB"}, 1)["fits"] == 0


def test_a_run_is_repeatable_and_depends_on_its_seed() -> None:
    first, again, other = (
        pmsim.simulate_point("oltp", PLATFORM, SMALL | {"workload": "ycsb-a"}, seed=seed) for seed in (1, 1, 2)
    )
    assert first == pytest.approx(again, rel=0, abs=0, nan_ok=True)
    assert first["transactions_per_s"] != other["transactions_per_s"]


@pytest.mark.parametrize(
    ("engine", "given"),
    [
        *(("three-tier", {}), ("three-tier", {"leaf_layout": "hash"}), ("spitfire", {}), ("basic-nvm-bm", {})),
        *(("file-bm", {}), ("redirect-bm", {})),
        *(("ssd-bm", {}), ("nvm-direct", {}), ("nvm-undo", {}), ("main-memory", {})),
        ("fptree", {"workload": "lookup8", "data_size": "16 MiB"}),
    ],
)
def test_every_engine_can_be_loaded_by_inserts(engine: str, given: dict[str, Any]) -> None:
    # 2 MiB of DRAM for 8 MiB of data, where an engine can: pages move while rows are inserted.
    sizes = {"dram_capacity": "2 MiB", "pmem_capacity": "32 MiB", "ssd_capacity": "64 MiB", "log_size": "4 MiB"}
    sizes |= {"dram_capacity": "32 MiB"} if engine in ("main-memory", "fptree") else {}
    common = {"engine": engine, "scale": 1, "data_size": "8 MiB", "operations": 500, "warmup": 0, "check": True}
    bulk, grown = (measure(**common | sizes | given, loading=how) for how in ("bulk", "inserts"))
    assert grown["fits"] == 1
    assert grown["table_rows"] == bulk["table_rows"]  # and `check` has found each of them
    assert grown["latency_ns"] != bulk["latency_ns"]  # with one seed: pages lie elsewhere


def test_a_log_costs_what_is_made_and_what_is_written() -> None:
    # Pages in DRAM and long logs: nothing is written back.
    given = {"engine": "main-memory", "workload": "ycsb-rw", "update_percent": 100, "log_size": "1 GiB"}
    none, unwritten, pmem, ssd = (
        measure(**given, log_device=device) for device in ("none", "unwritten", "pmem", "ssd")
    )
    rates = [run["transactions_per_s"] for run in (none, unwritten, pmem, ssd)]
    assert rates == sorted(rates, reverse=True)
    assert [run["pmem_lines_written_per_tx"] for run in (none, unwritten, ssd)] == [0, 0, 0]
    assert [run["ssd_writes_per_tx"] for run in (none, unwritten, pmem)] == [0, 0, 0]
    # The undo record of a field (16 + 104 B) in a batch (8 B), and the redo record (16 + 104 B).
    assert none["log_bytes_per_tx"] == 128
    assert unwritten["log_bytes_per_tx"] == 248


def test_pages_that_are_written_back_at_a_pace_are_as_many_and_keep_nobody_waiting() -> None:
    given = {"engine": "three-tier", "workload": "ycsb-a", "data_size": "32 MiB", "dram_capacity": "64 MiB"}
    # The log has been full before what is measured.
    given |= {"scale": 1, "pmem_capacity": "256 MiB", "log_size": "8 MiB", "operations": 40_000}
    given |= {"warmup": 60_000}
    due, paced = (measure(**given, cleaning=cleaning) for cleaning in ("due", "paced"))
    assert paced["latency_max_ns"] < 0.5 * due["latency_max_ns"]
    assert paced["pages_dram_to_pmem_per_tx"] == pytest.approx(due["pages_dram_to_pmem_per_tx"], rel=0.2)


def test_lookups_and_updates_may_be_of_whole_rows() -> None:
    given = {"engine": "nvm-undo", "workload": "ycsb-rw", "update_percent": 100}
    field, row = (measure(**given, access=access) for access in ("field", "row"))
    assert (field["log_bytes_per_tx"], row["log_bytes_per_tx"]) == (100, 1000)
    # A row spans 16 lines and sometimes one more, a field 2 or 3; each is snapshotted and flushed.
    assert row["pmem_lines_written_per_tx"] - field["pmem_lines_written_per_tx"] == pytest.approx(2 * 14, abs=2)


@pytest.mark.parametrize("device", ["unwritten", "none"])
def test_an_engine_without_a_log_is_not_restarted(device: str) -> None:
    with pytest.raises(
        ConfigError, match=f"^log_device: {device}; nothing is durable, so there is nothing to restart, "
    ):
        pmsim.simulate_point("restart", PLATFORM, SMALL | {"engine": "main-memory", "log_device": device}, 1)


def test_tpcc_keeps_its_consistency_conditions() -> None:
    measured = measure(workload="tpcc", warehouses=16, check=True, operations=1_000, warmup=200)
    assert measured["table_rows"] > 100_000 + 100_000 + 30_000 * 10
    # 45 % new orders, of which one in a hundred rolls back: 4.5 expected.
    assert 0 < measured["rolled_back_ratio"] < 0.015


@pytest.mark.parametrize("workload", ["ycsb-scan", "ycsb-e"])
def test_a_full_scan_reads_the_whole_table_in_each_transaction(workload: str) -> None:
    measured = measure(workload=workload, scan_length="table", operations=3, warmup=1)
    short = measure(workload=workload, scan_length=100, operations=100, warmup=10)
    assert measured["latency_ns"] > 0.5 * measured["table_rows"] / 50.5 * short["latency_ns"]


def test_threads_share_the_engine() -> None:
    one, four = measure(), measure(threads=4)
    assert 2 < four["transactions_per_s"] / one["transactions_per_s"] <= 4.2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scale": "2"}, "scale: '2' is no scale"),
        ({"scale": "tiny"}, "scale: 'tiny' is not a scale"),
        ({"workload": "tpcc", "warehouses": 20}, "choose a multiple of 16"),
        ({"workload": "tpcc", "loading": "inserts"}, "loading: inserts; tpcc is loaded in bulk"),
        ({"page_size": 5120}, "page_size: 5120 B; choose a power of two"),
        ({"update_percent": 101}, "update_percent: 101 % are too many"),
        ({"zipf": -1}, "zipf: -1 is not a number from 0 to 100"),
        ({"ssd_capacity": "8 TiB", "scale": 1}, "ssd_capacity: 8 TiB do not fit"),
        ({"dram_capacity": "40 GiB", "scale": 1}, "dram_capacity: 40 GiB do not fit"),
        # The machine that is asked about has them at full size, whatever part of it is simulated.
        ({"dram_capacity": "40 GiB", "scale": "1/64"}, "dram_capacity: 40 GiB do not fit"),
        ({"log_size": "1 TiB", "scale": "1/64"}, "log_size: 1 TiB do not fit"),
        ({"operations": 0}, "operations: 0 is too few"),
        ({"engine": "three-tiers"}, "three-tier"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        measure(**given)
    assert message in str(raised.value)


def test_what_the_machine_lacks_is_said_to_be_the_default_where_nobody_has_asked_for_it() -> None:
    for given, asked in (
        ({}, "ssd_capacity: 50 GiB (the default): "),
        ({"ssd_capacity": "50 GiB"}, "ssd_capacity: "),
    ):
        with pytest.raises(ConfigError) as raised:
            pmsim.simulate_point("oltp", "tum-6212u", given)
        assert str(raised.value).startswith(f"{asked}platform 'tum-6212u' has no block device; choose 0")


def test_an_engine_whose_dram_is_still_filling_is_not_steady() -> None:
    # 500 transactions in a window miss 100 to 150 pages, give or take a fifth by chance: it hides the decay.
    given = {"engine": "ssd-bm", "workload": "ycsb-c", "data_size": "200 GiB", "ssd_capacity": "400 GiB"}
    given |= {"pmem_capacity": "0 B", "log_device": "ssd", "scale": "1/512", "operations": 100}
    platform = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    filling = pmsim.simulate_point("oltp", platform, given | {"dram_capacity": "128 GiB", "warmup": 10_000})
    assert filling["counter.engine.dram_misses"] > 0
    assert (filling["steady"], filling["warmup_transactions"]) == (0, 10_000)
    # Long full: chance is all that is left.
    full = pmsim.simulate_point("oltp", platform, given | {"dram_capacity": "2 GiB", "warmup": 10_000})
    assert full["counter.engine.evictions_dram"] > 0
    assert full["steady"] == 1
    assert full["warmup_transactions"] < 10_000
    # By itself a warm-up is as long as it takes to fill it: 20 million x scale would be 39,062.
    given_time = pmsim.simulate_point("oltp", platform, given | {"dram_capacity": "128 GiB"})
    assert given_time["counter.engine.evictions_dram"] > 0
    assert given_time["steady"] == 1
    assert 39_062 < given_time["warmup_transactions"] < 163_840


@pytest.mark.parametrize(
    ("given", "millions"),
    [
        ({}, 20),
        ({"data_size": "40 GiB"}, 20),  # 2 GiB of DRAM, 10 GiB of PMem: 7.9 for ten transactions a page
        ({"data_size": "400 GiB", "dram_capacity": "64 GiB", "pmem_capacity": "256 GiB"}, 209.7152),
        ({"data_size": "200 GiB", "dram_capacity": "64 GiB", "pmem_capacity": "256 GiB"}, 41.94304),  # on PMem
        ({"data_size": "60 GiB", "dram_capacity": "64 GiB", "pmem_capacity": "256 GiB"}, 20),  # read as a whole
        ({"engine": "main-memory", "data_size": "400 GiB", "dram_capacity": "500 GiB"}, 20),
        ({"workload": "ycsb-e", "data_size": "400 GiB", "dram_capacity": "128 GiB"}, 0.5),  # its table grows
        ({"data_size": "400 GiB", "dram_capacity": "128 GiB", "warmup": 1_000_000}, 1),
    ],
)
def test_a_warm_up_is_long_enough_for_the_tiers_that_it_fills(given: dict[str, Any], millions: float) -> None:
    parameters = OltpParameters.model_validate({"scale": 1, **given})
    assert parameters.simulated_warmup == round(1e6 * millions)


def test_a_run_says_of_how_many_points_the_warm_up_was_too_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.toml").write_text(
        f'kind = "oltp"\nplatform = "{PLATFORM}"\n[parameters]\nengine = "basic-nvm-bm"\noperations = 100\n'
        'data_size = "512 MiB"\ndram_capacity = "64 MiB"\n[sweep]\nwarmup = [0, 200_000]\n'
    )
    assert main(["run", "short.toml", "--jobs", "1"]) == 0
    told = f"in 1 of 2 points `steady` is 0: {find_kind('oltp').unsteady}; "
    told += "the first is point 1 (warmup = 0): after 0 transactions"
    assert told in " ".join(capsys.readouterr().err.split())
    assert f"Still changing: {told}." in Path("out/oltp/report.html").read_text()
    assert main(["run", "short.toml", "--jobs", "1", "--set", "warmup=200_000"]) == 0
    assert "steady" not in capsys.readouterr().err


def test_a_cold_read_loads_the_lines_that_a_lookup_accesses() -> None:
    # The header, the keys of the leaf (one line of 4-byte keys), and a field of 100 bytes, which lies in
    # two or three lines, 2.56 on average.
    given = {"engine": "three-tier", "workload": "ycsb-ro", "dram_capacity": "64 MiB", "pmem_capacity": "1 GiB"}
    assert measure(**given)["lines_per_cold_read"] == pytest.approx(2 + 2.56, rel=0.03)
    # Leaves that come from the SSD come whole, and say nothing of a lookup.
    scarce = measure(**given | {"pmem_capacity": "96 MiB"})
    assert scarce["counter.engine.pages_loaded_ssd"] > scarce["counter.engine.cold_reads"] > 0
    assert scarce["lines_per_cold_read"] == pytest.approx(2 + 2.56, rel=0.05)
    # Who works on PMem itself loads nothing.
    assert measure(**given | {"engine": "nvm-direct"})["lines_per_cold_read"] == 0


def test_pages_from_the_ssd_are_counted_by_the_tier_that_they_go_to() -> None:
    given = {"engine": "spitfire", "workload": "ycsb-a", "dram_capacity": "64 MiB", "pmem_capacity": "128 MiB"}
    first, never = (measure(**given, migration_nr=nr) for nr in (1.0, 0.0))
    for found in (first, never):
        moved = found["pages_ssd_to_pmem_per_tx"] + found["pages_ssd_to_dram_per_tx"]
        assert moved == pytest.approx(found["ssd_reads_per_tx"])
    # Some go to DRAM all the same: where lines of every page on PMem are in DRAM, none of these can leave.
    assert first["pages_ssd_to_pmem_per_tx"] > first["pages_ssd_to_dram_per_tx"]
    assert never["pages_ssd_to_pmem_per_tx"] == 0
    # Admitted pages come whole, others by their dirty lines.
    lines = 16384 // 64
    admitted, written = (never[f"{name}_per_tx"] for name in ("pages_admitted", "pages_dram_to_pmem"))
    assert 0 < admitted <= written
    assert lines * admitted <= never["lines_dram_to_pmem_per_tx"] <= lines * written


def test_a_single_transaction_behind_a_warm_up_has_a_result() -> None:
    given = {"engine": "fptree", "workload": "lookup8", "data_size": "2 MiB", "dram_capacity": 104_832}
    given |= {"scale": 1, "pmem_capacity": "24 MiB", "ssd_capacity": 0, "log_size": 4_096_000, "zipf": 100}
    given |= {"operations": 1, "warmup": 100, "threads": 5, "latches": "none"}
    measured = pmsim.simulate_point("oltp", "tum-6212u", given, seed=225)
    assert (measured["simulated_ops"], measured["latch_wait_share"]) == (1, 0)


def test_a_sweep_of_latencies_is_one_execution_with_the_results_of_each_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions: list[int] = []
    simulate = measurement.simulator.get()

    def counted(kind: str, lanes: Any, parameters: Any, seed: int) -> Any:
        executions.append(len(lanes))
        return simulate(kind, lanes, parameters, seed)

    latencies = ["115 ns", "450 ns", "1750 ns"]
    given = {
        "workload": "ycsb-a",
        "data_size": "512 MiB",
        "dram_capacity": "256 MiB",
        "operations": 500,
        "warmup": 500,
    }
    scenario = pmsim.Scenario(
        kind="oltp",
        platform=PLATFORM,
        parameters=given,
        sweep={"engine": ["three-tier", "nvm-direct"], "platform.pmem.media_read_latency": latencies},
    )
    token = measurement.simulator.set(counted)
    try:
        together = pmsim.run(scenario, jobs=1, out=tmp_path).frame
        assert executions == [3, 3]
        # A point that is missing later on is run by itself.
        victim = next((tmp_path / "points").glob("*.json"))
        victim.unlink()
        again = pmsim.run(scenario, jobs=1, out=tmp_path).frame
    finally:
        measurement.simulator.reset(token)
    assert executions == [3, 3, 1]
    pd.testing.assert_frame_equal(together, again)
    assert together.groupby("engine")["seed"].nunique().eq(1).all()
    for _, rows in together.groupby("engine"):
        assert rows["transactions_per_s"].is_monotonic_decreasing
        assert len(set(rows["page_fixes_per_tx"])) == 1


def test_threads_take_turns_by_time_so_that_each_latency_is_an_execution() -> None:
    scenario = pmsim.Scenario(
        kind="oltp",
        platform=PLATFORM,
        parameters=SMALL | {"threads": 2},
        sweep={"platform.pmem.media_read_latency": ["115 ns", "450 ns"]},
    )
    first, second = points_of(scenario)
    assert first.execution != second.execution


def test_a_sweep_over_a_number_and_a_word_is_saved(tmp_path: Path) -> None:
    scenario = pmsim.Scenario(
        kind="oltp",
        platform=PLATFORM,
        parameters=SMALL | {"workload": "ycsb-scan", "operations": 2, "warmup": 0, "scale": "1/256"},
        sweep={"scan_length": [10, "table"]},
    )
    frame = pmsim.run(scenario, jobs=1, out=tmp_path).frame
    assert list(frame["scan_length"]) == [10, "table"]
    assert list(pd.read_parquet(tmp_path / "results.parquet")["scan_length"]) == ["10", "table"]


def test_ordinary_stores_read_each_line_of_a_page_before_they_write_it() -> None:
    given = {"engine": "basic-nvm-bm", "workload": "ycsb-rw", "update_percent": 100, "dram_capacity": "64 MiB"}
    streamed, stored = (
        measure(**given, pmem_capacity="1 GiB", page_write=how) for how in ("ntstore", "store+clwb")
    )
    written = stored["lines_dram_to_pmem_per_tx"]
    assert written > 0
    assert streamed["lines_dram_to_pmem_per_tx"] == pytest.approx(written, rel=0.05)
    read = stored["pmem_lines_read_per_tx"] - streamed["pmem_lines_read_per_tx"]
    assert read == pytest.approx(written, rel=0.1)
    assert stored["transactions_per_s"] < streamed["transactions_per_s"]


def test_writes_per_day_are_those_of_the_medium_over_the_capacity_at_full_size() -> None:
    given = {"engine": "nvm-direct", "workload": "ycsb-rw", "update_percent": 100, "log_size": "64 MiB"}
    capacity = {"pmem_capacity": "4 GiB"}
    run = measure(**given, **capacity)
    # Emulated NVM has blocks of a line. Each line that is written reaches the medium.
    written = run["counter.pmem_media_write_blocks"] * 64
    assert written == pytest.approx(run["counter.pmem_write_lines"] * 64, rel=0.01)
    per_day = written / (run["counter.elapsed_ps"] / 86_400e12)
    assert run["pmem_writes_per_day"] == pytest.approx(per_day / (2**32 + 2**26))
    half = measure(**given, pmem_capacity="2 GiB")
    assert half["pmem_writes_per_day"] / run["pmem_writes_per_day"] == pytest.approx(1.97, rel=0.02)
    on_ssd = measure(**given | {"engine": "main-memory", "log_device": "ssd"}, **capacity)
    assert on_ssd["pmem_writes_per_day"] == 0


def test_the_data_of_tpcc_are_its_warehouses() -> None:
    known = find_kind("oltp")
    for given, expected in (
        ({"workload": "tpcc", "warehouses": 96}, 96 * 111e6 / 2**30),
        ({"workload": "ycsb-c", "data_size": "3 GiB"}, 3),
    ):
        machine, parameters, _ = known.prepared(load_platform("sep-e5-4620v2"), given)
        assert known.columns(machine, parameters)["data_gib"] == pytest.approx(expected)
