"""How far a run is: told by the core, through studies and worker processes, to the progress bar."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import Scenario, api, runner, standing
from pmsim.executors import InlineExecutor
from pmsim.points import points_of
from pmsim.runner import run_points
from pmsim.standing import Board, phases, stretch, watched

Told = list[tuple[str, float]]


@pytest.fixture
def told() -> Told:
    return []


def writer(told: Told) -> Callable[[str, float], None]:
    return lambda doing, share: told.append((doing, share))


def test_a_stretch_of_a_stretch_is_a_part_of_it(told: Told) -> None:
    with watched(writer(told)), stretch(0.5, 1.0), stretch(0.25, 0.75, "seeking"):
        watch = standing.watcher()
        assert watch is not None
        watch("measuring", 0.0)
        watch("measuring", 1.0)
    assert told == [("seeking", 0.625), ("seeking", 0.875)]
    with stretch(0, 1):
        assert standing.watcher() is None


def test_phases_that_are_lacking_or_end_early_leave_their_part_to_the_others(told: Told) -> None:
    with watched(writer(told)):
        alone, all_of_them = phases(), phases()
    assert alone is not None
    assert all_of_them is not None
    alone("measuring", 0.25)
    assert told.pop() == ("measuring", 0.25)
    for doing, share in (("loading", 0.5), ("warming up", 0.0), ("warming up", 0.1), ("measuring", 0.0)):
        all_of_them(doing, share)
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[0] == shares[1] < shares[2] == shares[3] < 0.5
    all_of_them("measuring", 1.0)
    assert told[-1] == ("measuring", pytest.approx(1.0))


def test_a_board_counts_points_by_their_tasks(told: Told) -> None:
    board = Board([1, 3, 1])
    assert board.read([0, 1, 2]) == (0.0, "")
    board.tell(1, "measuring", 0.5)
    board.tell(2, "loading", 7.0)  # no task is more than done
    assert board.read([0, 1]) == (1.5, "measuring")
    assert board.read([0, 1, 2]) == (2.5, "measuring, loading")


def test_one_process_needs_no_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # It lies in a temporary file, for which there may be no room.
    def refused(*arguments: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(standing, "RawArray", refused)
    point = Scenario(kind="latency", platform="tum-6212u", parameters={"region_size": "1 MiB"})
    assert run_points(points_of(point), jobs=1).failures == []
    assert run_points(points_of(point), executor=InlineExecutor()).failures == []


OLTP = {"data_size": "256 MiB", "workload": "ycsb-rw", "update_percent": 50}


def engine(**changes: Any) -> Scenario:
    """Two executions, of two points and of one; each loads, warms up and measures."""
    given = {"operations": 160_000, "warmup": 40_000} | OLTP | changes
    latencies = ["300 ns", "500 ns"]
    return Scenario(
        kind="oltp",
        platform="sep-e5-4620v2",
        parameters=given,
        sweep={"engine": ["main-memory", "three-tier"], "platform.pmem.media_read_latency": latencies},
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_running_point_tells_its_phases_and_its_share(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_LOOK", 0.01)
    shown: list[tuple[float, str]] = []
    run_points(points_of(engine()), jobs=jobs, progress=lambda *now: shown.append(now))
    assert shown[0] == (0.0, "")
    assert shown[-1] == (4.0, "")
    assert all(0 <= finished <= 4 for finished, _ in shown)
    assert any(finished % 2 for finished, _ in shown), "nothing between whole executions was told"
    doings = {name for _, doing in shown for name in doing.split(", ") if name}
    assert doings <= {"loading", "warming up", "measuring"}
    assert "measuring" in doings
    if jobs == 1:
        assert all(before[0] <= after[0] for before, after in pairwise(shown))


def test_whoever_watches_changes_nothing(told: Told) -> None:
    point = points_of(engine())[-1]
    with watched(writer(told)):
        seen = runner.evaluate(point)
    assert told
    assert runner.evaluate(point) == seen


def test_an_exception_of_the_watch_ends_the_core(told: Told) -> None:
    def stop(doing: str, share: float) -> None:
        raise KeyboardInterrupt

    with watched(stop), pytest.raises(KeyboardInterrupt):
        runner.evaluate(points_of(engine())[0])


SYSTEM = {"rows": 1000, "workers": 2, "requests": 20_000}
LONG = {"study": "long-run", "rate": 1_000_000, "duration": "20 ms", "segment": "5 ms"}


@pytest.mark.parametrize(
    ("given", "doings"),
    [
        (
            SYSTEM | {"study": "load", "service": "table"},
            {"seeking the saturation", "warming up", "measuring"},
        ),
        (
            SYSTEM | {"study": "tenants", "service": "table", "rate": 500_000, "requests": 2_000},
            {"warming up", "measuring"},
        ),
        ({"study": "group-commit", "rate": 500_000, "requests": 20_000}, {"measuring"}),
        ({"study": "propagation", "rate": 100_000, "requests": 5_000}, {"measuring"}),
        (SYSTEM | LONG | {"service": "table"}, {"measuring"}),
        ({"study": "restart", "rate": 200_000, "service": "log", "duration": "50 ms"}, {"measuring"}),
    ],
    ids=lambda value: value["study"] if isinstance(value, dict) else "",
)
def test_every_study_of_a_system_tells_how_far_it_is(
    given: dict[str, Any], doings: set[str], told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmsim.des.studies._TELLING", 0.0)
    (point,) = points_of(Scenario(kind="system", platform="tum-6212u", parameters=given))
    with watched(writer(told)):
        seen = runner.evaluate(point)
    shares = [share for _, share in told]
    assert {doing for doing, _ in told} - {"loading"} == doings
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] <= 1
    assert runner.evaluate(point) == pytest.approx(seen, nan_ok=True, rel=0, abs=0)


def test_the_bar_moves_within_a_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda *_, completed, doing, **__: seen.append((completed, doing))
    )
    monkeypatch.setattr(api, "run_points", runner.run_points)
    pmsim.run(engine(), jobs=1, progress=True)
    assert any(0 < completed % 2 < 2 and doing == "measuring" for completed, doing in seen)
