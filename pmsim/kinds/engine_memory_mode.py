"""A storage engine in memory mode: PMem is its main memory, DRAM a cache of it, and nothing is persistent."""

from typing import TypeVar

from pmsim.errors import ConfigError
from pmsim.kinds.checks import check_tier
from pmsim.kinds.engine_options import EngineParameters
from pmsim.kinds.types import LINE_BYTES
from pmsim.platforms import Platform

#: Engines that have no pages on PMem.
ENGINES = ("main-memory", "ssd-bm")

#: For tables of pages, latches, and buffers of logs, which take 2 to 7 MiB with one thread, whatever the scale.
_BESIDE_PAGES = 32 << 20

P = TypeVar("P", bound=EngineParameters)


def with_dram_cache(platform: Platform, parameters: EngineParameters) -> Platform:
    """Return the machine with ``dram_capacity``, at scale, as the DRAM that caches its main memory.

    Raises
    ------
    ConfigError : the machine has less DRAM, or no modules; or there is no cache.
    """
    app_direct = platform.with_values({"controller": {"memory_mode": 0}}, source="parameter of the scenario")
    if parameters.dram_capacity == 0:
        raise ConfigError("dram_capacity: 0; in memory mode it is the cache of main memory, choose more")
    if parameters.pmem_capacity == 0:
        raise ConfigError("pmem_capacity: 0; in memory mode it is main memory, choose more")
    for tier in ("dram", "pmem"):
        key = f"{tier}_capacity"
        check_tier(app_direct, tier, getattr(parameters, key), key)
    cache = max(parameters.scaled(parameters.dram_capacity), LINE_BYTES)
    changes = {
        "controller": {"memory_mode": 1},
        "dram": {"capacity": cache},
        # Where physical memory may lie decides which lines share a set, so it is at scale, too.
        "pmem": {"capacity": parameters.scaled(parameters.pmem_capacity) + _BESIDE_PAGES},
    }
    return platform.with_values(changes, source=f"parameters of the scenario at scale {parameters.scale}")


def seen_by_engine(parameters: P) -> P:
    """Return the parameters as the engine sees them: main memory of ``pmem_capacity``, and no PMem."""
    return parameters.model_copy(update={"dram_capacity": parameters.pmem_capacity, "pmem_capacity": 0})


def without_image(parameters: EngineParameters) -> str:
    """Return why main-memory has no room for a checkpoint image; empty: it is another engine, or has an SSD.

    Without one the image would be on PMem, beside pages that have all of it: no ``pmem_capacity`` is enough.
    """
    if parameters.engine != "main-memory" or parameters.ssd_capacity > 0:
        return ""
    return (
        "ssd_capacity: 0; in memory mode the checkpoint image of main-memory is on the SSD, and it needs as "
        "much as pmem_capacity; raise it"
    )


def reason_of(reason: str) -> str:
    """Return why an engine cannot hold its data, as it was given: main memory is PMem, and holds no image."""
    return reason.replace("dram_capacity", "pmem_capacity").replace(", or set it to 0 for an image on PMem", "")


def check(parameters: EngineParameters) -> None:
    """Refuse engines and logs that need PMem for itself."""
    if parameters.engine not in ENGINES:
        raise ConfigError(
            f"engine: {parameters.engine} has pages on PMem, and memory mode leaves it none; choose "
            f"{' or '.join(ENGINES)}, or memory_mode = false"
        )
    if parameters.log_device == "pmem":
        raise ConfigError("log_device: pmem; nothing survives a power failure in memory mode, choose 'ssd'")
