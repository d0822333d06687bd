"""Traces: record the micro-operations of a point, look at them, time them on another platform."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from pmsim import _native, arguments
from pmsim.api import load_scenario, origin_of
from pmsim.errors import ConfigError
from pmsim.fields import fields
from pmsim.host_room import check_room
from pmsim.kinds import find_kind
from pmsim.kinds.checks import hardware_threads
from pmsim.kinds.measurement import Measurement, measurement_of, simulator
from pmsim.messages import shown
from pmsim.overrides import with_overrides
from pmsim.path_option import path_option
from pmsim.platforms import Platform
from pmsim.points import Point
from pmsim.profiles import load_platform, platform_names
from pmsim.progress import progress_bar
from pmsim.runner import evaluate
from pmsim.scenario import Scenario
from pmsim.standing import phases, watched
from pmsim.terminal import Column, output, print_table
from pmsim.unused import checked_points
from pmsim.versions import native_version, package_version

#: Parameters of a derived platform that `pmsim trace info` names.
_CHANGES_SHOWN = 4


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
        file_bytes=row["file_bytes"],
        provenance=provenance,
    )


def record(
    scenario: str | Path | Scenario,
    out: str | Path,
    *,
    point: int = 1,
    set: Mapping[str, Any] | Iterable[str] | None = None,
    seed: int | None = None,
) -> TraceInfo:
    """Run one point of a scenario and write its micro-operations to a file.

    A kind that simulates several times per point is recorded the first time: of "mixed", all groups together.

    Parameters
    ----------
    scenario : str, Path or Scenario
        As for `pmsim.run`.
    out : str or Path
        The file to write; an existing one is replaced when the recording is complete.
    point : int
        Number of the point, from 1, in the order of the rows.
    set, seed : optional
        As for `pmsim.run`.

    Raises
    ------
    ConfigError : the scenario or the point cannot be run, or the file cannot be written.
    """
    out = arguments.path("out", out)
    written = load_scenario(scenario)
    resolved = with_overrides(written, {} if set is None else set, seed=seed)
    try:
        points = checked_points(resolved, written)
    except ConfigError as error:
        raise error.prefixed(origin_of(scenario)) from None
    if isinstance(point, bool) or not isinstance(point, int) or not 1 <= point <= len(points):
        raise ConfigError(f"point: {shown(point)} does not exist; choose 1 to {len(points)}")
    chosen = points[point - 1]
    if not find_kind(chosen.kind).recordable:
        raise ConfigError(
            f"kind '{chosen.kind}' cannot be recorded: when its requests come decides what is executed; "
            "record another kind, such as log, page-flush or oltp"
        )
    check_room([chosen])
    recorder = _Recorder(out, _provenance(resolved, point, chosen))
    token = simulator.set(recorder)
    try:
        evaluate(chosen)
    finally:
        simulator.reset(token)
    if not recorder.recorded:
        raise ConfigError(
            f"point: nothing was simulated of point {point}, its data do not fit; choose another one, or raise "
            "a capacity"
        )
    return info(out)


def replay(path: str | Path, platform: str | Mapping[str, Any] | Platform | None = None) -> Measurement:
    """Time a trace on a platform.

    On the platform of the recorded run this gives the recorded run's result, bit by bit. On another one the
    threads progress at other relative speeds, but each executes the recorded micro-operations in order; one
    that has executed all of its own stops, and the measurement ends at the recorded number of operations.

    Parameters
    ----------
    path : str or Path
        The trace.
    platform : str, mapping or Platform, optional
        As for `load_platform`; by default the machine of the recorded run.

    Raises
    ------
    ConfigError : not a usable trace, or one that the platform has not enough memory or threads for.
    """
    machine = recorded_platform(info(path)) if platform is None else load_platform(platform)
    path = arguments.path("trace", path)
    _check_threads(path, machine)
    (row,) = _native.trace_replay(path, [machine.native()], phases())
    return measurement_of(row, machine)


def _check_threads(path: Path, machine: Platform) -> None:
    threads, most = _native.trace_info(path, False)["threads"], hardware_threads(machine)
    if threads > most:
        raise ConfigError(
            f"trace {path}: has {threads} threads, platform '{machine.name}' has {most}; choose a larger "
            "platform"
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


@dataclass
class _Recorder:
    """Stands in for the core's simulate(): the first simulation is recorded, further ones are only run."""

    path: Path
    provenance: dict[str, Any]
    done: bool = False
    recorded: bool = False

    def __call__(
        self,
        workload: str,
        platforms: list[dict[str, dict[str, int]]],
        parameters: dict[str, int | str],
        seed: int,
    ) -> list[dict[str, Any]]:
        if self.done:
            return _native.simulate(workload, platforms, parameters, seed, phases())
        self.done = True
        provenance = self.provenance | {"workload": workload, "workload_parameters": parameters, "seed": seed}
        text = json.dumps(provenance, sort_keys=True, separators=(",", ":"), default=_digest)
        result = _native.trace_record(self.path, workload, platforms, parameters, seed, text, phases())
        self.recorded = True
        return result


