"""Threads of a program under the crash checker: one of them runs at a time."""

import threading
from collections.abc import Callable, Sequence
from random import Random

from pmsim.errors import ConfigError

#: Accesses after which a thread that goes on and on, as one that waits for another does, has had its turn.
_MOST_ACCESSES = 64


class Turns:
    """Takes turns between threads, at accesses to memory that are drawn.

    Each is a thread of the host, so that it can stop in the middle of an algorithm. Nothing but the draws
    decides when they change, so the same seed always does so at the same places.

    Half of all rounds have turns of some accesses each. In the others threads have priorities, and one or two
    times the one that runs becomes the last: it stands still until the others have ended, which finds what rare
    turns would not (S. Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs,
    ASPLOS 2010).

    Parameters
    ----------
    random : Random
        Of the turns.
    work_as : callable
        Told which thread goes on, from 0.
    """

    def __init__(self, random: Random, work_as: Callable[[int], None]) -> None:
        self._random = random
        self._work_as = work_as
        self._go: list[threading.Semaphore] = []
        self._ended: list[bool] = []
        self._all_ended = threading.Semaphore(0)
        self._running = 0
        self._left = 0
        self._waits = 0  # that have followed each other, without an access between them
        self._wanted: dict[int, int] = {}
        self._failure: BaseException | None = None
        #: The first one runs; empty: turns are drawn.
        self._order: list[int] = []
        #: Accesses, of all threads, before which the one that runs becomes the last.
        self._changes: list[int] = []
        self._accesses = 0

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Run all of them to their ends. What the first one raises is raised here."""
        random = self._random
        self._go = [threading.Semaphore(0) for _ in works]
        self._ended = [False] * len(works)
        if random.random() < 0.5:
            self._order = random.sample(range(len(works)), len(works))
            # Anywhere in a short operation or a long one.
            self._changes = [
                random.randrange(2 ** random.randrange(3, 8)) for _ in range(random.choice((1, 2)))
            ]
        for number, work in enumerate(works):
            threading.Thread(target=self._part, args=(number, work), daemon=True).start()
        self._resume(self._chosen())
        self._all_ended.acquire()
        self._work_as(0)
        if self._failure is not None:
            raise self._failure

    def access(self) -> None:
        """Before each access to memory: let another thread go on, now and then."""
        self._waits = 0
        self._accesses += 1
        self._left -= 1
        if self._accesses in self._changes or self._left < 0:
            self._put_last()
            self._pass_to(self._chosen())

    def wait(self, latch: int) -> None:
        """Let another thread go on, as this one waits for a latch.

        Raises
        ------
        ConfigError : all threads wait.
        """
        self._waits += 1
        self._wanted[self._running] = latch
        unended = self._unended()
        if self._waits > len(unended):
            wanted = ", ".join(f"thread {number} for {self._wanted[number]:#x}" for number in unended)
            raise ConfigError(
                f"memory.latch: all threads wait for latches that are held, by others or themselves ({wanted})"
            )
        self._put_last()
        self._pass_to(next((number for number in unended if number > self._running), unended[0]))

    def _part(self, number: int, work: Callable[[], None]) -> None:
        self._go[number].acquire()
        try:
            work()
        except BaseException as error:
            self._failure = self._failure or error
        self._ended[number] = True
        self._waits = 0
        if self._unended():
            self._resume(self._chosen())
        else:
            self._all_ended.release()

    def _unended(self) -> list[int]:
        return [number for number, ended in enumerate(self._ended) if not ended]

    def _chosen(self) -> int:
        """Return who goes on."""
        unended = self._unended()
        return (
            next(filter(unended.__contains__, self._order), 0) if self._order else self._random.choice(unended)
        )

    def _put_last(self) -> None:
        if self._order:
            self._order.remove(self._running)
            self._order.append(self._running)

    def _pass_to(self, other: int) -> None:
        mine = self._running
        self._resume(other)
        self._go[mine].acquire()

    def _resume(self, number: int) -> None:
        self._running = number
        # Some turns are of a single access, some of a whole operation.
        self._left = _MOST_ACCESSES if self._order else 2 ** self._random.randrange(6) - 1
        self._work_as(number)
        self._go[number].release()
