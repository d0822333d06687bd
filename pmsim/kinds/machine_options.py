"""Parameters of kinds that change the machine: modules, prefetcher, page size, memory mode."""

from pmsim.errors import ConfigError
from pmsim.platforms import Platform


def with_options(
    platform: Platform,
    *,
    dimms: int | str = "all",
    prefetcher: bool | str = "platform",
    page_size: int | str = "platform",
    mode: str = "platform",
) -> Platform:
    """Return the platform with a kind's options applied.

    Parameters
    ----------
    platform : Platform
        The machine as the scenario names it.
    dimms : int or "all"
        PMem modules to use; their share of the capacity comes with them. 1: not interleaved.
    prefetcher : bool or "platform"
        Whether the hardware prefetcher is on.
    page_size : int [B] or "platform"
        Page size of the mappings of both media.
    mode : str
        "app-direct", "memory-mode" or "platform".

    Raises
    ------
    ConfigError : more modules than the machine has.
    """
    values: dict[str, dict[str, int]] = {}
    if isinstance(dimms, int):
        values["pmem"] = _modules(platform, dimms)
    if isinstance(prefetcher, bool):
        values["prefetcher"] = {"enabled": int(prefetcher)}
    if isinstance(page_size, int):
        values["tlb"] = {"page_size": page_size, "dram_page_size": page_size}
    if mode != "platform":
        values["controller"] = {"memory_mode": int(mode == "memory-mode")}
    changes = {
        section: {name: value for name, value in names.items() if platform.value(section, name) != value}
        for section, names in values.items()
    }
    changes = {section: names for section, names in changes.items() if names}
    return platform.with_values(changes, source="parameter of the scenario") if changes else platform


def _modules(platform: Platform, dimms: int) -> dict[str, int]:
    available = platform.value("pmem", "dimms")
    if dimms > available:
        raise ConfigError(
            f"dimms: {dimms} modules on platform '{platform.name}' with {available}; "
            + (
                f"choose 1 to {available}, or 'all'"
                if available
                else "choose a platform with persistent memory"
            )
        )
    return {"dimms": dimms, "capacity": platform.value("pmem", "capacity") * dimms // available}
