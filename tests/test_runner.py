"""Running: the same bytes whatever the processes, resumable, and no point is lost to another one's failure."""

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pmsim
from pmsim import ConfigError, RunInterrupted, Scenario, SimulationError, runner
from pmsim.executors import LocalPool
from pmsim.points import Point, points_of

SMALL = Scenario(
    kind="latency",
    name="small",
    platform="tum-6212u",
    parameters={"region_size": "64 MiB"},
    sweep={"memory": ["dram", "pmem"], "pattern": ["sequential", "random"]},
)

Evaluate = Callable[[Point], dict[str, Any]]


def test_points_that_settle_to_the_same_with_seeds_of_their_own_are_runs_of_their_own() -> None:
    """Lanes of one execution have one seed: the row of the other point would name one that was not used."""
    scenario = Scenario(
        kind="oltp",
        platform={"base": "tum-6212u", "block_device": "nvme-p4510"},
        parameters={"engine": "ssd-bm", "pmem_capacity": 0},
        sweep={"log_device": ["auto", "ssd"]},
    )
    auto, ssd = points_of(scenario)
    assert auto.execution == ssd.execution
    assert auto.seed != ssd.seed
    assert runner._passes([auto, ssd], [0, 1]) == [[0], [1]]


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    """The points that are really simulated, in this process."""
    seen: list[Point] = []
    evaluate = runner.evaluate

    def counted(point: Point) -> dict[str, Any]:
        seen.append(point)
        return evaluate(point)

    monkeypatch.setattr(runner, "evaluate", counted)
    return seen


def interrupted_at(number: int, evaluate: Evaluate) -> Evaluate:
    calls = 0

    def interrupting(point: Point) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return evaluate(point)

    return interrupting


def test_results_are_the_same_bytes_with_one_job_and_with_two(tmp_path: Path) -> None:
    pmsim.run(SMALL, out=tmp_path / "one", jobs=1)
    pmsim.run(SMALL, out=tmp_path / "two", jobs=2)
    one, two = ((tmp_path / name / "results.parquet").read_bytes() for name in ("one", "two"))
    assert one == two


def test_another_seed_gives_other_numbers_in_the_same_rows() -> None:
    zero, one = pmsim.run(SMALL, jobs=1), pmsim.run(SMALL, jobs=1, seed=1)
    assert list(zero.frame["pattern"]) == list(one.frame["pattern"])
    assert set(zero.frame["configuration"]).isdisjoint(one.frame["configuration"])


def test_a_second_run_simulates_nothing_and_is_the_same(tmp_path: Path, simulated: list[Point]) -> None:
    pmsim.run(SMALL, out=tmp_path, jobs=1)
    first = (tmp_path / "results.parquet").read_bytes()
    result = pmsim.run(SMALL, out=tmp_path, jobs=1)
    assert len(simulated) == 4
    assert result.provenance["points_from_cache"] == 4
    assert (tmp_path / "results.parquet").read_bytes() == first


def test_an_interrupted_run_resumes_where_it_was(
    tmp_path: Path, simulated: list[Point], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = runner.evaluate
    monkeypatch.setattr(runner, "evaluate", interrupted_at(3, counted))
    with pytest.raises(RunInterrupted) as interruption:
        pmsim.run(SMALL, out=tmp_path, jobs=1)
    assert (interruption.value.finished, interruption.value.total) == (2, 4)
    monkeypatch.setattr(runner, "evaluate", counted)
    result = pmsim.run(SMALL, out=tmp_path, jobs=1)
    assert (len(result.frame), result.provenance["points_from_cache"], len(simulated)) == (4, 2, 4)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "{ damaged",
        lambda text: "[" * 100_000,
        lambda text: '{"metrics": {}}',
        lambda text: re.sub('"latency_ns": .*', '"latency_ns": NaN,', text),
        lambda text: re.sub('"latency_ns": .*', '"latency_ns": "fast",', text),
        lambda text: re.sub('"latency_ns": .*', '"latency_ns": 1.5,', text),
    ],
)
def test_a_damaged_file_of_a_finished_point_is_simulated_again(
    damage: Callable[[str], str], tmp_path: Path, simulated: list[Point]
) -> None:
    first = pmsim.run(SMALL, out=tmp_path, jobs=1)
    kept = sorted((tmp_path / "points").iterdir())[0]
    assert damage(kept.read_text()) != kept.read_text()
    kept.write_text(damage(kept.read_text()))
    result = pmsim.run(SMALL, out=tmp_path, jobs=1)
    assert result.provenance["points_from_cache"] == 3
    assert len(simulated) == 5
    assert result.frame.equals(first.frame)


def test_a_finished_point_that_cannot_be_kept_is_one_line(tmp_path: Path) -> None:
    pmsim.run(SMALL, out=tmp_path, jobs=1)
    kept = sorted((tmp_path / "points").iterdir())[0]
    kept.unlink()
    kept.mkdir()
    with pytest.raises(ConfigError, match=r"json: cannot be written: .*; delete it"):
        pmsim.run(SMALL, out=tmp_path, jobs=1)


