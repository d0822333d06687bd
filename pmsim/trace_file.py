"""What a trace file says about itself."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pmsim import _native, arguments
from pmsim.errors import ConfigError
from pmsim.fields import fields
from pmsim.platforms import Platform
from pmsim.profiles import load_platform, platform_names

#: How a recorded run was driven, so that a replay is driven alike.
PLAN_FIELDS = (
    "seed",
    "warmup_operations",
    "untimed_operations",
    "measured_operations",
    "pmem_footprint",
    "shares_lines",
    "group_of_thread",
)


#: What a trace begins with, as in `docs/trace-format.md`.
_MAGIC = b"PMSIMTR\x1a"
#: Memory is given out in such pieces, as in `native/include/pmsim/machine/memory_mode.hpp` [B].
_PIECE = 2**22


@dataclass(frozen=True)
class TraceInfo:
    """What a trace file says about itself.

    Attributes
    ----------
    path : Path
        The file.
    version : int
        Of the format.
    threads, operations : int
        Virtual threads, and micro-operations over all of them.
    operations_by_kind : mapping
        Every kind of micro-operation, by name.
    operations_by_thread : tuple of int
        In the order of the threads.
    extent_bytes : mapping
        Of each medium, what a platform must hold to replay it [B].
    plan : mapping
        `PLAN_FIELDS`: seed, operations of the workload before the measurement, how many of these run through
        the caches alone, operations in the measurement, bytes of PMem that the workload's regions occupy,
        whether threads share cache lines, and the group of each thread.
    file_bytes : int
        Size of the file [B].
    provenance : mapping
        Versions, scenario, point, workload, platform and seed of the recorded run.
    """

    path: Path
    version: int
    threads: int
    operations: int
    operations_by_kind: Mapping[str, int]
    operations_by_thread: tuple[int, ...]
    extent_bytes: Mapping[str, int]
    plan: Mapping[str, Any]
    file_bytes: int
    provenance: Mapping[str, Any]

    @property
    def bytes_per_operation(self) -> float:
        """Size of the file per micro-operation [B]; a micro-operation in memory has 16."""
        return self.file_bytes / self.operations if self.operations else 0.0


def info(path: str | Path, *, verify: bool = False) -> TraceInfo:
    """Describe a trace.

    Parameters
    ----------
    path : str or Path
        The file.
    verify : bool
        Read all of it and compare its checksums and counts, too.

    Raises
    ------
    ConfigError : missing, not a trace, of another version, damaged or cut short.
    """
    path = arguments.path("trace", path)
    _refuse_others(path)
    row = _native.trace_info(path, verify)
    try:
        provenance = json.loads(row["provenance"])
    except ValueError:
        provenance = None
    if not isinstance(provenance, dict):
        raise ConfigError(
            f"trace {path}: its provenance is not a JSON object; record it with `pmsim trace record`"
        )
    return TraceInfo(
        path=Path(path),
        version=row["version"],
        threads=row["threads"],
        operations=row["operations"],
        operations_by_kind=row["operations_by_kind"],
        operations_by_thread=tuple(row["operations_by_thread"]),
        extent_bytes=row["extent_bytes"],
        plan={name: row[name] for name in PLAN_FIELDS},
        file_bytes=row["file_bytes"],
        provenance=provenance,
    )


def _refuse_others(path: Path) -> None:
    """Say of a file that is no trace what makes one of it; what else is wrong the core says."""
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError:
        return
    if len(start) == len(_MAGIC) and start != _MAGIC:
        raise ConfigError(
            f"trace {path}: not a pmsim trace; make one of a table or a log of valgrind's lackey with `pmsim "
            "trace import`, of a scenario with `pmsim trace record`"
        )


def recorded_platform(trace: TraceInfo) -> Platform:
    """Return the machine that a trace was recorded on, as the parameters of its kind had changed it."""
    try:
        name, values = trace.provenance["platform"]["name"], trace.provenance["platform"]["values"]
    except (KeyError, TypeError):
        raise ConfigError(f"trace {trace.path}: does not name its platform; say --platform") from None
    source = f"recorded in {trace.path}"
    if name in platform_names():
        return load_platform(name).with_values(values, source=source)
    # Recorded on a profile of one's own, which may be anywhere by now: the trace has all of its values.
    any_machine = load_platform(platform_names()[0])
    if {section: set(names) for section, names in values.items()} != {s: set(n) for s, n in fields().items()}:
        raise ConfigError(f"trace {trace.path}: its platform '{name}' is of another version; say --platform")
    return replace(any_machine, name=name, title=name, notes="").with_values(values, source=source)


def memory_in_use(trace: TraceInfo) -> int:
    """Return the bytes of main memory that were in use before the trace, for the DRAM cache of memory mode.

    A run in memory mode has told it. Any other trace has been in use where it goes.
    """
    platform = trace.provenance.get("platform")
    try:
        in_memory_mode = platform["values"]["controller"]["memory_mode"] == 1  # type: ignore[index]
    except (KeyError, TypeError):
        in_memory_mode = False
    if in_memory_mode:
        return int(trace.plan["pmem_footprint"])
    return sum(-(-trace.extent_bytes[medium] // _PIECE) * _PIECE for medium in ("dram", "pmem"))


def verified(path: str | Path) -> TraceInfo:
    """Describe a trace as `info(path, verify=True)`; a file that stays as it is is read once.

    Raises
    ------
    ConfigError : as `info`.
    """
    path = arguments.path("trace", path)
    try:
        stat = path.stat()
    except OSError:
        return info(path)  # which says what is wrong
    return _verified(path, stat.st_mtime_ns, stat.st_size)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, by which finished points know that it is still the same.

    Raises
    ------
    ConfigError : unreadable.
    """
    try:
        stat = path.stat()
        return _digest(path, stat.st_mtime_ns, stat.st_size)
    except OSError as error:
        raise ConfigError(f"trace {path}: {error.strerror}; name a trace") from None


# A sweep asks for every point.
@lru_cache(maxsize=16)
def _verified(path: Path, _modified_ns: int, _size: int) -> TraceInfo:
    return info(path, verify=True)


@lru_cache(maxsize=16)
def _digest(path: Path, _modified_ns: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
