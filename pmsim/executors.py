"""Where points run: a pool of local processes, or any executor of the caller's."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext
from types import ModuleType, TracebackType
from typing import Any, TypeVar

from pmsim.standing import Board, watched

T = TypeVar("T")


class InlineExecutor(Executor):
    """Runs each task at once, in this process."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn`` and return its finished future. A KeyboardInterrupt passes through."""
        future: Future[Any] = Future()
        self.run(future, fn, *args, **kwargs)
        return future

    def run(self, future: Future[Any], fn: Any, /, *args: Any, **kwargs: Any) -> None:
        """Run ``fn`` for a future of the caller's."""
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)


class LocalPool(ProcessPoolExecutor):
    """A pool of processes that Ctrl-C ends at once and without noise.

    Parameters
    ----------
    jobs : int
        Number of processes.
    board : Board, optional
        Where the tasks tell where they stand (`on_board`).
    """

    def __init__(self, jobs: int, board: Board | None = None) -> None:
        self._others = set(multiprocessing.active_children())
        # It unblocks what `_deaf_to_interrupts` blocks, when it starts.
        resource_tracker.ensure_running()
        super().__init__(
            jobs,
            mp_context=_fork_server(),
            initializer=_begin_worker,
            initargs=(board,),
        )

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit ``fn``; this is also where the pool starts its processes."""
        with _without_main_module(), _deaf_to_interrupts():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.shutdown(wait=True, cancel_futures=True)
        else:
            self.stop()  # points take seconds: whoever pressed Ctrl-C does not want to wait for those under way

    def stop(self) -> None:
        """End the processes, whatever they run."""
        for worker in set(multiprocessing.active_children()) - self._others:
            worker.terminate()
        self.shutdown(wait=True, cancel_futures=True)


def _fork_server() -> BaseContext:
    """Return what starts workers: a process that has imported pmsim once, for all pools, and forks.

    It inherits that Ctrl-C is blocked, and hands that on. One that the caller has started before does neither:
    workers then import pmsim themselves, and may print a traceback at a Ctrl-C meanwhile.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pmsim.runner"])
    return context


@contextmanager
def _without_main_module() -> Iterator[None]:
    # A worker would import the caller's script again, which fails where the script has no
    # `if __name__ == "__main__"`; the workers need nothing of it.
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    # A process that is still importing what it needs cannot ignore Ctrl-C yet and would die with a traceback.
    # It inherits what is blocked here; this process gets a Ctrl-C that comes meanwhile when the block ends.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


#: Of a worker process.
_board: Board | None = None


def on_board(number: int, fn: Callable[..., T], *args: Any) -> T:
    """Call ``fn`` in a worker process; where it stands goes to a row of the pool's board."""
    board = _board
    if board is None:
        return fn(*args)
    with watched(lambda doing, share: board.tell(number, doing, share)):
        return fn(*args)


def _begin_worker(board: Board | None) -> None:
    global _board
    _board = board
    # The terminal sends Ctrl-C to every process of the group; the parent decides what happens.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A parent that the system kills, as where memory is short, ends nobody; its workers would wait for ever.
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
