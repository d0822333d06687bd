"""Where an engine's write-ahead log is and how threads commit to it, where a scenario leaves that open."""

from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeVar

from pmsim.errors import ConfigError
from pmsim.kinds.applies import LOGGED
from pmsim.kinds.checks import capacity
from pmsim.platforms import VOLATILE, Platform

AUTO: Final = "auto"
#: Values of ``log_device`` from which a restart recovers.
DURABLE_LOGS = ("pmem", "ssd")


class _WithEngine(Protocol):
    """What kinds with an engine have in common of its log."""

    @property
    def engine(self) -> str: ...
    @property
    def pmem_capacity(self) -> int: ...
    @property
    def log_device(self) -> str: ...
    @property
    def ssd_capacity(self) -> int: ...
    @property
    def commits(self) -> str: ...
    def model_copy(self: "P", *, update: Mapping[str, Any] | None = None) -> "P": ...


P = TypeVar("P", bound=_WithEngine)


def settled(machine: Platform, parameters: P, *, threads: int, logs: str) -> P:
    """Return the parameters with "auto" replaced by what a builder of the machine would do.

    A machine that is given no persistent memory for its pages, or has it behind a volatile expander, has none
    for its log either. Threads that share a log on an SSD commit in groups: each flush is worth its wait.
    Engines without such a log keep their undo logs on PMem.
    """
    device, commits = parameters.log_device, parameters.commits
    logged = LOGGED.holds(parameters.engine)
    if device == AUTO:
        keeps = parameters.pmem_capacity > 0 and machine.pmem_persistence != VOLATILE
        device = "pmem" if keeps or not logged else "ssd"
    if commits == AUTO:
        commits = "group" if logged and device == "ssd" and logs == "shared" and threads > 1 else "single"
    return parameters.model_copy(update={"log_device": device, "commits": commits})


def room(engine: str, log_device: str, log_size: int) -> dict[str, int]:
    """Return the bytes of the log by the tier that it is on; undo logs are always on PMem."""
    device = log_device if LOGGED.holds(engine) else "pmem"
    return {device: log_size} if device in DURABLE_LOGS else {}


def check_log(machine: Platform, engine: str, log_device: str) -> None:
    """Refuse a log that does not survive, or whose device is not there."""
    check_log_survives(machine, engine, log_device)
    here = capacity(machine, "pmem") if log_device == "pmem" else machine.value("block", "capacity")
    if here == 0:
        missing, other = ("PMem", "ssd") if log_device == "pmem" else ("block device", "pmem")
        raise ConfigError(
            f"log_device: platform '{machine.name}' has no {missing}; choose '{other}' or another platform"
        )


def check_log_survives(machine: Platform, engine: str, log_device: str) -> None:
    """Refuse a log that the next power failure takes along: what it acknowledges would not last."""
    if log_device == "pmem" and machine.pmem_persistence == VOLATILE and LOGGED.holds(engine):
        raise ConfigError(
            f"log_device: pmem of platform '{machine.name}' is volatile; choose 'ssd', or a platform with "
            "pmem_persistence = 'durable'"
        )


def check_pmem_survives(machine: Platform, key: str, instead: str) -> None:
    """Refuse a restart from what a power failure took along: `key` asks for it, and need not with `instead`."""
    if machine.pmem_persistence == VOLATILE:
        raise ConfigError(
            f"{key}: pmem of platform '{machine.name}' is volatile, nothing restarts from it; choose "
            f"{instead}, or a platform with pmem_persistence = 'durable'"
        )


def kept_on_volatile_pmem(machine: Platform, parameters: _WithEngine) -> str:
    """Return the engine that finds on volatile PMem what it restarts from, and where that is; empty: none does.

    Such engines are not refused, as speeds of memories can be compared with them; who does so has to know.
    """
    if machine.pmem_persistence != VOLATILE or machine.value("controller", "memory_mode"):
        return ""
    kept = kept_on_pmem(parameters)
    return f"{kept} on {machine.name}" if kept else ""


def kept_on_pmem(parameters: _WithEngine) -> str:
    """Return the engine that finds on PMem what it restarts from, and what that is; empty: none does.

    Its log may well be on an SSD: it begins where pages have been written to their place on PMem.
    """
    engine, logged = parameters.engine, LOGGED.holds(parameters.engine)
    if logged and parameters.log_device not in DURABLE_LOGS:
        return ""  # nobody has asked for anything durable
    if logged and parameters.log_device == "pmem":
        return f"{engine}, its log"
    if engine == "main-memory":
        return "" if parameters.ssd_capacity else f"{engine}, its checkpoints"
    if engine == "ssd-bm" or not parameters.pmem_capacity:
        return ""
    return f"{engine}, its pages{'' if logged else ' and logs'}"
