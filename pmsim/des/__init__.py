"""Whole systems: SimPy clients, background work and faults in the same clock as the native core.

See docs/des.md.
"""

from pmsim.des.environment import Core, Environment
from pmsim.des.parts import (
    PARTS,
    BlockLogPart,
    ComputePart,
    LogPart,
    PagesPart,
    Part,
    TablePart,
)
from pmsim.des.server import Completion, Execution, PowerFailureError, Recovery, Request, Server
from pmsim.des.times import MS, NEVER, NS, US, S, picoseconds

__all__ = [
    "MS",
    "NEVER",
    "NS",
    "PARTS",
    "US",
    "BlockLogPart",
    "Completion",
    "ComputePart",
    "Core",
    "Environment",
    "Execution",
    "LogPart",
    "PagesPart",
    "Part",
    "PowerFailureError",
    "Recovery",
    "Request",
    "S",
    "Server",
    "TablePart",
    "picoseconds",
]
