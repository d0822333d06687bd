"""Crash-consistency checks of the building blocks, with a mutation test of the checks themselves.

>>> from pmsim.crash import check_block
>>> check_block("poplog-padded", states=1_000_000).ok  # doctest: +SKIP

``docs/crash.md`` says what is tried and how to read a counter-example.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from pmsim import _native
from pmsim.arguments import text, whole
from pmsim.errors import ConfigError
from pmsim.hints import nearest

#: Fewer states than this miss points that are needed.
_TELLING_STATES = 1_000_000
#: A redundant point survives every state that it is given, so it gets fewer.
_REDUNDANT_SHARE = 5
_POLL_S = 0.1
#: More threads than this are a slip, and so many would exhaust the host.
_MOST_THREADS = 4096

#: Takes states, seed, eadr, disabled and monitor by name; see ``_native.crash_check``.
NativeCheck = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Point:
    """A persistence point of a block: a flush, a fence or an ordering point.

    ``redundant`` says why no crash can tell that it is missing; empty where it is needed.
    """

    id: int
    name: str
    redundant: str


@dataclass(frozen=True)
class Block:
    """A block that the checker knows."""

    name: str
    title: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Violation:
    """A crash after which recovery did not keep the block's promise.

    ``step`` counts the persistence steps of the program from 1; ``recovery_step`` those of a recovery that was
    cut short as well, and of the program that went on after it, 0 where there was no second crash;
    ``resumed_operation`` counts the operations of that program, 0 where it had not gone on. ``failures`` counts
    crashes; only the counter-example says where a third one came. ``second_recovery``: a recovery that followed
    a complete one went wrong. ``left`` is memory as each crash has left it; recovery of the last went wrong
    (``pmsim.prototype.after_crash`` hands it out).
    """

    message: str
    counterexample: str
    seed: int
    scale: str
    operation: int
    step: int
    failures: int
    recovery_step: int
    resumed_operation: int
    lost_words: int
    second_recovery: bool = False
    left: tuple[_native.SimMemory, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Check:
    """What one check has tried; ``violation`` is the first mistake, made small."""

    states: int
    distinct: int
    recovery_crashes: int
    resumed_crashes: int
    third_crashes: int
    second_recoveries: int
    rewrites: int
    steps: int
    exhaustive_steps: int
    small_programs: int
    large_programs: int
    seconds: float
    stopped: bool
    reached: tuple[int, ...]
    violation: Violation | None

    @property
    def recoveries(self) -> int:
        """How often recovery has run to its end."""
        crashes = self.recovery_crashes + self.resumed_crashes + self.third_crashes
        return self.states + self.second_recoveries + crashes

    @classmethod
    def from_native(cls, row: dict[str, Any]) -> Self:
        """Make a check from what the core returns."""
        found = row["violation"]
        return cls(**row | {"reached": tuple(row["reached"]), "violation": found and Violation(**found)})


@dataclass(frozen=True)
class Mutant:
    """The block without one persistence point."""

    point: Point
    check: Check

    @property
    def reached(self) -> bool:
        """Whether the point was executed at all."""
        return self.point.id in self.check.reached

    @property
    def caught(self) -> bool:
        """Whether its removal was noticed."""
        return self.check.violation is not None

    @property
    def problem(self) -> str:
        """What is wrong with the point, as one sentence, or nothing."""
        if not self.reached:
            return "is never executed"
        if self.caught and self.point.redundant:
            return f"is declared redundant, but without it: {self.check.violation.message}"  # type: ignore[union-attr]
        if not self.caught and not self.point.redundant:
            more = max(_TELLING_STATES, 10 * self.check.states)
            return (
                f"can be removed and no crash of {self.check.states} states tells, or these are too few: try "
                f"--states {more} before you declare it redundant"
            )
        return ""


@dataclass(frozen=True)
class CrashResult:
    """All about one block. ``mutants`` is empty where they were not asked for, or the block itself fails."""

    block: Block
    eadr: bool
    seed: int
    check: Check
    mutants: tuple[Mutant, ...]
    never_reached: tuple[Point, ...]

    @property
    def problems(self) -> list[str]:
        """What is wrong, one sentence each.

        With eADR, points that are no longer needed are a result and no problem, and recovery may have nothing
        to repair.
        """
        problems = []
        if self.check.violation:
            problems.append(self.check.violation.message)
        for point in () if self.eadr else self.never_reached:
            problems.append(f"point {point.id} '{point.name}' is never executed")
        for mutant in self.mutants:
            surplus = self.eadr and not mutant.caught
            if mutant.problem and mutant.reached and not surplus:
                problems.append(f"point {mutant.point.id} '{mutant.point.name}' {mutant.problem}")
        return problems

    @property
    def ok(self) -> bool:
        """Whether every promise was kept and every point is as declared."""
        return not self.problems

    @property
    def needed(self) -> list[Mutant]:
        """The points that are not declared redundant."""
        return [mutant for mutant in self.mutants if not mutant.point.redundant]

    @property
    def caught(self) -> int:
        """Of how many needed points the removal is noticed."""
        return sum(mutant.caught for mutant in self.needed)

    @property
    def score(self) -> float:
        """Share of the needed points whose removal is noticed; 1 where there are none."""
        return self.caught / len(self.needed) if self.needed else 1.0


class CrashInterrupted(KeyboardInterrupt):
    """Ctrl-C during the checks of a block; ``result`` has what they had found, and the removals done."""

    def __init__(self, result: CrashResult) -> None:
        super().__init__(f"interrupted after {result.check.states} crash states of {result.block.name}")
        self.result = result


def blocks() -> dict[str, Block]:
    """Return the blocks that the checker knows, by name."""
    known = {}
    for row in _native.crash_blocks():
        points = tuple(Point(**site) for site in row["sites"])
        known[row["name"]] = Block(row["name"], row["title"], points)
    return known


def find_block(name: str) -> Block:
    """Return one block.

    Raises
    ------
    ConfigError : no block has this name.
    """
    known = blocks()
    if text("block", name) not in known:
        raise ConfigError(f"block '{name}' is unknown; {nearest(name, known)}; see pmsim list blocks")
    return known[name]


def check_block(
    name: str,
    *,
    states: int = 100_000,
    seed: int = 1,
    mutate: bool = True,
    eadr: bool = False,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_violation: Callable[[str], None] | None = None,
) -> CrashResult:
    """Crash a block at every persistence step of many programs and check what its recovery finds.

    Parameters
    ----------
    name : str
        See :func:`blocks`.
    states : int
        Crash states drawn from large programs; small programs are visited exhaustively up to as many more.
    seed : int
        Of programs and samples: the same seed visits the same states.
    mutate : bool
        Whether to remove each persistence point in turn, which must be noticed.
    eadr : bool
        Whether caches survive the power failure.
    jobs : int, optional
        Threads; by default one per processor.
    on_progress : callable, optional
        Takes the crash states checked so far and the checks that have finished, now and then.
    on_violation : callable, optional
        Takes the message of a violation of the block, now and then, while its counter-example is made small.

    Raises
    ------
    ConfigError : unknown block, or impossible options.
    CrashInterrupted : Ctrl-C, which also ends the search for a smaller counter-example.
    """
    block = find_block(name)
    check = partial(_native.crash_check, name)
    return examine(
        lambda: block,
        check,
        states=states,
        seed=seed,
        mutate=mutate,
        eadr=eadr,
        jobs=jobs,
        on_progress=on_progress,
        on_violation=on_violation,
    )


def examine(
    block: Callable[[], Block],
    native: NativeCheck,
    *,
    states: int,
    seed: int,
    mutate: bool,
    eadr: bool,
    jobs: int | None,
    on_progress: Callable[[int, int], None] | None,
    on_violation: Callable[[str], None] | None,
) -> CrashResult:
    """Check whatever the core's checker can run: what `check_block` is made of, with the same parameters.

    Parameters
    ----------
    block : callable
        Returns the block with its points: called when it has been checked, which may be when they are known,
        and before they are removed one at a time.
    native : callable
        Checks it once, as ``_native.crash_check`` does of a block.
    """
    states = whole("states", states, 1)
    seed = whole("seed", seed, 0)
    threads = (os.cpu_count() or 1) if jobs is None else whole("jobs", jobs, 1, _MOST_THREADS)

    def check_once(states: int, disabled: int, monitor: _native.CrashMonitor) -> Check:
        row = native(states=states, seed=seed, eadr=eadr, disabled=disabled, monitor=monitor)
        return Check.from_native(row)

    with _Pool(threads, on_progress) as pool:
        check = pool.run([partial(check_once, states, 0)], on_violation)[0]
        if check is None:
            raise KeyboardInterrupt
        known = block()
        whole_check = check.violation is None and not check.stopped
        never = tuple(point for point in known.points if whole_check and point.id not in check.reached)
        mutants: tuple[Mutant, ...] = ()
        if mutate and whole_check and not pool.interrupted:
            checks = pool.run(
                partial(check_once, max(1, states // _REDUNDANT_SHARE) if point.redundant else states, point.id)
                for point in known.points
            )
            done = zip(known.points, checks, strict=True)
            mutants = tuple(Mutant(p, c) for p, c in done if c and (c.violation or not c.stopped))
    result = CrashResult(known, eadr, seed, check, mutants, never)
    if pool.interrupted:
        raise CrashInterrupted(result)
    return result


_Job = Callable[[_native.CrashMonitor], Check]


class _Pool:
    """Threads that check without the GIL, and one monitor by which Ctrl-C ends them.

    ``interrupted`` says that it has.
    """

    def __init__(self, jobs: int, on_progress: Callable[[int, int], None] | None) -> None:
        self._executor = ThreadPoolExecutor(jobs)
        self._monitor = _native.CrashMonitor()
        self._on_progress = on_progress
        self._finished = 0
        self.interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # After an exception the checks that still run end at their next poll.
        self._monitor.cancel()
        self._executor.shutdown(cancel_futures=True)

    def run(
        self, jobs: Iterable[_Job], on_violation: Callable[[str], None] | None = None
    ) -> list[Check | None]:
        """Return the checks; after Ctrl-C those that had begun as far as they got, and None for the others."""
        futures: list[Future[Check]] = [self._executor.submit(job, self._monitor) for job in jobs]
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                self._finished += len(done)
                if self._on_progress is not None:
                    self._on_progress(self._monitor.states, self._finished)
                if on_violation is not None and pending and self._monitor.violation:
                    on_violation(self._monitor.violation)
        except KeyboardInterrupt:
            self.interrupted = True
            self._monitor.cancel()
            for future in pending:
                future.cancel()
        return [None if future.cancelled() else future.result() for future in futures]
