"""Time a trace on a platform."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pmsim import _native, arguments
from pmsim.errors import ConfigError
from pmsim.kinds.checks import hardware_threads
from pmsim.kinds.measurement import Measurement, replayed
from pmsim.platforms import Platform
from pmsim.profiles import load_platform
from pmsim.trace_file import info, recorded_platform


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
    check_threads(path, machine)
    return replayed(path, [machine])[0]


def check_threads(path: Path, machine: Platform) -> None:
    threads, most = _native.trace_info(path, False)["threads"], hardware_threads(machine)
    if threads > most:
        raise ConfigError(
            f"trace {path}: has {threads} threads, platform '{machine.name}' has {most}; choose a larger "
            "platform"
        )