def test_a_failing_point_is_reported_and_the_others_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = runner.evaluate

    def failing(point: Point) -> dict[str, Any]:
        if point.columns["memory"] == "dram" and point.columns["pattern"] == "random":
            raise SimulationError("a deadlock")
        return evaluate(point)

    monkeypatch.setattr(runner, "evaluate", failing)
    result = pmsim.run(SMALL, jobs=1)
    assert [str(failure) for failure in result.failures] == [
        "point 2 (memory = dram, pattern = random): a deadlock"
    ]
    assert list(result.frame["pattern"]) == ["sequential", "sequential", "random"]


def test_any_executor_will_do() -> None:
    names: set[str] = set()
    with ThreadPoolExecutor(2, initializer=lambda: names.add(threading.current_thread().name)) as executor:
        threaded = pmsim.run(SMALL, executor=executor)
    assert names
    pd.testing.assert_frame_equal(threaded.frame, pmsim.run(SMALL, jobs=1).frame)


@pytest.mark.parametrize("jobs", [0, -1, True, 16 * (os.cpu_count() or 1) + 1, 10**5])
def test_a_number_of_jobs_that_cannot_work_is_refused(jobs: int) -> None:
    with pytest.raises(ConfigError, match=r"choose at (least 1|most)"):
        pmsim.run(SMALL, jobs=jobs)


def test_an_output_directory_that_is_a_file_is_refused_before_anything_runs(
    tmp_path: Path, simulated: list[Point]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="another output directory"):
        pmsim.run(SMALL, out=tmp_path / "file", jobs=1)
    assert simulated == []


def test_metrics_choose_the_columns_and_counters_are_metrics() -> None:
    wanted = ["latency_ns", "counter.tlb_walks"]
    frame = pmsim.run(SMALL.model_copy(update={"metrics": wanted}), jobs=1).frame
    assert list(frame.columns) == [
        *["platform", "memory", "operation", "pattern", "region_size", "mode", "length"],
        *wanted,
        *["latency_ns_low", "latency_ns_high"],
        *["seed", "configuration"],
    ]
    assert (frame["latency_ns"] > 0).all()


def test_simulate_point_takes_the_defaults_of_the_kind() -> None:
    metrics = pmsim.simulate_point("latency", "tum-6212u", {"memory": "dram"})
    assert metrics == pmsim.simulate_point("latency", "tum-6212u", {"memory": "dram", "region_size": "8 GiB"})


def test_pools_share_the_process_that_has_imported_what_workers_need() -> None:
    parents = []
    for _ in range(2):
        with LocalPool(1) as pool:
            parents.append(pool.submit(os.getppid).result())
    assert parents[0] == parents[1] != os.getpid()


def test_a_worker_is_deaf_to_ctrl_c_from_its_first_instruction_on() -> None:
    def heeds_ctrl_c(process: int) -> bool:
        status = dict(line.split(":\t") for line in Path(f"/proc/{process}/status").read_text().splitlines())
        refused = int(status["SigBlk"], 16) | int(status["SigIgn"], 16)
        return not refused & 1 << signal.SIGINT - 1

    with LocalPool(2) as pool:
        before = set(multiprocessing.active_children())
        futures = [pool.submit(abs, -1) for _ in range(2)]
        workers = set(multiprocessing.active_children()) - before
        assert workers
        # At once, while they still import what they need, and when they have worked.
        assert not any(heeds_ctrl_c(worker.pid) for worker in workers if worker.pid)
        assert [future.result() for future in futures] == [1, 1]
        assert not any(heeds_ctrl_c(worker.pid) for worker in workers if worker.pid)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_killed_worker_is_said_in_words_and_finished_points_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killing(LocalPool):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            if args[0] == 3:  # the last of the points ends its process, as the kernel would
                return super().submit(os.abort)
            return super().submit(fn, *args, **kwargs)

    monkeypatch.setattr(runner, "LocalPool", Killing)
    result = pmsim.run(SMALL, out=tmp_path, jobs=2)
    assert result.failures
    assert {failure.message.partition(":")[0] for failure in result.failures} == {"not simulated"}
    assert len(result.frame) == 4 - len(result.failures)
    monkeypatch.undo()
    again = pmsim.run(SMALL, out=tmp_path, jobs=1)
    assert not again.failures
    assert again.provenance["points_from_cache"] == len(result.frame)


def test_a_result_shows_itself_at_a_prompt_and_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = runner.evaluate

    def some(point: Point) -> dict[str, Any]:
        if point.columns["memory"] == "dram":
            raise SimulationError("no <b>dram</b>")
        return evaluate(point)

    monkeypatch.setattr(runner, "evaluate", some)
    result = pmsim.run(SMALL, jobs=1)
    assert repr(result) == "<pmsim.Result of 'small': 2 of 4 points, 2 failed, 2 rows>"
    shown = result._repr_html_()
    assert "no &lt;b&gt;dram&lt;/b&gt;" in shown
    assert "<th>latency_p99_ns</th>" in shown
