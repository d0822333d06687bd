"""What kind "system" refuses: what the machine lacks or cannot hold, and what makes no study."""

from pmsim.errors import ConfigError
from pmsim.kinds.applies import SYSTEM, check_file
from pmsim.kinds.buildable import check_server
from pmsim.kinds.checks import capacity, check_memory, check_region, check_threads, check_tier
from pmsim.kinds.engine_options import WAREHOUSE_BYTES, WAREHOUSE_FILL
from pmsim.kinds.log_place import check_log, check_pmem_survives
from pmsim.kinds.system_parameters import SystemParameters, recording_of
from pmsim.kinds.system_parts import parts_of, without_data, workers_of
from pmsim.kinds.types import LINE_BYTES
from pmsim.platforms import Platform
from pmsim.units import Quantity, format_value

_LARGEST_ROW = 65536
#: Of a long run. Each begins with a fresh server, which takes longer to make than such short ones to simulate.
_MOST_SEGMENTS = 10_000
_LARGEST_ENGINE_ROW = 4096
_FPTREE_ROW = 8
_WORD_BYTES = 8
_YCSB_ROW = 1000
#: Bytes of a key: a row of an engine needs at least so many more than its payload.
_KEY_BYTES = 8


def check_system(machine: Platform, parameters: SystemParameters) -> None:
    """Refuse a point before it runs."""
    check_study(machine, parameters)
    check_sizes(machine, parameters)
    workers = workers_of(parameters)
    parts = [without_data(part, workers) for part in parts_of(parameters)]
    check_server(machine, parts, workers, crash=parameters.study == "restart")


