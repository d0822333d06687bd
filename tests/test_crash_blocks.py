"""Every block under the crash checker: no crash breaks a promise, and no persistence point can go unnoticed.

``PMSIM_CRASH_STATES=1000000`` is the nightly size.
"""

import os
import re
import threading
from dataclasses import replace

import pytest

from pmsim import _native
from pmsim import crash as crash_module
from pmsim.cli import main
from pmsim.commands import crash as crash_command_module
from pmsim.crash import (
    Block,
    Check,
    CrashInterrupted,
    CrashResult,
    Mutant,
    Point,
    blocks,
    check_block,
    find_block,
)
from pmsim.errors import ConfigError, SimulationError

STATES = int(os.environ.get("PMSIM_CRASH_STATES", "100000"))
NIGHTLY = STATES > 100_000


# Storage engines with pages of 4 KiB: sampled only, and a restart for each image takes its time.
ENGINES = [name for name in blocks() if name.startswith("engine-") and name != "engine-fptree"]
# A buffer manager takes 100 microseconds and more for a state, and some of its points are missed late.
SLOW = ["engine-fptree", *(name for name in blocks() if name.startswith("pages-"))]
ONLY_NIGHTLY = {
    "pages-three-tier",
    "pages-three-tier-clwb",
    "pages-direct",
    "pages-pmem-home-clwb",
}  # their mutants
#: States, by the name of a block, where 100,000 do not tell of each needed point that it has been removed. With
#: a comment: which point, and how many it took.
MORE_STATES: dict[str, int] = {}


