"""Colours, fonts and axis titles that all figures share."""

from typing import Any

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
    "fence_every": "bytes between fences [B]",
    "stride": "stride [B]",
    "dimms": "PMem modules",
    "page_size": "page size [B]",
    "operation": "operation",
    "operations": "chain of operations",
    "pattern": "pattern",
    "memory": "memory",
    "mode": "mode",
    "platform": "platform",
}

LAYOUT: dict[str, Any] = {
    "template": "simple_white",
    "font": {"family": "Helvetica, Arial, sans-serif", "size": 13},
    "colorway": list(COLORS),
    "hovermode": "closest",
    "legend": {"title": {"text": ""}, "itemsizing": "constant", "orientation": "h", "yanchor": "top", "x": 0},
    "margin": {"l": 70, "r": 30, "t": 70, "b": 60},
}
AXIS: dict[str, Any] = {"showgrid": True, "gridcolor": "#E5E5E5", "ticks": "outside", "mirror": True}


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
    for suffix, unit in (("_ns", "ns"), ("_bytes_per_s", "B/s"), ("_bytes", "B"), ("_hz", "Hz")):
        if column.endswith(suffix):
            return f"{column.removesuffix(suffix).removeprefix('platform.').replace('_', ' ')} [{unit}]"
    return column.replace("_", " ")


def value_label(column: str, value: object) -> str:
    """Return how a legend or a panel names a value."""
    if isinstance(value, bool):
        return f"{column.replace('_', ' ')} {'on' if value else 'off'}"
    if isinstance(value, int | float):
        return f"{column.replace('_', ' ')} {_bytes(int(value)) if column.endswith('_size') else f'{value:g}'}"
    return str(value)


def _bytes(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"
