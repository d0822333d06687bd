"""Recorded requests: what a user's own database was asked for, as a workload of the storage engines."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pmsim import arguments
from pmsim.errors import ConfigError

#: What a request may ask for. Their order is that of the core (oltp/requests.hpp).
OPERATIONS = ("read", "update", "insert", "delete", "scan", "read-modify-write")
#: Columns of a file of requests; the last three are optional.
COLUMNS = ("operation", "key", "bytes", "rows", "seconds")
#: How the core reads a request.
PACKED = np.dtype([("key", "<u8"), ("count", "<u4"), ("operation", "<u4")])
#: Picoseconds in 64 bits reach 106 days.
LONGEST_DAYS = 100
PS_PER_DAY = 86_400 * 10**12


@dataclass(frozen=True)
class Requests:
    """Requests in the order in which they were made.

    Attributes
    ----------
    packed : bytes
        As the core reads them, 16 bytes each: the rank of the key among all keys, rows or bytes, the operation.
    digest : str
        SHA-256 of `packed`.
    keys : int
        Different keys.
    existing : int
        Keys that exist at the start: their first request does not insert them.
    operations : mapping of str to int
        How many requests there are of each operation that occurs.
    times : array of int64 [ps] or None
        When each has come, ascending from 0, the first; None where the file does not say.
    """

    packed: bytes
    digest: str
    keys: int
    existing: int
    operations: Mapping[str, int]
    times: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        """Return how many requests there are."""
        return len(self.packed) // PACKED.itemsize

    @property
    def timed_digest(self) -> str:
        """SHA-256 of the requests and their times."""
        times = b"" if self.times is None else self.times.tobytes()
        return hashlib.sha256(self.packed + times).hexdigest()

    def arrivals(self, speed_percent: int) -> npt.NDArray[np.int64]:
        """Return when requests come [ps] that come as fast as they did, or in so many percent of that speed.

        Raises
        ------
        ConfigError : the file does not say when they came, or they would come over more than 100 days.
        """
        if self.times is None:
            raise ConfigError("the file does not say when requests came; add a column 'seconds'")
        span = int(self.times[-1]) * 100
        if span > LONGEST_DAYS * PS_PER_DAY * speed_percent:
            days = span / speed_percent / PS_PER_DAY
            raise ConfigError(
                f"at {speed_percent} % of their speed requests come over {days:.0f} days; choose at most "
                f"{LONGEST_DAYS}"
            )
        # The same as 100 * times / speed_percent, rounded down, within 64 bits.
        return self.times // speed_percent * 100 + self.times % speed_percent * 100 // speed_percent


def load_requests(path: str | Path) -> Requests:
    """Return the requests of a file.

    Parameters
    ----------
    path : str or Path
        CSV, may be compressed (.csv, .csv.gz, .csv.zst), or Parquet (.parquet); one row per request, in
        order. Columns: ``operation``, one of `OPERATIONS`; ``key``, a whole number or a text; optionally
        ``bytes``, how many bytes of the row are read or written, from its start (by default all), ``rows``,
        how many rows a scan reads at most, and ``seconds``, when the request has come, on any clock: a number,
        in Parquet also a timestamp.

    Raises
    ------
    ConfigError : ``file: column: problem; remedy``.
    """
    file = arguments.path("requests", path)
    try:
        stat = file.stat()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; name a CSV or Parquet file of requests") from None
    return _load(file, stat.st_mtime_ns, stat.st_size)


def requests_of(key: str, path: str) -> Requests:
    """Return the requests of the file that a parameter names.

    Raises
    ------
    ConfigError : ``key: problem; remedy``.
    """
    if not path:
        raise ConfigError(f"{key}: is missing; name a CSV or Parquet file of requests")
    try:
        return load_requests(path)
    except ConfigError as error:
        raise error.prefixed(key) from None


# A sweep asks once per point and more, and a file may have millions of rows.
@lru_cache(maxsize=4)
def _load(file: Path, _modified_ns: int, _size: int) -> Requests:
    from pmsim.requests_file import read  # Arrow takes long to import, and few runs ask

    return read(file)
