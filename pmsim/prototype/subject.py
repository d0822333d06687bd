"""A prototype as the crash checker sees it."""

import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.prototype.memory import Memory, Points
from pmsim.prototype.program import LATER, MakePrototype, Prototype
from pmsim.prototype.promise import Promise, equal
from pmsim.prototype.turns import Turns

#: Operations that follow a recovery, before the next power failure.
_FURTHER = 2
#: Of one call: a recovery that reads more would take months to be crashed.
_MOST_READS = 1_000_000
#: Orders of operations of threads that are looked at for ever.
_MANY_HISTORIES = 64
#: Need no copy.
_IMMUTABLE = frozenset((type(None), bool, int, float, str, bytes))
#: Characters of a value in a message.
_MOST_SHOWN = 200


@dataclass(frozen=True)
class Found:
    """What a recovery has left: its object and what it returned, or how it failed."""

    recovered: Prototype
    content: Any
    failure: str


class Subject:
    """One program: operations that a prototype runs, and what it has promised so far.

    The core calls it (native/bindings/py_program.hpp). `recover` and `check` may be called in the middle of
    `run`, and change nothing.

    Parameters
    ----------
    make : callable
        Returns a new object of the prototype.
    points : Points
        Of all programs of a check.
    running : Prototype
        Runs the operations.
    operations : sequence
        What it runs.
    threads : int
        They run a round at a time: each one or two operations, beside those of the others.
    histories : sequence
        What may have been acknowledged before: several where the content does not tell them apart. None: not
        even that it has been created.
    seed : str
        Of what it draws to go on, and of the turns of threads.
    """

    def __init__(
        self,
        make: MakePrototype,
        points: Points,
        running: Prototype,
        operations: Sequence[Any],
        *,
        seed: str,
        threads: int = 1,
        histories: Sequence[list[Any]] | None = None,
    ) -> None:
        self._make = make
        self._points = points
        self._running = running
        self._operations = operations
        self._seed = seed
        self._rounds = list(_dealt(len(operations), threads, seed))
        self._resumed = histories is not None
        self._failure = ""
        self._oracle = make()
        self._promise = Promise(lambda done: expected(self._oracle, done), histories)

    def count(self) -> int:
        """Return the number of rounds: of operations, where there is one thread."""
        return len(self._rounds)

    def contents(self) -> list[Any]:
        """Return what has to be found after the first operation, the first two and so on, one by one."""
        return [
            expected(self._oracle, list(self._operations[:end])) for end in range(1, len(self._operations) + 1)
        ]

    @property
    def overlaps(self) -> bool:
        """Whether what is promised changes within a round."""
        return any(len(threads) > 1 for threads in self._rounds)

    def changes(self) -> int:
        """Count changes of what is promised."""
        return self._promise.changes

    def describe(self, index: int) -> str:
        """Say what is run in a round, with how far each has come while it is under way."""
        numbers = self._rounds[index]
        stages = {number: self._promise.stage(number) for thread in numbers for number in thread}
        under_way = len(numbers) > 1 and set(stages.values()) != {"acknowledged"}

        def told_of(number: int) -> str:
            return _shown(self._operations[number]) + (f" ({stages[number]})" if under_way else "")

        return "  beside  ".join(", then ".join(map(told_of, thread)) for thread in numbers)

    def create(self, memory: _native.SimMemory) -> None:
        """Create what the program works on; until that is done, a crash may leave nothing, or all of it."""
        self._promise.create()
        self._running.create(self._lent(memory))
        self._promise.created()

    def run(self, memory: _native.SimMemory, index: int) -> None:
        """Carry out a round."""
        if self._failure:
            return
        threads = self._rounds[index]
        if len(threads) == 1:
            self._work(self._lent(memory), threads[0])
            return
        turns = Turns(Random(f"{self._seed}/{index}"), memory.set_thread)
        turns.run(
            [
                partial(self._work, self._lent(memory, turns, thread), each)
                for thread, each in enumerate(threads)
            ]
        )
        if self._promise.is_quiet and len(self._promise.legal) > _MANY_HISTORIES:
            # Nothing goes on, so the order in which it was done is a fact by now: that which a recovery finds.
            found = self.recover(memory.sample_crash_states(1, 0)[0])
            self._promise.settle(found.content)

    def _work(self, memory: Memory, numbers: Sequence[int]) -> None:
        """Carry out operations one after the other."""
        for number in numbers:
            self._run(memory, number)

    def _run(self, memory: Memory, number: int) -> None:
        """Carry out an operation."""
        self._promise.begin(number, self._operations[number])
        # What it takes apart has still been promised.
        operation = private(self._operations[number], "draw()")
        returned: object = None
        try:
            returned = self._running.run(memory, operation)
        except (Exception, SystemExit) as error:
            if not self._resumed:
                raise
            # Recovery has left something that the program cannot go on with.
            self._failure = f"{_shown(self._operations[number])}, after a recovery, raised {told(error)}"
        self._promise.end(number, returned is not LATER)

    def recover(self, memory: _native.SimMemory) -> Found:
        """Recover with a new object, which knows nothing."""
        recovered = self._make()
        try:
            return Found(recovered, recovered.recover(self._lent(memory)), "")
        except (Exception, SystemExit) as error:
            return Found(recovered, None, f"recover() raised {told(error)}")

    def check(self, found: Found) -> str:
        """Say what is wrong, or nothing."""
        if self._failure or found.failure:
            return self._failure or found.failure
        if self._matches(found):
            return ""
        legal = [history.content for history in self._promise.legal]
        promised = " or ".join(
            dict.fromkeys(_shown(content) + _difference(found.content, content) for content in legal)
        )
        return f"recover() returned {_shown(found.content)}; promised is {promised}"

    def resume(self, found: Found) -> "Subject | None":
        """Return the program that goes on with what a recovery has found; None where there is nothing."""
        histories = [] if found.failure else self._matches(found)
        if not histories or (found.content is None and not self._promise.is_created):
            return None
        seed = f"{self._seed}/{len(histories[0])}"
        random = Random(seed)
        further = [self._oracle.draw(random) for _ in range(_FURTHER)]
        return Subject(self._make, self._points, found.recovered, further, seed=seed, histories=histories)

    def _lent(self, memory: _native.SimMemory, turns: Turns | None = None, thread: int = 0) -> Memory:
        return Memory(memory, self._points, most_reads=_MOST_READS, turns=turns, thread=thread)

    def _matches(self, found: Found) -> list[list[Any]]:
        """Return what may have been done where recovery has found this."""
        return [history.done for history in self._promise.legal if equal(history.content, found.content)]


