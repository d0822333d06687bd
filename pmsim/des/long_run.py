"""Runs of hours: in segments, in bounded memory, interruptible and resumable."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pmsim.des.load import NativeLoad, Tenant
from pmsim.des.server import Server
from pmsim.des.times import Time, picoseconds
from pmsim.errors import ConfigError
from pmsim.output_place import place_of
from pmsim.standing import stretch
from pmsim.versions import native_build

_MAGIC = b"pmsim-run-2\n"
_DIGEST = 32


class LongRun:
    """A native load in segments, whose state between two of them is a file.

    At the end of each segment the workers finish what they do, and the next segment begins on a fresh server:
    as ``make_server`` makes it. That costs some microseconds of simulated time per
    segment, is the same whether or not the run is interrupted, and keeps the state small: queue, timers,
    random numbers, statistics.

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
        self._path = None if state is None else place_of(Path(state))
        self._before: Counter[str] = Counter()
        self.segments, saved = 0, b""
        if self._segment < 1:
            raise ConfigError("segment: must be longer than nothing")
        found = _read(self._path) if self._path is not None and self._path.exists() else None
        if found is not None:
            self.segments = int(found[1]["segments"])
            self._before.update(found[1]["counters"])
            saved = found[2]
        server = self._make_server(self.segments)
        key = (self._tenants, self._segment, seed, server.description, native_build())
        self._key = hashlib.sha256(repr(key).encode()).digest()
        if found is not None and found[0] != self._key:
            raise ConfigError(f"{self._path}: belongs to another run or build; delete it to begin anew")
        self._load = self._load_on(server, saved)

    @property
    def now(self) -> int:
        """The time that has been simulated [ps]."""
        return self._load.now

    @property
    def load(self) -> NativeLoad:
        """The load, for its statistics."""
        return self._load

    def counters(self) -> dict[str, int]:
        """Return the counters of the machine, summed over the segments."""
        total = self._before.copy()
        total.update(self._load.server.session.counters(self._load.now))
        total.subtract(self._earlier)
        return dict(total)

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
            with stretch(self.segments * self._segment / end, (self.segments + 1) * self._segment / end):
                self._load.run(max(self._load.now, (self.segments + 1) * self._segment))
            saved = self._load.drain()
            self._before = Counter(self.counters())
            self.segments += 1
            self._write(saved)
            self._load.server.close()
            self._load = self._load_on(self._make_server(self.segments), saved)

    def _load_on(self, server: Server, saved: bytes) -> NativeLoad:
        load = NativeLoad(server, self._tenants, seed=self._seed)
        if saved:
            load.restore(saved)
        # To the clock of a fresh server its workers have been idle for all that was before.
        self._earlier = server.session.counters(load.now)
        return load

    def _write(self, saved: bytes) -> None:
        if self._path is None:
            return
        progress = json.dumps({"segments": self.segments, "counters": self._before}).encode()
        content = self._key + len(progress).to_bytes(8, "little") + progress + saved
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(_MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, self._path)
        except OSError as error:
            raise ConfigError(
                f"{self._path}: cannot be written: {error.strerror}; choose another file"
            ) from None


def _read(path: Path) -> tuple[bytes, dict[str, Any], bytes]:
    """Return the key of the run, its progress, and the state of its load."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; delete it to begin anew") from None
    digest, content = data[len(_MAGIC) : len(_MAGIC) + _DIGEST], data[len(_MAGIC) + _DIGEST :]
    if not data.startswith(_MAGIC) or hashlib.sha256(content).digest() != digest:
        raise ConfigError(f"{path}: is no state of a run, or damaged; delete it to begin anew")
    length = int.from_bytes(content[_DIGEST : _DIGEST + 8], "little")
    end = _DIGEST + 8 + length
    return content[:_DIGEST], json.loads(content[_DIGEST + 8 : end]), content[end:]