def _digest(content: bytes) -> str:
    """Name what is too long for a header: recorded requests."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _provenance(scenario: Scenario, number: int, point: Point) -> dict[str, Any]:
    """Everything that made the streams; no clock and no path, so that the same run gives the same file."""
    machine = point.platform
    return {
        "pmsim": package_version(),
        "core": native_version(),
        "scenario": scenario.to_toml(),
        "point": number,
        "axes": dict(point.axes),
        "platform": {"name": machine.name, "hash": machine.hash, "values": machine.native()},
    }


trace_app = typer.Typer(no_args_is_help=True, help="Record, inspect and replay micro-operation traces.")


@trace_app.command("record")
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
    """Run one point of a scenario and write its micro-operations to a file."""
    with progress_bar(out.name, 1, None) as show, watched(lambda doing, share: show(share, doing)):
        recorded = record(scenario, out, point=point, set=set_, seed=seed)
    _print_info(recorded)


@trace_app.command("replay")
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
    for machine in machines:  # before the first is timed
        _check_threads(file, machine)
    rows = []
    for machine in machines:
        measured = replay(file, machine)
        total = measured.total
        latencies = [total.latency.mean_ps, total.latency.p99_ps]
        shown = [f"{value / 1e3:.1f}" if total.latency.max_ps else "not measured" for value in latencies]
        rows.append(
            [
                machine.name,
                f"{total.elapsed_ps / 1e9:.6f}",
                f"{total.operations:,}",
                f"{total.bandwidth_gb_s:.2f}",
                *shown,
            ]
        )
    numbers = ("time [ms]", "operations", "GB/s", "latency [ns]", "p99 [ns]")
    print_table(output(), ["platform", *(Column(name, right=True) for name in numbers)], rows)


@trace_app.command("info")
def _info_command(
    file: Annotated[Path, typer.Argument(help="The trace.")],
    verify: Annotated[bool, typer.Option("--verify", help="Read all of it and compare its checksums.")] = False,
) -> None:
    """Say what a trace holds and where it comes from."""
    _print_info(info(file, verify=verify))


def _print_info(trace: TraceInfo) -> None:
    rows = _info_rows(trace)
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
    if machine.name not in platform_names():
        return machine.name
    shipped = load_platform(machine.name).native()
    changed = [
        f"{row.section}.{row.name} = {row.value}"
        for row in machine.rows()
        if machine.value(row.section, row.name) != shipped[row.section][row.name]
    ]
    more = f" and {len(changed) - _CHANGES_SHOWN} more" if len(changed) > _CHANGES_SHOWN else ""
    return machine.name + (f" with {', '.join(changed[:_CHANGES_SHOWN])}{more}" if changed else "")


def _info_rows(trace: TraceInfo) -> list[tuple[str, str]]:
    made_from = trace.provenance
    rows = [
        ("file", str(trace.path)),
        ("format version", str(trace.version)),
        ("recorded by", f"pmsim {made_from.get('pmsim', 'of unknown version')}"),
        ("platform", _recorded_on(trace)),
        ("workload", str(made_from.get("workload", "unknown"))),
        ("seed", str(made_from.get("seed", "unknown"))),
        ("threads", f"{trace.threads:,}"),
        ("micro-operations", f"{trace.operations:,}"),
    ]
    rows += [(f"  {kind}", f"{count:,}") for kind, count in trace.operations_by_kind.items() if count]
    rows += [(f"{medium} touched", f"{size:,} B") for medium, size in trace.extent_bytes.items() if size]
    rows.append(("size", f"{trace.file_bytes:,} B, {trace.bytes_per_operation:.3f} B per micro-operation"))
    return rows
