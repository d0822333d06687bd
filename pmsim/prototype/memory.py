"""The memory that a prototype runs on, whose persistence points have names."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from operator import index
from typing import Any, Literal, TypeVar, cast

from pmsim import _native
from pmsim.arguments import text
from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.prototype.turns import Turns

_Method = TypeVar("_Method", bound=Callable[..., Any])

Medium = Literal["dram", "pmem", "block"]
Flush = Literal["clwb", "clflushopt", "clflush"]
_MOST_POINTS = 65_535
#: A locked instruction counts as so many reads: after each the power may fail, which takes as long.
_LOCKED_READS = 1000


class Points:
    """The persistence points that a program has used so far, in the order of their first use, from 1 on."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def names(self) -> list[str]:
        """Return all of them; that of number n at place n - 1."""
        return list(self._numbers)

    def number(self, name: str) -> int:
        """Return the number of a point; a new name is a new point."""
        number = self._numbers.setdefault(name, len(self._numbers) + 1)
        if number > _MOST_POINTS:  # of the 16 bits that they have
            raise ConfigError(f"site: {name!r} is one point too many; give points names that do not change")
        return number


def _told(method: _Method) -> _Method:
    """Let other threads go on, and say in one line what a method cannot do: the core tells of C++ types."""

    @wraps(method)
    def tells(self: "Memory", *arguments: Any, **named: Any) -> Any:
        if self._turns is not None:
            self._turns.access()
        try:
            return method(self, *arguments, **named)
        except (TypeError, OverflowError):
            try:
                given = inspect.signature(method).bind(self, *arguments, **named).arguments
            except TypeError as error:  # too many or too few, which Python has said well
                raise TypeError(f"memory.{method.__name__}(): {error}") from None
            values = ", ".join(f"{name} = {shown(value)}" for name, value in list(given.items())[1:])
            raise ConfigError(
                f"memory.{method.__name__}: {values}: addresses, sizes and words are whole numbers from 0 to"
                " 2**64 - 1, data is bytes and names are text"
            ) from None

    return cast(_Method, tells)


