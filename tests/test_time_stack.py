"""Where the time goes: stacks of causes that add up, their figure, and what refuses to be one."""

from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import ConfigError, Scenario, des, run, simulate_point
from pmsim.cli import main
from pmsim.kinds.counters import machine_counters
from pmsim.points import points_of
from pmsim.time_stack import CAUSES, IDLE, stack

LOG = {"kind": "log", "name": "log", "platform": "tum-6212u", "parameters": {}}
NO_WALKS = {"base": "tum-6212u", "tlb": {"page_size": "1 GiB", "dram_page_size": "1 GiB"}}


def result(**changes: Any) -> pmsim.Result:
    return run(Scenario(**{**LOG, **changes}), jobs=1)


def test_every_time_that_the_machine_counts_is_a_cause() -> None:
    times = {name.removeprefix("counter.") for name in machine_counters() if name.startswith("counter.time_")}
    assert set(CAUSES.values()) == times


def test_shares_add_up_to_all_of_it_and_times_to_what_an_operation_takes() -> None:
    found = result(sweep={"threads": [1, 4]})
    for unit, sums in (("share", [100, 100]), ("time", 1e9 * found.frame.threads / found.frame.ops_per_s)):
        stacked = found.time_stack(unit)
        assert list(stacked.threads) == [1, 4]
        assert stacked.drop(columns="threads").sum(axis=1).tolist() == pytest.approx(list(sums), rel=0.01)


@pytest.mark.parametrize(
    ("kind", "parameters", "cause", "least"),
    [
        ("latency", {"memory": "pmem", "operation": "load", "region_size": "4 GiB"}, "PMem reads", 95),
        ("latency", {"memory": "dram", "operation": "load", "region_size": "4 GiB"}, "DRAM reads", 90),
        ("latency", {"memory": "dram", "operation": "load"}, "address translation", 20),
        ("latency", {"memory": "dram", "operation": "load", "region_size": "512 KiB"}, "L2", 90),
        ("latency", {"memory": "pmem", "operation": "ntstore", "pattern": "sequential"}, "persists", 95),
        ("bandwidth", {"memory": "pmem", "operation": "ntstore", "threads": 12}, "persists", 95),
        ("bandwidth", {"memory": "dram", "operation": "store", "pattern": "random"}, "stores", 90),
        ("contention", {"threads": 4}, "latches", 90),
    ],
)
def test_time_goes_where_the_experiment_sends_it(
    kind: str, parameters: dict[str, Any], cause: str, least: float
) -> None:
    machine = "tum-6212u" if cause == "address translation" else NO_WALKS
    shares = stack(simulate_point(kind, machine, parameters), "share")
    assert shares[cause] >= least, shares


@pytest.mark.parametrize(
    "parameters",
    [
        {"memory": "pmem", "pattern": "sequential"},
        {"memory": "dram", "pattern": "sequential", "prefetcher": True},
        {"memory": "pmem", "access_size": "4 KiB"},
    ],
)
def test_where_the_time_goes_does_not_depend_on_how_often_one_looks(
    parameters: dict[str, Any], tmp_path: Path
) -> None:
    """What a front end stands for at the end of a batch is known later."""
    scenario = Scenario(
        kind="bandwidth", name="x", platform="tum-6212u", parameters={"threads": 24, **parameters}
    )
    in_batches = run(scenario, jobs=1).time_stack("share").iloc[0]
    pmsim.trace.record(scenario, tmp_path / "a.trace")
    counters = pmsim.trace.replay(tmp_path / "a.trace").counters
    at_once = {cause: counters[name] for cause, name in CAUSES.items()}
    assert {cause: in_batches.get(cause, 0) for cause in at_once} == pytest.approx(
        {cause: 100 * time / sum(at_once.values()) for cause, time in at_once.items()}, abs=0.1
    )


def test_time_of_a_server_without_work_is_idle() -> None:
    env = des.Environment()
    server = des.Server(env, [des.LogPart(entry_size="256 B")], platform="tum-6212u", workers=1)

    def client() -> Any:
        for number in range(10):
            yield server.execute("log.append", number)
            yield env.timeout("100 us")

    env.process(client())
    env.run()
    counters = server.counters()
    busy = sum(counters[name] for name in CAUSES.values() if name != CAUSES[IDLE])
    assert counters[CAUSES[IDLE]] > 9 * busy
    assert counters[CAUSES[IDLE]] + busy == pytest.approx(env.now, rel=0.01)


ASKED: list[tuple[des.Part, str]] = [
    (des.LogPart(), "log.append"),
    (des.TablePart(rows=10_000), "table.lookup"),
    (des.EnginePart(engine="nvm-direct", rows=10_000), "engine.update"),
    (des.ComputePart(), "compute.run"),
]


@pytest.mark.parametrize(("part", "kind"), ASKED, ids=[kind for _, kind in ASKED])
def test_a_server_is_idle_for_as_long_as_no_request_is_under_way(part: des.Part, kind: str) -> None:
    env = des.Environment()
    server = des.Server(env, [part], platform="tum-6212u", workers=1)
    busy = 0

    def client() -> Any:
        nonlocal busy
        for number in range(1, 200):
            done = yield server.execute(kind, number)
            busy += done.end - done.begin
            if number % 3 == 0:
                yield env.timeout(300 * des.NS)

    env.process(client())
    env.run()
    counters = server.counters()
    assert counters[CAUSES[IDLE]] == pytest.approx(env.now - busy, rel=1e-3)
    assert sum(counters[name] for name in CAUSES.values()) == env.now
    if kind == "log.append":
        assert counters[CAUSES["persists"]] > 0.9 * busy