def _dealt(operations: int, threads: int, seed: str) -> Iterator[list[range]]:
    """Deal operations out in rounds: to each thread one, now and then two while others do one."""
    if threads == 1:
        yield from ([range(number, number + 1)] for number in range(operations))
        return
    random, number = Random(f"{seed}/rounds"), 0
    while number < operations:
        dealt = []
        for _ in range(threads):
            end = min(number + random.choice((1, 1, 2)), operations)
            if end > number:
                dealt.append(range(number, end))
            number = end
        yield dealt


def private(value: Any, source: str) -> Any:
    """Return a copy of a value that a prototype has returned, and may change later on."""
    if type(value) in _IMMUTABLE:
        return value
    if type(value) in (list, tuple) and all(type(each) in _IMMUTABLE for each in value):
        return type(value)(value)
    try:
        return deepcopy(value)
    except Exception as error:
        raise ConfigError(
            f"prototype: {source} returned {shown(value)}, which cannot be copied ({error}); return numbers,"
            " texts, bytes, lists, tuples or dicts"
        ) from None


def expected(oracle: Prototype, done: list[Any]) -> Any:
    """Return what has to be found after these operations.

    Raises
    ------
    ConfigError : something that can be compared with nothing, as an array of numpy.
    """
    returned = oracle.expected(private(done, "draw()"))
    content = private(returned, "expected()")
    if not equal(content, returned):
        raise ConfigError(
            f"prototype: expected() returned {shown(returned)}, which is not equal (==) to a copy of itself;"
            " return numbers, texts, bytes, lists, tuples or dicts, and recover() the same"
        )
    return content


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _difference(found: Any, promised: Any) -> str:
    """Say where something long differs first from what was promised."""
    if max(len(repr(found)), len(repr(promised))) <= _MOST_SHOWN or type(found) is not type(promised):
        return ""
    if isinstance(found, dict):
        keys = [key for key in {**promised, **found} if not equal(found.get(key), promised.get(key))]
        at = next(iter(keys), None)
    elif isinstance(found, list | tuple | str | bytes):
        pairs = enumerate(zip(found, promised, strict=False))
        at = next((place for place, pair in pairs if not equal(*pair)), min(len(found), len(promised)))
    else:
        return ""
    there = [_shown(one[at]) if _has(one, at) else "nothing" for one in (found, promised)]
    return f" (at {_shown(at)}: {there[0]}, not {there[1]})"


def _has(content: Any, at: Any) -> bool:
    return at in content if isinstance(content, dict) else at < len(content)


def told(error: BaseException) -> str:
    """Name an exception, and the line of the program that raised it."""
    at, trace = "", error.__traceback__
    while trace is not None:
        module = (trace.tb_frame.f_globals.get("__name__") or "").partition(".")[0]
        if module != "pmsim" and module not in sys.stdlib_module_names:
            at = f" in line {trace.tb_lineno}, {trace.tb_frame.f_code.co_qualname}"
        trace = trace.tb_next
    return f"{type(error).__name__}: {error}{at}"
