"""Runs of hours: in segments, in bounded memory, interruptible and resumable."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pmsim.des.load import NativeLoad, Tenant
from pmsim.des.server import Server
from pmsim.des.times import Time, picoseconds
from pmsim.errors import ConfigError
from pmsim.versions import native_build

_MAGIC = b"pmsim-run-1\n"


class LongRun:
    """A native load in segments, whose state between two of them is a file.

    At the end of each segment the workers finish what they do, and the next segment begins on a fresh server:
    cold caches, empty logs. That costs some microseconds of simulated time per segment, is the same whether or
    not the run is interrupted, and keeps the state small: queue, timers, random numbers, statistics.

    Parameters
    ----------
    make_server : callable
        Gives a fresh server on a fresh clock; called with the number of the segment, to be its seed.
    tenants : sequence of Tenant
        Who asks.
    segment : int [ps] or text with a unit
        Length of a segment.
    state : str or Path, optional
        The file; where it exists, the run goes on from it.
    seed : int
        Of arrivals and mixes.

    Raises
    ------
    ConfigError : the file belongs to another run or build, or is damaged.
    """

    def __init__(
        self,
        make_server: Callable[[int], Server],
        tenants: Sequence[Tenant],
        *,
        segment: Time,
        state: str | Path | None = None,
        seed: int = 1,
    ) -> None:
        self._make_server = make_server
        self._tenants = tuple(tenants)
        self._segment = picoseconds(segment)
        self._seed = seed
        self._path = None if state is None else Path(state)
        if self._segment < 1:
            raise ConfigError("segment: must be longer than nothing")
        key = f"{self._tenants!r}:{self._segment}:{seed}:{native_build()}"
        self._key = hashlib.sha256(key.encode()).digest()
        self.segments, saved = 0, b""
        if self._path is not None and self._path.exists():
            self.segments, saved = self._read(self._path)
        self._load = self._fresh(saved)

    @property
    def now(self) -> int:
        """The time that has been simulated [ps]."""
        return self._load.now

    @property
    def load(self) -> NativeLoad:
        """The load, for its statistics."""
        return self._load

    def run(self, until: Time) -> None:
        """Simulate whole segments up to a time. Ctrl-C keeps all but the segment that it interrupts.

        Raises
        ------
        ConfigError : `until` is not the end of a segment, or the file cannot be written.
        """
        end = picoseconds(until)
        if end % self._segment:
            raise ConfigError(f"until: {end} ps is not the end of a segment of {self._segment} ps")
        while self.segments * self._segment < end:
            # A drain may have gone past the end of a short segment.
            self._load.run(max(self._load.now, (self.segments + 1) * self._segment))
            saved = self._load.drain()
            self.segments += 1
            self._write(saved)
            self._load = self._fresh(saved)

    def _fresh(self, saved: bytes) -> NativeLoad:
        load = NativeLoad(self._make_server(self.segments), self._tenants, seed=self._seed)
        if saved:
            load.restore(saved)
        return load

    def _write(self, saved: bytes) -> None:
        if self._path is None:
            return
        content = self._key + self.segments.to_bytes(8, "little") + saved
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(_MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, self._path)
        except OSError as error:
            raise ConfigError(
                f"{self._path}: cannot be written: {error.strerror}; choose another file"
            ) from None

    def _read(self, path: Path) -> tuple[int, bytes]:
        data = path.read_bytes()
        digest, content = data[len(_MAGIC) : len(_MAGIC) + 32], data[len(_MAGIC) + 32 :]
        if not data.startswith(_MAGIC) or hashlib.sha256(content).digest() != digest:
            raise ConfigError(f"{path}: is no state of a run, or damaged; delete it to begin anew")
        if content[:32] != self._key:
            raise ConfigError(f"{path}: belongs to another run or build; delete it to begin anew")
        return int.from_bytes(content[32:40], "little"), content[40:]
