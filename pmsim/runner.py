"""Running points: what is finished already is loaded, the rest goes to an executor, all stays in order."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pmsim.errors import ConfigError, InternalError, PmsimError
from pmsim.executors import InlineExecutor, LocalPool, on_board
from pmsim.host_room import check_room
from pmsim.kinds import find_kind
from pmsim.messages import shown
from pmsim.point_cache import Metrics, PointCache
from pmsim.points import Point
from pmsim.standing import Board, Watch, watched

#: Called whenever a point ends and several times per second: with the number of finished points, to which those
#: that run add the share that they have done, and with what these are doing.
Progress = Callable[[float, str], None]

#: A function and its arguments.
Task = tuple[Any, ...]

#: Of all points that were left when a worker ended: its own, and those that the pool had not begun.
KILLED = (
    "not simulated: a worker process was killed from outside, as the system does where memory is short; run "
    "the same command again, with fewer --jobs in that case"
)

#: Seconds between two looks at what worker processes do.
_LOOK = 0.2

#: Processes that may be asked for: more than one for each processor is no faster, and each takes memory.
_PER_PROCESSOR = 16


@dataclass(frozen=True)
class Failure:
    """A point that could not be simulated."""

    index: int
    point: str
    message: str

    def __str__(self) -> str:
        return f"point {self.index + 1} ({self.point}): {self.message}"


@dataclass
class Outcome:
    """What running the points gave; ``metrics[i]`` is None where point i failed."""

    metrics: list[Metrics | None]
    failures: list[Failure] = field(default_factory=list)
    from_cache: int = 0


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run; the finished points are kept, and of `begun` others what they had done."""

    def __init__(self, finished: int, total: int, begun: int = 0) -> None:
        super().__init__(f"interrupted after {finished} of {total} points")
        self.finished = finished
        self.total = total
        self.begun = begun


def evaluate(point: Point) -> Metrics:
    """Simulate one point: a pure function of it."""
    return find_kind(point.kind).run(point.platform, point.parameters, point.seed)


def evaluate_lanes(points: Sequence[Point]) -> list[Metrics]:
    """Simulate points of one execution, once, timed side by side: each gets the result of `evaluate`."""
    first = points[0]
    if len(points) == 1:
        return [evaluate(first)]
    machines = [point.platform for point in points]
    return find_kind(first.kind).run_lanes(machines, first.parameters, first.seed)


def evaluate_from(point: Point, state: Path) -> list[Metrics]:
    """Simulate one point from the state that an interrupted run has left, if any, with the same result."""
    return [find_kind(point.kind).run_from(point.platform, point.parameters, point.seed, state)]


