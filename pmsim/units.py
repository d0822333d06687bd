"""Exact quantities: text with a unit to an integer in base units, and back.

Base units are picoseconds, bytes, hertz and bytes per second. Nothing is rounded or coerced: a value that is
not a whole number of base units is an error.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from pmsim.errors import ConfigError
from pmsim.hints import nearest


class Quantity(StrEnum):
    """What a parameter measures; the names are those of the native table of fields."""

    TIME = "time"
    SIZE = "size"
    FREQUENCY = "frequency"
    BANDWIDTH = "bandwidth"
    COUNT = "count"
    FLAG = "flag"


@dataclass(frozen=True)
class Measures:
    """What a parameter of a model measures; stands beside its type."""

    quantity: Quantity


_TIME = {
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "µs": 10**6,
    "ms": 10**9,
    "s": 10**12,
    "min": 60 * 10**12,
    "h": 3600 * 10**12,
}
_SIZE = {
    "B": 1,
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("kMGT", start=1)},
}
_FREQUENCY = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
_BANDWIDTH = {f"{unit}/s": factor for unit, factor in _SIZE.items()}
_UNITS: dict[Quantity, dict[str, int]] = {
    Quantity.TIME: _TIME,
    Quantity.SIZE: _SIZE,
    Quantity.FREQUENCY: _FREQUENCY,
    Quantity.BANDWIDTH: _BANDWIDTH,
}
BASE_UNIT = {
    Quantity.TIME: "ps",
    Quantity.SIZE: "B",
    Quantity.FREQUENCY: "Hz",
    Quantity.BANDWIDTH: "B/s",
    Quantity.COUNT: "",
    Quantity.FLAG: "",
}
_EXAMPLE = {
    Quantity.TIME: '"300 ns"',
    Quantity.SIZE: '4096, 0x1000 or "4 KiB"',
    Quantity.FREQUENCY: '"2.4 GHz"',
    Quantity.BANDWIDTH: '"1.5 GB/s"',
    Quantity.COUNT: "a whole number such as 4",
    Quantity.FLAG: "true or false",
}

# Longer numbers than these are slips, and an exponent of a billion would exhaust the memory.
_NUMBER = re.compile(r"([+-]?)(\d{1,30}(?:_\d{1,30})*(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)\s*(\S*)", re.ASCII)
_HEXADECIMAL = re.compile(r"0[xX]([0-9a-fA-F]{1,16})")
_LARGEST = 2**63 - 1


def parse(value: object, quantity: Quantity) -> int:
    """Parse a value with its unit.

    Parameters
    ----------
    value : int, bool or str
        ``"10 GiB"``, ``"300 ns"``, ``"2.4 GHz"``, ``"1.5 GB/s"``; a size may also be a bare number of bytes,
        decimal or hexadecimal; a count is a bare integer; a flag is a boolean.
    quantity : Quantity
        What the value measures.

    Returns
    -------
    int [ps, B, Hz, B/s or count]

    Raises
    ------
    ConfigError : wrong type or dimension, missing unit, negative, or not a whole number of base units.
    """
    if quantity is Quantity.FLAG:
        if isinstance(value, bool):
            return int(value)
        raise ConfigError(f"{_shown(value)} is not a flag; write true or false")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ConfigError(f"{_shown(value)} is not a {quantity}; write {_EXAMPLE[quantity]}")
    if isinstance(value, int):
        number = _bare_integer(value, quantity)
    elif quantity is Quantity.COUNT:
        raise ConfigError(f"{_shown(value)} is text, not a count; write {_EXAMPLE[quantity]}, without quotes")
    else:
        number = _text(value, quantity)
    if number < 0:
        raise ConfigError(f"{_shown(value)} is negative; a {quantity} is at least 0")
    if number > _LARGEST:
        raise ConfigError(
            f"{_shown(value)} is too large; the largest value is 2^63 - 1 {BASE_UNIT[quantity]}".rstrip()
        )
    return number


def _bare_integer(value: int, quantity: Quantity) -> int:
    if quantity in (Quantity.SIZE, Quantity.COUNT):
        return value
    raise ConfigError(f"{value} lacks a unit; write a {quantity} like {_EXAMPLE[quantity]}")


def _text(value: str, quantity: Quantity) -> int:
    text = value.strip()
    if quantity is Quantity.SIZE and (hexadecimal := _HEXADECIMAL.fullmatch(text)):
        return int(hexadecimal[1], 16)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ConfigError(f"{_shown(value)} is not a {quantity}; write {_EXAMPLE[quantity]}")
    sign, digits, unit = match.groups()
    exact = Fraction(digits.replace("_", "")) * _factor(value, unit, quantity)
    if exact.denominator != 1:
        raise ConfigError(
            f"{_shown(value)} is not a whole number of {BASE_UNIT[quantity]}; "
            f"write for example '{_whole(abs(exact), unit, quantity)}'"
        )
    return -exact.numerator if sign == "-" else exact.numerator


def _whole(amount: Fraction, unit: str, quantity: Quantity) -> str:
    """Write about the amount in whole units of the next smaller kind: 7.9 GiB are 8090 MiB."""
    units = _UNITS[quantity]
    binary = "i" in unit
    smaller = [
        (factor, name)
        for name, factor in units.items()
        if factor < units.get(unit, 1) and (factor == 1 or ("i" in name) == binary) and "µ" not in name
    ]
    factor, name = max(smaller, default=(1, BASE_UNIT[quantity]))
    return f"{max(round(amount / factor), 1)} {name}"


def _factor(value: str, unit: str, quantity: Quantity) -> int:
    units = _UNITS[quantity]
    if unit in units:
        return units[unit]
    if not unit:
        if quantity is Quantity.SIZE:
            return 1
        raise ConfigError(f"{_shown(value)} lacks a unit; write a {quantity} like {_EXAMPLE[quantity]}")
    if unit in ("KB", "KB/s"):
        raise ConfigError(f"{_shown(value)}: 'KB' is ambiguous; write 'kB' for 1000 or 'KiB' for 1024 bytes")
    for other, known in _UNITS.items():
        if unit in known:
            raise ConfigError(f"{_shown(value)} is a {other}, not a {quantity}; write {_EXAMPLE[quantity]}")
    raise ConfigError(f"{_shown(value)}: unknown unit '{unit}'; {nearest(unit, units)}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return "'" + (value if len(value) <= 60 else value[:57] + "...") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= 60 else shown[:57] + "..."


def format_value(value: int, quantity: Quantity) -> str:
    """Write a value in base units so that a reader likes it and `parse` gets the same value back.

    Parameters
    ----------
    value : int [ps, B, Hz, B/s or count]
        The value in base units.
    quantity : Quantity
        What it measures.
    """
    if quantity is Quantity.FLAG:
        return "true" if value else "false"
    if quantity is Quantity.COUNT:
        return str(value)
    candidates = [
        f"{_decimal(Fraction(value, factor))} {unit}"
        for unit, factor in _UNITS[quantity].items()
        if factor <= max(value, 1) and _terminates(Fraction(value, factor))
    ]
    # The shortest is the one that people would have written: "16 KiB" rather than "16.384 kB".
    return min(candidates, key=lambda text: (len(text), "µ" in text))


def number(value: float) -> str:
    """Write a number with four digits; a large one whole, as an exponent is hard to read."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _terminates(number: Fraction) -> bool:
    return 10**3 * number == int(10**3 * number) or number.denominator == 1


def _decimal(number: Fraction) -> str:
    thousandths = int(number * 1000)
    whole, rest = divmod(thousandths, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
