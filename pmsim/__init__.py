"""pmsim: how a storage engine behaves on a machine with DRAM, persistent memory and SSD, simulated.

>>> import pmsim
>>> result = pmsim.run("device/latency")  # doctest: +SKIP
>>> result.frame  # doctest: +SKIP
"""

import importlib
from typing import TYPE_CHECKING, Any

try:
    from pmsim import _native as _native
except ImportError as error:
    error.add_note(
        "The C++ core of pmsim is not built here: run `make build`, or `pip install -e .`, in its folder."
    )
    raise

from pmsim.api import run, simulate_point
from pmsim.errors import ConfigError, HostMemoryError, InternalError, PmsimError, SimulationError
from pmsim.platforms import Platform
from pmsim.profiles import load_platform, platform_names
from pmsim.runner import RunInterrupted
from pmsim.scenario import Scenario
from pmsim.shipped import scenario_names
from pmsim.versions import package_version

if TYPE_CHECKING:
    from pmsim.results import Result

__version__ = package_version()


def __getattr__(name: str) -> Any:
    # Frames and figures take a second to import; the workers of a run need neither.
    if name == "Result":
        from pmsim.results import Result

        return Result
    if name in ("crash", "prototype", "trace", "tuning"):  # the pages write pmsim.tuning.tune
        return importlib.import_module(f"pmsim.{name}")
    raise AttributeError(f"module 'pmsim' has no attribute '{name}'")


__all__ = [
    # running
    "run",
    "simulate_point",
    "Scenario",
    "Result",
    "scenario_names",
    # platforms
    "load_platform",
    "platform_names",
    "Platform",
    # errors
    "PmsimError",
    "ConfigError",
    "HostMemoryError",
    "SimulationError",
    "InternalError",
    "RunInterrupted",
    "__version__",
]
