"""A native server in a SimPy model: a block or an engine on a simulated machine, with worker threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Literal

import simpy
from simpy.events import PENDING, Condition, Event

from pmsim import _native, arguments
from pmsim.des.environment import Environment
from pmsim.des.parts import PartLike, native_parts
from pmsim.des.request import Completion, PowerFailureError, Recovery, Request
from pmsim.des.times import NEVER, Time, picoseconds
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.kinds.checks import capacity
from pmsim.kinds.engine_messages import in_parameters
from pmsim.platforms import Platform
from pmsim.profiles import load_platform
from pmsim.standing import stretch, watcher

#: In hundredths: ten thousand times what it was. With more, a second would leave the range of times.
_SLOWEST = 1_000_000
_LARGEST_SEED = 2**64 - 1
#: That may fail, and what messages call them.
_DEVICES = {"pmem": "PMem", "block": "block device"}
_RESTART = 2**64 - 1
#: What the core takes as `first` and `count` of a request.
_LARGEST = 2**64 - 1
#: The core counts workers with 32 bits; a machine has far fewer threads, which it says itself.
_MOST_WORKERS = 2**20


class Execution(Event):
    """The event of one request: succeeds with a `Completion` when it is acknowledged."""

    def __init__(self, group: WorkerGroup, number: int, kind: int, first: int, count: int) -> None:
        self.env = env = group.env
        self.group = group
        self.number = number
        self.kind = kind
        self.first = first
        self.count = count
        self.submitted = env._now
        self.granted = NEVER
        self.worker = -1
        self.grant: Any = None
        self.callbacks: list[Callable[[Any], None]] = [group._done]


class WorkerGroup:
    """Some of a server's workers, and the requests that wait for them.

    Attributes
    ----------
    pool : simpy.Resource or None
        Who gets a worker next; its capacity is the number of workers. None: first come, first served, without
        the events of a resource: a request that finds a worker free begins in the same event.
    numbers : tuple of int
        The workers.
    """

    def __init__(self, server: Server, numbers: Sequence[int], pool: simpy.Resource | None) -> None:
        self.server = server
        self.env = server.env
        self.numbers = tuple(numbers)
        self.pool = pool
        if pool is not None and pool.capacity != len(numbers):
            raise ConfigError(f"pool: its capacity is {pool.capacity}; it must be workers = {len(numbers)}")
        if isinstance(pool, simpy.PreemptiveResource):
            raise ConfigError(
                "pool: a worker ends what it has begun, so nobody can be preempted; give a PriorityResource"
            )
        self._prioritised = isinstance(pool, simpy.PriorityResource)
        self._queue: deque[Execution] = deque()
        self._down = False
        self._free = list(numbers)
        self._blockers: list[Any] = []
        self._submit: Callable[..., None] = server.session.submit
        self._kinds = len(server.kinds)

    @property
    def busy(self) -> int:
        """Workers that are executing a request now."""
        return 0 if self._down else len(self.numbers) - len(self._free)

    @property
    def waiting(self) -> int:
        """Requests that wait for a worker."""
        return len(self._queue if self.pool is None else self.pool.put_queue)

    def execute(
        self, kind: str | int | Request, first: int = 0, count: int = 1, *, priority: int = 0
    ) -> Execution:
        """Ask for a request; the event succeeds with its `Completion`.

        Parameters
        ----------
        kind : str, int or Request
            Name or number of a kind (`Server.kinds`), or a whole request.
        first, count : int
            What the kind says.
        priority : int
            Lower is served first; needs a `simpy.PriorityResource` as the pool.

        Raises
        ------
        ConfigError : unknown kind, no whole number from 0 on, or a priority that nobody looks at.
        """
        if isinstance(kind, Request):
            first, count = kind.first, kind.count
            kind = kind.kind
        server = self.server
        if isinstance(kind, str):
            kind = server.kind(kind)
        try:  # for every request, so in one go: of whole numbers of 64 bits nothing is left
            odd = (kind | first | count) >> 64 or kind >= self._kinds
        except TypeError:
            odd = True
        if odd:
            kind = arguments.whole("kind", kind, 0, self._kinds - 1)
            first = arguments.whole("first", first, 0, _LARGEST)
            count = arguments.whole("count", count, 0, _LARGEST)
        number = server._next_number
        server._next_number = number + 1
        execution = Execution(self, number, kind, first, count)
        if priority and not self._prioritised:
            raise ConfigError("priority: the pool has none; make the server with pool=PriorityResource(...)")
        server._outstanding[number] = execution
        if self.pool is None:
            if self._free:
                self._give(execution)
            else:
                self._queue.append(execution)
        else:
            self._wait_in(self.pool, execution, priority)
        return execution

    def _wait_in(self, pool: simpy.Resource, execution: Execution, priority: int) -> None:
        grant: Any = pool.request(priority=priority) if self._prioritised else pool.request()  # type: ignore[call-arg]
        execution.grant = grant
        grant.execution = execution
        grant.callbacks.append(self._granted)

    def _granted(self, grant: Any) -> None:
        execution: Execution = grant.execution
        if execution._value is PENDING:  # otherwise the power has failed meanwhile
            self._give(execution)

    def _give(self, execution: Execution) -> None:
        env = self.env
        now = execution.granted = env._now
        worker = execution.worker = heappop(self._free)
        server = self.server
        server._working[worker] = execution
        self._submit(worker, execution.number, execution.kind, execution.first, execution.count, now)
        env.wake(server._core)

    def _done(self, event: Event) -> None:
        execution: Any = event
        server = self.server
        if not execution._ok or execution.number not in server._outstanding:
            return  # cut off, or acknowledged at the instant at which the power has failed: no worker is left
        worker = execution.worker
        server._working[worker] = None
        heappush(self._free, worker)
        del server._outstanding[execution.number]
        if self.pool is not None:
            self.pool.release(execution.grant)
        elif self._queue:
            self._give(self._queue.popleft())

    def _lose_power(self) -> None:
        self._down = True
        self._queue.clear()
        self._free = []
        if self.pool is not None:
            for grant in list(self.pool.put_queue):
                grant.cancel()
            for user in list(self.pool.users):
                self.pool.release(user)
            self._blockers = [self.pool.request() for _ in self.numbers]

    def _regain_power(self) -> None:
        self._down = False
        self._free = list(self.numbers)
        if self.pool is not None:
            for blocker in self._blockers:
                self.pool.release(blocker)
            self._blockers = []
        while self._queue and self._free:
            self._give(self._queue.popleft())


def _groups(workers: object) -> dict[str, int]:
    if not isinstance(workers, Mapping):
        return {"workers": arguments.whole("workers", workers, 1, _MOST_WORKERS)}
    if not workers:
        raise ConfigError("workers: there is no group; give at least one, such as {'workers': 1}")
    return {
        name: arguments.whole(f"workers.{name}", size, 1, _MOST_WORKERS)
        for name, size in arguments.table("workers", workers).items()
    }


def _closed(*request: object) -> None:
    raise ConfigError("server: it is closed and serves nobody any more; make a fresh one")


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
    workers : int, or dict of int by name
        Threads that execute requests, one each at a time. Named groups have pools of their own:
        ``server["writers"].execute(...)``; the first group is that of ``server.execute``.
    seed : int
        Of the machine and the parts.
    crash : bool
        Whether the power may fail; costs time and a second copy of the memory.
    pool : simpy.Resource, optional
        Who gets a worker of the first group: its capacity must be their number. By default first come, first
        served. A `simpy.PriorityResource` makes ``priority`` of `execute` count.

    Attributes
    ----------
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
        workers: int | Mapping[str, int] = 1,
        seed: int = 1,
        crash: bool = False,
        pool: simpy.Resource | None = None,
    ) -> None:
        machine = platform if isinstance(platform, Platform) else load_platform(platform)
        groups = _groups(workers)
        seed = arguments.whole("seed", seed, 0, _LARGEST_SEED)
        crash = arguments.flag("crash", crash)
        self._machine = machine
        made_of = native_parts(parts)
        self._made_of: tuple[Any, ...] = (made_of, machine.native(), groups)
        try:
            with stretch(0, 0):  # how long it takes beside the rest nobody knows
                session = _native.Session(
                    made_of,
                    machine.native(),
                    workers=sum(groups.values()),
                    seed=seed,
                    crash=crash,
                    watch=watcher(),
                )
        except ConfigError as error:
            raise in_parameters(error) from None
        self._start(env, session, groups, pool)

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
        server._machine = machine
        server._made_of = (workload, dict(parameters), machine.native(), workers)
        session = _native.Session.of_workload(
            workload, dict(parameters), machine.native(), workers=workers, seed=seed
        )
        server._start(env, session, {"workers": workers}, pool)
        return server

    def _start(
        self,
        env: Environment,
        session: _native.Session,
        groups: Mapping[str, int],
        pool: simpy.Resource | None,
    ) -> None:
        if not isinstance(env, Environment):
            raise ConfigError("env: a native server needs a pmsim.des.Environment")
        self.env = env
        self.session = session
        self.kinds: tuple[str, ...] = tuple(session.kinds)
        self._number_of = {name: number for number, name in enumerate(self.kinds)}
        self._working: list[Execution | None] = [None] * session.workers
        self._outstanding: dict[int, Execution] = {}
        self._next_number = 0
        self._recovery: Event | None = None
        self._recovering = (0, 0, 0)
        self._failures = 0
        self._groups: dict[str, WorkerGroup] = {}
        first = 0
        for name, size in groups.items():
            numbers = range(first, first + size)
            self._groups[name] = WorkerGroup(self, numbers, pool if not self._groups else None)
            first += size
        self.main = next(iter(self._groups.values()))
        self.execute = self.main.execute
        self._core = env.attach(self)

    @property
    def description(self) -> str:
        """Everything that it is made of but the seed: equal for servers that behave alike."""
        return repr(self._made_of)

    def __getitem__(self, name: str) -> WorkerGroup:
        """Return a group of workers by its name."""
        if name not in self._groups:
            raise ConfigError(f"workers: this server has no group '{name}'; {nearest(name, self._groups)}")
        return self._groups[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the groups."""
        return iter(self._groups)

    @property
    def pool(self) -> simpy.Resource | None:
        """The resource of the first group; None: first come, first served."""
        return self.main.pool

    @property
    def workers(self) -> int:
        """Worker threads of all groups."""
        return len(self._working)

    @property
    def used(self) -> bool:
        """Whether anybody has asked it for anything yet."""
        return self._next_number > 0

    @property
    def busy(self) -> int:
        """Workers that are executing a request now."""
        return sum(group.busy for group in self._groups.values())

    @property
    def waiting(self) -> int:
        """Requests that wait for a worker."""
        return sum(group.waiting for group in self._groups.values())

    def kind(self, name: str) -> int:
        """Return the number of a kind of request."""
        try:
            return self._number_of[name]
        except (KeyError, TypeError):
            name = arguments.text("kind", name)
            raise ConfigError(f"kind: this server has no '{name}'; {nearest(name, self.kinds)}") from None

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

    def power_failure(
        self, *, restart_after: Time = 0, seed: int = 0, lost: Literal["pmem", "block"] | None = None
    ) -> Event:
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
        lost : "pmem" or "block", optional
            A tier that comes back empty: its content is gone.

        Raises
        ------
        ConfigError : the server was made without ``crash=True``.
        """
        now = self.env.now
        seed = arguments.whole("seed", seed, 0, _LARGEST_SEED)
        restart = now + picoseconds(restart_after)
        self.session.crash(at=now, restart_at=restart, id=_RESTART, seed=seed, lost=lost or "")
        # What ends at this instant has been acknowledged, though its event may come behind this one.
        cut_off = [execution for execution in self._outstanding.values() if not execution.triggered]
        self._outstanding.clear()
        self._working = [None] * self.workers
        for group in self._groups.values():
            group._lose_power()
        for execution in cut_off:
            # Who waits for several at once hears of the first that fails; at the next SimPy would end the run.
            if any(isinstance(getattr(told, "__self__", None), Condition) for told in execution.callbacks):
                execution.defused = True
            execution.fail(PowerFailureError("the power failed before the request was acknowledged"))
        if self._recovery is None:
            self._recovery = self.env.event()
        self._recovering = (now, restart, len(cut_off))
        self._failures += 1
        self.env.wake(self._core)
        return self._recovery

    def stall(self, device: Literal["pmem", "block"], duration: Time) -> None:
        """Let a device pause from now on: wear levelling, garbage collection."""
        self._check_device(device)
        self.session.stall(device, self.env.now, picoseconds(duration))

    def slow_down(self, device: Literal["pmem", "block"], percent: int) -> None:
        """Let a device take `percent` hundredths of its times from now on; 100 heals it."""
        percent = arguments.whole("percent", percent, 1, _SLOWEST)
        self._check_device(device)
        self.session.slow(device, self.env.now, percent)

    def _check_device(self, device: str) -> None:
        # A fault of what is not there would change nothing, without a word.
        sizes = {
            "pmem": capacity(self._machine, "pmem"),
            "block": self._machine.value("block", "capacity"),
        }
        if sizes.get(device) == 0:
            raise ConfigError(
                f"device: platform '{self._machine.name}' has no {_DEVICES[device]}; choose another device or "
                "another platform"
            )

    def _recovered(self, at: int) -> None:
        event, self._recovery = self._recovery, None
        assert event is not None
        failed, restarted, lost = self._recovering
        event._ok = True
        event._value = Recovery(failed, restarted, at, lost)
        assert event.callbacks is not None
        failures = self._failures
        event.callbacks.insert(0, lambda _: self._ready(failures))
        self.env.schedule_at(event, at)

    def _ready(self, failures: int) -> None:
        if failures != self._failures:
            return  # the power has failed again at this very instant, in an event that came first
        for group in self._groups.values():
            group._regain_power()

    def close(self) -> None:
        """Give the memory of the machine back now; the server serves nobody any more.

        Servers and environments know each other, so otherwise it lives until Python looks for such cycles,
        which may be much later: they are few objects, but large ones.
        """
        if not hasattr(self, "session"):
            return
        for group in self._groups.values():
            group._submit = _closed
        del self.session

    def present(self) -> list[int]:
        """Return what the ledger of the server's part finds, for checks; costs no virtual time."""
        return list(self.session.present())

    def counters(self) -> dict[str, int]:
        """Return the counters of the machine up to now."""
        return self.counters_at(self.env.now)

    def counters_at(self, time: int) -> dict[str, int]:
        """Return the counters up to a time [ps]: of a `NativeLoad`, whose clock is not that of SimPy."""
        return dict(self.session.counters(time))

    def facts(self) -> dict[str, float]:
        """Return numbers about the parts' data structures."""
        return dict(self.session.facts())
