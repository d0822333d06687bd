"""What kinds that run a storage engine refuse: what the machine or the benchmark cannot be."""

import math

from pmsim.errors import ConfigError
from pmsim.kinds.applies import ENGINE, LOGGED, check_file
from pmsim.kinds.checks import check_threads, check_tier
from pmsim.kinds.engine_options import EngineParameters, recorded
from pmsim.kinds.log_place import DURABLE_LOGS, check_log_survives
from pmsim.platforms import Platform
from pmsim.units import Quantity, format_value

#: Warehouses whose number fits into a key of TPC-C.
_MOST_WAREHOUSES = 65535
#: Slots of mini pages name lines by one byte.
_LARGEST_WITH_MINI_PAGES = 16384


def check_engine(machine: Platform, parameters: EngineParameters) -> None:
    """Refuse what machine or benchmark cannot be. Whether data fit an engine is for the engine to say."""
    check_threads(machine, parameters.threads)
    check_file("requests", ENGINE, parameters)
    if parameters.fixes == "optimistic" and parameters.threads > 1 and parameters.latches != "optimistic":
        raise ConfigError(
            f"fixes: optimistic readers learn from a page's latch that it has gone; with latches = "
            f"'{parameters.latches}' choose 'counted', or latches = 'optimistic'"
        )
    if parameters.commits == "group" and (parameters.log_device, parameters.logs) != ("ssd", "shared"):
        raise ConfigError(
            f"commits: threads write in groups to one log on the SSD; with log_device = "
            f"'{parameters.log_device}' and logs = '{parameters.logs}' choose 'single', or log_device = 'ssd' "
            f"and logs = 'shared'"
        )
    if parameters.locks_rows and parameters.logs == "per-thread" and LOGGED.holds(parameters.engine):
        raise ConfigError(
            "locks: with logs = 'per-thread' a transaction waits for all of another that has changed the same "
            "page, which may wait for its rows; choose 'none', or logs = 'shared'"
        )
    if parameters.locks_rows and parameters.locks == "early" and not LOGGED.holds(parameters.engine):
        raise ConfigError(
            f"locks: {parameters.engine} has no log in which a transaction could have its place early; "
            "choose 'rows', or another engine"
        )
    size = parameters.page_size
    if size & (size - 1) or not 4096 <= size <= 65536:
        raise ConfigError(f"page_size: {size} B; choose a power of two from 4 KiB to 64 KiB")
    if parameters.update_percent > 100:
        raise ConfigError(f"update_percent: {parameters.update_percent} % are too many; choose at most 100")
    if parameters.engine == "three-tier" and parameters.mini_pages:
        _check_mini_pages(parameters)
    pairs = parameters.workload == "lookup8" or (parameters.workload, parameters.row_size) == ("requests", 8)
    if parameters.engine == "fptree" and not pairs:
        raise ConfigError(
            f"workload: {parameters.workload}; fptree holds rows with a key and a payload of 8 B only, "
            "choose lookup8, requests with row_size = 8, or another engine"
        )
    _check_row_size(parameters)
    _check_data(parameters)
    if parameters.workload == "requests":
        _check_requests(parameters)
    if parameters.workload == "tpcc" and parameters.loading != "bulk":
        raise ConfigError(f"loading: {parameters.loading}; tpcc is loaded in bulk, choose 'bulk'")
    if parameters.workload == "tpcc" and (parameters.warehouses * parameters.factor).denominator != 1:
        raise ConfigError(
            f"warehouses: {parameters.warehouses} at scale {parameters.scale} are not a whole number; "
            f"choose a multiple of {parameters.factor.denominator}, or another scale"
        )
    if parameters.workload == "tpcc" and parameters.simulated_warehouses > _MOST_WAREHOUSES:
        most = int(_MOST_WAREHOUSES / parameters.factor)
        raise ConfigError(f"warehouses: {parameters.warehouses} are too many; choose at most {most}")
    # At full size: what is bought and paid for is the machine, whatever part of it is simulated. One in memory
    # mode has DRAM and PMem at scale, and that they are there has been checked.
    for tier in ("ssd",) if machine.value("controller", "memory_mode") else ("dram", "pmem", "ssd"):
        _check_room(machine, tier, parameters, f"{tier}_capacity")
    for tier in ("dram", "pmem", "ssd"):
        _check_a_page(parameters, f"{tier}_capacity")
    check_log_survives(machine, parameters.engine, parameters.log_device)
    if parameters.log_device in DURABLE_LOGS:
        _check_room(machine, parameters.log_device, parameters, "log_size")


def _check_room(machine: Platform, tier: str, parameters: EngineParameters, key: str) -> None:
    default = key not in parameters.model_fields_set
    check_tier(machine, tier, getattr(parameters, key), key, default=default)


def _check_a_page(parameters: EngineParameters, key: str) -> None:
    """Refuse a tier that has less than a page: none would be another architecture, one more than was bought."""
    capacity = getattr(parameters, key)
    if 0 < capacity * parameters.factor < parameters.page_size:
        given, page, choose = (
            format_value(size, Quantity.SIZE)
            for size in (capacity, parameters.page_size, math.ceil(parameters.page_size / parameters.factor))
        )
        raise ConfigError(
            f"{key}: {given} at scale {parameters.scale} are less than a page of {page}; "
            f"choose 0, or at least {choose}"
        )


def _check_requests(parameters: EngineParameters) -> None:
    recorded(parameters)
    # Of a sequence neither keys nor requests can be left out without changing what caches make of it.
    if parameters.factor != 1:
        raise ConfigError(f"scale: {parameters.scale}; recorded requests run at full size, set scale = 1")


def _check_row_size(parameters: EngineParameters) -> None:
    most = parameters.page_size // 4
    if not 8 <= parameters.row_size <= most:
        raise ConfigError(
            f"row_size: {parameters.row_size} B; a row has 8 B at least and a page four rows, "
            f"choose 8 to {most} B"
        )


def _check_data(parameters: EngineParameters) -> None:
    """Refuse a table without a page of its own beside the catalog's (table_size.hpp)."""
    if parameters.workload == "tpcc" or parameters.engine == "fptree":
        return
    least = 2 * parameters.page_size
    if parameters.simulated_data < least:
        given, choose = (
            format_value(size, Quantity.SIZE)
            for size in (parameters.data_size, math.ceil(least / parameters.factor))
        )
        raise ConfigError(
            f"data_size: {given} at scale {parameters.scale} are less than two pages; choose {choose} or more, "
            "or another scale"
        )


def _check_mini_pages(parameters: EngineParameters) -> None:
    if not parameters.cache_line_grained:
        raise ConfigError(
            "mini_pages: they hold a part of the lines of a page; choose false, or cache_line_grained = true"
        )
    if parameters.page_size > _LARGEST_WITH_MINI_PAGES:
        raise ConfigError(
            f"mini_pages: pages of {parameters.page_size} B have too many lines for them; choose false, or a "
            f"page_size of at most {_LARGEST_WITH_MINI_PAGES}"
        )
