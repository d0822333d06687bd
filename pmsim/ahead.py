"""Points that are asked for one after another, simulated beside those that may be asked for next."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from itertools import islice
from types import TracebackType

from pmsim.errors import ConfigError, InternalError, PmsimError
from pmsim.executors import InlineExecutor, LocalPool, on_board
from pmsim.host_room import check_room
from pmsim.point_cache import Metrics, PointCache
from pmsim.points import Point
from pmsim.runner import KILLED, evaluate
from pmsim.search_space import Coordinates
from pmsim.standing import Board, watcher

#: Seconds between two looks at how far the point is that is waited for.
_LOOK = 0.2


class NotSimulatedError(PmsimError):
    """A point that could not be simulated."""


class Ahead:
    """Simulates the points of a grid; a context, at whose end nothing that nobody waits for runs on.

    Parameters
    ----------
    grid : mapping
        Coordinates to points.
    cache : PointCache, optional
        Keeps finished points, those too that were never asked for.
    jobs : int
        Processes. One: points run in this process, and none before it is asked for.
    """

    def __init__(self, grid: Mapping[Coordinates, Point], cache: PointCache | None, jobs: int) -> None:
        self._grid, self._cache, self._jobs = grid, cache, jobs
        self._rows = {place: row for row, place in enumerate(grid)}
        self._board = Board([1] * len(grid), shared=jobs > 1)
        self._pool: Executor = LocalPool(jobs, self._board) if jobs > 1 else InlineExecutor()
        self._running: dict[Future[Metrics], Coordinates] = {}
        self._finished: dict[Coordinates, Future[Metrics]] = {}

    def __enter__(self) -> "Ahead":
        self._pool.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._collect()
        finally:
            if isinstance(self._pool, LocalPool):
                self._pool.stop()

    def metrics(self, place: Coordinates, likely: Iterable[Coordinates]) -> Metrics:
        """Return what the point at a place gives, simulated now or before.

        Parameters
        ----------
        place : tuple of int
            Which.
        likely : iterable of tuple of int
            What may be asked for after it, the likeliest first: begun where processes are idle.

        Raises
        ------
        NotSimulatedError : the simulation ended with an error.
        ConfigError : this host lacks the memory for the point.
        PmsimError : a worker process was killed.
        """
        if (kept := self._kept(place)) is not None:
            return kept
        check_room([self._grid[place]])
        if not self._begun(place):
            self._begin(place)
        others = iter(likely)
        while place not in self._finished:
            for other in islice(self._unknown(others), self._jobs - len(self._running)):
                self._begin(other)
            wait(self._running, timeout=_LOOK, return_when=FIRST_COMPLETED)
            self._collect()
            if (watch := watcher()) and isinstance(self._pool, LocalPool):
                share, doing = self._board.read([self._rows[place]])
                watch(doing, share)
        try:
            return self._finished[place].result()
        except InternalError:
            raise
        except PmsimError as error:
            raise NotSimulatedError(str(error)) from None
        except BrokenExecutor:
            raise PmsimError(KILLED) from None

    def _kept(self, place: Coordinates) -> Metrics | None:
        return None if self._cache is None else self._cache.load(self._grid[place])

    def _begun(self, place: Coordinates) -> bool:
        return place in self._finished or place in self._running.values()

    def _unknown(self, places: Iterator[Coordinates]) -> Iterator[Coordinates]:
        for place in places:
            if not self._begun(place) and self._kept(place) is None and self._has_room(place):
                yield place

    def _has_room(self, place: Coordinates) -> bool:
        try:
            check_room([self._grid[place]])
        except ConfigError:
            return False  # which is told when it is asked for
        return True

    def _begin(self, place: Coordinates) -> None:
        try:
            future = self._pool.submit(on_board, self._rows[place], evaluate, self._grid[place])
        except BrokenExecutor:
            raise PmsimError(KILLED) from None
        self._running[future] = place

    def _collect(self) -> None:
        for future in [future for future in self._running if future.done()]:
            place = self._running.pop(future)
            self._finished[place] = future
            if self._cache is not None and future.exception() is None:
                self._cache.store(self._grid[place], future.result())
