"""What the operating system says about the machine that pmsim runs on."""

import os
import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pmsim import _native
from pmsim.errors import ConfigError

_SYSFS = Path("/sys/devices/system/cpu")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class CacheLevel:
    """A cache as the kernel reports it.

    Attributes
    ----------
    level : int
        1, 2 or 3.
    size : int [B]
        Of one instance.
    ways : int
        Associativity; 0 where it is not reported.
    """

    level: int
    size: int
    ways: int


@dataclass(frozen=True)
class HostMachine:
    """Topology and instructions of this machine.

    Attributes
    ----------
    cpu : str
        Model name.
    processors, cores, threads_per_core : int
        Processors that this process may use, and the cores that they belong to.
    caches : tuple of CacheLevel
        Data caches, nearest first.
    memory : int [B]
        Installed, as the kernel counts it.
    flags : tuple of str
        The instructions that `HostMemory` can use.
    virtual : bool
        Runs under a hypervisor.
    kernel, huge_pages : str
        Kernel release; the setting of transparent huge pages.
    """

    cpu: str
    processors: int
    cores: int
    threads_per_core: int
    caches: tuple[CacheLevel, ...]
    memory: int
    flags: tuple[str, ...]
    virtual: bool
    kernel: str
    huge_pages: str

    def cache(self, level: int) -> CacheLevel | None:
        """Return the cache of a level, or None where the kernel does not report one."""
        return next((cache for cache in self.caches if cache.level == level), None)

    def has(self, flag: str) -> bool:
        """Whether the CPU has an instruction set, by the kernel's name."""
        return flag in self.flags

    def flush(self) -> str:
        """Return the best flush instruction there is: clwb, clflushopt or clflush."""
        return next(flag for flag in ("clwb", "clflushopt", "clflush") if self.has(flag))

    def described(self) -> dict[str, Any]:
        """Return everything as plain values, for a provenance file."""
        return asdict(self)


def this_machine() -> HostMachine:
    """Look at this machine.

    Raises
    ------
    ConfigError : not an x86-64 CPU, or one without flush instructions or streaming stores.
    """
    features = _native.host_features()
    if not features["sse2"] or not features["clflush"]:
        raise ConfigError(
            f"this machine ({platform.machine()}) lacks clflush or movntdq: measuring needs an x86-64 CPU; "
            "simulate it with pmsim run"
        )
    described = _text(Path("/proc/cpuinfo"))
    model = re.search(r"^model name\s*:\s*(.+)$", described, re.MULTILINE)
    kernel_flags = re.search(r"^flags\s*:\s*(.+)$", described, re.MULTILINE)
    listed = kernel_flags[1].split() if kernel_flags else []
    used = {name for name, found in features.items() if found}
    processors = list(_native.host_processors())
    cores = {_core(processor) for processor in processors}
    return HostMachine(
        cpu=" ".join(model[1].split()) if model else platform.processor() or "unknown x86-64 CPU",
        processors=len(processors),
        cores=len(cores),
        threads_per_core=2 if len(processors) > len(cores) else 1,
        caches=_caches(processors[0]),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        flags=tuple(sorted(used | {flag for flag in listed if flag.startswith(("avx", "amx"))})),
        virtual="hypervisor" in listed,
        kernel=platform.release(),
        huge_pages=_text(Path("/sys/kernel/mm/transparent_hugepage/enabled")).strip() or "unknown",
    )


def _core(processor: int) -> tuple[str, str]:
    folder = _SYSFS / f"cpu{processor}" / "topology"
    core = _text(folder / "core_id").strip() or f"processor {processor}"
    return _text(folder / "physical_package_id").strip(), core


def _caches(processor: int) -> tuple[CacheLevel, ...]:
    found = []
    for folder in sorted((_SYSFS / f"cpu{processor}" / "cache").glob("index*")):
        size = re.fullmatch(r"(\d+)([KMG]?)", _text(folder / "size").strip())
        level = _text(folder / "level").strip()
        if size is None or not level.isdigit() or _text(folder / "type").strip() == "Instruction":
            continue
        ways = _text(folder / "ways_of_associativity").strip()
        found.append(CacheLevel(int(level), int(size[1]) * _UNITS[size[2]], int(ways) if ways.isdigit() else 0))
    return tuple(found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
