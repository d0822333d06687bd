"""What a running point is doing and how far it is, told from the core through studies to a progress bar."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing.sharedctypes import RawArray

#: Called several times per second of a running point: what it is doing, and the share of it that is done.
Watch = Callable[[str, float], None]

_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)

#: Of a point that has all of the core's phases, the part of its real time that each takes, very roughly.
#: Storage engines load a row in 1 to 8 us and measure a transaction in 5 to 10; two rows for each are usual.
#: They warm up at 2 us a transaction, with four for each that is measured, and mostly end before that.
_PHASES = {"loading": 3, "warming up": 3, "measuring": 4}


@contextmanager
def watched(watch: Watch | None) -> Iterator[None]:
    """Let whoever runs in this block tell `watch` where it stands."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def watcher() -> Watch | None:
    """Return whom to tell, if anybody."""
    return _watch.get()


@contextmanager
def stretch(begin: float, end: float, doing: str | None = None) -> Iterator[None]:
    """Let what is told in this block count as a stretch of the point.

    Parameters
    ----------
    begin, end : float
        Shares of the point, or of the stretch around this one.
    doing : str, optional
        Replaces what is told.
    """
    outer = watcher()

    def scaled(told: str, share: float) -> None:
        if outer is not None:
            outer(doing or told, begin + (end - begin) * share)

    with watched(scaled if outer is not None else None):
        yield


def phases() -> Watch | None:
    """Return whom the core tells its phases: their shares become that of the point.

    Where phases are lacking, or end early, the others share what is left.
    """
    outer = watcher()
    if outer is None:
        return None
    current, begin, end, reached = "", 0.0, 0.0, 0.0

    def told(doing: str, share: float) -> None:
        nonlocal current, begin, end, reached
        if doing != current:
            weights = list(_PHASES.values())[list(_PHASES).index(doing) :]
            current, begin = doing, reached
            end = begin + (1 - begin) * weights[0] / sum(weights)
        reached = max(reached, begin + (end - begin) * share)
        outer(doing, reached)

    return told


class _Slot(ctypes.Structure):
    _fields_ = (("share", ctypes.c_double), ("doing", ctypes.c_char * 32))


class Board:
    """Where everything that runs stands, in memory that local processes may share.

    Nobody waits for anybody: whoever reads while another process writes sees a mixture at worst.

    Parameters
    ----------
    weights : sequence of int
        Points of each task.
    shared : bool
        Whether other processes write to it; that takes a temporary file.
    """

    def __init__(self, weights: Sequence[int], *, shared: bool = False) -> None:
        self._weights = tuple(weights)
        self._slots = RawArray(_Slot, len(weights)) if shared else (_Slot * len(weights))()

    def tell(self, number: int, doing: str, share: float) -> None:
        """Tell where a task stands."""
        slot = self._slots[number]
        slot.share, slot.doing = share, doing.encode()

    def clear(self, number: int) -> None:
        """Forget a task, which has ended and is counted as a whole."""
        self.tell(number, "", 0.0)

    def read(self, running: Sequence[int]) -> tuple[float, str]:
        """Return how many points are done by tasks that have not ended, and what these are doing."""
        points, names = 0.0, dict[str, None]()
        for number in running:
            slot = self._slots[number]
            points += min(1.0, max(0.0, slot.share)) * self._weights[number]
            if slot.doing:
                names[slot.doing.decode()] = None
        return points, ", ".join(names)
