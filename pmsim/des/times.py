"""Virtual time in SimPy: whole picoseconds as plain Python integers, exact or refused."""

import operator
from typing import Final, SupportsIndex

from pmsim.errors import ConfigError
from pmsim.units import Quantity, parse

#: One nanosecond, microsecond, millisecond, second [ps].
NS: Final = 10**3
US: Final = 10**6
MS: Final = 10**9
S: Final = 10**12
#: A time that never comes [ps]: that of the native core.
NEVER: Final = 2**63 - 1

#: What may stand for a duration or a time: picoseconds, or a text with a unit.
Time = SupportsIndex | float | str


def picoseconds(value: Time) -> int:
    """Return a duration or time as a plain integer.

    Parameters
    ----------
    value : int, NumPy integer, float or str
        Picoseconds, or a text with its unit such as ``"2.5 us"``. A float must be a whole number.

    Returns
    -------
    int [ps]

    Raises
    ------
    ConfigError : not a number, negative, not a whole number of picoseconds, or beyond 2**63 - 2.
    """
    if type(value) is int:
        exact = value
    elif isinstance(value, str):
        exact = parse(value, Quantity.TIME)
    elif isinstance(value, bool):
        raise ConfigError(f'{value} is not a time; write picoseconds or a text such as "300 ns"')
    elif isinstance(value, float):  # numpy.float64 is one, too
        if not value.is_integer():
            raise ConfigError(
                f"{value!r} is not a whole number of picoseconds; write {round_hint(value)}, "
                'or a text such as "0.3 ns"'
            )
        exact = int(value)
    else:
        try:
            exact = operator.index(value)
        except TypeError:
            raise ConfigError(
                f'{value!r} is not a time; write picoseconds or a text such as "300 ns"'
            ) from None
    if not 0 <= exact < NEVER:
        raise ConfigError(f"{exact} ps is out of range; a time is between 0 and 2**63 - 2")
    return exact


def duration(key: str, value: Time, least: int = 0) -> int:
    """Return a duration [ps] of at least so much, or raise a ConfigError that names its key."""
    try:
        time = picoseconds(value)
    except ConfigError as error:
        raise error.prefixed(key) from None
    if time < least:
        raise ConfigError(f"{key}: {time} ps is too short; choose at least {least} ps")
    return time


def round_hint(value: float) -> str:
    """Return how to write a float that is no whole number."""
    return f"round({value!r})" if value == value and abs(value) != float("inf") else "a finite number"
