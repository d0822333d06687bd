"""Kind "system": saturation, tails, group commit, restarts and tenants."""

import math
from pathlib import Path
from typing import get_args

import pytest

import pmsim
from pmsim import des
from pmsim.cli import main
from pmsim.des import studies
from pmsim.des.parts import PageTechnique
from pmsim.errors import ConfigError

PLATFORM = "ucsd-8260"
WITH_SSD = {"base": PLATFORM, "block_device": "sata-s3700"}


def point(platform=PLATFORM, **parameters):
    return pmsim.simulate_point("system", platform, {"requests": 5_000} | parameters)


def test_the_saturation_of_fixed_service_is_workers_over_service_time():
    machine = pmsim.load_platform(PLATFORM)
    service = 20 * des.US
    for workers in (1, 3):
        mix = (des.Ask("compute.run", first=service),)
        setting = studies.Setting(machine, (des.ComputePart(),), workers, mix, 1)
        assert studies.closed_throughput(setting) == pytest.approx(workers * des.S / service, rel=0.01)
        assert studies.saturation(setting) == pytest.approx(workers * des.S / service, rel=0.02)


ON_SSD = {"service": "engine", "engine": "ssd-bm", "rows": 1_000, "workers": 1, "rate": 100, "requests": 500}
ON_SSD |= {"dram_capacity": "8 MiB", "pmem_capacity": "0 B", "ssd_capacity": "16 MiB"}


def test_an_engine_needs_no_pmem_where_its_log_is_on_the_ssd():
    without = {"base": "tum-6212u", "block_device": "nvme-p4510", "pmem": {"dimms": 0}}
    ssd = point(without, **ON_SSD, log_device="ssd")
    # All pages are in DRAM: an update waits for its log, and a command to the drive takes 16 us at least.
    drive = pmsim.load_platform(without)
    command = drive.value("block", "write_latency") + drive.value("block", "software_latency")
    assert ssd["latency_p50_ns"] * 1_000 > command
    pmem = point(without | {"pmem": {"dimms": 6}}, **ON_SSD, log_device="pmem")
    assert pmem["latency_p50_ns"] * 1_000 < command
    with pytest.raises(ConfigError, match="log_device: platform 'tum-6212u' has no PMem; choose 'ssd' or"):
        point(without, **ON_SSD, log_device="pmem")
    with pytest.raises(ConfigError, match="log_device: platform 'ucsd-8260' has no block device; choose"):
        point(**ON_SSD, log_device="ssd")