def test_a_wait_that_has_begun_is_counted_as_far_as_it_has_come() -> None:
    machine = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    env = des.Environment()
    parts = [des.ComputePart(), des.BlockLogPart()]
    server = des.Server(env, parts, platform=machine, workers=2)
    server.stall("block", "5 ms")
    server.execute("compute.run", 4 * 10**9)
    server.execute("block-log.append", 1)
    for microseconds in (1, 10, 1_000, 3_999, 4_500, 10_000):
        env.run(until=microseconds * des.US)
        counters = server.counters()
        computing = min(microseconds, 4_000) * des.US
        assert counters[CAUSES["instructions"]] == pytest.approx(computing, abs=des.US)
        assert counters[CAUSES["block device"]] <= min(env.now, 5_100 * des.US)
        assert sum(counters[name] for name in CAUSES.values()) == 2 * env.now


def test_the_figure_has_a_bar_for_each_point_and_a_panel_where_bars_would_share_a_place() -> None:
    found = result(sweep={"threads": [1, 2], "algorithm": ["poplog", "classic"]})
    figure = found.time_figure("time")
    assert figure.layout.barmode == "stack"
    persists = [bars for bars in figure.data if bars.name == "persists"]
    assert [list(bars.x) for bars in persists] == [["1", "2"], ["1", "2"]]
    assert [note.text for note in figure.layout.annotations] == ["poplog", "classic"]


def test_a_scenario_may_ask_for_it_and_a_report_always_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = Scenario(**LOG, sweep={"threads": [1, 2]})
    (tmp_path / "plain.toml").write_text(scenario.to_toml())
    (tmp_path / "stack.toml").write_text(scenario.to_toml() + '\n[plot]\nstack = "share"\n')
    assert main(["run", str(tmp_path / "plain.toml"), "--out", str(tmp_path / "plain")]) == 0
    assert "persists" not in capsys.readouterr().out
    assert "Where the time goes" in (tmp_path / "plain" / "report.html").read_text()
    assert main(["run", str(tmp_path / "stack.toml"), "--out", str(tmp_path / "stack")]) == 0
    assert "persists" in capsys.readouterr().out
    assert "Where the time goes" not in (tmp_path / "stack" / "report.html").read_text()


def test_a_run_of_which_nothing_has_a_time_ends_with_its_table_and_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"dram_capacity": "1 GiB", "pmem_capacity": "1 GiB", "ssd_capacity": 0, "scale": "1/256"}
    scenario = Scenario(
        kind="oltp",
        name="stack",
        platform="tum-6212u",
        parameters={"engine": "nvm-direct", "operations": 500, **small},
        sweep={"data_size": ["32 GiB", "64 GiB"]},
        plot={"stack": "share"},
    )
    (tmp_path / "stack.toml").write_text(scenario.to_toml())
    assert main(["run", str(tmp_path / "stack.toml"), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "64 GiB" in printed.out
    assert "in 2 of 2 points `fits` is 0" in printed.err
    report = (tmp_path / "out" / "report.html").read_text()
    assert "No figure: stack: no finished point has a time of its own" in report
    assert "<h2>Values</h2>" in report


def test_means_over_seeds_are_stacked_too() -> None:
    found = result(seeds=2)
    assert found.time_stack().sum(axis=1).tolist() == pytest.approx([100])


def test_what_has_no_rate_or_is_too_much_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^stack: kind 'latency' has no rate of operations; choose"):
        run(Scenario(kind="latency", name="l", platform="tum-6212u"), jobs=1).time_stack("time")
    with pytest.raises(ConfigError, match=r"^stack: 'hours' is not known; choose"):
        result().time_stack("hours")
    sizes = [8 * step for step in range(1, 32)]
    with pytest.raises(ConfigError, match=r"^stack: 1 panels of 31 bars are no figure; run fewer points"):
        result(sweep={"entry_size": sizes}).time_figure()


@pytest.mark.parametrize(
    ("kind", "plot", "message"),
    [
        (
            "latency",
            {"stack": "time"},
            "plot.stack: kind 'latency' has no rate of operations; choose \"share\"",
        ),
        (
            "system",
            {"stack": "time"},
            "plot.stack: kind 'system' has no rate of operations; choose \"share\"",
        ),
        (
            "restart",
            {"stack": "share"},
            "plot.stack: rows of these points are a curve, which has none; remove it",
        ),
        (
            "log",
            {"stack": "share", "color": "threads"},
            "plot.color: bars of where the time goes have none; remove it, or plot.stack",
        ),
    ],
)
def test_a_stack_that_cannot_be_drawn_is_refused_before_anything_runs(
    kind: str, plot: dict[str, str], message: str
) -> None:
    machine = {"base": "sep-e5-4620v2", "block_device": "hymem-ssd"}
    scenario = Scenario(kind=kind, name="s", platform=machine, plot=plot)
    with pytest.raises(ConfigError) as raised:
        points_of(scenario)
    assert str(raised.value) == message
