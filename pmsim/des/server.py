"""A native server in a SimPy model: a block or an engine on a simulated machine, with worker threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

import simpy
from simpy.events import PENDING, Event

from pmsim import _native
from pmsim.des.environment import Environment
from pmsim.des.parts import PartLike, native_part
from pmsim.des.times import NEVER, Time, picoseconds
from pmsim.errors import ConfigError, PmsimError
from pmsim.hints import nearest
from pmsim.platforms import Platform
from pmsim.profiles import load_platform

_RESTART = 2**64 - 1


class PowerFailureError(PmsimError):
    """The server lost its power before the request was acknowledged; whether it took effect is unknown."""


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
    """A restart after a power failure; times in picoseconds."""

    failed: int
    restarted: int
    ready: int
    lost: int


class Execution(Event):
    """The event of one request: succeeds with a `Completion` when it is acknowledged."""

    def __init__(self, server: Server, number: int, kind: int, first: int, count: int) -> None:
        self.env = server.env
        self._server = server
        self.number = number
        self.kind = kind
        self.first = first
        self.count = count
        self.submitted = server.env._now
        self.granted = NEVER
        self.worker = -1
        self.grant: Any = None
        self.callbacks: list[Callable[[Any], None]] = [server._done]


class Server:
    """A service on a simulated machine of its own, used as ``yield server.execute(...)``.

    Parameters
    ----------
    env : Environment
        The clock.
    parts : sequence of Part, or of (name, parameters with units)
        What the server does: parts of `pmsim.des.PARTS`, which share the machine and its memory.
    platform : str, dict or Platform
        The machine.
    workers : int
        Threads that execute requests, one each at a time.
    seed : int
        Of the machine and the parts.
    crash : bool
        Whether the power may fail; costs time and a second copy of the memory.
    pool : simpy.Resource, optional
        Who gets a worker: its capacity must be `workers`. By default a `simpy.Resource`: first come, first
        served. A `simpy.PriorityResource` makes ``priority`` of `execute` count.

    Raises
    ------
    ConfigError : unknown part or parameter, more workers than hardware threads, or a bad pool.
    """

    def __init__(
        self,
        env: Environment,
        parts: Sequence[PartLike],
        *,
        platform: str | Mapping[str, Any] | Platform,
        workers: int = 1,
        seed: int = 1,
        crash: bool = False,
        pool: simpy.Resource | None = None,
    ) -> None:
        machine = platform if isinstance(platform, Platform) else load_platform(platform)
        session = _native.Session(
            [native_part(part) for part in parts],
            machine.native(),
            workers=workers,
            seed=seed,
            crash=crash,
        )
        self._start(env, session, pool)

    @classmethod
    def of_workload(
        cls,
        env: Environment,
        workload: str,
        parameters: Mapping[str, int | str],
        *,
        platform: str | Mapping[str, Any] | Platform,
        workers: int = 1,
        seed: int = 1,
        pool: simpy.Resource | None = None,
    ) -> Server:
        """Return a server whose request "operation" is the next one of a native closed-loop workload."""
        machine = platform if isinstance(platform, Platform) else load_platform(platform)
        server = cls.__new__(cls)
        session = _native.Session.of_workload(
            workload, dict(parameters), machine.native(), workers=workers, seed=seed
        )
        server._start(env, session, pool)
        return server

    def _start(self, env: Environment, session: _native.Session, pool: simpy.Resource | None) -> None:
        if not isinstance(env, Environment):
            raise ConfigError("env: a native server needs a pmsim.des.Environment")
        workers = session.workers
        self.env = env
        self.session = session
        self.kinds: tuple[str, ...] = tuple(session.kinds)
        self.pool = simpy.Resource(env, capacity=workers) if pool is None else pool
        if self.pool.capacity != workers:
            raise ConfigError(f"pool: its capacity is {self.pool.capacity}; it must be workers = {workers}")
        self._prioritised = isinstance(self.pool, simpy.PriorityResource)
        self._number_of = {name: number for number, name in enumerate(self.kinds)}
        self._free = list(range(workers))
        self._working: list[Execution | None] = [None] * workers
        self._outstanding: dict[int, Execution] = {}
        self._next_number = 0
        self._recovery: Event | None = None
        self._recovering = (0, 0, 0)
        self._blockers: list[Any] = []
        self._core = env.attach(self)

    @property
    def workers(self) -> int:
        """Worker threads."""
        return len(self._working)

    @property
    def busy(self) -> int:
        """Workers that are executing a request now."""
        return len(self._working) - len(self._free)

    @property
    def waiting(self) -> int:
        """Requests that wait for a worker."""
        return len(self.pool.put_queue)

    def execute(
        self, kind: str | int | Request, first: int = 0, count: int = 1, *, priority: int = 0
    ) -> Execution:
        """Ask for a request; the event succeeds with its `Completion`.

        Parameters
        ----------
        kind : str, int or Request
            Name or number of a kind (`kinds`), or a whole request.
        first, count : int
            What the kind says.
        priority : int
            Lower is served first; needs a `simpy.PriorityResource` as the pool.

        Raises
        ------
        ConfigError : unknown kind, or a priority that nobody looks at.
        """
        if isinstance(kind, Request):
            first, count = kind.first, kind.count
            kind = kind.kind
        if isinstance(kind, str):
            kind = self.kind(kind)
        number = self._next_number
        self._next_number = number + 1
        execution = Execution(self, number, kind, first, count)
        if self._prioritised:
            grant = self.pool.request(priority=priority)  # type: ignore[call-arg]
        elif priority:
            raise ConfigError("priority: the pool has none; make the server with pool=PriorityResource(...)")
        else:
            grant = self.pool.request()
        execution.grant = grant
        grant.execution = execution  # type: ignore[attr-defined]
        grant.callbacks.append(self._granted)
        self._outstanding[number] = execution
        return execution

    def kind(self, name: str) -> int:
        """Return the number of a kind of request."""
        number = self._number_of.get(name)
        if number is None:
            raise ConfigError(f"kind: this server has no '{name}'; {nearest(name, self.kinds)}")
        return number

    def _granted(self, grant: Any) -> None:
        execution: Execution = grant.execution
        if execution._value is not PENDING:
            return  # the power failed meanwhile
        env = self.env
        now = execution.granted = env._now
        worker = execution.worker = heappop(self._free)
        self._working[worker] = execution
        self.session.submit(worker, execution.number, execution.kind, execution.first, execution.count, now)
        env.wake(self._core)

    def advance(self, before: int) -> int:
        """Advance the machine; see `pmsim.des.Environment`."""
        due = self.session.advance(before)
        if isinstance(due, int):
            return due
        following: int
        at, completions, following = due
        for number, worker, begin, result in completions:
            if number == _RESTART:
                self._recovered(at)
                continue
            execution = self._working[worker]
            assert execution is not None
            execution._ok = True
            execution._value = Completion(
                number, worker, execution.submitted, execution.granted, begin, at, result
            )
            self.env.schedule_at(execution, at)
        return following

    def _done(self, event: Event) -> None:
        execution: Any = event
        if not execution._ok:
            return
        worker = execution.worker
        self._working[worker] = None
        heappush(self._free, worker)
        del self._outstanding[execution.number]
        self.pool.release(execution.grant)

    def power_failure(self, *, restart_after: Time = 0, seed: int = 0) -> Event:
        """Fail the power now; the event succeeds with a `Recovery` when the server is ready again.

        Every request that has not been acknowledged fails with `PowerFailureError`. What survives is a legal
        durable image of this instant, drawn by `seed`; the server's own recovery runs on it, in virtual time,
        and requests that come meanwhile wait.

        Parameters
        ----------
        restart_after : int [ps] or text
            From the failure until the recovery begins: power, firmware, operating system.
        seed : int
            Draws what of unfinished writes has become durable.

        Raises
        ------
        ConfigError : the server was made without ``crash=True``.
        """
        now = self.env.now
        restart = now + picoseconds(restart_after)
        self.session.crash(at=now, restart_at=restart, id=_RESTART, seed=seed)
        lost = list(self._outstanding.values())
        self._outstanding.clear()
        for blocker in self._blockers:
            self.pool.release(blocker)
        queued = list(self.pool.put_queue)
        for grant in queued:
            grant.cancel()
        for execution in lost:
            if execution.grant.triggered:
                self.pool.release(execution.grant)
            execution.fail(PowerFailureError("the power failed before the request was acknowledged"))
        self._free = list(range(self.workers))
        self._working = [None] * self.workers
        self._blockers = [self.pool.request() for _ in range(self.workers)]
        if self._recovery is None:
            self._recovery = self.env.event()
        self._recovering = (now, restart, len(lost))
        self.env.wake(self._core)
        return self._recovery

    def _recovered(self, at: int) -> None:
        event, self._recovery = self._recovery, None
        assert event is not None
        failed, restarted, lost = self._recovering
        event._ok = True
        event._value = Recovery(failed, restarted, at, lost)
        assert event.callbacks is not None
        event.callbacks.insert(0, self._ready)
        self.env.schedule_at(event, at)

    def _ready(self, event: Event) -> None:
        del event
        for blocker in self._blockers:
            self.pool.release(blocker)
        self._blockers = []

    def present(self) -> list[int]:
        """Return what the ledger of the server's part finds, for checks; costs no virtual time."""
        return list(self.session.present())

    def counters(self) -> dict[str, int]:
        """Return the counters of the machine up to now."""
        return dict(self.session.counters(self.env.now))

    def facts(self) -> dict[str, float]:
        """Return numbers about the parts' data structures."""
        return dict(self.session.facts())