def full_once(log_size: int, **parameters) -> dict:
    """One worker on a log that `warmup` has filled more than once."""
    given = {"service": "log", "workers": 1, "rate": 200_000, "log_size": log_size, "entry_size": 56}
    return point(**given, warmup=2 * log_size // 64, **parameters)


def test_a_log_that_is_full_gives_up_a_piece_of_itself_and_not_all() -> None:
    """PopLog zeroes what it gives up: of a whole log one append would take as long as all of it takes."""
    small, large = (full_once(size, algorithm="poplog", requests=2_000) for size in (2**18, 2**21))
    zeroed = [each["counter.pmem_write_lines"] / each["simulated_ops"] for each in (small, large)]
    # Of the head, which moves with each piece, a small log has more.
    assert zeroed[0] == pytest.approx(zeroed[1], rel=0.1)
    # A 256th of 2 MiB is 8 KiB, 128 lines of 4 to 10 ns; the whole log would be 32,768.
    assert large["latency_max_ns"] < 5_000
    assert full_once(2**21, algorithm="rawl", requests=2_000)["latency_max_ns"] < large["latency_max_ns"]


def test_a_log_that_has_been_full_has_all_that_fits_before_and_after_a_crash() -> None:
    env = des.Environment()
    server = des.Server(env, [des.LogPart(log_size="64 KiB", entry_size=56)], platform=PLATFORM, crash=True)
    fits, numbers = 0, iter(range(10_000))

    def work():
        nonlocal fits
        for turn in range(2):
            for _ in range(2_000):
                yield server.execute("log.append", next(numbers))
                found = server.present()
                assert found == list(range(found[0], found[-1] + 1))
                # Once it has been full it stays so, but for a piece of 4 KiB: 64 lines at most.
                fits = max(fits, len(found))
                assert found[0] == 0 or len(found) >= fits - 64
            if turn == 0:
                yield server.power_failure()

    env.run(env.process(work()))
    assert 500 < fits < 1_024


def test_pages_that_are_written_back_at_a_pace_keep_nobody_waiting() -> None:
    given = {"service": "engine", "engine": "main-memory", "rows": 20_000, "dram_capacity": "64 MiB"}
    # The log of 64 MiB is first full in what is measured, when all pages are due.
    given |= {"workers": 8, "rate": 800_000, "warmup": 350_000, "requests": 60_000}
    due, paced = (point("tum-6212u", **given, cleaning=cleaning) for cleaning in ("due", "paced"))
    assert due["throughput_per_s"] == pytest.approx(paced["throughput_per_s"], rel=0.05)
    assert paced["latency_p999_ns"] < 0.05 * due["latency_p999_ns"]


def test_tails_have_intervals_where_enough_requests_are_beyond_them() -> None:
    given = {"service": "log", "workers": 2, "load_percent": 80}
    long, short = point(**given, requests=50_000), point(**given, requests=3_000)
    for name in ("latency_p99_ns", "latency_p999_ns"):
        assert long[f"{name}_low"] <= long[name] <= long[f"{name}_high"]
        assert math.isnan(short[f"{name}_low"])
    assert long["latency_p99_ns_low"] < long["latency_p99_ns_high"]
    assert long["steady"] == 1
    assert math.isnan(short["steady"])
    over = point(service="log", workers=1, rate=20_000_000, requests=20_000)
    assert over["keeps_up"] == 0
    assert math.isnan(over["latency_p99_ns_high"])
    assert math.isnan(over["steady"])


def test_a_run_whose_caches_still_fill_is_not_steady(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "cold.toml"
    scenario.write_text(
        'kind = "system"\nplatform = "tum-6212u"\nmetrics = ["latency_p99_ns"]\n'
        '[parameters]\nservice = "table"\nwarmup = 0\nrate = 15_000_000\nworkers = 4\nrows = 262_144\n'
        "zipf = 1\n[sweep]\nrequests = [2_000, 300_000]\n"
    )
    assert main(["run", str(scenario), "--out", str(tmp_path / "out")]) == 0
    told = "in 1 of 2 points `steady` is 0: the 99th percentile was still changing while requests were counted"
    assert told in " ".join(capsys.readouterr().err.split())
    assert told in (tmp_path / "out" / "report.html").read_text()


def test_the_interval_of_a_metric_comes_with_it() -> None:
    scenario = pmsim.Scenario(
        kind="system",
        platform=PLATFORM,
        parameters={"service": "log", "rate": 1_000_000, "requests": 5_000},
        metrics=["latency_p99_ns"],
    )
    result = pmsim.run(scenario, jobs=1)
    assert {"latency_p99_ns_low", "latency_p99_ns_high"} <= set(result.frame)
    assert "latency_p999_ns_low" not in result.frame
    assert "latency_p99_ns_low" not in result.shown()
    [trace] = result.figure().data
    assert trace.error_y.array is not None


def test_workers_that_commit_in_groups_carry_what_one_by_one_would_queue_for():
    machine = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    given = {"service": "engine", "engine": "main-memory", "rows": 2_000, "dram_capacity": "16 MiB"}
    given |= {"log_device": "ssd", "workers": 16, "rate": 100_000, "requests": 2_000}
    single, group = (point(machine, **given, commits=commits) for commits in ("single", "group"))
    # A write and a flush take some 30 us: 32,000 a second one by one.
    assert single["throughput_per_s"] < 35_000
    assert group["throughput_per_s"] == pytest.approx(100_000, rel=0.1)
    assert group["latency_p99_ns"] < 3 * 35_000  # who has just missed a group waits for it and the next
    with pytest.raises(ConfigError, match='commits = "group": is for one log on the SSD'):
        point(machine, **given | {"log_device": "pmem"}, commits="group")


@pytest.mark.parametrize("study", ["load", "group-commit", "tenants", "propagation"])
def test_counters_are_those_of_the_requests_that_count(study):
    """Without the warm-up, a tenth more: what is divided by `simulated_ops` had been as much too high."""
    given = {"study": study, "rate": 200_000, "requests": 20_000}
    if study == "tenants":
        given |= {"service": "table", "scanners": 0}
    found = pmsim.simulate_point("system", "ucsd-8260", given)
    done = found["simulated_ops"]
    if study == "tenants":
        assert found["counter.loads"] == pytest.approx(5 * done, rel=0.01)  # an entry, and four lines of a row
    elif study == "load":
        assert found["counter.fences"] == pytest.approx(done, abs=5)
    elif study == "group-commit":
        groups = done / found["entries_per_group"]
        assert found["counter.fences"] == pytest.approx(groups, abs=5)
    else:
        assert found["counter.fences"] < 4.1 * done


def test_latency_rises_with_load_and_a_queue_beyond_saturation_does_not_end():
    low, high = point(load_percent=20), point(load_percent=95)
    assert low["saturation_per_s"] == pytest.approx(high["saturation_per_s"], rel=0.01)
    assert low["throughput_per_s"] == pytest.approx(0.2 * low["saturation_per_s"], rel=0.05)
    assert high["waited_ns"] > 5 * low["waited_ns"]
    assert high["latency_p99_ns"] > low["latency_p99_ns"]
    over = point(load_percent=130)
    assert over["in_system_at_end"] > 0.1 * 5_000
    assert [found["keeps_up"] for found in (low, high, over)] == [1, 1, 0]
    assert over["throughput_per_s"] < 1.1 * over["saturation_per_s"]
    given = point(rate=100_000)
    assert math.isnan(given["saturation_per_s"])
    assert given["offered_per_s"] == 100_000


def test_the_points_of_a_curve_over_the_load_share_one_saturation(monkeypatch):
    """They had one each, up to 5 % apart, though all were to be a share of the same."""
    searches = []
    closed_throughput = studies.closed_throughput
    monkeypatch.setattr(
        studies, "closed_throughput", lambda setting: searches.append(setting) or closed_throughput(setting)
    )
    studies.saturation.cache_clear()
    scenario = pmsim.Scenario(
        kind="system",
        platform=PLATFORM,
        parameters={"requests": 1_000},
        sweep={"workers": [1, 2], "load_percent": [20, 50, 90]},
    )
    frame = pmsim.run(scenario, jobs=1, progress=False).frame
    assert len(searches) == 2
    assert list(frame.groupby("workers")[["saturation_per_s", "seed"]].nunique().max()) == [1, 1]
    offered = frame["offered_per_s"] / frame["saturation_per_s"]
    assert list((100 * offered).round(6)) == [20, 50, 90] * 2
    # What another process finds, or this one without the others, is the same.
    studies.saturation.cache_clear()
    alone = pmsim.run(scenario, set={"sweep.workers": [2], "sweep.load_percent": [90]}, jobs=1, progress=False)
    assert alone.frame["latency_ns"].item() == frame["latency_ns"].iloc[-1]
    # The machine is part of what a saturation is of, though not of the hash.
    studies.saturation(studies.Setting(pmsim.load_platform("tum-6212u"), *_setting_but_machine(searches[-1])))
    assert len(searches) == 4


def _setting_but_machine(setting):
    return setting.parts, setting.workers, setting.mix, setting.seed


def test_groups_help_where_a_barrier_costs_more_than_waiting():
    def latency(service, size):
        return point(
            WITH_SSD, study="group-commit", service=service, rate=100_000, group_size=size, timeout="1 ms"
        )

    pmem = {size: latency("log", size) for size in (1, 16)}
    ssd = {size: latency("block-log", size) for size in (1, 16, 128)}
    assert pmem[16]["latency_ns"] > 10 * pmem[1]["latency_ns"]
    assert ssd[1]["in_system_at_end"] > 1_000  # it does not keep up
    assert ssd[128]["in_system_at_end"] < 300
    assert pmem[16]["entries_per_group"] == pytest.approx(16, rel=0.01)


def test_transactions_come_until_the_end_of_a_study():
    """A study that ends them at the number that is expected is too slow whenever chance brings them early."""
    given = {"study": "group-commit", "rate": 100_000, "requests": 50, "group_size": 1}
    found = [
        pmsim.simulate_point("system", PLATFORM, given, seed=seed)["throughput_per_s"] for seed in range(200)
    ]
    # 10,000 requests have a standard deviation of 1 %. With transactions that ended it was 92.8 % of the rate.
    assert sum(found) / len(found) == pytest.approx(100_000, rel=0.03)


@pytest.mark.parametrize("technique", get_args(PageTechnique))
def test_background_writers_take_page_flushes_out_of_the_tail(technique):
    def tail(background):
        return point(study="propagation", rate=200_000, background=background, technique=technique)

    alone, beside = tail("none"), tail("writers")
    assert alone["stalled_ratio"] > 0.5
    assert beside["stalled_ratio"] == 0
    assert beside["latency_p99_ns"] < 0.5 * alone["latency_p99_ns"]


def test_a_restart_under_load_has_a_hole_a_backlog_and_an_end():
    result = pmsim.run(
        pmsim.Scenario(
            kind="system",
            platform=PLATFORM,
            parameters={
                "study": "restart",
                "rate": 1_000_000,
                "workers": 2,
                "log_size": "64 KiB",
                "crash_at": "200 us",
                "restart_after": "100 us",
                "duration": "1 ms",
                "windows": 50,
            },
        ),
        progress=False,
    )
    frame = result.frame
    assert len(frame) == 50
    throughput = frame.set_index("time_ms")["window_throughput_per_s"]
    assert throughput[:0.2].mean() == pytest.approx(1e6, rel=0.1)
    assert (throughput[0.22:0.3] == 0).all()
    assert throughput.max() > 1.5e6  # the backlog is worked off
    assert throughput[-10:].mean() == pytest.approx(1e6, rel=0.15)
    assert frame["recovery_ms"].iloc[0] > 0
    assert frame["window_latency_p99_ns"].max() > 100_000  # who came while it was down


@pytest.mark.parametrize(
    ("engine", "capacities"),
    [
        ("main-memory", {"dram_capacity": "8 MiB", "pmem_capacity": "8 MiB"}),
        ("basic-nvm-bm", {"dram_capacity": "256 KiB", "pmem_capacity": "4 MiB"}),
        ("file-bm", {"dram_capacity": "256 KiB", "pmem_capacity": "4 MiB"}),
        ("redirect-bm", {"dram_capacity": "256 KiB", "pmem_capacity": "4 MiB"}),
        ("three-tier", {"dram_capacity": "256 KiB", "pmem_capacity": "512 KiB", "ssd_capacity": "4 MiB"}),
        ("spitfire", {"dram_capacity": "256 KiB", "pmem_capacity": "512 KiB", "ssd_capacity": "4 MiB"}),
        ("ssd-bm", {"dram_capacity": "256 KiB", "pmem_capacity": 0, "ssd_capacity": "4 MiB"}),
    ],
)
def test_every_engine_serves_on_after_a_power_failure(engine, capacities):
    """Its data are larger than its DRAM but for main-memory's, and than its PMem where it has an SSD."""
    result = pmsim.run(
        pmsim.Scenario(
            kind="system",
            platform=WITH_SSD,
            parameters={
                "study": "restart",
                "service": "engine",
                "engine": engine,
                "rows": 2_000,
                "row_size": 512,
                "workers": 2,
                "rate": 500,
                "crash_at": "20 ms",
                "restart_after": "1 ms",
                "duration": "100 ms",
                "windows": 5,
            }
            | capacities,
        ),
        progress=False,
    )
    assert not result.failures
    frame = result.frame
    assert len(frame) == 5
    assert 0 < frame["recovery_ms"].iloc[0] < 60
    assert frame["in_system_at_end"].iloc[0] <= 3
    assert frame["window_throughput_per_s"].iloc[-2:].mean() == pytest.approx(500, rel=0.5)


def test_a_recovery_that_does_not_end_within_the_run_is_not_a_number():
    restart = {"study": "restart", "service": "engine", "rows": 500, "row_size": 8, "rate": 10_000}
    found = point(**restart, workers=1, crash_at="1 ms", restart_after="10 ms", duration="2 ms", windows=4)
    assert math.isnan(found["recovery_ms"])
    assert found["throughput_per_s"] > 0  # before the failure


def test_a_server_that_stays_down_has_windows_without_requests():
    given = {"study": "restart", "rate": 100_000, "workers": 1, "duration": "1 ms", "windows": 10}
    given |= {"crash_at": "200 us", "restart_after": "10 ms"}
    scenario = pmsim.Scenario(kind="system", platform=PLATFORM, parameters=given)
    frame = pmsim.run(scenario, jobs=1, progress=False).frame
    assert list(frame["time_ms"].round(6)) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    assert (frame["window_throughput_per_s"][:2] > 0).all()
    assert (frame["window_throughput_per_s"][2:] == 0).all()
    # 0 ns would be the best tail of all.
    for metric in ("window_latency_ns", "window_latency_p99_ns"):
        assert (frame[metric][:2] > 0).all()
        assert frame[metric][2:].isna().all()


def test_scans_delay_lookups():
    # Of 2^20 rows the caches hold a tenth: that much less than fills them leaves latencies as they are.
    given = {"study": "tenants", "service": "table", "workers": 4, "load_percent": 25, "warmup": 50_000}
    alone = point(**given, scanners=0)
    beside = point(**given, scanners=4)
    assert beside["latency_p99_ns"] > 3 * alone["latency_p99_ns"]
    assert beside["scans_per_s"] > 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"service": "block-log"}, "block_device"),
        ({"load_percent": 0}, "load_percent"),
        ({"study": "propagation"}, "rate"),
        ({"study": "tenants"}, "choose table"),
        ({"study": "group-commit", "service": "table", "rate": 5}, "no groups"),
        ({"study": "restart", "service": "table"}, "restart"),
        (
            {"study": "restart", "crash_at": "10 ms"},
            r"crash_at: 10 ms is not .*; choose less than duration, 10 ms",
        ),
        ({"workers": 1_000}, "hardware threads"),
        ({"dirty_target": 256}, "dirty_limit"),
        ({"study": "tenants", "service": "table", "row_size": 8}, "row_size"),
        ({"timeout": "1 B"}, "timeout"),
        ({"service": "engine", "engine": "ssd-bm", "ssd_capacity": "1 MiB"}, "ssd_capacity"),
        ({"study": "long-run", "duration": "90 s"}, "whole number of segments"),
    ],
)
def test_studies_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises(ConfigError, match=message):
        point(**parameters)


