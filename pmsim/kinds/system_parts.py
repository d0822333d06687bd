"""What the server of each study of kind "system" is made of."""

from typing import Any, cast

from pmsim.des.parts import (
    Benchmark,
    BlockLogPart,
    EnginePart,
    LogPart,
    OnEngine,
    PagesPart,
    Part,
    RecordedPart,
    TablePart,
    TransactionsPart,
)
from pmsim.kinds.system_parameters import SystemParameters


def parts_of(parameters: SystemParameters) -> tuple[Part, ...]:
    """Return the parts of the server.

    Raises
    ------
    ConfigError : a range of a part is narrower than that of the kind's parameter.
    """
    if parameters.study == "propagation":
        return transaction_log(parameters), pages_of(parameters)
    if parameters.study == "recorded":
        return (RecordedPart(**engine_of(parameters).model_dump(), requests=parameters.recording),)
    if parameters.service == "table":
        return (TablePart(rows=parameters.rows, row_size=parameters.row_size),)
    if parameters.service != "engine":
        return (log_of(parameters),)
    return (engine_of(parameters) if parameters.workload == "rows" else transactions_of(parameters),)


def without_data(part: Part, workers: int) -> Part:
    """Return a part with as little to load as there can be."""
    if isinstance(part, PagesPart):
        return part.model_copy(update={"pages": workers})
    if isinstance(part, OnEngine):
        return EnginePart(**part.model_dump(include=set(EnginePart.model_fields)) | {"rows": 1})
    return part.model_copy(update={"rows": 1}) if isinstance(part, TablePart) else part


def workers_of(parameters: SystemParameters) -> int:
    """Return the threads of the server, of all groups."""
    if parameters.study == "group-commit":
        return 1
    background = parameters.study == "propagation" and parameters.background == "writers"
    return parameters.workers + (parameters.writers if background else 0)


def engine_of(parameters: SystemParameters) -> EnginePart:
    """Return the storage engine."""
    return EnginePart(**_engine(parameters), row_size=parameters.row_size)


def transactions_of(parameters: SystemParameters) -> TransactionsPart:
    """Return the storage engine under a benchmark."""
    return TransactionsPart(
        **_engine(parameters),
        workload=cast(Benchmark, parameters.workload),
        zipf=exponent_of(parameters),
        warehouses=parameters.warehouses,
    )


def exponent_of(parameters: SystemParameters) -> float:
    """Return the exponent of Zipf's law by which rows are asked for."""
    assert isinstance(parameters.zipf, float), "settled"
    return parameters.zipf


def _engine(parameters: SystemParameters) -> dict[str, Any]:
    # Where a scenario leaves log and commits open, the kind has decided.
    shared = (
        "engine",
        "rows",
        "dram_capacity",
        "pmem_capacity",
        "ssd_capacity",
        "log_device",
        "commits",
        "cleaning",
        "cpu_cycles",
        "transaction_cycles",
    )
    return {name: getattr(parameters, name) for name in shared}


def log_of(parameters: SystemParameters) -> LogPart | BlockLogPart:
    """Return the log that requests append to."""
    if parameters.service == "block-log":
        return BlockLogPart(
            entry_size=parameters.entry_size,
            log_size=parameters.log_size // 512 * 512,
            largest_group=parameters.group_size,
        )
    return LogPart(
        algorithm=parameters.algorithm,
        entry_size=parameters.entry_size,
        log_size=parameters.log_size,
        largest_group=parameters.group_size,
    )


def transaction_log(parameters: SystemParameters) -> LogPart:
    """Return the log of the transactions that change pages."""
    return LogPart(
        algorithm=parameters.algorithm, entry_size=parameters.entry_size, log_size=parameters.log_size
    )


def pages_of(parameters: SystemParameters) -> PagesPart:
    """Return the pages that are written back."""
    return PagesPart(
        technique=parameters.technique,
        page_size=parameters.page_size,
        pages=parameters.pages,
        dirty_lines=parameters.dirty_lines,
    )
