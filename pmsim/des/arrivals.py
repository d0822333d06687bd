"""When requests come: open loops by their distances, and clients that wait for answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pmsim import _native, arguments
from pmsim.des.times import Time, duration, picoseconds
from pmsim.errors import ConfigError

#: More would think for longer than anybody waits, and take the host's memory.
_MOST_CLIENTS = 10**6


@dataclass(frozen=True)
class Poisson:
    """Requests that come independently of each other.

    Parameters
    ----------
    rate : float [1/s]
        Mean requests per second.
    """

    rate: float

    def native(self, seed: int) -> _native.Arrivals:
        """Return what draws the gaps."""
        return _arrivals("poisson", {"interval": _interval(self.rate)}, seed)


@dataclass(frozen=True)
class Paced:
    """Requests at equal distances.

    Parameters
    ----------
    interval : int [ps] or text with a unit
        From one to the next, at least 1 ps.
    """

    interval: Time

    def native(self, seed: int) -> _native.Arrivals:
        """Return what draws the gaps."""
        # With 0 time would stand still.
        return _arrivals("paced", {"interval": duration("interval", self.interval, 1)}, seed)


@dataclass(frozen=True)
class Bursty:
    """Poisson requests in on phases, none in off phases; both phases last exponentially (interrupted Poisson).

    Parameters
    ----------
    rate : float [1/s]
        Mean requests per second *in an on phase*.
    on, off : int [ps] or text with a unit
        Mean lengths of the phases.
    """

    rate: float
    on: Time
    off: Time

    def native(self, seed: int) -> _native.Arrivals:
        """Return what draws the gaps."""
        numbers = {
            "interval": _interval(self.rate),
            "on": duration("on", self.on, 1),
            "off": duration("off", self.off, 1),
        }
        return _arrivals("bursty", numbers, seed)


@dataclass(frozen=True)
class TraceDriven:
    """Requests at given times [ps] from the beginning of the load on, ascending."""

    times: Sequence[int]

    def __post_init__(self) -> None:
        # Of its own and in full: what a long run is known by (`LongRun`) is not the shortened text of an array.
        object.__setattr__(self, "times", tuple(self.times))

    def native(self, seed: int) -> _native.Arrivals:
        """Return what gives the gaps."""
        try:
            times = [picoseconds(time) for time in self.times]
        except ConfigError as error:
            raise error.prefixed("times") from None
        return _native.Arrivals("trace", {}, times, seed)


@dataclass(frozen=True)
class ClosedPool:
    """Clients that think, ask, wait for the answer, and think again.

    Parameters
    ----------
    clients : int
        How many, at least 1.
    think : int [ps] or text with a unit
        Mean think time; every client thinks before its first request.
    exponential : bool
        Whether think times are exponentially distributed, or all alike.
    """

    clients: int
    think: Time = 0
    exponential: bool = True

    def native(self, seed: int) -> _native.Arrivals:
        """Return what draws the think times."""
        arguments.whole("clients", self.clients, 1, _MOST_CLIENTS)  # 0 is an open loop to the core
        think = duration("think", self.think)
        kind = "poisson" if self.exponential and think > 0 else "paced"
        return _arrivals(kind, {"interval": think}, seed)


ArrivalsLike = Poisson | Paced | Bursty | TraceDriven | ClosedPool


def _interval(rate: float) -> float:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1e12:
        raise ConfigError(f"rate: {rate!r} per second; choose a number between 0 and 1e12")
    return 1e12 / rate


def _arrivals(kind: str, numbers: Mapping[str, float], seed: int) -> _native.Arrivals:
    return _native.Arrivals(kind, dict(numbers), [], seed)