#: To seek a saturation takes sixteen runs, with a warm-up each: here it fills no logs, and no caches of 43 MB.
SMALL = {
    "hockey-stick": {"sweep.load_percent": [20, 90], "requests": 1_000, "warmup": 1_000},
    "an-hour": {"rows": 500, "duration": "200 ms", "segment": "100 ms", "windows": 10},
    "group-commit": {"sweep.group_size": [1, 64], "sweep.timeout": ["10 us"], "requests": 500},
    "propagation-tails": {"sweep.rate": [200_000], "requests": 500},
    "restart-under-load": {"rows": 500, "rate": 100_000, "windows": 12},
    "two-tenants": {"sweep.scanners": [0, 2], "requests": 500, "warmup": 1_000},
}


@pytest.mark.parametrize("name", SMALL)
def test_a_shipped_scenario_runs_and_draws_its_figure(name):
    result = pmsim.run(f"system/{name}", set=SMALL[name], jobs=1, progress=False)
    assert not result.failures
    assert len(result.frame) >= 2
    assert result.figure().data


@pytest.mark.parametrize(
    "given",
    [
        {"rate": 100_000},
        {"rate": 1_000_000, "study": "tenants", "service": "table", "rows": 1_000, "scan_rows": 10},
        {"rate": 100_000, "study": "group-commit"},
        {"rate": 100_000, "study": "propagation", "pages": 300},
        {"rate": 10_000, "study": "restart", "duration": "3 ms", "crash_at": "1 ms"},
        {"service": "table", "rows": 1_000, "workers": 1},
    ],
)
def test_a_study_gives_its_machines_back_at_once(given, monkeypatch):
    # Whether Python has looked for cycles meanwhile must not matter: a machine may have gigabytes.
    made = []

    class Noted(des.Server):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            made.append(self)

    monkeypatch.setattr(studies, "Server", Noted)
    pmsim.simulate_point("system", "tum-6212u", {"requests": 300, **given})
    assert made
    assert not [server for server in made if hasattr(server, "session")]


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"requests": 20, "rate": 10**12}, "requests"),
        ({"requests": 20, "study": "group-commit", "rate": 10**12}, "requests"),
        ({"requests": 20, "study": "propagation", "rate": 10**12, "pages": 300}, "requests"),
        ({"study": "restart", "duration": "2 us", "crash_at": "1 us"}, "duration"),
        ({"study": "long-run", "duration": "20 ns", "segment": "20 ns"}, "duration"),
    ],
)
def test_a_point_that_counted_nothing_has_no_tail(given, key):
    scenario = pmsim.Scenario(kind="system", platform="tum-6212u", parameters={"rate": 100_000, **given})
    result = pmsim.run(scenario, jobs=1)
    assert result.frame.empty
    (failure,) = result.failures
    assert failure.message == f"{key}: no request was counted; raise {key}"


