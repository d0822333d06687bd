"""Colours, fonts and axis titles that all figures share."""

import math
from collections.abc import Sequence
from typing import Any

from pmsim.plots.chains import chain_label
from pmsim.units import Quantity, format_value

#: Okabe and Ito's palette: told apart in print and by colour-blind readers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
DASHES = ("solid", "dash", "dot", "dashdot")
PATTERNS = ("", "/", "x", ".")
#: Published values that belong to no curve in particular.
MEASURED = "#444444"
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")

_PARAMETER_TITLES = {
    "threads": "threads",
    "access_size": "access size [B]",
    "region_size": "region size [B]",
    "fence_every": "data between fences [B]",
    "flush_every": "data between flushes [B]",
    "address_list": "addresses read from a list",
    "instructions": "instructions between accesses",
    "stride": "stride [B]",
    "alignment": "alignment [B]",
    "dimms": "PMem modules",
    "page_size": "page size [B]",
    "operation": "operation",
    "operations": "chain of operations",
    "pattern": "pattern",
    "memory": "memory",
    "mode": "mode",
    "platform": "platform",
    "platform.block_device": "block device",
    "rate": "arrivals [1/s]",
    "load_percent": "offered load [% of saturation]",
    "speed_percent": "speed [% of the recorded]",
    "timeout": "timeout [ps]",
    "crash_at": "crash at [ps]",
    "restart_after": "restart after [ps]",
    "duration": "duration [ps]",
    "segment": "segment [ps]",
}

#: Shorter on an axis than the meaning of the metric; the definition stands in the documentation.
_METRIC_TITLES = {"bandwidth_gb_s": "bandwidth [GB/s]", "operations_per_s": "operations per second"}
_VALUE_NAMES = {"dram": "DRAM", "pmem": "PMem", "ssd": "SSD"}
#: Their words say what they are about. Those of others do not: "none", "shared", "last".
_TELLING = frozenset(
    {
        *("algorithm", "changed", "engine", "fence", "memory", "operation", "pattern", "platform"),
        *("platform.block_device", "technique", "variant", "workload"),
    }
)
_WORDS = {**_VALUE_NAMES, "zipf": "Zipf exponent"}
#: Share of a category that separates it from the next one.
BAR_GAP = 0.2
SUBTITLE = {"size": 12, "color": "#555555"}

LAYOUT: dict[str, Any] = {
    "template": "simple_white",
    "font": {"family": "Helvetica, Arial, sans-serif", "size": 13},
    "colorway": list(COLORS),
    "hovermode": "closest",
    "legend": {"title": {"text": ""}, "itemwidth": 40, "orientation": "h", "yanchor": "top", "x": 0},
    "margin": {"l": 70, "r": 30, "t": 70, "b": 60},
}
AXIS: dict[str, Any] = {"showgrid": True, "gridcolor": "#E5E5E5", "ticks": "outside", "mirror": True}


#: What a column's name says of its unit; the longer endings first.
_UNITS = {
    **{"_bytes_per_s": "B/s", "_per_s": "1/s", "_bytes": "B", "_gib": "GiB", "_hz": "Hz", "_percent": "%"},
    **{"_ns": "ns", "_us": "us", "_ms": "ms", "_usd": "USD"},
}


#: What a legend writes with a unit of its size.
_WRITTEN = {"ps": Quantity.TIME, "Hz": Quantity.FREQUENCY, "B/s": Quantity.BANDWIDTH}


def color(index: int) -> str:
    """Return the colour of the n-th curve."""
    return COLORS[index % len(COLORS)]


def dash(index: int) -> str:
    """Return the n-th dash."""
    return DASHES[index % len(DASHES)]


def pattern(index: int) -> str:
    """Return the n-th pattern of bars."""
    return PATTERNS[index % len(PATTERNS)]


def marker(index: int) -> str:
    """Return the marker of the n-th set of measured values."""
    return MARKERS[index % len(MARKERS)]


