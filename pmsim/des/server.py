"""A native server in a SimPy model: a block or an engine on a simulated machine, with worker threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import simpy
from simpy.events import Event

from pmsim import _native, arguments
from pmsim.des import times
from pmsim.des.environment import Environment
from pmsim.des.parts import PartLike, largest, native_parts
from pmsim.des.request import Completion, Recovery, tell_cut_off
from pmsim.des.times import Time
from pmsim.des.worker_group import Execution, WorkerGroup
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.kinds.checks import capacity
from pmsim.kinds.engine_messages import in_parameters
from pmsim.messages import shown
from pmsim.platforms import Platform
from pmsim.profiles import load_platform
from pmsim.standing import stretch, watcher

#: In hundredths: ten thousand times what it was. With more, a second would leave the range of times.
_SLOWEST = 1_000_000
_LARGEST_SEED = 2**64 - 1
#: That may fail, and what messages call them.
_DEVICES = {"pmem": "PMem", "block": "block device"}
_RESTART = 2**64 - 1
#: The core counts workers with 32 bits; a machine has far fewer threads, which it says itself.
_MOST_WORKERS = 2**20


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


def _serves(other: object, pool: simpy.Resource) -> bool:
    return isinstance(other, Server) and hasattr(other, "session") and other.pool is pool


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
        Whether the power may fail; costs time and a second copy of the memory. Requests of parts whose workers
        share persistent state are then acknowledged in the order of their execution.
    in_order : bool
        Whether they are so anyway.
    pool : simpy.Resource, optional
        Who gets a worker of the first group: its capacity must be their number, and no other server's. By
        default first come, first served. A `simpy.PriorityResource` makes ``priority`` of `execute` count.

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
        in_order: bool = False,
        pool: simpy.Resource | None = None,
    ) -> None:
        machine = platform if isinstance(platform, Platform) else load_platform(platform)
        groups = _groups(workers)
        seed = arguments.whole("seed", seed, 0, _LARGEST_SEED)
        crash = arguments.flag("crash", crash)
        self._machine = machine
        made_of = native_parts(parts, machine, sum(groups.values()), crash)
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
        if arguments.flag("in_order", in_order):
            session.acknowledge_in_order()
        self._start(env, session, groups, pool, made_of)

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
        made_of: Sequence[tuple[str, Mapping[str, Any]]] = (),
    ) -> None:
        if not isinstance(env, Environment):
            raise ConfigError("env: a native server needs a pmsim.des.Environment")
        if pool is not None and any(_serves(other, pool) for other in env._cores):
            raise ConfigError("pool: another server has it; give each its own")
        self.env = env
        self.session = session
        self.kinds: tuple[str, ...] = tuple(session.kinds)
        self.largest = [largest(made_of, kind) for kind in self.kinds]
        self._number_of = {name: number for number, name in enumerate(self.kinds)}
        self._working: list[Execution | None] = [None] * session.workers
        self._outstanding: dict[int, Execution] = {}
        self._next_number = 0
        self._recovery: Event | None = None
        self._recovering = (0, 0, 0)
        self._failures = 0
        #: The time [ps] up to which a `NativeLoad` has simulated, on its own clock; None: there is none.
        self.native_now: Callable[[], int] | None = None
        #: Called at each power failure: what is in DRAM only is gone at once, not when the server is back.
        self.at_power_failure: list[Callable[[], None]] = []
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

    def driven(self) -> ConfigError:
        """Return what is wrong with a call that a `NativeLoad` on this server rules out."""
        assert self.native_now is not None
        return ConfigError(
            f"server: a NativeLoad drives it, on a clock of its own ({self.native_now()} ps; SimPy's is at "
            f"{self.env.now} ps); use Load, with which processes may ask for requests and cause faults"
        )

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

        A failure while it is not ready returns the event, and so the `Recovery`, of the one before.

        Every request that has not been acknowledged fails with `PowerFailureError`; one that nobody waits for
        does not end the run. What survives is a legal durable image of this instant, drawn by `seed`; the
        server's own recovery runs on it, in virtual time, and requests that come meanwhile wait.

        Parameters
        ----------
        restart_after : int [ps] or text
            From the failure until the recovery begins: power, firmware, operating system.
        seed : int
            Draws what of unfinished writes has become durable.
        lost : "pmem" or "block", optional
            A tier that comes back empty: its content is gone. Logs and pages then begin empty.

        Raises
        ------
        ConfigError : the server was made without ``crash=True``, a `NativeLoad` drives it, or an engine has
            nothing to recover from without the tier that is lost.
        """
        if self.native_now is not None:
            raise self.driven()
        now = self.env.now
        seed = arguments.whole("seed", seed, 0, _LARGEST_SEED)
        restart = now + times.duration("restart_after", restart_after)
        if lost is not None:
            self._check_device("lost", lost)
        self.session.crash(at=now, restart_at=restart, id=_RESTART, seed=seed, lost=lost or "")
        # What ends at this instant has been acknowledged, though its event may come behind this one.
        cut_off = [execution for execution in self._outstanding.values() if not execution.triggered]
        self._outstanding.clear()
        self._working = [None] * self.workers
        for group in self._groups.values():
            group._lose_power()
        for execution in cut_off:
            tell_cut_off(execution, "the request was acknowledged")
        for forget in self.at_power_failure:
            forget()
        failed, requests = now, len(cut_off)
        if self._recovery is None:
            self._recovery = self.env.event()
        else:  # the server has not been ready since the failure before: it is one outage
            failed, _, before = self._recovering
            requests += before
        self._recovering = (failed, restart, requests)
        self._failures += 1
        self.env.wake(self._core)
        return self._recovery

    def stall(self, device: Literal["pmem", "block"], duration: Time) -> None:
        """Let a device pause from now on: wear levelling, garbage collection."""
        self._check_device("device", device)
        self._check_clock()
        self.session.stall(device, self.env.now, times.duration("duration", duration))

    def slow_down(self, device: Literal["pmem", "block"], percent: int) -> None:
        """Let a device take `percent` hundredths of its medium's times from now on; 100 heals it.

        Its buffers, buses, bandwidths and the operating system keep theirs; docs/des.md says which.
        """
        percent = arguments.whole("percent", percent, 1, _SLOWEST)
        self._check_device("device", device)
        self._check_clock()
        self.session.slow(device, self.env.now, percent)

    def _check_device(self, key: str, device: str) -> None:
        if arguments.text(key, device) not in _DEVICES:
            raise ConfigError(f"{key}: {shown(device)} is unknown; choose pmem or block")
        # A fault of what is not there would change nothing, without a word.
        sizes = {
            "pmem": capacity(self._machine, "pmem"),
            "block": self._machine.value("block", "capacity"),
        }
        if sizes.get(device) == 0:
            raise ConfigError(
                f"{key}: platform '{self._machine.name}' has no {_DEVICES[device]}; choose another device or "
                "another platform"
            )

    def _check_clock(self) -> None:
        # Before a native load has begun a device may be slowed down for the whole of it.
        if self.native_now is not None and self.native_now() > self.env.now:
            raise self.driven()

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
            group._kinds = len(self.kinds)
        self.native_now = None  # it knows the memory, too
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