def test_a_run_says_in_how_many_points_requests_came_faster_than_they_were_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such latencies are those of a queue that grows: with twice the requests they are twice as long."""
    monkeypatch.chdir(tmp_path)
    Path("load.toml").write_text(
        'kind = "system"\nplatform = "ucsd-8260"\n[parameters]\nworkers = 1\nrequests = 2_000\n'
        "[sweep]\nrate = [100_000, 50_000_000]\n"
    )
    assert main(["run", "load.toml", "--jobs", "1"]) == 0
    told = (
        "in 1 of 2 points `keeps_up` is 0: requests came faster than they were served, and their latency says "
    )
    told += "how long the run was; the first is point 2 (rate = 50000000): 50,000,000 requests per second"
    assert told in " ".join(capsys.readouterr().err.split())
    assert f"Overload: {told}." in Path("out/system/report.html").read_text()
    assert main(["run", "load.toml", "--jobs", "1", "--set", "rate=100_000"]) == 0
    assert "keeps_up" not in capsys.readouterr().err


def test_a_front_of_tails_has_no_point_whose_queue_grows() -> None:
    few = {"service": "engine", "engine": "ssd-bm", "rows": 20_000, "row_size": 1000, "pmem_capacity": 0}
    scenario = pmsim.Scenario(
        kind="system",
        platform=WITH_SSD,
        parameters=few
        | {"ssd_capacity": "64 MiB", "workers": 2, "rate": 20_000, "requests": 2_000, "update_percent": 0},
        sweep={"dram_capacity": ["2 MiB", "64 MiB"]},
        plot={"x": "cost_usd", "y": "latency_p99_ns", "front": ["dram_capacity"]},
    )
    scenario = scenario.model_copy(update={"parameters": scenario.parameters | {"warmup": 20_000}})
    result = pmsim.run(scenario, jobs=1)
    assert list(result.frame["keeps_up"]) == [0, 1]
    assert list(result.front()["dram_capacity"]) == [64 * 2**20]
    dotted = [trace for trace in result.figure().data if trace.name == "Pareto front"]
    assert [len(trace.x) for trace in dotted] == [1]
    # Its throughput is what it can do.
    plot = scenario.plot.model_copy(update={"y": "throughput_per_s"})
    both = pmsim.run(scenario.model_copy(update={"plot": plot}), jobs=1)
    assert len(both.front()) == 2


def test_a_table_is_asked_when_its_rows_are_in_the_caches() -> None:
    given = {"service": "table", "study": "load", "rows": 4_096, "workers": 2, "requests": 2_000}
    cold, filled = (point(**given, rate=5_000_000, warmup=count) for count in (0, "auto"))
    # Both have their popular rows in the caches at the end; who begins with none reads them from PMem.
    assert cold["counter.pmem_read_lines"] > 100
    assert filled["counter.pmem_read_lines"] < cold["counter.pmem_read_lines"] / 20
    cold, filled = (point(**given, warmup=count)["saturation_per_s"] for count in (0, "auto"))
    assert filled > 2 * cold
