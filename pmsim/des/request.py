"""What a client asks a server for, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from simpy.events import Event

from pmsim.errors import PmsimError


class PowerFailureError(PmsimError):
    """The server lost its power before the request was acknowledged; whether it took effect is unknown."""


def tell_cut_off(event: Event, what: str) -> None:
    """Fail the event of something that the power failure came before."""
    # Who waits for it is told all the same. SimPy would end the run where nobody does: in an open loop, after a
    # time-out, or where who waits for several at once has heard of the first that failed.
    event.defused = True
    event.fail(PowerFailureError(f"the power failed before {what}"))


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for: a kind of the server, and two numbers that mean what the kind says."""

    kind: str
    first: int = 0
    count: int = 1


class Completion(NamedTuple):
    """An acknowledged request; times in picoseconds.

    Attributes
    ----------
    request : int
        Its number, unique in the server.
    worker : int
        The thread that executed it.
    submitted, granted, begin, end : int [ps]
        When the client asked, got a worker, when the worker's core began, and when all had retired.
    result : int
        What the kind promises.
    """

    request: int
    worker: int
    submitted: int
    granted: int
    begin: int
    end: int
    result: int

    @property
    def latency(self) -> int:
        """From the client's call to the acknowledgement [ps]."""
        return self.end - self.submitted


class Recovery(NamedTuple):
    """A restart after a power failure, or after several of which each came before the server was ready again.

    Attributes
    ----------
    failed, restarted, ready : int [ps]
        When the first failure came, when the recovery began that was not cut short, and when it ended.
    lost : int
        Requests that all of these failures have cut off.
    """

    failed: int
    restarted: int
    ready: int
    lost: int
