"""When recorded requests have come: seconds of any clock as whole picoseconds."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.requests import LONGEST_DAYS, PS_PER_DAY

_PS_PER_SECOND = 10**12
#: Seconds that are a whole number of picoseconds: 17 digits before the point are enough for any clock.
_DECIMAL = r"^-?\d{1,17}(\.\d{1,12})?$"
_TIME = pa.decimal128(30, 12)
#: Picoseconds of a timestamp's unit.
_TIMESTAMP = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3}


def times_since_first(file: Path, column: Any) -> npt.NDArray[np.int64]:
    """Return when requests have come [ps], ascending from 0, the first.

    Parameters
    ----------
    file : Path
        Where they are from, for messages.
    column : pyarrow.ChunkedArray
        Seconds, on any clock: numbers, texts with numbers, or timestamps; without gaps. Exact in whole
        picoseconds but for floating-point numbers.

    Raises
    ------
    ConfigError : ``file: seconds: problem; remedy``.
    """
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _seconds(file, column)
    kind, unit = column.type, _PS_PER_SECOND
    if pa.types.is_timestamp(kind):
        column, unit = column.cast(pa.int64()), _TIMESTAMP[kind.unit]
    elif pa.types.is_decimal(kind):
        try:
            column = column.cast(_TIME)
        except pa.ArrowException:
            raise ConfigError(f"{file}: seconds: finer than picoseconds; write at most 12 decimals") from None
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ConfigError(f"{file}: seconds: is of type {kind}; write numbers, or timestamps")
    times = _since_first(file, column, unit)
    earlier = np.flatnonzero(times[1:] < times[:-1])
    if earlier.size:
        row = int(earlier[0]) + 1
        raise ConfigError(f"{file}: seconds: request {row + 1} comes before request {row}; sort them by time")
    return times


def _since_first(file: Path, column: Any, unit: int) -> npt.NDArray[np.int64]:
    """Return how long after the first each time is [ps]; `unit`: picoseconds of a time's 1."""
    rough = column.cast(pa.float64(), safe=False).to_numpy()
    if not np.isfinite(rough).all():
        row = int(np.flatnonzero(~np.isfinite(rough))[0])
        raise ConfigError(f"{file}: seconds: request {row + 1}: {rough[row]} is no time; write a number")
    if (days := (rough.max() - rough.min()) * unit / PS_PER_DAY) > LONGEST_DAYS:
        raise ConfigError(
            f"{file}: seconds: the requests are spread over {days:.0f} days; "
            f"give those of at most {LONGEST_DAYS}"
        )
    if pa.types.is_floating(column.type):
        times = np.rint((rough - rough[0]) * unit)
    elif pa.types.is_integer(column.type):
        times = column.to_numpy().astype(np.int64) * np.int64(unit)
    else:
        # The lower words of 128 bits: differences fit them, even where the times, in picoseconds, do not.
        decimals = column.combine_chunks()
        times = np.frombuffer(decimals.buffers()[1], "<i8")[2 * decimals.offset :: 2][: len(decimals)]
    since_first: npt.NDArray[np.int64] = (times - times[0]).astype(np.int64)
    return since_first


def _seconds(file: Path, column: Any) -> Any:
    """Return texts as numbers: exactly where all are decimals, else as near as doubles are."""
    if pc.all(pc.match_substring_regex(column, _DECIMAL)).as_py():
        return column.cast(_TIME)
    try:
        return column.cast(pa.float64())
    except pa.ArrowException:
        row = next(row for row in range(len(column)) if not _is_number(column.slice(row, 1)))
        text = shown(column[row].as_py())
        raise ConfigError(f"{file}: seconds: request {row + 1}: {text} is no time; write a number") from None


def _is_number(column: Any) -> bool:
    try:
        column.cast(pa.float64())
    except pa.ArrowException:
        return False
    return True
