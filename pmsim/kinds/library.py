"""What kinds with undo-log transactions have in common: the CPU cost of a call of their library."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from pmsim.errors import ConfigError
from pmsim.units import Measures, Quantity, parse

#: CPU cycles of begin, add-range, allocate, free and commit beside what they move, flush and check. Set on
#: the one time that the paper states of its library: a deallocation, in a transaction of its own, takes about
#: 2 us (Götze et al., DaMoN 2020, section 5.4; docs/calibration.md).
LIBRARY_CYCLES = 1510

_MOST_CYCLES = 1_000_000


def _cycles(value: object) -> int:
    count = parse(value, Quantity.COUNT)
    if not 0 <= count <= _MOST_CYCLES:
        raise ConfigError(f"{count} cycles of a call; choose 0 to {_MOST_CYCLES}")
    return count


LibraryCycles = Annotated[int, BeforeValidator(_cycles), Measures(Quantity.COUNT)]

#: The field of kinds and parts with a storage engine.
EngineLibraryCycles = Annotated[
    LibraryCycles,
    Field(
        description="nvm-undo: CPU cycles of a call of the transaction library, beside what it moves and "
        "checks; a calibration"
    ),
]
