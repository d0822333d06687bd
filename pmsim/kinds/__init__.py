"""The kinds of experiments. A new kind is one file and one line in this list."""

from typing import Any

from pmsim.arguments import text
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.kinds.bandwidth import Bandwidth
from pmsim.kinds.base import COUNTER_PREFIX, Kind, Metric
from pmsim.kinds.block import Block
from pmsim.kinds.contention import Contention
from pmsim.kinds.in_place import InPlace
from pmsim.kinds.interleave import Interleave
from pmsim.kinds.latency import Latency
from pmsim.kinds.log import Log
from pmsim.kinds.mixed import Mixed
from pmsim.kinds.node import Node
from pmsim.kinds.oltp import Oltp
from pmsim.kinds.operations import Operations
from pmsim.kinds.page_flush import PageFlush
from pmsim.kinds.persist import Persist
from pmsim.kinds.restart import Restart
from pmsim.kinds.sorted_run import SortedRun
from pmsim.kinds.system import System
from pmsim.kinds.trace import Trace

_ALL: tuple[Kind[Any], ...] = (
    *(Bandwidth(), Latency(), Persist(), Operations(), Mixed(), Block()),
    Contention(),
    InPlace(),
    Log(),
    PageFlush(),
    Interleave(),
    Node(),
    SortedRun(),
    Oltp(),
    Restart(),
    System(),
    Trace(),
)

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in _ALL}


def find_kind(name: str) -> Kind[Any]:
    """Return a kind by its name.

    Raises
    ------
    ConfigError : unknown; names the nearest kinds.
    """
    text("kind", name)
    if name not in KINDS:
        raise ConfigError(f"kind: unknown kind '{name}'; {nearest(name, KINDS)}")
    return KINDS[name]


__all__ = ["COUNTER_PREFIX", "KINDS", "Kind", "Metric", "find_kind"]
