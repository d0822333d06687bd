"""Time a trace on a platform."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pmsim import arguments
from pmsim.errors import ConfigError
from pmsim.fields import fields
from pmsim.kinds.checks import hardware_threads
from pmsim.kinds.measurement import Measurement, replayed
from pmsim.platforms import Platform
from pmsim.profiles import load_platform
from pmsim.standing import stretch
from pmsim.trace_file import info, recorded_platform
from pmsim.units import Quantity, format_value


def replay(path: str | Path, platform: str | Mapping[str, Any] | Platform | None = None) -> Measurement:
    """Time a trace on a platform.

    On the platform of the recorded run this gives the recorded run's result, bit by bit; `pmsim.trace.record`
    says which run that is where a point is several. On another one the
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
    check_machine(path, machine)
    return replayed(path, [machine])[0]


def replays(path: Path, machines: Sequence[Platform]) -> list[Measurement]:
    """Time a trace on several machines; each result is that of `replay`.

    Machines that agree on caches, TLBs and prefetcher are timed in one pass, if the trace has one thread: what
    several find in the caches that they share depends on their times.
    """
    for machine in machines:  # before the first is timed
        check_machine(path, machine)
    alone = info(path).threads > 1
    passes: dict[Hashable, list[int]] = {}
    for index, machine in enumerate(machines):
        passes.setdefault(index if alone else _shared_state(machine), []).append(index)
    found: dict[int, Measurement] = {}
    for done, indices in enumerate(passes.values()):
        with stretch(done / len(passes), (done + 1) / len(passes)):
            measured = replayed(path, [machines[index] for index in indices])
        found.update(zip(indices, measured, strict=True))
    return [found[index] for index in range(len(machines))]


def _shared_state(machine: Platform) -> Hashable:
    return tuple(
        machine.value(section, name)
        for section, known in fields().items()
        for name, field in known.items()
        if field.lanes_share
    )


def check_machine(path: Path, machine: Platform) -> None:
    """Refuse a machine with fewer threads, or less of a block device, than the trace uses (`ConfigError`).

    What it needs of DRAM and PMem the core compares.
    """
    recorded, most = info(path), hardware_threads(machine)
    if recorded.threads > most:
        raise ConfigError(
            f"trace {path}: has {recorded.threads} threads, platform '{machine.name}' has {most}; choose a "
            "larger platform"
        )
    needed, held = recorded.extent_bytes["block"], machine.value("block", "capacity")
    if needed > held:
        has = f"one of {format_value(held, Quantity.SIZE)}" if held else "none"
        raise ConfigError(
            f"trace {path}: touches {needed:,} B of a block device, platform '{machine.name}' has {has}; "
            f"choose a platform with {'a larger' if held else 'a'} block_device, or write a profile with "
            f'base = "{machine.name}" and block_device = "..."'
        )
