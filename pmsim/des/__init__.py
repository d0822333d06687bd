"""Whole systems: SimPy clients, background work and faults in the same clock as the native core.

See docs/des.md.
"""

from pmsim.des.arrivals import Bursty, ClosedPool, Paced, Poisson, TraceDriven
from pmsim.des.asks import Ask, warm_up
from pmsim.des.background import Checkpoints, DirtyPages, GroupCommit, PagePropagation
from pmsim.des.environment import Core, Environment
from pmsim.des.faults import power_failures, slow_periods, stalls
from pmsim.des.load import Load, NativeLoad, Served, Tenant
from pmsim.des.long_run import LongRun
from pmsim.des.parts import (
    PARTS,
    BlockLogPart,
    ComputePart,
    EnginePart,
    LogPart,
    PagesPart,
    Part,
    RecordedPart,
    TablePart,
    TransactionsPart,
)
from pmsim.des.request import Completion, PowerFailureError, Recovery, Request
from pmsim.des.server import Server
from pmsim.des.standby import HotStandby
from pmsim.des.times import MS, NEVER, NS, US, S, picoseconds
from pmsim.des.worker_group import Execution, WorkerGroup

__all__ = [
    "Ask",
    "BlockLogPart",
    "Bursty",
    "Checkpoints",
    "ClosedPool",
    "Completion",
    "ComputePart",
    "Core",
    "DirtyPages",
    "EnginePart",
    "HotStandby",
    "Environment",
    "Execution",
    "GroupCommit",
    "Load",
    "LogPart",
    "LongRun",
    "MS",
    "NEVER",
    "NS",
    "NativeLoad",
    "PARTS",
    "Paced",
    "PagePropagation",
    "PagesPart",
    "Part",
    "Poisson",
    "PowerFailureError",
    "RecordedPart",
    "Recovery",
    "Request",
    "S",
    "Served",
    "Server",
    "TablePart",
    "Tenant",
    "TraceDriven",
    "TransactionsPart",
    "US",
    "WorkerGroup",
    "picoseconds",
    "power_failures",
    "slow_periods",
    "stalls",
    "warm_up",
]
