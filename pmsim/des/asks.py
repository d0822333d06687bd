"""What requests ask for: mixes of kinds, each with its choice of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from pmsim import _native, arguments
from pmsim.des.server import Server
from pmsim.des.times import Time, duration
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.standing import stretch, watcher

#: The core adds the weights of a mix with 64 bits.
_LARGEST_WEIGHT = 2**32 - 1
_CHOICES = ("sequence", "uniform", "zipf")
#: As of the benchmarks: the largest exponent of Zipf's law.
_STEEPEST = 100


@dataclass(frozen=True)
class Ask:
    """One kind of request in a mix.

    Parameters
    ----------
    kind : str
        A kind of the server.
    weight : int
        Its share, relative to the other kinds of the mix.
    first : "sequence", "uniform", "zipf" or int
        How `first` of each request is chosen: consecutive numbers, uniformly or by Zipf's law below `below`, or
        always the same. Popular numbers lie anywhere, and are the same ones for all requests below one number.
    below : int
        For "uniform" and "zipf". For "sequence": where it begins.
    count : int
        `count` of each request.
    mean : int [ps] or text with a unit, optional
        `first` is exponentially distributed with this mean: service times of ``compute.run``.
    zipf : float
        For "zipf": the exponent, 0 to 100.
    """

    kind: str
    weight: int = 1
    first: Literal["sequence", "uniform", "zipf"] | int = "sequence"
    below: int = 0
    count: int = 1
    mean: Time | None = None
    zipf: float = 1.0

    def native(self, server: Server) -> tuple[int, int, str, int, int, float, float]:
        """Return it as the core takes it."""
        kind = server.kind(self.kind)
        weight = arguments.whole("weight", self.weight, 1, _LARGEST_WEIGHT)
        largest_first, largest_count = (min(most, arguments.LARGEST) for most in server.largest[kind])
        count = arguments.whole("count", self.count, 0, largest_count)
        # To the core 0 is no mean.
        mean = 0.0 if self.mean is None else float(duration("mean", self.mean, 1))
        if not isinstance(self.first, str):
            first = arguments.whole("first", self.first, 0, largest_first)
            return (weight, kind, "fixed", first, count, mean, 0.0)
        if self.first not in _CHOICES:
            raise ConfigError(f"first: unknown choice {shown(self.first)}; {nearest(self.first, _CHOICES)}")
        below = arguments.whole("below", self.below, 0 if self.first == "sequence" else 1)
        zipf = _exponent(self.zipf) if self.first == "zipf" else 0.0
        return (weight, kind, self.first, below, count, mean, zipf)


def warm_up(server: Server, mix: Sequence[Ask], requests: int, *, seed: int = 1) -> None:
    """Execute requests of a mix on a fresh server in no time: data and caches are then as they leave them.

    Nothing of it is counted. Each of the server's workers executes as many as the others.

    Parameters
    ----------
    server : Server
        Nobody has asked it for anything. What the requests have stored does not get lost when the power fails.
    mix : sequence of Ask
        What is asked for.
    requests : int
        How many.
    seed : int
        Of the mix.
    """
    asks = arguments.listed("mix", mix, Ask)
    number = arguments.whole("requests", requests, 0)
    native = _native.Mix([ask.native(server) for ask in asks], arguments.whole("seed", seed, 0))
    with stretch(0, 0):  # how long it takes beside the rest nobody knows
        _native.warm_up(server.session, native, number, watcher())


def _exponent(value: object) -> float:
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    if not 0 <= number <= _STEEPEST:
        raise ConfigError(f"zipf: {shown(value)} is no exponent; choose 0 to {_STEEPEST}")
    return number
