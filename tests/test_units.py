"""Units: exact both ways, and nothing coerced."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsim.errors import ConfigError
from pmsim.units import Quantity, format_value, parse

UNITS = {
    Quantity.TIME: {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12},
    Quantity.SIZE: {"B": 1, "kB": 10**3, "KiB": 2**10, "MiB": 2**20, "GB": 10**9, "GiB": 2**30, "TiB": 2**40},
    Quantity.FREQUENCY: {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9},
    Quantity.BANDWIDTH: {"B/s": 1, "MB/s": 10**6, "GB/s": 10**9, "GiB/s": 2**30},
}


@pytest.mark.parametrize(
    ("text", "quantity", "expected"),
    [
        ("10 GiB", Quantity.SIZE, 10 * 2**30),
        ("4KiB", Quantity.SIZE, 4096),
        ("35.75 MiB", Quantity.SIZE, 37_486_592),
        (0x1000, Quantity.SIZE, 4096),
        ("0x1000", Quantity.SIZE, 4096),
        ("4096", Quantity.SIZE, 4096),
        ("300 ns", Quantity.TIME, 300_000),
        ("37.5 ns", Quantity.TIME, 37_500),
        ("0.0035 ns", Quantity.TIME, None),
        ("1e3 ns", Quantity.TIME, 1_000_000),
        ("2.4 GHz", Quantity.FREQUENCY, 2_400_000_000),
        ("1.5 GB/s", Quantity.BANDWIDTH, 1_500_000_000),
        (24, Quantity.COUNT, 24),
        (True, Quantity.FLAG, 1),
    ],
)
def test_a_value_is_exact_or_refused(text: object, quantity: Quantity, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(ConfigError, match="not a whole number"):
            parse(text, quantity)
    else:
        assert parse(text, quantity) == expected


@pytest.mark.parametrize(
    ("value", "quantity", "message"),
    [
        (300, Quantity.TIME, "lacks a unit"),
        ("300", Quantity.TIME, "lacks a unit"),
        (2_400_000_000, Quantity.FREQUENCY, "lacks a unit"),
        ("300 GiB", Quantity.TIME, "is a size, not a time"),
        ("300 ns", Quantity.SIZE, "is a time, not a size"),
        ("1 GB", Quantity.BANDWIDTH, "is a size, not a bandwidth"),
        ("0.3 B", Quantity.SIZE, "not a whole number of B; write for example '1 B'$"),
        ("7.9 GiB", Quantity.SIZE, "write for example '8090 MiB'$"),
        ("1.23456789012 GB", Quantity.SIZE, "write for example '1235 MB'$"),
        ("0.3", Quantity.SIZE, "write for example '1 B'$"),
        ("1.0123 KiB/s", Quantity.BANDWIDTH, "write for example '1037 B/s'$"),
        ("12.34567 ns", Quantity.TIME, "write for example '12346 ps'$"),
        ("2.3333333333 GHz", Quantity.FREQUENCY, "write for example '2333 MHz'$"),
        ("-4 KiB", Quantity.SIZE, "negative"),
        ("٦٤ KiB", Quantity.SIZE, "is not a size"),
        (-1, Quantity.COUNT, "negative"),
        (True, Quantity.SIZE, "true is not a size"),
        (1, Quantity.FLAG, "not a flag"),
        ("true", Quantity.FLAG, "not a flag"),
        (4.0, Quantity.COUNT, "4.0 is not a count"),
        (4096.0, Quantity.SIZE, "4096.0 is not a size"),
        ("4", Quantity.COUNT, "without quotes"),
        ("4 KB", Quantity.SIZE, "ambiguous"),
        ("4 kib", Quantity.SIZE, "did you mean 'KiB'"),
        ("12abc", Quantity.SIZE, "unknown unit 'abc'"),
        ("abc", Quantity.SIZE, "is not a size"),
        ("", Quantity.TIME, "is not a time"),
        ("1e99 s", Quantity.TIME, "too large"),
        ("1e999999999 s", Quantity.TIME, "is not a time"),
        ([1], Quantity.COUNT, "is not a count"),
        (None, Quantity.SIZE, "None is not a size"),
    ],
)
def test_a_wrong_value_says_what_to_write(value: object, quantity: Quantity, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        parse(value, quantity)


@given(st.sampled_from(sorted(UNITS)), st.integers(0, 2**63 - 1))
def test_formatting_and_parsing_are_inverse(quantity: Quantity, value: int) -> None:
    assert parse(format_value(value, quantity), quantity) == value


@given(st.data(), st.sampled_from(sorted(UNITS)), st.integers(0, 10**6), st.integers(0, 3))
def test_decimal_fractions_are_exact(data: st.DataObject, quantity: Quantity, digits: int, places: int) -> None:
    unit = data.draw(st.sampled_from(sorted(UNITS[quantity])))
    number = Fraction(digits, 10**places)
    exact = number * UNITS[quantity][unit]
    text = f"{digits // 10**places}.{digits % 10**places:0{places}d} {unit}" if places else f"{digits} {unit}"
    if exact.denominator == 1:
        assert parse(text, quantity) == exact
    else:
        with pytest.raises(ConfigError):
            parse(text, quantity)


@given(st.text(max_size=20), st.sampled_from(list(Quantity)))
def test_any_text_is_a_value_or_a_config_error(text: str, quantity: Quantity) -> None:
    with contextlib.suppress(ConfigError):
        assert parse(text, quantity) >= 0
