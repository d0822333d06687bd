"""Searching better values for parameters of a platform, coordinate by coordinate.

What ``scripts/calibrate.py`` does with published measurements, ``pmsim calibrate`` with those of this machine.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pmsim.errors import ConfigError
from pmsim.platforms import Platform
from pmsim.units import Quantity

#: A row costs at most a factor of two: outliers say that a mechanism is missing, not which value is right.
LIMIT = math.log(2)
#: First step of a search: x1.25 and x0.8. Every round halves it.
FIRST_STEP = 0.25
#: Moves of one parameter in one direction within a round.
MOVES = 4
_LINE_BYTES = 64
_NOISE = 1e-6  # a smaller gain is none


def cost_of_ratio(predicted: float, measured: float) -> float:
    """``|log(predicted / measured)|``, at most log 2; log 2 where nothing was predicted."""
    if not predicted > 0:
        return LIMIT
    return min(LIMIT, abs(math.log(predicted / measured)))


@dataclass(frozen=True)
class Candidate:
    """A parameter that a search may change.

    Attributes
    ----------
    section, name : str
        Where it stands in the profile.
    quantity : Quantity
        What it measures.
    minimum, maximum : int [base units]
        The range that the core accepts.
    """

    section: str
    name: str
    quantity: Quantity
    minimum: int
    maximum: int

    @property
    def key(self) -> str:
        """``section.name``."""
        return f"{self.section}.{self.name}"

    def moved(self, value: int, factor: float) -> int | None:
        """Return the value times a factor, as a person would write it, or None where the range ends.

        Times, frequencies and bandwidths keep three digits, sizes stay whole cache lines, and a count changes
        by at least one.
        """
        step = _LINE_BYTES if self.quantity is Quantity.SIZE else 1
        if self.quantity in (Quantity.SIZE, Quantity.COUNT):
            new = round(value * factor / step) * step
        else:
            new = int(float(f"{value * factor:.3g}"))
        if new == value:
            new += step if factor > 1 else -step
        return new if self.minimum <= new <= self.maximum else None


@dataclass(frozen=True)
class Fit:
    """What a search came to."""

    platform: Platform
    start: float
    cost: float
    evaluations: int


def search(
    platform: Platform, parameters: Sequence[Candidate], cost_of: Callable[[Platform], float], rounds: int
) -> Fit:
    """Search coordinate by coordinate: every parameter up, and down where that is no better, while it gains.

    Parameters
    ----------
    platform : Platform
        Where the search starts.
    parameters : sequence of Candidate
        What may change.
    cost_of : callable
        The objective of a machine.
    rounds : int
        Passes over the parameters; each halves the step.

    Notes
    -----
    Bounded: at most ``1 + rounds * len(parameters) * (MOVES + 1)`` evaluations. A machine that cannot be, such
    as one with a queue smaller than its watermark, is passed over.
    """
    best, start = platform, cost_of(platform)
    cost, evaluations = start, 1
    for round_number in range(rounds):
        step = 1 + FIRST_STEP / 2**round_number
        for parameter in parameters:
            for factor in (step, 1 / step):
                moves = 0
                while moves < MOVES:
                    tried = _changed(best, parameter, factor)
                    if tried is None:
                        break
                    evaluations += 1
                    now = cost_of(tried)
                    if now >= cost - _NOISE:
                        break
                    best, cost = tried, now
                    moves += 1
                if moves:
                    break
    return Fit(best, start, cost, evaluations)


def _changed(platform: Platform, parameter: Candidate, factor: float) -> Platform | None:
    value = parameter.moved(platform.value(parameter.section, parameter.name), factor)
    if value is None:
        return None
    try:
        return platform.with_values({parameter.section: {parameter.name: value}}, source="calibration")
    except ConfigError:
        return None
