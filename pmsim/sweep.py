"""Sweeps: axes of values, as lists or as linear and logarithmic ranges, crossed or zipped."""

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.units import Quantity, format_value, parse

#: More points than this are a slip, not a sweep.
LARGEST_SWEEP = 1_000_000
_RANGE_KEYS = ("from", "to", "steps", "scale")
_MODES = ("cross", "zip")

#: Finds out what an axis measures: None for choices and texts; raises ConfigError for an unknown axis.
QuantityOf = Callable[[str], Quantity | None]


def flatten(sweep: Mapping[str, Any], prefix: str = "", *, of: str = "sweep") -> dict[str, Any]:
    """Return a sweep with dotted keys: TOML reads ``groups.2.threads = [1, 5]`` as nested tables.

    ``of`` names the table in messages.
    """
    flat: dict[str, Any] = {}
    for key, value in sweep.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and not any(part in value for part in _RANGE_KEYS):
            if not value:
                raise ConfigError(f"{of}.{name}: is empty; give it a list of values or remove it")
            flat |= flatten(value, f"{name}.", of=of)
        else:
            flat[name] = value
    return flat


def axes_of(sweep: Mapping[str, Any], quantity_of: QuantityOf) -> tuple[dict[str, list[Any]], str]:
    """Expand a flat sweep.

    Parameters
    ----------
    sweep : mapping
        Axis to a list or to a range ``{from, to, steps, scale}``; and optionally ``mode`` = "cross" or "zip".
        ``mode`` as a list is an axis over a parameter of that name.
    quantity_of : callable
        What each axis measures.

    Returns
    -------
    axes : dict
        Axis to its values, in the order of the file.
    mode : str
        "cross" or "zip".

    Raises
    ------
    ConfigError : an empty axis, duplicates, a range that does not come out even, lists that do not zip.
    """
    given = sweep.get("mode")
    mode = given if isinstance(given, str) else "cross"
    if mode not in _MODES:
        raise ConfigError(f"sweep.mode: unknown mode '{mode}'; {nearest(mode, _MODES)}")
    axes: dict[str, list[Any]] = {}
    for key, value in sweep.items():
        if key == "mode" and isinstance(value, str):
            continue
        try:
            # Zipped axes may repeat a value beside others that differ.
            axes[key] = _values(value, quantity_of(key), repeats=mode == "zip")
        except ConfigError as error:
            raise ConfigError(f"sweep.{key}: {error}") from None
    if mode == "zip":
        _check_equal_lengths(axes)
        meant = {key: [_meant(value, quantity_of(key)) for value in values] for key, values in axes.items()}
        _check_distinct(list(combinations(axes, mode)), list(combinations(meant, mode)))
    return axes, mode


def combinations(axes: Mapping[str, list[Any]], mode: str) -> Iterator[dict[str, Any]]:
    """Yield what each point sets, in a fixed order: the last axis turns fastest."""
    names = list(axes)
    if mode == "zip" and names:
        rows: Iterator[tuple[Any, ...]] = zip(*axes.values(), strict=True)
    else:
        count = 1
        for values in axes.values():
            count *= len(values)
        if count > LARGEST_SWEEP:
            raise ConfigError(f"sweep: has {count} points; choose at most {LARGEST_SWEEP}")
        rows = itertools.product(*axes.values())
    for row in rows:
        yield dict(zip(names, row, strict=True))


def _values(value: Any, quantity: Quantity | None, *, repeats: bool) -> list[Any]:
    if isinstance(value, Mapping):
        return _range(value, quantity)
    if not isinstance(value, list):
        raise ConfigError(f"{shown(value)} is not a list; write [a, b] or {{from = a, to = b, steps = n}}")
    if not value:
        raise ConfigError("is empty; give it at least one value or remove it")
    seen: dict[Any, Any] = {}  # lists that programs write are long
    tables: list[Any] = []  # machines, which are few
    for member in [] if repeats else value:
        meant = _meant(member, quantity)
        if not isinstance(meant, Hashable):
            if meant in tables:
                raise ConfigError(f"holds {shown(member)} twice; remove one")
            tables.append(meant)
            continue
        key = (type(meant), meant)  # to Python true is 1
        if key in seen:
            twice = "twice" if seen[key] == member else f"and {shown(seen[key])}, which are the same"
            raise ConfigError(f"holds {shown(member)} {twice}; remove one")
        seen[key] = member
    return list(value)


