"""Faults as SimPy processes: power failures, slow devices, pauses."""

from collections.abc import Generator, Iterable
from typing import Any, Literal

from simpy.events import Event

from pmsim import _native, arguments
from pmsim.des import times
from pmsim.des.request import Recovery
from pmsim.des.server import Server
from pmsim.des.times import Time
from pmsim.errors import ConfigError
from pmsim.messages import shown

Device = Literal["pmem", "block"]


def power_failures(
    server: Server,
    *,
    at: Iterable[Time] | None = None,
    mean: Time | None = None,
    restart_after: Time = 0,
    seed: int = 1,
    log: list[Recovery] | None = None,
) -> Generator[Event, Any, None]:
    """Let the power fail at given times, then, with both, at random ones.

    ``env.process(power_failures(server, ...))``.

    Parameters
    ----------
    server : Server
        Made with ``crash=True``.
    at : iterable of times [ps], optional
        When; ascending. A time at which the server is still down fails its recovery.
    mean : int [ps] or text with a unit, optional
        Mean of exponential times between failures, counted from the end of each recovery.
    restart_after : int [ps] or text
        From a failure until the recovery begins.
    seed : int
        Of the random times, and of what survives.
    log : list, optional
        Gets every `Recovery`: one for all failures from the first until the server is ready again.

    Raises
    ------
    ConfigError : neither times nor a mean; when it comes to it, a time that is over.
    """
    if at is None and mean is None:
        raise ConfigError("at: no power failure is asked for; give times (at), or a mean distance (mean)")
    restart = times.duration("restart_after", restart_after)
    return _power_failures(server, at, None if mean is None else _gaps(mean, seed), restart, seed, log)


def _power_failures(
    server: Server,
    at: Iterable[Time] | None,
    gaps: _native.Arrivals | None,
    restart_after: int,
    seed: int,
    log: list[Recovery] | None,
) -> Generator[Event, Any, None]:
    env = server.env
    number, ready = 0, None
    for number, time in enumerate(at or (), start=1):
        yield _at(server, "at", time)
        ready = server.power_failure(restart_after=restart_after, seed=seed + number - 1)
        if log is not None:
            ready.callbacks.append(lambda event: _note(log, event._value))
    if gaps is not None:
        if ready is not None:
            yield ready
        while True:
            yield env.timeout(gaps.next())
            recovery = yield server.power_failure(restart_after=restart_after, seed=seed + number)
            number += 1
            if log is not None:
                _note(log, recovery)


def slow_periods(
    server: Server, device: Device, periods: Iterable[tuple[Time, Time, int]]
) -> Generator[Event, Any, None]:
    """Slow a device down in periods of (begin, end, percent of its times), ascending and disjoint."""
    for begin, end, percent in periods:
        yield _at(server, "periods", begin)
        server.slow_down(device, percent)
        yield _at(server, "periods", end)
        server.slow_down(device, 100)


def stalls(
    server: Server, device: Device, *, mean: Time, duration: Time, seed: int = 1
) -> Generator[Event, Any, None]:
    """Let a device pause for `duration` after exponential times with a mean: wear levelling of a worn medium.

    The machine model has wear levelling of its own where its platform has ``pmem.wear_stall_writes``; this is
    for what comes on top.
    """
    return _stalls(server, device, _gaps(mean, seed), times.duration("duration", duration))


def _stalls(server: Server, device: Device, gaps: _native.Arrivals, pause: int) -> Generator[Event, Any, None]:
    while True:
        yield server.env.timeout(gaps.next())
        server.stall(device, pause)


def _gaps(mean: Time, seed: int) -> _native.Arrivals:
    interval = times.duration("mean", mean, 1)
    return _native.Arrivals("poisson", {"interval": interval}, [], arguments.whole("seed", seed, 0))


def _note(log: list[Recovery], recovery: Recovery) -> None:
    if not log or log[-1] is not recovery:
        log.append(recovery)


def _at(server: Server, key: str, time: Time) -> Event:
    """Return the event of a time that is not over."""
    wait = times.duration(key, time) - server.env.now
    if wait < 0:
        raise ConfigError(f"{key}: {shown(time)} is over at {server.env.now} ps; give times in ascending order")
    return server.env.timeout(wait)
