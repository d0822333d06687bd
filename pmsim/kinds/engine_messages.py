"""What the engines refuse, in the user's terms: by the names of the parameters, with sizes of the full size."""

import re
from typing import TYPE_CHECKING

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.kinds.types import LINE_BYTES
from pmsim.units import Quantity, format_value

if TYPE_CHECKING:
    from pmsim.kinds.engine_options import EngineParameters

#: What the engines call the parameters that are sizes.
_PARAMETERS = {
    "dram_bytes": "dram_capacity",
    "pmem_bytes": "pmem_capacity",
    "ssd_bytes": "ssd_capacity",
    "page_bytes": "page_size",
    "log_bytes": "log_size",
}
_NAMES = re.compile("|".join(_PARAMETERS))
#: Of these a page stays as large as it is.
_SCALED = tuple(name for name in _PARAMETERS.values() if name != "page_size")

#: How the engines begin a message about one of their options.
_OPTION = re.compile(r"^(?:engine [\w-]+: )?(\w+)(?: = (\d+))?: ")
_INSIDE = re.compile(rf"\b({'|'.join(_SCALED)}) = (\d+)")
_LEAST = re.compile(r"(?<=; choose at least )\d+")
_FULL = re.compile(r"^(?:engine [\w-]+: )?the data do not fit into (\w+) = \d+; raise it$")
_HOME_FULL = re.compile(r"^the home tier of the pages is full: .*$")
_FEW_PAGES = re.compile(
    r"^(\w+): holds \d+ pages of (\d+) bytes with their headers; give it room for (\d+)$",
)
#: Numbers that a scale has made smaller; not sizes of pages and nodes, which stand behind "of".
_SCALED_NUMBER = re.compile(r"(?<! of )(?<!\d)\d+ (?:bytes|of \d+ bytes|pages|leaves|changes)\b")

#: A region that does not fit beside the others: one of the capacities is too large.
REGION = re.compile(r"^region '([^']*)' on (dram|pmem|block): ")
CAPACITIES = {"dram": "dram_capacity", "pmem": "pmem_capacity", "block": "ssd_capacity"}
_LOGS = ("write-ahead log", "undo log")


def in_parameters(error: ConfigError, parameters: "EngineParameters | None" = None) -> ConfigError:
    """Return an error of an engine in the names of the parameters.

    Parameters
    ----------
    error : ConfigError
        As the core raised it.
    parameters : EngineParameters, optional
        What the engine was made of: sizes are then those that were given, at full size. What a message counts
        besides is counted at scale, and it says so.
    """
    text = _NAMES.sub(lambda match: _PARAMETERS[match[0]], str(error))
    if parameters is None:
        text = _OPTION.sub(lambda match: _option(match[1], match[2] and _as_it_is(match[1], match[2])), text)
    else:
        text = _in_full_size(text, parameters)
    return type(error)(text)


def _in_full_size(text: str, parameters: "EngineParameters") -> str:
    def given(name: str, otherwise: str) -> str:
        return _size(getattr(parameters, name)) if name in _SCALED else _as_it_is(name, otherwise)

    if few := _FEW_PAGES.match(text):
        return _few_pages(few, parameters)
    text, leasts = _LEAST.subn(lambda match: _size(_before_scaling(int(match[0]), parameters)), text)
    if leasts and parameters.factor != 1:
        # A batch or a page stays as large as it is: who plans full size needs no more than the scale asks for.
        text = f"{text}; above scale {parameters.scale} less is enough"
    home = f"{_native.engines()[parameters.engine][1]}_capacity"
    text = _HOME_FULL.sub(f"the data do not fit into {home} = 0; raise it", text)
    text = _FULL.sub(
        lambda match: f"{match[1]}: the data do not fit into {given(match[1], '')}; raise it", text
    )
    text = _OPTION.sub(lambda match: _option(match[1], match[2] and given(match[1], match[2])), text)
    text = _INSIDE.sub(lambda match: f"{match[1]} = {given(match[1], match[2])}", text)
    if region := REGION.match(text):
        text = f"{'log_size' if region[1] in _LOGS else CAPACITIES[region[2]]}: {text}"
    counted = parameters.factor != 1 and _SCALED_NUMBER.search(text)
    return f"{text} (sizes at scale {parameters.scale})" if counted else text


def _option(name: str, value: str | None) -> str:
    return f"{name}: {value}: " if value else f"{name}: "


def _as_it_is(name: str, value: str) -> str:
    return f"{value} B" if name in _PARAMETERS.values() else value


def _few_pages(match: re.Match[str], parameters: "EngineParameters") -> str:
    name, page, count = match[1], int(match[2]), int(match[3])
    given, least = getattr(parameters, name), _before_scaling(page * count, parameters)
    at = f" at scale {parameters.scale}" if parameters.factor != 1 else ""
    return (
        f"{name}: {_size(given)}{at} cannot hold the {count} pages of {page} B, headers included, that an "
        f"operation may need; choose at least {_size(least)}"
    )


def _before_scaling(size: int, parameters: "EngineParameters") -> int:
    """Return the least size that a user can give so that at scale it is at least so many bytes."""
    pages = -(-size // parameters.page_size)
    bytes_ = -(-pages * parameters.page_size // parameters.factor)
    return -(-bytes_ // LINE_BYTES) * LINE_BYTES


def _size(size: int) -> str:
    return format_value(size, Quantity.SIZE)