def parameter_title(column: str) -> str:
    """Return the title of an axis that shows a parameter."""
    if column in _PARAMETER_TITLES:
        return _PARAMETER_TITLES[column]
    if column.startswith("groups."):
        _, number, name = column.split(".", 2)
        return f"{_PARAMETER_TITLES.get(name, name)} of group {number}"
    if column.startswith("platform."):
        section, name = column.removeprefix("platform.").split(".", 1)
        where, what = _VALUE_NAMES.get(section, section), parameter_title(name)
        return what if what.startswith(where) else f"{where} {what}"
    for suffix, unit in _UNITS.items():
        if column.endswith(suffix):
            return f"{_words(column.removesuffix(suffix))} [{unit}]"
    return f"{_words(column)} [B]" if _is_size(column) else _words(column)


def _is_size(column: str) -> bool:
    """Tell parameters in bytes from numbers of coroutines."""
    return column.endswith(("_size", "_capacity")) and not column.endswith("group_size")


def _words(column: str) -> str:
    return " ".join(_WORDS.get(word, word) for word in column.split("_"))


def metric_title(column: str, otherwise: str) -> str:
    """Return the title of an axis that shows a metric."""
    return _METRIC_TITLES.get(column, otherwise)


#: Units of sizes on axes, largest first, and how many steps a linear axis of them has, about.
_SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_SIZE_STEPS = 8


def log_ticks(values: Sequence[float]) -> list[float]:
    """Return ticks 1, 2, 5, 10, ... around positive values; powers of ten only where they span four decades."""
    positive = [value for value in values if value > 0]
    if not positive:
        return []
    first, last = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    steps = (1, 2, 5) if last - first <= 4 else (1,)
    return [step * 10.0**power for power in range(first, last + 1) for step in steps]


def size_ticks(values: Sequence[float]) -> tuple[list[float], list[str], str]:
    """Return ticks around bytes on a linear axis, what stands at them, and the unit that this is in."""
    least, most = min(values), max(values)
    step = 2 ** max(0, math.ceil(math.log2(max(most - least, most / 8, 1) / _SIZE_STEPS)))
    ticks = [float(tick * step) for tick in range(int(least // step), int(-(-most // step)) + 1)]
    unit, factor = next(((unit, factor) for unit, factor in _SIZES if most >= factor), ("B", 1))
    return ticks, [f"{tick / factor:,.12g}" for tick in ticks], unit


def value_label(column: str, value: object) -> str:
    """Return how a legend or a panel names a value."""
    name, _, unit = parameter_title(column).rstrip("]").partition(" [")
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    separator = ": " if column.startswith("groups.") else " "
    if isinstance(value, int | float):
        size = _is_size(column) or column in ("fence_every", "flush_every", "stride", "alignment")
        if unit in _WRITTEN:
            return f"{name}{separator}{format_value(int(value), _WRITTEN[unit])}"
        if unit == "GiB":
            exact = _bytes(round(value * 2**30))
            return f"{name}{separator}{f'{value:.4g} GiB' if exact.endswith(' B') or value >= 1 else exact}"
        shown = _bytes(int(value)) if size or unit == "B" else f"{value:g} {unit}".rstrip()
        return f"{name}{separator}{shown}"
    if column == "operations":
        return chain_label(str(value))
    text = _VALUE_NAMES.get(str(value), str(value))
    return text if column in _TELLING else f"{name}: {text}"


def tick_label(column: str, value: float) -> str:
    """Return what stands at a tick of a logarithmic axis: sizes have units, from 64 B to 8 GiB."""
    return _bytes(int(value)) if tick_is_size(column) else f"{value:,.12g}"


def tick_is_size(column: str) -> bool:
    """Return whether the axis of a column shows bytes."""
    return parameter_title(column).endswith("[B]")


def _bytes(size: int) -> str:
    for unit, factor in _SIZES:
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"
