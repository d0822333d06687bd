"""Records what a prototype does as a trace, which can be timed on any platform."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Literal

from pmsim import _native, arguments
from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.output_place import place_of
from pmsim.prototype.memory import Memory, Points
from pmsim.prototype.program import MakePrototype, one_of
from pmsim.trace_file import TraceInfo, info
from pmsim.versions import package_version

#: Of an operation of the warm-up that loads lines.
_LOADS = 64
#: A slip beyond that.
_MOST_THREADS = 1024


def further(operations: int) -> int:
    """Return how many operations of a thread follow those that are measured.

    A measurement begins and ends where an operation is dispatched, with others behind it: a rate over the time
    until all have retired, or until the slowest thread is alone, would be too low.
    """
    return 100 + operations // 4


def record(
    prototype: MakePrototype,
    out: str | Path,
    *,
    operations: int = 1000,
    warmup: int = 1000,
    warm: int = 0,
    threads: int = 1,
    seed: int = 0,
    alone: bool = False,
    shared: bool = False,
    pmem: Literal["pmem", "dram"] = "pmem",
) -> TraceInfo:
    """Write a trace of random operations of a prototype: ``pmsim.trace.replay`` or kind ``trace`` time it.

    What `create` does takes no time, and leaves the caches of the machine empty.

    Parameters
    ----------
    prototype : callable
        A subclass of Prototype, or whatever else returns a new object each time.
    out : str or Path
        The trace to write; an existing one is replaced when this one is complete.
    operations, warmup : int
        Those that are measured, and those before them, of each thread. A few more follow (`further`).
    warm : int
        Lines of its regions that each thread loads before, anywhere: caches, with the page-table entries in
        them, are then as a long run of operations at random places leaves them. A million or so for gigabytes.
    threads : int
        Each has an object, and so regions, of its own, unless they are `shared`.
    seed : int
        Of operations, and of what the machine draws.
    alone : bool
        Whether an operation begins when all before has retired: its latency is its own then. Otherwise the core
        goes on with the next one as early as it can.
    shared : bool
        Whether all threads run operations of one object, in turns. What keeps them apart on the machine are the
        latches that they hold (`Memory.latch`); the order in which they get them is the machine's.
    pmem : {"pmem", "dram"}
        Where its regions of persistent memory lie: in DRAM, to see what persistent memory costs.

    Raises
    ------
    ConfigError : impossible options, or a trace that cannot be written.
    Exception : what the prototype raises.
    """
    out = arguments.output("out", out)
    operations = arguments.whole("operations", operations, 1)
    warmup = arguments.whole("warmup", warmup, 0)
    warm = arguments.whole("warm", warm, 0)
    threads = arguments.whole("threads", threads, 1, _MOST_THREADS)
    seed = arguments.whole("seed", seed, 0)
    if pmem not in ("pmem", "dram"):
        raise ConfigError(f"pmem: {shown(pmem)}: choose pmem or dram")
    simulated = _native.SimMemory(persistence="none")
    points = Points()
    objects = [one_of(prototype) for _ in range(1 if shared else threads)]
    # Each object finds its own regions by their names.
    memories = [
        Memory(simulated, points, suffix=f" of thread {thread}", pmem=pmem) for thread in range(len(objects))
    ]
    for program, memory in zip(objects, memories, strict=True):
        program.create(memory)
    if warm and not all(memory.lines() for memory in memories):
        raise ConfigError("warm: create() allocates no region on dram or pmem; leave it out")
    running = list(zip(objects, memories, strict=True)) * (threads // len(objects))
    simulated.take_operations()  # of set-up, which takes no time
    told = {"name": type(objects[0]).__name__, "operations": operations, "threads": threads, "seed": seed}
    told["shared"] = shared
    random = [Random(f"{seed}/{thread}") for thread in range(threads)]
    writer = _native.TraceWriter(
        place_of(out),
        threads,
        json.dumps({"pmsim": package_version(), "prototype": told}, sort_keys=True),
        seed=seed,
        warmup_operations=(warmup + -(-warm // _LOADS)) * threads,
        untimed_operations=0,
        measured_operations=operations * threads,
        pmem_footprint=simulated.pmem_footprint,
        shares_lines=shared and threads > 1,
        group_of_thread=[],
    )

    def write(thread: int) -> None:
        simulated.operation_end()
        done = simulated.take_operations()
        writer.append(thread, done, [len(done) // 16])

    try:
        for thread, (_, memory) in enumerate(running):
            for lines in _some(memory.lines(), warm, random[thread]):
                simulated.operation_begin()
                for line in lines:
                    simulated.read(line, 8)
                write(thread)
        for _ in range(warmup + operations + further(operations)):
            for thread, (program, memory) in enumerate(running):
                simulated.set_thread(thread)
                simulated.operation_begin(alone=alone)
                program.run(memory, program.draw(random[thread]))
                write(thread)
        writer.finish()
    finally:
        writer.discard()
    return info(out)


def _some(lines: Sequence[range], count: int, random: Random) -> Iterator[list[int]]:
    """Yield so many lines of regions, some at a time: anywhere, or all of them and some again."""
    ends = list(accumulate(map(len, lines)))
    if not ends:
        return
    every = list(range(ends[-1])) if ends[-1] <= count else []
    random.shuffle(every)
    for begin in range(0, count, _LOADS):
        wanted = range(begin, min(begin + _LOADS, count))
        places = [every[n] if n < len(every) else random.randrange(ends[-1]) for n in wanted]
        regions = [bisect_right(ends, place) for place in places]
        yield [lines[n][place - ends[n] + len(lines[n])] for n, place in zip(regions, places, strict=True)]