def _meant(value: Any, quantity: Quantity | None) -> Any:
    """Return what a value says, whatever its unit; what is none of its quantity says itself."""
    if quantity is None or quantity is Quantity.FLAG:
        return value
    try:
        return parse(value, quantity)
    except ConfigError:
        return value


def _range(table: Mapping[str, Any], quantity: Quantity | None) -> list[Any]:
    for key in table:
        if key not in _RANGE_KEYS:
            raise ConfigError(f"{key}: unknown key of a range; {nearest(key, _RANGE_KEYS)}")
    for key in ("from", "to", "steps"):
        if key not in table:
            raise ConfigError(f"{key}: missing in the range; write {{from = a, to = b, steps = n}}")
    if quantity is None or quantity is Quantity.FLAG:
        raise ConfigError("has no ranges, only choices; write a list of them")
    steps = _labelled("steps", table["steps"], Quantity.COUNT)
    first = _labelled("from", table["from"], quantity)
    last = _labelled("to", table["to"], quantity)
    if not 2 <= steps <= LARGEST_SWEEP:
        raise ConfigError(f"steps: {steps} values; choose 2 to {LARGEST_SWEEP}")
    if first >= last:
        raise ConfigError("to: is not above from; write the smaller value first")
    scale = table.get("scale", "linear")
    if scale == "linear":
        numbers = _linear(first, last, steps)
    elif scale == "log":
        numbers = _logarithmic(first, last, steps)
    else:
        raise ConfigError(f"scale: {shown(scale)} is not a scale; write 'linear' or 'log'")
    if quantity in (Quantity.COUNT, Quantity.SIZE):
        return list(numbers)
    return [format_value(number, quantity) for number in numbers]


def _labelled(key: str, value: object, quantity: Quantity) -> int:
    try:
        return parse(value, quantity)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None


def _linear(first: int, last: int, steps: int) -> list[int]:
    step = Fraction(last - first, steps - 1)
    if step.denominator != 1:
        raise ConfigError(f"steps: {steps} do not divide the range evenly; choose others, or write a list")
    return [first + index * step.numerator for index in range(steps)]


def _logarithmic(first: int, last: int, steps: int) -> list[int]:
    if first == 0:
        raise ConfigError("from: is 0, which a logarithmic range cannot reach; choose at least 1")
    with localcontext() as context:
        context.prec = 50  # Decimal, not float: the same values on every machine
        ratio = Decimal(last) / Decimal(first)
        exact = [Decimal(first) * ratio ** (Decimal(index) / (steps - 1)) for index in range(steps)]
        numbers = [int(number.to_integral_value()) for number in exact]
    numbers[-1] = last
    if len(set(numbers)) < steps:
        raise ConfigError(f"steps: {steps} give the same value twice; choose fewer steps")
    return numbers


def _check_equal_lengths(axes: Mapping[str, list[Any]]) -> None:
    lengths = {name: len(values) for name, values in axes.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ConfigError(f"sweep.mode: 'zip' needs axes of equal length, but {counts}; even them out")


def _check_distinct(points: list[dict[str, Any]], meant: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for point, values in zip(points, meant, strict=True):
        if (key := repr(values)) in seen:
            text = ", ".join(f"{name} = {shown(value)}" for name, value in point.items())
            raise ConfigError(f"sweep.mode: 'zip' has the point {text} twice; remove one")
        seen.add(key)
