"""Checks that kinds share: does the machine have what the parameters ask for?"""

from pmsim.errors import ConfigError
from pmsim.platforms import Platform
from pmsim.units import Quantity, format_value


def hardware_threads(machine: Platform) -> int:
    """Return how many threads the machine runs at a time."""
    return machine.value("core", "cores") * machine.value("core", "threads_per_core")


def check_threads(machine: Platform, threads: int, key: str = "threads") -> None:
    """Refuse more threads than the machine has hardware threads."""
    if threads > (most := hardware_threads(machine)):
        cores, per_core = machine.value("core", "cores"), machine.value("core", "threads_per_core")
        raise ConfigError(
            f"{key}: {threads} threads on platform '{machine.name}' with {most} hardware threads "
            f"({cores} cores x {per_core}); choose at most {most}"
        )


def check_memory(machine: Platform, memory: str, key: str = "memory") -> None:
    """Refuse a memory that the machine lacks."""
    if capacity(machine, memory) == 0:
        # Whoever takes the modules away leaves the capacity that each would have.
        if memory == "pmem" and machine.value("pmem", "dimms") == 0 and machine.value("pmem", "capacity"):
            raise ConfigError(
                f"{key}: platform '{machine.name}' has no pmem, as its pmem.dimms is 0; give it modules, or "
                "choose another memory"
            )
        raise ConfigError(
            f"{key}: platform '{machine.name}' has no {memory}; choose another memory or platform"
        )


def check_region(machine: Platform, memory: str, region_size: int, key: str = "region_size") -> None:
    """Refuse a region that the memory cannot hold."""
    check_memory(machine, memory)
    available = capacity(machine, memory)
    if region_size > available:
        modules = machine.value("pmem", "dimms")
        where = f"{memory} of {modules} module{'s' if modules > 1 else ''}" if memory == "pmem" else memory
        raise ConfigError(
            f"{key}: {_size(region_size)} do not fit the {_size(available)} of {where} of platform "
            f"'{machine.name}'; choose at most that"
        )


def check_tier(machine: Platform, tier: str, size: int, key: str, *, default: bool = False) -> None:
    """Refuse bytes on tier "dram", "pmem" or "ssd" that the machine does not have."""
    if size == 0:
        return
    # Who has not written it would look for it in vain.
    asked = f"{key}: {_size(size)} (the default)" if default else key
    if tier != "ssd":
        check_memory(machine, tier, asked)
        check_region(machine, tier, size, key)
        return
    available = machine.value("block", "capacity")
    other = f'another device: platform = {{base = "{machine.name}", block_device = "..."}}'
    if available == 0:
        none = "0, or " if key == "ssd_capacity" else ""  # not every engine wants one
        raise ConfigError(f"{asked}: platform '{machine.name}' has no block device; choose {none}{other}")
    if size > available:
        raise ConfigError(
            f"{key}: {_size(size)} do not fit the {_size(available)} of the block device of platform "
            f"'{machine.name}'; choose at most that, or {other}"
        )


def check_modules(machine: Platform, memory: str, dimms: int | str) -> None:
    """Refuse a number of PMem modules for a region on DRAM, which has none of them."""
    if dimms != "all" and medium(machine, memory) == "dram":
        raise ConfigError(f"dimms: has no meaning for memory = '{memory}'; remove it or use 'pmem'")


def check_access(access_size: int, region_size: int, key: str = "access_size", *, parts: int = 1) -> None:
    """Refuse an access that is larger than its region, or than the part of it that each of its threads has."""
    part = region_size // parts
    if access_size > part:
        whose = f"each of {parts} threads has of region_size" if parts > 1 else "region_size"
        raise ConfigError(
            f"{key}: {_size(access_size)} are more than {whose}, {_size(part)}; "
            "choose a larger region or a smaller access"
        )


def capacity(machine: Platform, memory: str) -> int:
    """Return the bytes of a memory that a program can use."""
    pmem = machine.value("pmem", "capacity") if machine.value("pmem", "dimms") else 0
    if machine.value("controller", "memory_mode"):
        return pmem  # There is one main memory, and DRAM is its cache.
    return pmem if memory == "pmem" else machine.value("dram", "capacity")


def medium(machine: Platform, memory: str) -> str:
    """Return the medium of a region on a memory: in memory mode both names mean main memory."""
    return "pmem" if machine.value("controller", "memory_mode") else memory


def _size(size: int) -> str:
    return format_value(size, Quantity.SIZE)