def check_study(machine: Platform, parameters: SystemParameters) -> None:
    """Refuse what the machine lacks and what makes no study."""
    check_file("recording", SYSTEM, parameters)
    check_threads(machine, parameters.workers, "workers")
    check_threads(machine, parameters.workers + parameters.writers, "writers")
    service = "log" if parameters.study == "propagation" else parameters.service
    if service == "block-log" and machine.value("block", "capacity") == 0:
        raise ConfigError(
            f"service: platform '{machine.name}' has no block device; name one with platform.block_device"
        )
    if service == "engine":
        check_log(machine, parameters.engine, parameters.log_device)
    elif service != "block-log":
        check_memory(machine, "pmem", "service")
    if parameters.study == "recorded":
        _check_recording(parameters)
    elif parameters.load_percent == 0 and parameters.rate == 0:
        raise ConfigError("load_percent: nothing is offered; choose at least 1, or a rate")
    if parameters.rate == 0 and parameters.study in ("group-commit", "propagation"):
        raise ConfigError(f"rate: study '{parameters.study}' has no saturation of its own; give a rate")
    if parameters.study == "tenants" and service != "table":
        raise ConfigError(f"service: tenants look up and scan; choose table instead of '{service}'")
    if parameters.study == "tenants" and parameters.scan_rows > parameters.rows:
        raise ConfigError(
            f"scan_rows: {parameters.scan_rows} of a table with {parameters.rows} rows; choose at most that"
        )
    if parameters.study == "group-commit" and service not in ("log", "block-log"):
        raise ConfigError(f"service: '{service}' has no groups; choose log or block-log")
    if parameters.study == "restart" and service == "table":
        raise ConfigError("service: the table keeps nothing that a restart could find; choose log or engine")
    if parameters.study == "restart" and service == "log":
        check_pmem_survives(machine, "service", "block-log")
    if parameters.study == "restart" and service == "engine" and parameters.pmem_capacity:
        check_pmem_survives(machine, "pmem_capacity", "0")
    in_memory = service == "engine" and parameters.engine == "main-memory"
    if parameters.study == "restart" and in_memory and not parameters.ssd_capacity:  # checkpoints on PMem
        check_pmem_survives(machine, "ssd_capacity", "what the rows take")
    if parameters.study == "restart" and service == "engine" and parameters.workload != "rows":
        raise ConfigError(
            f"workload: '{parameters.workload}' keeps no ledger of what a power failure must leave; choose rows"
        )
    if service == "table" and (parameters.row_size % LINE_BYTES or parameters.row_size > _LARGEST_ROW):
        raise ConfigError(
            f"row_size: {parameters.row_size} B; choose a multiple of 64 B up to 64 KiB for a table"
        )
    if service == "engine":
        _check_rows_of_engine(parameters)
    if parameters.study == "propagation" and parameters.dirty_lines > parameters.page_size // LINE_BYTES:
        raise ConfigError(
            f"dirty_lines: {parameters.dirty_lines} of a page with {parameters.page_size // LINE_BYTES} "
            "lines; choose at most that"
        )
    if parameters.study == "long-run" and (
        parameters.duration == 0 or parameters.segment == 0 or parameters.duration % parameters.segment
    ):
        raise ConfigError("duration: must be a whole number of segments; choose a multiple of segment")
    if parameters.study == "long-run" and parameters.duration // parameters.segment > _MOST_SEGMENTS:
        least = format_value(-(-parameters.duration // _MOST_SEGMENTS), Quantity.TIME)
        raise ConfigError(
            f"segment: {format_value(parameters.segment, Quantity.TIME)} parts the run into "
            f"{parameters.duration // parameters.segment} segments, each on a server of its own; choose at "
            f"least {least}"
        )
    if parameters.study == "restart" and parameters.crash_at >= parameters.duration:
        at, end = (format_value(time, Quantity.TIME) for time in (parameters.crash_at, parameters.duration))
        raise ConfigError(f"crash_at: {at} is not before the end of the run; choose less than duration, {end}")
    if parameters.windows > 256:
        raise ConfigError(f"windows: {parameters.windows} are too many; choose at most 256")
    if parameters.dirty_target >= parameters.dirty_limit:
        raise ConfigError(
            f"dirty_target: {parameters.dirty_target} is not below dirty_limit; "
            f"choose at most {parameters.dirty_limit - 1}"
        )


def _check_recording(parameters: SystemParameters) -> None:
    if parameters.service != "engine":
        raise ConfigError(
            f"service: recorded requests are for an engine; choose engine instead of '{parameters.service}'"
        )
    recording = recording_of(parameters)
    try:
        arrivals = recording.arrivals(parameters.speed_percent)
    except ConfigError as error:
        raise error.prefixed("recording" if recording.times is None else "speed_percent") from None
    if arrivals[-1] == arrivals[len(arrivals) // 2]:
        raise ConfigError(
            "recording: the second half of the requests, which is measured, comes in one instant; give more of "
            "them, or finer times"
        )
    if recording.existing > parameters.rows:
        raise ConfigError(
            f"rows: {parameters.rows}, and {recording.existing} of the recorded keys exist at the start; "
            "choose at least so many"
        )


def _check_rows_of_engine(parameters: SystemParameters) -> None:
    if parameters.workload != "rows":
        if parameters.engine == "fptree":
            raise ConfigError(
                f"workload: {parameters.workload}; fptree holds rows with a key and a payload of 8 B only, "
                "choose rows or another engine"
            )
        return
    if parameters.engine == "fptree" and parameters.row_size != _FPTREE_ROW:
        raise ConfigError(
            f"row_size: {parameters.row_size} B; rows of fptree have 8 B, choose that or another engine"
        )
    if parameters.row_size % _WORD_BYTES or parameters.row_size > _LARGEST_ENGINE_ROW:
        raise ConfigError(
            f"row_size: {parameters.row_size} B; choose a multiple of 8 B up to 4 KiB for an engine"
        )


def check_sizes(machine: Platform, parameters: SystemParameters) -> None:
    """Refuse what memory and drive cannot hold; loading until they are full may take minutes."""
    threads = workers_of(parameters)
    if parameters.study == "propagation":
        if parameters.pages < threads:
            raise ConfigError(f"pages: {parameters.pages} for {threads} threads; choose at least that many")
        for memory in ("dram", "pmem"):
            check_region(machine, memory, parameters.pages * parameters.page_size, "pages")
        _check_logs(machine, parameters, "pmem")
    elif parameters.service == "table":
        check_region(machine, "pmem", parameters.rows * parameters.row_size, "rows")
    elif parameters.service == "engine":
        for tier in ("dram", "pmem", "ssd"):
            check_tier(machine, tier, getattr(parameters, f"{tier}_capacity"), f"{tier}_capacity")
        sizes = parameters.dram_capacity + parameters.pmem_capacity + parameters.ssd_capacity
        what, count, needed = _data_of_engine(parameters)
        if needed > sizes:
            raise ConfigError(
                f"{what}: {count} {what} are {_size(needed)}, more than dram_capacity, pmem_capacity and "
                f"ssd_capacity together, {_size(sizes)}; choose fewer {what}, or raise the capacities"
            )
    else:
        _check_logs(machine, parameters, "pmem" if parameters.service == "log" else "block")


def _data_of_engine(parameters: SystemParameters) -> tuple[str, int, int]:
    """Return what the data are counted in, how many there are, and the bytes that they need at least."""
    if parameters.study != "recorded" and parameters.workload == "tpcc":
        count = parameters.warehouses
        return "warehouses", count, int(count * WAREHOUSE_BYTES * WAREHOUSE_FILL)
    rows, row_size = parameters.rows, parameters.row_size
    if parameters.study == "recorded":
        recording = recording_of(parameters)
        rows += recording.keys - recording.existing
    elif parameters.workload != "rows":
        row_size = _YCSB_ROW
    return "rows", rows, rows * (row_size + _KEY_BYTES)


def _check_logs(machine: Platform, parameters: SystemParameters, device: str) -> None:
    available = machine.value("block", "capacity") if device == "block" else capacity(machine, device)
    logs = workers_of(parameters)
    if logs * parameters.log_size > available:
        raise ConfigError(
            f"log_size: one log of {_size(parameters.log_size)} for each of {logs} threads does not fit the "
            f"{_size(available)} of {device} of platform '{machine.name}'; choose a smaller one"
        )


def _size(size: int) -> str:
    return format_value(size, Quantity.SIZE)