def run_points(
    points: Sequence[Point],
    *,
    cache: PointCache | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Simulate points.

    Parameters
    ----------
    points : sequence of Point
        What to simulate.
    cache : PointCache, optional
        Where finished points are kept and found again.
    jobs : int, optional
        Processes; by default one per processor. One: in this process.
    executor : concurrent.futures.Executor, optional
        Runs the points instead of a local pool, for example that of a Dask client.
    progress : callable, optional
        Called with the number of finished points, shares of running ones included, and what these are doing.
        Points in an executor of the caller's count when they have ended.

    Returns
    -------
    Outcome : in the order of the points, however many processes ran them.

    Raises
    ------
    ConfigError : this host lacks the memory for one of the points; nothing has been run.
    RunInterrupted : Ctrl-C; the points finished so far are in the cache.
    """
    jobs = usable_jobs(jobs)
    outcome = Outcome(metrics=[cache.load(point) if cache else None for point in points])
    open_points = [index for index, metrics in enumerate(outcome.metrics) if metrics is None]
    if executor is None:
        check_room(points[index] for index in open_points)
    passes = _passes(points, open_points)
    outcome.from_cache = finished = len(points) - len(open_points)
    futures: dict[Future[list[Metrics]], int] = {}
    workers = min(jobs, len(passes))
    board = Board([len(indices) for indices in passes], shared=executor is None and workers > 1)

    def show() -> None:
        if progress:
            share, doing = board.read(list(futures.values()))
            progress(finished + share, doing)

    show()
    try:
        with ExitStack() as stack:
            if executor is None and workers > 1:
                executor = stack.enter_context(LocalPool(workers, board))
            # The processes of a caller's executor may be on machines that do not see our files.
            states = cache if executor is None or isinstance(executor, LocalPool) else None
            tasks = [_task([points[index] for index in indices], states) for indices in passes]
            for future in _completed(executor or InlineExecutor(), tasks, futures, board, show):
                indices = passes[futures.pop(future)]
                _collect(outcome, indices, points, future, cache)
                finished += len(indices)
                show()
    except KeyboardInterrupt:
        for future, number in futures.items():
            indices = passes[number]
            if future.done() and not future.cancelled() and future.exception() is None:
                _collect(outcome, indices, points, future, cache)
            future.cancel()
        # Ctrl-C may have come while a point was stored or counted.
        finished = len(outcome.failures)
        for point, metrics in zip(points, outcome.metrics, strict=True):
            finished += metrics is not None
            if cache and metrics is not None and cache.load(point) is None:
                cache.store(point, metrics)
        begun = sum(cache.state(points[index]).exists() for index in open_points) if cache else 0
        raise RunInterrupted(finished, len(points), begun) from None
    outcome.failures.sort(key=lambda failure: failure.index)
    return outcome


def usable_jobs(jobs: object) -> int:
    """Return a number of processes, or raise a ConfigError."""
    processors = os.cpu_count() or 1
    if jobs is None:
        return processors
    if isinstance(jobs, bool) or not isinstance(jobs, Integral):
        raise ConfigError(f"jobs: {shown(jobs)} is not a whole number; choose at least 1")
    number = int(jobs)
    if number < 1:
        raise ConfigError(f"jobs: {shown(jobs)} processes cannot run anything; choose at least 1")
    if number > (most := _PER_PROCESSOR * processors):
        raise ConfigError(
            f"jobs: {shown(jobs)} processes on a machine with {processors} processors only take memory; "
            f"choose at most {most}"
        )
    return number


def _passes(points: Sequence[Point], indices: Sequence[int]) -> list[list[int]]:
    """Return the points that are one execution together, the rest one by one."""
    passes: dict[str, list[int]] = {}
    for index in indices:
        point = points[index]
        shared = find_kind(point.kind).executes_regardless_of_time(point.parameters)
        passes.setdefault(f"{point.execution}:{point.seed}" if shared else str(index), []).append(index)
    return list(passes.values())


def _task(points: list[Point], states: PointCache | None) -> Task:
    first = points[0]
    if states is not None and find_kind(first.kind).resumes(first.parameters):
        return evaluate_from, first, states.state(first)
    return evaluate_lanes, points


def _completed(
    executor: Executor,
    tasks: Sequence[Task],
    futures: dict[Future[list[Metrics]], int],
    board: Board,
    show: Callable[[], None],
) -> Iterator[Future[list[Metrics]]]:
    """Run tasks, and tell which have ended; those that have not, with their numbers, are in `futures`."""
    if isinstance(executor, InlineExecutor):
        for number, task in enumerate(tasks):
            future: Future[list[Metrics]] = Future()
            futures[future] = number
            with watched(_shower(number, board, show)):
                executor.run(future, *task)
            yield future
        return
    ended: SimpleQueue[Future[list[Metrics]]] = SimpleQueue()
    for number, task in enumerate(tasks):
        wanted = (on_board, number, *task) if isinstance(executor, LocalPool) else task
        futures[executor.submit(*wanted)] = number
    for future in list(futures):
        future.add_done_callback(ended.put)
    for _ in tasks:
        while True:
            try:
                future = ended.get(timeout=_LOOK)
                break
            except Empty:
                show()
        yield future


def _shower(number: int, board: Board, show: Callable[[], None]) -> Watch:
    def told(doing: str, share: float) -> None:
        board.tell(number, doing, share)
        show()

    return told


def _collect(
    outcome: Outcome,
    indices: Sequence[int],
    points: Sequence[Point],
    future: Future[list[Metrics]],
    cache: PointCache | None,
) -> None:
    try:
        finished = future.result()
    except Exception as error:
        known = isinstance(error, PmsimError) and not isinstance(error, InternalError)
        text = str(error) if known else f"{type(error).__name__}: {error}"
        message = " ".join((KILLED if isinstance(error, BrokenExecutor) else text).split())
        outcome.failures.extend(Failure(index, points[index].describe(), message) for index in indices)
        return
    for index, metrics in zip(indices, finished, strict=True):
        outcome.metrics[index] = metrics
        if cache:
            cache.store(points[index], metrics)
