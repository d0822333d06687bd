"""`pmsim tune`: simulated annealing over a sweep."""

import itertools
import math
import multiprocessing
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pmsim
from pmsim import ahead, tuning
from pmsim.annealing import Walk, anneal, outlook
from pmsim.api import load_scenario
from pmsim.cli import main
from pmsim.errors import ConfigError, HostMemoryError, PmsimError
from pmsim.executors import InlineExecutor
from pmsim.goal import number_in
from pmsim.point_cache import Metrics
from pmsim.points import Point, points_of
from pmsim.search_space import SearchSpace
from pmsim.standing import Board
from pmsim.tuning import tune

SCENARIO = """
kind = "bandwidth"
platform = "tum-6212u"

[parameters]
memory = "pmem"
operation = "ntstore"
region_size = "64 MiB"

[sweep]
threads = [1, 2, 3, 6, 12, 24]
access_size = ["64 B", "256 B"]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(SCENARIO)
    return path


def bowl(place: tuple[int, ...]) -> float:
    return 10.0 + sum((x - 2) ** 2 for x in place)


@given(st.integers(0, 2**32))
def test_a_bowl_is_descended_to_its_bottom(seed: int) -> None:
    visited = list(anneal([5, 5, 5], bowl, 300, seed, temperature=0.05))
    assert min(found for _, found, _ in visited) == 10.0


@given(st.integers(0, 2**32), st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_a_walk_moves_one_axis_by_one_step_from_where_it_stands(seed: int, sizes: list[int]) -> None:
    place: tuple[int, ...] | None = None
    for there, found, accepted in anneal(sizes, bowl, 40, seed):
        assert all(0 <= x < size for x, size in zip(there, sizes, strict=True))
        assert found == bowl(there)
        if place is not None:
            assert sum(abs(a - b) for a, b in zip(there, place, strict=True)) == 1
        if accepted:
            place = there


def test_a_walk_outlasts_its_temperature() -> None:
    """After some ten thousand moves it is nothing, to a float; the walk had ended with a division by it."""
    walk = list(anneal([3], lambda place: 1.0 + abs(place[0] - 1), 12_000, 1))
    assert len(walk) == 12_001
    assert not any(accepted and found > 1 for _, found, accepted in walk[-1_000:])


def test_what_is_worse_is_taken_early_and_seldom_late() -> None:
    def saw(place: tuple[int, ...]) -> float:
        return 100.0 + 5 * (place[0] % 2)

    early = late = 0
    for seed in range(200):
        taken = [accepted and saw(place) > 100 for place, _, accepted in anneal([9], saw, 80, seed)]
        early += sum(taken[1:11])
        late += sum(taken[-10:])
    assert early > 300
    assert late < early / 20


def test_a_search_finds_the_best_point_of_the_sweep(scenario: Path, tmp_path: Path) -> None:
    found = tune(scenario, steps=60, seed=1, out=tmp_path / "out")
    frame = pmsim.run(scenario, out=tmp_path / "out", jobs=1, progress=False).frame
    best = frame.sort_values(found.goal.column).iloc[-1].to_dict()
    assert math.isclose(found.value, best[found.goal.column])
    assert found.best is not None
    assert found.best["threads"] == str(best["threads"])
    assert found.simulated <= found.points == 12


def test_equal_searches_are_equal(scenario: Path) -> None:
    first, second = (tune(scenario, steps=6, seed=3) for _ in range(2))
    assert first == second


def test_a_search_ends_where_nothing_is_left_to_visit(scenario: Path) -> None:
    line = {"sweep.threads": [1, 2, 3], "sweep.access_size": ["256 B"]}
    found = tune(scenario, steps=500, seed=1, set=line)
    assert found.simulated == found.points == 3
    assert len(found.steps) < 500
    assert found.steps[-1].simulated


def test_a_search_for_the_lowest_value(scenario: Path) -> None:
    found = tune(scenario, steps=30, seed=1, minimize=True, set={"sweep.access_size": ["256 B"]})
    assert found.value == min(step.value for step in found.steps)


def test_the_command_prints_each_step_and_the_best(
    scenario: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["tune", str(scenario), "--steps", "4", "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[-1].startswith("highest bandwidth_gb_s: ")
    assert main(arguments) == 0  # from what was kept
    assert capsys.readouterr().out.splitlines() == lines


def test_times_are_sought_low_and_rates_high(tmp_path: Path) -> None:
    path = tmp_path / "latency.toml"
    path.write_text(
        'kind = "latency"\nplatform = "tum-6212u"\n[parameters]\nregion_size = "1 MiB"\n'
        '[sweep]\nmemory = ["dram", "pmem"]\npattern = ["random", "sequential"]\n'
    )
    found = tune(path, steps=12, seed=1)
    assert found.goal.minimize
    assert found.value == min(step.value for step in found.steps)
    assert not tune(path, metric="simulated_ops", minimize=False, steps=1).goal.minimize


def test_the_cheapest_point_that_meets_a_requirement(scenario: Path) -> None:
    found = tune(scenario, metric="threads", minimize=True, require=["bandwidth_gb_s >= 12"], steps=80, seed=1)
    frame = pmsim.run(scenario, jobs=1, progress=False).frame
    enough = frame[frame.bandwidth_gb_s >= 12]
    assert 0 < len(enough) < len(frame)
    assert found.value == enough.threads.min()
    assert math.isnan(found.steps[0].value)  # the walk began where too little is reached, and got away


def test_axes_of_a_zipped_sweep_that_follow_from_others_are_not_searched() -> None:
    points = points_of(load_scenario("capacity/ycsb-b"))
    space = SearchSpace.of(points)
    assert space.sizes == [5, 4]  # DRAM and PMem; whether there is PMem decides on the engine
    assert sorted(point.content for point in space.grid.values()) == sorted(point.content for point in points)


def test_points_that_leave_gaps_are_no_space(scenario: Path) -> None:
    sweep = {"mode": "zip", "threads": [1, 2, 1], "access_size": ["64 B", "64 B", "256 B"]}
    points = points_of(pmsim.Scenario(kind="bandwidth", platform="tum-6212u", sweep=sweep))
    with pytest.raises(ConfigError, match="fill a grid"):
        SearchSpace.of(points)


def test_a_requirement_that_nothing_meets_is_told_with_status_1(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", str(scenario), "--steps", "2", "--require", "bandwidth_gb_s>=1000"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("none has bandwidth_gb_s >= 1000; ")


@pytest.mark.parametrize("out", [True, False])
def test_who_interrupts_a_search_is_told_what_is_kept(
    scenario: Path,
    out: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def evaluate(point: Point) -> Metrics:
        if point.axes["threads"] == "2":
            raise KeyboardInterrupt
        return really(point)

    really = ahead.evaluate
    monkeypatch.setattr(ahead, "evaluate", evaluate)
    folder = ["--out", str(tmp_path / "out")] if out else []
    assert main(["tune", str(scenario), "--seed", "1", *folder]) == 130
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("pmsim: interrupted; ")
    assert ("run the same command again to resume" if out else "--out DIR keeps them") in said


def test_a_point_that_fails_is_reported_and_the_search_goes_on(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluate(point: Point) -> Metrics:
        if point.axes["threads"] == "2":
            raise HostMemoryError("too large for this host")
        return really(point)

    really = ahead.evaluate
    monkeypatch.setattr(ahead, "evaluate", evaluate)
    assert main(["tune", str(scenario), "--steps", "60", "--seed", "1", "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith("highest bandwidth_gb_s: ")
    assert "pmsim: point 4 (threads = 2, access_size = 256 B): too large for this host" in printed.err
    monkeypatch.setattr(ahead, "evaluate", really)
    assert not tune(scenario, steps=60, seed=1, out=tmp_path / "out").failures  # they are no results


def test_a_column_that_has_a_text_in_one_row_is_refused_where_it_is_met() -> None:
    assert number_in({"warmup": 1000}, "warmup") == 1000
    with pytest.raises(ConfigError, match=r"^warmup: 'auto' is no number; "):
        number_in({"warmup": "auto"}, "warmup")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "speed"}, "metric: kind 'bandwidth' has no metric 'speed'"),
        ({"steps": 0}, "steps: 0 is too few"),
        ({"jobs": 0}, "jobs: 0 processes"),
        ({"set": {"sweep.threads": [1], "sweep.access_size": []}}, "sweep.access_size"),
        ({"metric": "write_amplification"}, "say --minimize or --maximize"),
        ({"metric": "counter.nothing", "minimize": True}, "metric: kind 'bandwidth' has no counter"),
        ({"require": ["fast"]}, "require: 'fast' is no requirement"),
        ({"require": ["bandwidth_gb_s >= much"]}, "is no requirement"),
        ({"require": ["bandwith_gb_s >= 1"]}, "require: kind 'bandwidth' has no metric 'bandwith_gb_s'"),
    ],
)
def test_what_cannot_be_searched_is_refused(scenario: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tune(scenario, **change)  # type: ignore[arg-type]


def test_places_of_a_space_are_all_reachable() -> None:
    seen = {place for seed in range(50) for place, _, _ in anneal([3, 2], lambda _: 1.0, 40, seed)}
    assert seen == set(itertools.product(range(3), range(2)))


def bumpy(place: tuple[int, ...]) -> float:
    return bowl(place) + sum((7 * x + 3 * axis) % 5 for axis, x in enumerate(place))


@given(st.integers(0, 2**32), st.lists(st.integers(2, 6), min_size=1, max_size=3))
def test_a_walk_that_stays_asks_for_what_was_expected_of_it(seed: int, sizes: list[int]) -> None:
    walk, known, expected = Walk(sizes, 60, seed), dict[tuple[int, ...], float](), None
    while (place := walk.proposed) is not None:
        if place not in known:
            assert expected in (None, place)
            first, *others = itertools.islice(outlook(walk, known), 2)
            assert first == place
            expected = others[0] if others else None
            known[place] = bumpy(place)
            stayed = not walk.judge(known[place])
            expected = expected if stayed else None
        elif walk.judge(known[place]):
            expected = None  # from where the outlook has not looked


def test_an_outlook_leaves_the_walk_alone_and_ends() -> None:
    walks = [Walk([4, 4], 40, 5) for _ in range(2)]
    known: dict[tuple[int, ...], float] = {}
    while (place := walks[0].proposed) is not None:
        assert place == walks[1].proposed
        seen = list(outlook(walks[0], known))
        assert len(seen) == len(set(seen)) <= 16 - len(known)
        known[place] = bumpy(place)
        assert [walk.judge(known[place]) for walk in walks] in ([True, True], [False, False])
    assert list(outlook(walks[0], known)) == []
    lost = Walk([2], 10**9, 1)  # knows both places, and could look for a long time
    assert list(outlook(lost, {(0,): 1.0, (1,): 2.0})) == []


def test_more_processes_find_the_same_and_keep_what_they_did_beside(scenario: Path, tmp_path: Path) -> None:
    alone = tune(scenario, steps=12, seed=3)
    beside = tune(scenario, steps=12, seed=3, jobs=3, out=tmp_path / "out")
    assert beside == alone
    assert alone.simulated <= len(list((tmp_path / "out").rglob("*.json"))) <= alone.points
    assert tune(scenario, steps=12, seed=3, jobs=2, out=tmp_path / "out") == alone


def test_nothing_runs_on_after_a_search(scenario: Path) -> None:
    before = set(multiprocessing.active_children())

    def interrupt(step: tuning.Step) -> None:
        assert set(multiprocessing.active_children()) > before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(scenario, jobs=2, progress=interrupt)
    assert set(multiprocessing.active_children()) == before
    tune(scenario, steps=1, jobs=2)
    assert set(multiprocessing.active_children()) == before


def test_a_process_that_is_killed_ends_the_search_in_one_line(scenario: Path) -> None:
    before = set(multiprocessing.active_children())

    def kill(step: tuning.Step) -> None:
        for worker in set(multiprocessing.active_children()) - before:
            worker.kill()
            worker.join()

    with pytest.raises(PmsimError, match="a worker process was killed from outside") as raised:
        tune(scenario, jobs=2, progress=kill)
    assert not isinstance(raised.value, ConfigError)


def test_points_that_fail_in_other_processes_are_reported(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "evaluate", pmsim.load_platform)  # refuses a point
    here, there = (tune(scenario, steps=3, seed=2, jobs=jobs) for jobs in (1, 2))
    assert here.best is None
    assert here.failures
    assert (there.failures, there.best) == (here.failures, None)


class Recording(InlineExecutor):
    """In the place of a pool: runs at once what it is given, and knows it."""

    begun: ClassVar[list[Point]] = []

    def __init__(self, jobs: int, board: Board) -> None:
        self.begun.clear()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.begun.append(args[-1])
        return super().submit(fn, *args, **kwargs)

    def stop(self) -> None:
        pass


def test_idle_processes_begin_what_is_likely_and_nothing_twice(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "LocalPool", Recording)
    grid = SearchSpace.of(points_of(load_scenario(scenario))).grid
    places = list(grid)
    with ahead.Ahead(grid, None, 3) as simulated:
        simulated.metrics(places[0], places[:5])
        assert Recording.begun == [grid[place] for place in places[:3]]  # one for each process
        simulated.metrics(places[2], places)
        assert len(Recording.begun) == 3
        simulated.metrics(places[5], places)
        assert Recording.begun[3:] == [grid[places[index]] for index in (5, 3, 4)]


def test_a_point_too_large_for_the_host_is_refused_when_it_is_asked_for_and_not_before(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = points_of(load_scenario(scenario))
    space = SearchSpace.of(points)
    small, large, other = ((index, 0) for index in range(3))
    refused: list[Point] = []

    def check_room(asked: list[Point]) -> None:
        if asked == [space.grid[large]]:
            refused.extend(asked)
            raise ConfigError("too large")

    monkeypatch.setattr(ahead, "check_room", check_room)
    with ahead.Ahead(space.grid, None, 3) as simulated:
        assert simulated.metrics(small, [small, large, other])
        assert refused
        with pytest.raises(ConfigError, match="too large"):
            simulated.metrics(large, [])
        assert simulated.metrics(other, [])