def fewer_states(share: int) -> int:
    """Return a share of the states, by day half of that."""
    return max(STATES // (share if NIGHTLY else 2 * share), 1)


def states_of(name: str) -> int:
    return max(fewer_states(10) if name in SLOW else STATES, MORE_STATES.get(name, 0))


def test_a_block_whose_points_need_more_states_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before = states_of("inplace-log")
    monkeypatch.setitem(MORE_STATES, "inplace-log", 3 * STATES)
    assert (before, states_of("inplace-log")) == (STATES, 3 * STATES)
    assert states_of("inplace-cow") == STATES


@pytest.mark.parametrize("name", ENGINES)
def test_no_crash_breaks_the_promise_of_a_storage_engine(name: str) -> None:
    # The programs of several threads are longer: few of them do everything. The first one of nvm-undo aborts
    # nothing.
    more = name == "engine-nvm-undo" or name.endswith(("-threads", "-logs", "-groups"))
    states = fewer_states(25 if more else 100)
    result = check_block(name, states=states, mutate=False)
    check = result.check
    assert check.violation is None, check.violation.counterexample
    assert check.states >= states
    assert check.recovery_crashes > 0
    assert check.third_crashes > 0
    assert not result.never_reached


@pytest.mark.parametrize("name", [name for name in blocks() if name not in ENGINES])
def test_no_crash_breaks_a_promise_and_every_point_is_needed_or_declared_redundant(name: str) -> None:
    mutate = NIGHTLY or name not in ONLY_NIGHTLY
    result = check_block(name, states=states_of(name), mutate=mutate)
    assert result.check.violation is None, result.check.violation.counterexample
    assert result.check.states >= states_of(name)
    assert result.check.exhaustive_steps > 0
    # A recovery that writes nothing has no steps.
    assert (result.check.third_crashes > 0) == (result.check.recovery_crashes > 0)
    assert not result.never_reached
    if not mutate:
        return
    assert result.problems == []
    assert result.needed
    assert result.score == 1.0
    for mutant in result.mutants:
        assert mutant.caught == (not mutant.point.redundant)
        if mutant.check.violation:
            told = mutant.check.violation.counterexample
            assert "power failed at step" in told
            assert f"point {mutant.point.id}" in told


def test_ids_of_persistence_points_are_unique_and_name_what_they_do() -> None:
    names: dict[int, str] = {}  # over all blocks, which are parts of each other
    for block in blocks().values():
        for point in block.points:
            assert names.setdefault(point.id, point.name) == point.name, block.name
        ids = [point.id for point in block.points]
        assert len(set(ids)) == len(ids), block.name
        assert all(0 < i < 2**16 for i in ids), block.name
        assert all(point.name for point in block.points), block.name


def test_the_same_seed_gives_the_same_check() -> None:
    name = "inplace-log"  # sizes and places of its updates depend on the seed
    rows = [vars(check_block(name, states=2_000, seed=5, mutate=False).check) for _ in range(2)]
    for row in rows:
        row.pop("seconds")
    assert rows[0] == rows[1]
    other = check_block(name, states=2_000, seed=6, mutate=False).check
    assert (other.states, other.distinct) != (rows[0]["states"], rows[0]["distinct"])


def test_a_cancelled_check_ends_and_says_so() -> None:
    monitor = _native.CrashMonitor()
    monitor.cancel()
    row = _native.crash_check(next(iter(blocks())), states=10**12, monitor=monitor)
    assert row["stopped"]
    assert row["violation"] is None
    assert 0 < monitor.states < 10_000


POINTS = (Point(1, "data: fence", ""), Point(2, "once more", "for no reason"))


def check_of(*, violation: str = "", reached: tuple[int, ...] = (1, 2)) -> Check:
    found = (
        crash_module.Violation(violation, f"toy: {violation}\n", 1, "small", 1, 2, 1, 0, 0, 1)
        if violation
        else None
    )
    return Check(10, 5, 3, 2, 1, 5, 0, 4, 4, 1, 1, 0.1, False, reached, found)


def result_of(first: Check, second: Check, *, eadr: bool = False) -> CrashResult:
    mutants = (Mutant(POINTS[0], first), Mutant(POINTS[1], second))
    return CrashResult(Block("toy", "a toy", POINTS), eadr, 1, check_of(), mutants, ())


def test_a_needed_point_whose_removal_goes_unnoticed_lowers_the_score() -> None:
    result = result_of(check_of(), check_of())
    assert result.score == 0.0
    assert result.problems == [
        "point 1 'data: fence' can be removed and no crash of 10 states tells, or these are too few: try "
        "--states 1000000 before you declare it redundant"
    ]


def test_a_redundant_point_that_is_needed_is_a_problem() -> None:
    result = result_of(check_of(violation="torn"), check_of(violation="lost"))
    assert result.score == 1.0
    assert result.problems == ["point 2 'once more' is declared redundant, but without it: lost"]


def test_points_that_eadr_makes_unnecessary_are_no_problem() -> None:
    assert result_of(check_of(), check_of(), eadr=True).ok
    # Recovery may have nothing left to repair.
    assert replace(result_of(check_of(), check_of(), eadr=True), never_reached=POINTS[:1]).ok


def test_with_eadr_flushes_are_unnecessary_and_ordering_points_are_not() -> None:
    needed = {m.point.id for m in check_block("page-cow-clwb", states=20_000, eadr=True).needed if m.caught}
    assert needed == {302}  # cow: pid before pvn


def test_with_eadr_streamed_words_still_wait_for_their_fence() -> None:
    needed = {m.point.id for m in check_block("page-cow", states=20_000, eadr=True).needed if m.caught}
    assert needed == {301, 302}  # cow: persist the payload before its header


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> dict[int, Check]:
    """A block whose checks are given, by the removed point."""
    given = {0: check_of(), 1: check_of(violation="entry 0 is torn"), 2: check_of()}

    def native(_: str, *, disabled: int, **__: object) -> dict[str, object]:
        row = dict(vars(given[disabled]))
        return row | {"violation": row["violation"] and vars(row["violation"])}

    rows = [{"name": "toy", "title": "a toy", "sites": [vars(point) for point in POINTS]}]
    monkeypatch.setattr(_native, "crash_blocks", lambda: rows)
    monkeypatch.setattr(_native, "crash_check", native)
    return given


def test_crash_exits_with_0_and_prints_the_score(toy: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crash", "toy"]) == 0
    out = capsys.readouterr().out
    assert "no violation" in out
    assert "mutation score 100%: 1 of 1 removals were noticed; 1 declared redundant" in out


def test_crash_exits_with_1_and_shows_the_counterexample(
    toy: dict[int, Check], capsys: pytest.CaptureFixture[str]
) -> None:
    toy[0] = check_of(violation="entry 3 is lost")
    assert main(["crash", "--all"]) == 1
    assert "VIOLATION\ntoy: entry 3 is lost" in capsys.readouterr().out


def test_a_block_that_fails_while_the_power_is_on_keeps_no_other_from_its_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(name: str, **_: object) -> CrashResult:
        if name == "inplace-word":
            raise SimulationError("inplace-word, seed 1, large: operation 17 fails while the power is on: full")
        return CrashResult(find_block(name), False, 1, check_of(), (), ())

    monkeypatch.setattr("pmsim.commands.crash.check_block", check)
    assert main(["crash", "inplace-word", "inplace-cow", "--no-mutate"]) == 1
    shown = capsys.readouterr()
    assert "operation 17 fails while the power is on" in " ".join(shown.err.split())
    assert "inplace-cow" in shown.out
    assert "no violation" in shown.out


def test_crash_exits_with_1_when_a_point_is_never_executed(
    toy: dict[int, Check], capsys: pytest.CaptureFixture[str]
) -> None:
    toy[0] = toy[2] = check_of(reached=(1,))
    assert main(["crash", "toy"]) == 1
    assert "PROBLEM: point 2 'once more' is never executed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["crash", "tou"], "block 'tou' is unknown; did you mean 'toy'?; see pmsim list blocks"),
        (["crash"], "crash: name a block, or say --all; see pmsim list blocks"),
        (["crash", "toy", "--all"], "crash: name a block, or say --all"),
        (["crash", "toy", "--states", "0"], "states: 0 is too few; choose at least 1"),
        (["crash", "toy", "--seed", "-1"], "seed: -1 is too few; choose at least 0"),
        (["crash", "toy", "--jobs", "0"], "jobs: 0 is too few; choose at least 1"),
        (["crash", "toy", "--verbose", "--no-mutate"], "crash: --verbose shows what removed points do"),
    ],
)
def test_bad_input_of_crash_is_one_line_and_status_2(
    toy: object, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_unknown_block_is_a_config_error_in_the_core_as_well() -> None:
    with pytest.raises(ConfigError, match="is unknown; known: "):
        _native.crash_check("no-such-block", monitor=_native.CrashMonitor())
    with pytest.raises(ConfigError, match="see pmsim list blocks"):
        find_block("no-such-block")


def test_ctrl_c_ends_checks_that_would_take_days() -> None:
    def press(states: int, _: int) -> None:
        if states > 0:
            raise KeyboardInterrupt

    with pytest.raises(CrashInterrupted) as interruption:
        check_block("inplace-log", states=10**12, jobs=2, on_progress=press)
    result = interruption.value.result
    assert result.check.stopped
    assert result.check.states > 0
    assert result.ok
    assert not result.mutants


def test_ctrl_c_during_the_removals_keeps_those_that_are_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(_: int, finished: int) -> None:
        if finished > 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(
        crash_command_module, "check_block", lambda *a, **k: check_block(*a, **k | {"on_progress": press})
    )
    assert main(["crash", "inplace-log", "--states", "2000", "--jobs", "1"]) == 130
    said = capsys.readouterr()
    assert "no violation\n" in said.out
    tried, points = map(int, re.search(r"(\d+) of (\d+) removals were tried", said.out).groups())
    assert 1 <= tried < points
    assert said.err == "pmsim: interrupted; inplace-log was not checked to the end\n"


def test_a_violation_is_known_before_its_counterexample_is_made_small() -> None:
    needed = next(point for point in find_block("inplace-log").points if not point.redundant)
    monitor = _native.CrashMonitor()
    assert monitor.violation == ""
    row = _native.crash_check("inplace-log", states=10_000, disabled=needed.id, monitor=monitor)
    assert row["violation"]
    assert monitor.violation


def test_ctrl_c_while_a_counterexample_is_made_small_shows_it_as_it_is(
    toy: dict[int, Check], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Monitor:
        states = 10
        violation = ""
        cancelled = threading.Event()

        def cancel(self) -> None:
            self.cancelled.set()

    def native(_: str, *, monitor: Monitor, **__: object) -> dict[str, object]:
        found = check_of(violation="entry 3 is lost")
        monitor.violation = "entry 3 is lost"
        assert monitor.cancelled.wait(60)
        return vars(found) | {"stopped": True, "violation": vars(found.violation)}

    def press(message: str) -> None:
        assert message == "entry 3 is lost"
        raise KeyboardInterrupt

    monkeypatch.setattr(_native, "CrashMonitor", Monitor)
    monkeypatch.setattr(_native, "crash_check", native)
    monkeypatch.setattr(
        crash_command_module, "check_block", lambda *a, **k: check_block(*a, **k | {"on_violation": press})
    )
    assert main(["crash", "toy"]) == 130
    said = capsys.readouterr()
    assert "VIOLATION\ntoy: entry 3 is lost" in said.out
    assert "pmsim: interrupted" in said.err
