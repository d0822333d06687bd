"""What the core refuses to build, asked before anything runs: a point is built once, without its data.

That takes less than a millisecond, and the rules stay where they are, in the core.
"""

import re
from collections.abc import Mapping, Sequence

from pmsim import _native
from pmsim.des.parts import PARTS, EnginePart, Part, native_parts
from pmsim.errors import CapacityError, ConfigError
from pmsim.kinds.engine_messages import CAPACITIES, REGION, in_parameters
from pmsim.kinds.engine_options import EngineParameters
from pmsim.platforms import Platform

#: Of a message about a part: its name is not one of the parameters.
_PART = re.compile(rf"^(?:{'|'.join(PARTS)})\.")


def check_workload(
    workload: str, machine: Platform, given: Mapping[str, int | str], parameters: EngineParameters | None = None
) -> None:
    """Refuse what the core refuses of a workload, or the host of its memory.

    What does not fit into the machine is a point of its own: sweeps over capacities end a curve there.
    """
    try:
        _native.check_workload(workload, machine.native(), dict(given))
    except CapacityError:
        return
    except ConfigError as error:
        # Where the core names the workload, too, the key would be none of the scenario.
        message = str(in_parameters(error, parameters)).removeprefix(f"{workload}.")
        raise type(error)(message) from None


def check_server(machine: Platform, parts: Sequence[Part], workers: int, *, crash: bool) -> None:
    """Refuse what the core refuses of a server."""
    native = native_parts(parts, machine, workers, crash)
    try:
        _native.Session(native, machine.native(), workers=workers, seed=0, crash=crash)
    except ConfigError as error:
        message = _PART.sub("", str(in_parameters(error)))
        # A region does not fit beside the others: one of the capacities is too large.
        tier = REGION.match(message) if any(isinstance(part, EnginePart) for part in parts) else None
        raise ConfigError(f"{CAPACITIES[tier[2]]}: {message}" if tier else message) from None
