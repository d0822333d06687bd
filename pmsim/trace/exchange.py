"""Traces of other programs become traces of pmsim, and traces of pmsim tables."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pmsim import _native, arguments
from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.output_place import place_of
from pmsim.standing import watcher
from pmsim.trace.addresses import AddressSpace, ranges
from pmsim.trace.compose import Composer
from pmsim.trace.micro_ops import MICRO_OP
from pmsim.trace.source import Source
from pmsim.trace.table_names import check_is_table, is_table
from pmsim.trace.written import written
from pmsim.trace_file import PLAN_FIELDS, TraceInfo, info
from pmsim.versions import package_version

Loads = Literal["independent", "dependent"]


def export(trace: str | Path, out: str | Path) -> Path:
    """Write the micro-operations of a trace as a table, one row each (docs/traces.md).

    Operations of a thread are in their order; those of several threads alternate in pieces of some thousands. A
    Parquet file is imported again as the same trace; CSV forgets warm-up, seed and groups.

    Parameters
    ----------
    trace : str or Path
        A trace.
    out : str or Path
        Table to write: .parquet, .csv, .csv.gz or .csv.zst. An existing one is replaced when it is complete.

    Returns
    -------
    Path : `out`.

    Raises
    ------
    ConfigError : not a usable trace, or a table that cannot be written.
    """
    source = arguments.path("trace", trace)
    out = arguments.output("out", out, source)
    check_is_table(out)
    from pmsim.trace.table import TableWriter  # Arrow takes long to import, and few commands ask

    described = info(source)
    kept = {**described.plan, "provenance": described.provenance}
    kept["ended"] = described.operations_by_kind["operation_end"]
    reader = _native.TraceReader(source)
    with written(out) as partial:
        writer = TableWriter(partial, out, kept)
        try:
            for index in range(reader.chunks):
                thread, operations, batches = reader.chunk(index)  # names the trace itself
                try:
                    writer.add(thread, np.frombuffer(operations, dtype=MICRO_OP), batches)
                except ConfigError as error:
                    raise error.prefixed(f"trace {source}") from None
                _tell("exporting", (index + 1) / reader.chunks)
        finally:
            writer.close()
    return out


def import_from(
    file: str | Path,
    out: str | Path,
    *,
    pmem: Sequence[tuple[int, int]] = (),
    loads: Loads = "independent",
    mark: int | None = None,
    warmup: int | None = None,
    operations: int | None = None,
    seed: int | None = None,
) -> TraceInfo:
    """Make a trace of what another program has recorded.

    Addresses are virtual ones, which get a place in pages of 2 MiB in the order of their first use, unless a
    table has the column ``medium``.

    Parameters
    ----------
    file : str or Path
        A table (.parquet, .csv, .csv.gz, .csv.zst; docs/traces.md), or what valgrind's lackey has written.
    out : str or Path
        The trace to write; an existing one is replaced when this one is complete.
    pmem : sequence of (int, int)
        Ranges of virtual addresses that are persistent memory, begin and end; all others are DRAM.
    loads : "independent" or "dependent"
        Of lackey, which does not say: whether the address of a load depends on the load before it.
    mark : int, optional
        Of lackey: a virtual address. Whenever the program stores to it, an operation of the workload ends; what
        follows the last such store is left out.
    warmup : int, optional
        Operations of the workload that are executed before the measurement begins; by default 0, with `mark` 1:
        what precedes the first mark.
    operations : int, optional
        Those that are measured then; by default all that follow.
    seed : int, optional
        Of what the machine draws; by default 0, or that of the exported trace.

    Raises
    ------
    ConfigError : ``file: column: row: problem; remedy``.
    """
    file = arguments.path("file", file)
    out = arguments.output("out", out, file)
    if loads not in ("independent", "dependent"):
        raise ConfigError(f"loads: {shown(loads)} is unknown; choose 'independent' or 'dependent'")
    mark = None if mark is None else arguments.whole("mark", mark, 0)
    warmup = int(mark is not None) if warmup is None else arguments.whole("warmup", warmup, 0)
    if operations is not None:
        operations = arguments.whole("operations", operations, 1)
    if seed is not None:
        seed = arguments.whole("seed", seed, 0)
    space = AddressSpace(ranges("pmem", pmem))
    source = _source(file, loads, mark)
    _tell("checking", 0)
    threads, ended = source.outline()
    kept = source.kept()
    plan = _plan(kept, len(threads), ended, warmup=warmup, operations=operations, seed=seed)
    imported = {"form": source.form, "pmem": list(map(list, pmem)), "loads": loads, "mark": mark}
    provenance = {**kept.get("provenance", {}), "pmsim": package_version(), "imported": imported}
    place, text = place_of(out), json.dumps(provenance, sort_keys=True)
    writer = _native.TraceWriter(place, max(1, len(threads)), text, **plan)
    try:
        composer = Composer(str(file), writer, threads, space, marked=ended > 0)
        for rows in source.pieces():
            if pmem and rows.window.any():
                raise ConfigError("pmem: the table says it itself, in the column 'medium'; leave this out")
            composer.add(rows)
        if not composer.operations:
            raise ConfigError(f"{file}: holds no micro-operation; record some")
        composer.finish()
    finally:
        writer.discard()
    return info(out)


def _source(file: Path, loads: Loads, mark: int | None) -> Source:
    """Choose what reads a file, by its name, and refuse what that has no use for."""
    if not file.is_file():
        raise ConfigError(f"{file}: no such file; name a table, or what valgrind's lackey has written")
    if not is_table(file):
        from pmsim.trace.lackey import Lackey

        return Lackey(file, dependent=loads == "dependent", mark=mark)
    if loads != "independent":
        raise ConfigError("loads: a table says it itself, in the column 'flags'; leave this out")
    if mark is not None:
        raise ConfigError("mark: a table says it itself, by rows of kind 'operation_end'; leave this out")
    from pmsim.trace.table import Table  # Arrow takes long to import

    return Table(file)


def _plan(
    kept: Mapping[str, Any],
    threads: int,
    ended: int,
    *,
    warmup: int,
    operations: int | None,
    seed: int | None,
) -> dict[str, Any]:
    """Say how the trace is driven: as the run that was exported, unless somebody has changed its rows."""
    asked = warmup > 0 or operations is not None or seed is not None
    if not asked and kept.get("ended") == ended and len(kept.get("group_of_thread", [])) == threads:
        return {name: kept[name] for name in PLAN_FIELDS}
    if warmup + (operations or 0) > 0 and warmup + (operations or 1) > ended:
        key, number = ("operations", operations) if operations else ("warmup", warmup)
        raise ConfigError(f"{key}: {number}: {ended} operations end in the trace; choose less")
    return {
        "seed": seed or 0,
        "warmup_operations": warmup,
        "untimed_operations": 0,
        # One more than there are: it ends with the threads, not where the last operation is dispatched.
        "measured_operations": operations or ended - warmup + 1,
        "pmem_footprint": 0,
        "shares_lines": int(threads > 1),  # as far as anybody knows
        "group_of_thread": [],
    }


def _tell(doing: str, share: float) -> None:
    watch = watcher()
    if watch is not None:
        watch(doing, share)