class Memory:
    """Simulated memory in the hands of a prototype: real bytes, and what a program does to make them durable.

    Addresses are those of the simulated machine. Words have 8 bytes and are little-endian. Flushes, fences and
    ordering points are *persistence points*, which the crash checker removes one at a time: a point is where it
    is called from, by function and line, or what `site` names, and what it does: with site="entry"
    "entry: clwb" and "entry: sfence".

    Parameters
    ----------
    memory : _native.SimMemory
        What it does is done there.
    points : Points
        Gives points their numbers.
    most_reads : int, optional
        So many `read` and `load`, or a thousandth of it locked instructions, are a loop without an end.
    suffix : str
        Of the names of regions, where several objects allocate in one memory.
    turns : Turns, optional
        Of threads, one of which has this memory: each access may be another one's turn.
    thread : int
        Whose it is.
    pmem : {"pmem", "dram"}
        Where regions of "pmem" lie.

    Attributes
    ----------
    thread : int
        Which thread runs the operation, from 0: for logs and slots of its own.
    """

    def __init__(
        self,
        memory: _native.SimMemory,
        points: Points,
        *,
        most_reads: int | None = None,
        suffix: str = "",
        turns: Turns | None = None,
        thread: int = 0,
        pmem: Medium = "pmem",
    ) -> None:
        self._memory = memory
        self._pmem = pmem
        self._points = points
        self._most_reads = most_reads
        self._reads = 0
        self._suffix = suffix
        self._turns = turns
        self.thread = thread
        self._lines: list[range] = []

    @_told
    def allocate(self, medium: Medium, size: int, name: str) -> int:
        """Return the address of a new region of `size` bytes, all zero. A crash leaves zeros of "dram".

        Raises
        ------
        ConfigError : no such medium, or no room.
        """
        place = self._pmem if medium == "pmem" else medium
        address = self._memory.allocate(place, size, text("name", name) + self._suffix)
        if medium != "block":
            self._lines.append(range(address, address + size, 64))
        return address

    def lines(self) -> list[range]:
        """Return the addresses of the lines of each region that has been allocated here on "dram" or "pmem"."""
        return self._lines

    @_told
    def region(self, name: str) -> int:
        """Return the address of a region: how recovery finds what a run has allocated.

        Raises
        ------
        ConfigError : no region has this name, or several have it.
        """
        return self._memory.region(text("name", name) + self._suffix)

    @_told
    def read(self, address: int, size: int, *, dependent: bool = False) -> bytes:
        """Return `size` bytes. `dependent`: the address is what the load before has read, as in a list."""
        return self._read(address, size, dependent)

    @_told
    def load(self, address: int, *, dependent: bool = False) -> int:
        """Return a word."""
        return int.from_bytes(self._read(address, 8, dependent), "little")

    @_told
    def write(self, address: int, data: bytes) -> None:
        """Store bytes through the cache. Of each aligned word, all or nothing becomes durable."""
        data = _bytes(data)
        for begin, end in self._pieces(address, len(data)):
            self._memory.write(address + begin, data[begin:end])

    @_told
    def store(self, address: int, word: int) -> None:
        """Store a word through the cache."""
        self._memory.write(address, index(word).to_bytes(8, "little"))

    @_told
    def stream(self, address: int, data: bytes) -> None:
        """Store whole aligned words past the cache: durable behind the next fence, without a flush."""
        data = _bytes(data)
        for begin, end in self._pieces(address, len(data)):
            self._memory.stream(address + begin, data[begin:end])

    @_told
    def flush(self, address: int, size: int, site: str | None = None, *, kind: Flush = "clwb") -> None:
        """Write back every line of `size` bytes: durable behind the next fence."""
        self._memory.flush(address, size, kind, self._number(site, kind))

    @_told
    def sfence(self, site: str | None = None) -> None:
        """Wait until what was flushed and streamed before is durable."""
        self._memory.sfence(self._number(site, "sfence"))

    @_told
    def mfence(self, site: str | None = None) -> None:
        """Wait as `sfence` does; later loads wait, too."""
        self._memory.mfence(self._number(site, "mfence"))

    @_told
    def persist(self, address: int, size: int, site: str | None = None) -> None:
        """Flush, and fence: a persistency barrier, of two points."""
        self._memory.flush(address, size, "clwb", self._number(site, "clwb"))
        self._memory.sfence(self._number(site, "sfence"))

    @_told
    def order(self, site: str | None = None) -> None:
        """Keep stores to one line in their order: what a compiler would be told by a release store."""
        self._memory.order(self._number(site, "order"))

    @_told
    def block_read(self, device: int, destination: int, size: int) -> None:
        """Read whole sectors of 512 bytes from a region of "block" to one of "dram" or "pmem", and wait."""
        self._memory.block_read(device, destination, size)

    @_told
    def block_write(self, device: int, source: int, size: int) -> None:
        """Write whole sectors to the device: durable behind the next `block_flush`."""
        self._memory.block_write(device, source, size)

    @_told
    def block_flush(self, site: str | None = None) -> None:
        """Empty the write cache of the device, and wait for it: a persistence point."""
        self._memory.block_flush(self._number(site, "block_flush"))

    @_told
    def fetch_add(self, address: int, delta: int = 1) -> int:
        """Add to a word by a locked instruction, and return what it was before."""
        self._count(_LOCKED_READS)
        return self._memory.fetch_add(address, delta)

    @_told
    def compare_exchange(self, address: int, expected: int, desired: int) -> int:
        """Make a word `desired` if it is `expected`, by a locked instruction, and return what it was before."""
        self._count(_LOCKED_READS)
        return self._memory.compare_exchange(address, expected, desired)

    @contextmanager
    def latch(self, address: int, *, shared: bool = False) -> Iterator[None]:
        """Hold a latch, a word: ``with memory.latch(self.latch): ...``, alone or with other readers.

        Threads that are timed on one object (`record`, `shared`) wait for it, as those do that are crashed
        (`check`, `threads`). In a region on "dram" a crash leaves it free.

        Raises
        ------
        ConfigError : it is held, and nobody else runs who could release it.
        """
        version = self.acquire(address, shared=shared)
        try:
            yield
        finally:
            self.release(address, version, shared=shared)

    def acquire(self, address: int, *, shared: bool = False) -> int:
        """Hold a latch from now on (see `latch`, which lets go of it by itself), and return its version."""
        self._let_others_go_on()
        while self._turns is not None and not self._memory.admits(address, shared=shared):
            self._turns.wait(address)
        return self._memory.acquire(address, shared=shared)

    def release(self, address: int, version: int, *, shared: bool = False) -> None:
        """Let go of a latch that `acquire` has returned the version of."""
        self._let_others_go_on()
        self._memory.release(address, version, shared=shared)

    @_told
    def prefetch(self, address: int) -> None:
        """Ask for a line."""
        self._memory.prefetch(address)

    @_told
    def compute(self, cycles: int = 0, instructions: int = 0) -> None:
        """Spend time of the core: cycles, and instructions at its width. What Python does costs nothing."""
        self._memory.compute(cycles, instructions)

    @_told
    def mispredict(self, *, at_hand: bool = False) -> None:
        """Take a branch that nothing could predict: it depends on the load before, or on what is at hand."""
        self._memory.mispredict(at_hand=at_hand)

    # The next three are what programs in C++ ask for (native/include/pmsim/prototype/simulated_memory.hpp).
    def _accesses(self) -> Any:
        """Return what they access memory by, and whether others may come between two accesses."""
        return self._memory.accesses(), self._turns is not None

    def _point(self, name: str, what: str) -> int:
        return self._points.number(f"{name}: {what}")

    def _count(self, reads: int) -> None:
        self._reads += reads
        if self._most_reads is not None and self._reads >= self._most_reads:
            raise ConfigError(
                f"memory: {self._most_reads:,} reads, or {self._most_reads // _LOCKED_READS:,} locked"
                " instructions, in one call, which seems to have no end"
            )

    def _let_others_go_on(self) -> None:
        if self._turns is not None:
            self._turns.access()

    def _read(self, address: int, size: int, dependent: bool) -> bytes:
        self._count(1)
        if self._turns is None:
            return self._memory.read(address, size, dependent)
        pieces = self._pieces(address, size)
        return b"".join(self._memory.read(address + begin, end - begin, dependent) for begin, end in pieces)

    def _pieces(self, address: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield where an access begins and ends: all at once, or word by word where others may come between."""
        if self._turns is None:
            yield 0, size
            return
        begin = 0
        while True:
            end = min(size, begin + 8 - (address + begin) % 8)
            yield begin, end
            if end == size:
                return
            begin = end
            self._turns.access()

    def _number(self, site: str | None, what: str) -> int:
        # One name for a flush and a fence is two points: taken away at once, one would stand for the other.
        return self._point(_caller() if site is None else text("site", site), what)


def _bytes(data: bytes) -> bytes:
    """Return what bytearrays, arrays of numpy and the like hold."""
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def _caller() -> str:
    """Say where the program has called the method of Memory that asks, through `_told` and `_number`."""
    caller = sys._getframe(4)
    file = os.path.basename(caller.f_code.co_filename)
    place = f"{caller.f_code.co_qualname}, line {caller.f_lineno}"
    # A cell of a notebook is a file whose name is a number.
    return f"{place} of {file}" if file.endswith(".py") and not file[:-3].isdigit() else place
