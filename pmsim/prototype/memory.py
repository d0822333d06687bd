"""The memory that a prototype runs on, whose persistence points have names."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pmsim import _native
from pmsim.errors import ConfigError

Medium = Literal["dram", "pmem", "block"]
Flush = Literal["clwb", "clflushopt", "clflush"]
_MOST_POINTS = 65_535


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


class Memory:
    """Simulated memory in the hands of a prototype: real bytes, and what a program does to make them durable.

    Addresses are those of the simulated machine. Words have 8 bytes and are little-endian. Flushes, fences and
    ordering points are *persistence points*, which the crash checker removes one at a time: a point is where it
    is called from, by function and line, or what `site` names.

    Parameters
    ----------
    memory : _native.SimMemory
        What it does is done there.
    points : Points
        Gives points their numbers.
    """

    def __init__(self, memory: _native.SimMemory, points: Points) -> None:
        self._memory = memory
        self._points = points

    def allocate(self, medium: Medium, size: int, name: str) -> int:
        """Return the address of a new region of `size` bytes, all zero. A crash leaves zeros of "dram".

        Raises
        ------
        ConfigError : no such medium, or no room.
        """
        return self._memory.allocate(medium, size, name)

    def region(self, name: str) -> int:
        """Return the address of a region: how recovery finds what a run has allocated.

        Raises
        ------
        ConfigError : no region has this name, or several have it.
        """
        return self._memory.region(name)

    def read(self, address: int, size: int, *, dependent: bool = False) -> bytes:
        """Return `size` bytes. `dependent`: the address is what the load before has read, as in a list."""
        return self._memory.read(address, size, dependent)

    def load(self, address: int, *, dependent: bool = False) -> int:
        """Return a word."""
        return int.from_bytes(self._memory.read(address, 8, dependent), "little")

    def write(self, address: int, data: bytes) -> None:
        """Store bytes through the cache. Of each aligned word, all or nothing becomes durable."""
        self._memory.write(address, data)

    def store(self, address: int, word: int) -> None:
        """Store a word through the cache."""
        self._memory.write(address, word.to_bytes(8, "little"))

    def stream(self, address: int, data: bytes) -> None:
        """Store whole aligned words past the cache: durable behind the next fence, without a flush."""
        self._memory.stream(address, data)

    def flush(self, address: int, size: int, site: str | None = None, *, kind: Flush = "clwb") -> None:
        """Write back every line of `size` bytes: durable behind the next fence."""
        self._memory.flush(address, size, kind, self._number(site, kind))

    def sfence(self, site: str | None = None) -> None:
        """Wait until what was flushed and streamed before is durable."""
        self._memory.sfence(self._number(site, "sfence"))

    def mfence(self, site: str | None = None) -> None:
        """Wait as `sfence` does; later loads wait, too."""
        self._memory.mfence(self._number(site, "mfence"))

    def persist(self, address: int, size: int, site: str | None = None) -> None:
        """Flush, and fence: a persistency barrier, of two points."""
        where = _caller() if site is None else site
        self._memory.flush(address, size, "clwb", self._points.number(f"{where}: clwb"))
        self._memory.sfence(self._points.number(f"{where}: sfence"))

    def order(self, site: str | None = None) -> None:
        """Keep stores to one line in their order: what a compiler would be told by a release store."""
        self._memory.order(self._number(site, "order"))

    def block_read(self, device: int, destination: int, size: int) -> None:
        """Read whole sectors of 512 bytes from a region of "block" to one of "dram" or "pmem", and wait."""
        self._memory.block_read(device, destination, size)

    def block_write(self, device: int, source: int, size: int) -> None:
        """Write whole sectors to the device: durable behind the next `block_flush`."""
        self._memory.block_write(device, source, size)

    def block_flush(self, site: str | None = None) -> None:
        """Empty the write cache of the device, and wait for it: a persistence point."""
        self._memory.block_flush(self._number(site, "block_flush"))

    def fetch_add(self, address: int, delta: int = 1) -> int:
        """Add to a word by a locked instruction, and return what it was before."""
        return self._memory.fetch_add(address, delta)

    @contextmanager
    def latch(self, address: int, *, shared: bool = False) -> Iterator[None]:
        """Hold a latch, a word: ``with memory.latch(self.latch): ...``, alone or with other readers.

        Threads that are timed on one object (`record`, `shared`) wait for it. In a region on "dram" a crash
        leaves it free.
        """
        version = self._memory.acquire(address, shared=shared)
        try:
            yield
        finally:
            self._memory.release(address, version, shared=shared)

    def prefetch(self, address: int) -> None:
        """Ask for a line."""
        self._memory.prefetch(address)

    def compute(self, cycles: int = 0, instructions: int = 0) -> None:
        """Spend time of the core: cycles, and instructions at its width. What Python does costs nothing."""
        self._memory.compute(cycles, instructions)

    def _number(self, site: str | None, what: str) -> int:
        return self._points.number(f"{_caller(2)}: {what}" if site is None else site)


def _caller(further: int = 1) -> str:
    """Say where the method was called that has called this, or another one in between."""
    caller = sys._getframe(1 + further)
    file = os.path.basename(caller.f_code.co_filename)
    place = f"{caller.f_code.co_qualname}, line {caller.f_lineno}"
    # A cell of a notebook is a file whose name is a number.
    return f"{place} of {file}" if file.endswith(".py") and not file[:-3].isdigit() else place
