"""Crashes a prototype as ``pmsim crash`` does the blocks of the core."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any

from pmsim import _native
from pmsim.arguments import whole
from pmsim.crash import Block, CrashResult, Point, examine
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.prototype.memory import Points
from pmsim.prototype.program import MakePrototype, Prototype, one_of
from pmsim.prototype.subject import Subject, expected

#: Orders of what overlaps are all looked at.
_MOST_THREADS = 8
#: Large programs that share the states. With threads each is one interleaving: many matter more than many
#: images of each.
_PROGRAMS, _INTERLEAVINGS = 16, 256
_BETWEEN_SEEDS = 1_000_000
#: What an attribute of a class may be that outlives a crash.
_VALUES = (type(None), int, float, str, bytes, tuple, list, dict, set, bytearray, deque)
#: Programs, one of which has to promise something.
_MOST_DRAWN = 32


def check(
    prototype: MakePrototype,
    *,
    states: int = 10_000,
    seed: int = 1,
    small: int = 3,
    large: int = 16,
    threads: int = 1,
    programs: Sequence[Sequence[Any]] | None = None,
    mutate: bool = True,
    eadr: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    on_violation: Callable[[str], None] | None = None,
) -> CrashResult:
    """Crash programs of random operations at every step, and hold what recovery returns against the promise.

    An operation that has been acknowledged is found, the one under way wholly or not at all, and what comes
    after a recovery holds as much. Operations of several threads may have been done in any order in which they
    overlap. Then each persistence point is removed, which has to be noticed
    (docs/crash.md).

    Parameters
    ----------
    prototype : callable
        A subclass of Prototype, or whatever else returns a new object each time.
    states : int
        Crash states drawn from large programs; small ones are visited exhaustively up to as many more.
    seed : int
        Of operations and samples: the same seed visits the same states.
    small, large : int
        Operations of a small program and of a large one.
    threads : int
        So many run the operations on one object, in rounds of one or two each. They change at accesses to
        memory that are drawn, and wait for each other where they hold latches. What goes on after a recovery
        is one thread.
    programs : sequence of sequences, optional
        Operations of programs that are run in the place of random ones, in turns, as small and as large ones.
    mutate : bool
        Whether to remove each persistence point in turn.
    eadr : bool
        Whether caches survive the power failure.
    on_progress, on_violation : callable, optional
        As of ``pmsim.crash.check_block``.

    Returns
    -------
    CrashResult : with the points that the programs have met.

    Raises
    ------
    ConfigError : impossible options, a point declared redundant that is never met, operations that promise
        nothing, an attribute of the class that outlives a crash.
    Exception : what the prototype raises while the power is on.
    CrashInterrupted : Ctrl-C.
    """
    seed = whole("seed", seed, 0)
    small = whole("small", small, 1)
    large = whole("large", large, 1)
    threads = whole("threads", threads, 1, _MOST_THREADS)
    oracle = one_of(prototype)
    name = type(oracle).__name__
    if not isinstance(oracle.redundant, Mapping):
        raise ConfigError(
            f"{name}.redundant: {shown(oracle.redundant)} is no dict; give names of points and reasons"
        )
    empty = expected(oracle, [])
    if empty is None:
        raise ConfigError(f"{name}.expected([]) returned None, which says that nothing has been created yet")
    points = Points()
    shared = _shared(oracle)

    plans = None if programs is None else [list(operations) for operations in programs]
    if plans is not None and not (plans and all(plans)):
        raise ConfigError("programs: one without operations, or none; give lists of operations")

    def make(number: int, is_small: bool) -> Subject:
        # The core numbers programs from the seed on: those of the next seed are to be other ones.
        own = number + max(0, seed - 1) * _BETWEEN_SEEDS
        running, random = prototype(), Random(own)
        if plans is not None:
            operations = plans[number % len(plans)]
        else:
            operations = [running.draw(random) for _ in range(small if is_small else large)]
        return Subject(prototype, points, running, operations, seed=str(own), threads=threads)

    made = (make(seed + number, False) for number in range(_MOST_DRAWN))
    if all(promised == empty for program in made for promised in program.contents()):
        raise ConfigError(f"{name}.expected() returned the same after all operations: there is no promise")

    def block() -> Block:
        if changed := [
            attribute for kind, attribute, before in shared if _differ(vars(kind).get(attribute), before)
        ]:
            raise ConfigError(
                f"{name}.{changed[0]}: has changed, and belongs to the class, so it outlives a crash; set it in"
                " __init__, create() or recover()"
            )
        names = points.names()
        for declared in oracle.redundant:
            if declared not in names:
                raise ConfigError(
                    f"{name}.redundant: no point '{declared}' was met; {nearest(declared, names)}"
                )
        met = (Point(number, point, oracle.redundant.get(point, "")) for number, point in enumerate(names, 1))
        return Block(name, (type(oracle).__doc__ or name).partition("\n")[0], tuple(met))

    return examine(
        block,
        partial(
            _native.crash_check_program,
            name,
            make,
            points.names,
            large_programs=_PROGRAMS if threads == 1 else _INTERLEAVINGS,
        ),
        states=states,
        seed=seed,
        mutate=mutate,
        eadr=eadr,
        jobs=1,  # the interpreter runs one at a time
        on_progress=on_progress,
        on_violation=on_violation,
    )


def _shared(oracle: Prototype) -> list[tuple[type, str, Any]]:
    """Return the values that all objects have in common, by class and name."""
    return [
        (kind, attribute, deepcopy(value))
        for kind in type(oracle).__mro__
        for attribute, value in vars(kind).items()
        if isinstance(value, _VALUES) and not attribute.startswith("__")
    ]


def _differ(value: Any, before: Any) -> bool:
    try:
        return bool(value != before)
    except Exception:  # arrays of numpy in it, of which nobody knows
        return False
