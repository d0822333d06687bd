"""``pmsim trace``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from pmsim.commands.once import OnceCommand
from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.path_option import path_option
from pmsim.platforms import Platform
from pmsim.profiles import load_platform, platform_names
from pmsim.progress import progress_bar
from pmsim.standing import watched
from pmsim.terminal import Column, complaints, output, print_table
from pmsim.trace.exchange import Loads, export, import_from
from pmsim.trace.record import record
from pmsim.trace.replay import replays
from pmsim.trace.requests import FORMS, MediumName, requests
from pmsim.trace_file import TraceInfo, info, recorded_platform

#: Parameters of a derived platform that `pmsim trace info` names.
_CHANGES_SHOWN = 4
#: Operations and bytes of user data of a trace that does not say where they end.
_NOT_MARKED = "not marked"

trace_app = typer.Typer(
    no_args_is_help=True,
    help="Record, inspect, replay, import and export micro-operation traces; write what they ask of memory.",
)


@trace_app.command("record", cls=OnceCommand)
def _record_command(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or the name of a shipped scenario.")],
    out: Annotated[Path, path_option("The file to write.")],
    point: Annotated[int, typer.Option(help="Number of the point, from 1.")] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="As for pmsim run; may be repeated."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Replaces the scenario's seed.")] = None,
) -> None:
    """Run one point of a scenario and write its micro-operations to a file.

    Of kinds log, in-place, operations, persist and contention, which measure
    latencies in a second run, the first one is recorded (docs/traces.md).
    """
    with progress_bar(out.name, 1, None) as show, watched(lambda doing, share: show(share, doing)):
        recorded = record(scenario, out, point=point, set=set_, seed=seed)
    _print_info(recorded)


@trace_app.command("replay", cls=OnceCommand)
def _replay_command(
    file: Annotated[Path, typer.Argument(help="The trace.")],
    platform: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Where to time it; by default where it was recorded. May be repeated."
        ),
    ] = None,
) -> None:
    """Time a trace on one or several platforms."""
    machines = [load_platform(name) for name in platform] if platform else [recorded_platform(info(file))]
    rows = []
    for machine, measured in zip(machines, replays(file, machines), strict=True):
        total = measured.total
        latencies = [total.latency.mean_ps, total.latency.p99_ps]
        rows.append(
            [
                _with_changes(machine),
                f"{total.elapsed_ps / 1e9:.6f}",
                f"{total.operations:,}" if total.operations else _NOT_MARKED,
                f"{total.bandwidth_gb_s:.2f}" if total.user_bytes else _NOT_MARKED,
                *(f"{value / 1e3:.1f}" if total.latency.is_measured else "not measured" for value in latencies),
            ]
        )
    numbers = ("time [ms]", "operations", "GB/s", "latency [ns]", "p99 [ns]")
    print_table(
        output(), [Column("platform", narrow="wrap"), *(Column(name, right=True) for name in numbers)], rows
    )
    if note := _without_changes(info(file), machines):
        complaints().print(f"pmsim: {note}", soft_wrap=True)


@trace_app.command("import", cls=OnceCommand)
def _import_command(
    file: Annotated[
        Path, typer.Argument(help="A table, .csv or .parquet (docs/traces.md), or a log of valgrind's lackey.")
    ],
    out: Annotated[Path, path_option("The trace to write.")],
    pmem: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BEGIN-END",
            help="Virtual addresses on persistent memory, hexadecimal, as in /proc/PID/maps; may be repeated.",
        ),
    ] = None,
    loads: Annotated[
        str,
        typer.Option(
            metavar="independent|dependent",
            help="Of lackey, which does not say: whether each load waits for the one before it.",
        ),
    ] = "independent",
    mark: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of lackey: where the program stores to end an operation of the workload, hexadecimal.",
        ),
    ] = None,
    warmup: Annotated[
        int | None,
        typer.Option(help="Operations of the workload before the measurement. [default: (0; with --mark 1)]"),
    ] = None,
    operations: Annotated[
        int | None, typer.Option(help="Those that are measured. [default: (all that follow)]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of what the machine draws.")] = None,
) -> None:
    """Make a trace of what another program has recorded."""
    ranges = [_range(text) for text in pmem or []]
    chosen = cast(Loads, loads)
    with progress_bar(out.name, 1, None) as show, watched(lambda doing, share: show(share, doing)):
        imported = import_from(
            file,
            out,
            pmem=ranges,
            loads=chosen,
            mark=None if mark is None else _address("--mark", mark),
            warmup=warmup,
            operations=operations,
            seed=seed,
        )
    _print_info(imported)


def _range(text: str) -> tuple[int, int]:
    begin, dash, end = text.partition("-")
    if not dash:
        raise ConfigError(f"--pmem: {shown(text)} is no range; write two addresses: 7f0000000000-7f0040000000")
    return _address("--pmem", begin), _address("--pmem", end)


def _address(option: str, text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise ConfigError(f"{option}: {shown(text)} is no address; write it hexadecimal: 7f0040") from None


@trace_app.command("export", cls=OnceCommand)
def _export_command(
    file: Annotated[Path, typer.Argument(help="The trace.")],
    out: Annotated[Path, path_option("Table to write: .parquet, .csv, .csv.gz or .csv.zst.")],
) -> None:
    """Write the micro-operations of a trace as a table, one row each."""
    with progress_bar(out.name, 1, None) as show, watched(lambda doing, share: show(share, doing)):
        written = export(file, out)
    output().print(f"{written}: {info(file).operations:,} micro-operations", soft_wrap=True)


@trace_app.command("requests", cls=OnceCommand)
def _requests_command(
    file: Annotated[Path, typer.Argument(help="The trace.")],
    out: Annotated[Path, path_option("The file to write; a table is .parquet, .csv, .csv.gz or .csv.zst.")],
    form: Annotated[str, typer.Option(metavar="|".join(FORMS), help="For which simulator, or as a table.")],
    medium: Annotated[str, typer.Option(metavar="dram|pmem", help="Whose lines.")],
    platform: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where to time it. [default: (where it was recorded)]")
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Period or frequency of the clock that the simulator counts: '1.25 ns', '800 MHz'.",
        ),
    ] = None,
    measured_only: Annotated[
        bool, typer.Option("--measured-only", help="Leave the warm-up out, and count time from its end.")
    ] = False,
) -> None:
    """Write every line that a trace reads from a memory or writes to it, for a memory simulator."""
    whose = cast(MediumName, medium)
    with progress_bar(out.name, 1, None) as show, watched(lambda doing, share: show(share, doing)):
        counts = requests(
            file, out, form=form, medium=whose, platform=platform, clock=clock, measured_only=measured_only
        )
    output().print(f"{counts.path}: {counts.reads:,} reads, {counts.writes:,} writes", soft_wrap=True)


@trace_app.command("info", cls=OnceCommand)
def _info_command(
    file: Annotated[Path, typer.Argument(help="The trace.")],
    verify: Annotated[bool, typer.Option("--verify", help="Read all of it and compare its checksums.")] = False,
) -> None:
    """Say what a trace holds and where it comes from."""
    _print_info(info(file, verify=verify), verified=verify)


def _print_info(trace: TraceInfo, *, verified: bool = False) -> None:
    rows = _info_rows(trace)
    if verified:
        counted = f"{trace.operations:,} micro-operations on {trace.threads:,} threads"
        rows.append(("verified", f"all of it was read: every checksum, and the counts of {counted}"))
    width = max(len(key) for key, _ in rows)
    for key, value in rows:
        output().print(f"{key:{width}}  {value}", soft_wrap=True)


def _recorded_on(trace: TraceInfo) -> str:
    """Name the platform, and what the scenario or its kind had changed of it."""
    try:
        machine = recorded_platform(trace)
    except ConfigError:
        platform = trace.provenance.get("platform")
        return str(platform.get("name")) if isinstance(platform, dict) else "unknown"
    return _with_changes(machine)


def _without_changes(trace: TraceInfo, machines: Sequence[Platform]) -> str:
    """Say that what the recording had changed of its platform, as ``scale`` its caches, is not so elsewhere."""
    try:
        recorded = recorded_platform(trace)
    except ConfigError:
        return ""
    others = [machine.name for machine in machines if machine.hash != recorded.hash]
    if not others or not (changed := _changes(recorded)):
        return ""
    return (
        f"{trace.path} was recorded on {recorded.name} with {changed}, which is not so of {', '.join(others)}; "
        "leave --platform out to time it as it was recorded, or name a profile with these values"
    )


def _with_changes(machine: Platform) -> str:
    """Name a machine, and what of it is not as in the shipped profile of that name."""
    changed = _changes(machine)
    return machine.name + (f" with {changed}" if changed else "")


def _changes(machine: Platform) -> str:
    """List what of a machine is not as in the shipped profile of its name."""
    if machine.name not in platform_names():
        return ""
    shipped = load_platform(machine.name).native()
    changed = [
        f"{row.section}.{row.name} = {row.value}"
        for row in machine.rows()
        if machine.value(row.section, row.name) != shipped[row.section][row.name]
    ]
    more = f" and {len(changed) - _CHANGES_SHOWN} more" if len(changed) > _CHANGES_SHOWN else ""
    return ", ".join(changed[:_CHANGES_SHOWN]) + more


def _verb(made_from: Mapping[str, Any]) -> str:
    imported = made_from.get("imported")
    return f"{imported.get('form')} imported by" if isinstance(imported, Mapping) else "recorded by"


def _measured(trace: TraceInfo) -> str:
    ended, warmup = trace.operations_by_kind["operation_end"], trace.plan["warmup_operations"]
    if not ended:
        return "all of it; it does not say where operations of a workload end"
    measured = min(trace.plan["measured_operations"], ended - warmup)
    untimed = trace.plan["untimed_operations"]
    not_timed = f", of which the first {untimed:,} are not timed" if untimed else ""
    return f"{measured:,} operations of the workload, after {warmup:,}{not_timed}"


def _info_rows(trace: TraceInfo) -> list[tuple[str, str]]:
    made_from = trace.provenance
    rows = [
        ("file", str(trace.path)),
        ("format version", str(trace.version)),
        (_verb(made_from), f"pmsim {made_from.get('pmsim', 'of unknown version')}"),
        ("platform", _recorded_on(trace)),
        ("workload", str(made_from.get("workload", "unknown"))),
        ("seed", str(made_from.get("seed", trace.plan["seed"]))),
        ("threads", f"{trace.threads:,}"),
        ("measured", _measured(trace)),
        ("micro-operations", f"{trace.operations:,}"),
    ]
    rows += [(f"  {kind}", f"{count:,}") for kind, count in trace.operations_by_kind.items() if count]
    rows += [(f"{medium} touched", f"{size:,} B") for medium, size in trace.extent_bytes.items() if size]
    imported = made_from.get("imported")
    asked = imported.get("pmem", []) if isinstance(imported, Mapping) else []
    if asked and not trace.extent_bytes["pmem"]:  # as with the ranges of another run of the program
        ranges = ", ".join(f"{begin:x}-{end:x}" for begin, end in asked)
        rows.append(("pmem touched", f"0 B: no address was in {ranges} (--pmem)"))
    rows.append(("size", f"{trace.file_bytes:,} B, {trace.bytes_per_operation:.3f} B per micro-operation"))
    return rows
