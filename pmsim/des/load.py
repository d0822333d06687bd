"""Load on a server: who asks when for what, driven by SimPy processes or, with identical results, natively."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from simpy.events import Event

from pmsim import _native, arguments
from pmsim.des.request import PowerFailureError
from pmsim.des.server import Server
from pmsim.des.times import Time, picoseconds
from pmsim.des.worker_group import Execution, WorkerGroup
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.standing import stretch, watcher

if TYPE_CHECKING:
    import pandas as pd

#: Distance between the seeds of tenants: 2**64 over the golden ratio.
_SEED_STEP = 0x9E3779B97F4A7C15
#: More would think for longer than anybody waits, and take the host's memory.
_MOST_CLIENTS = 10**6
#: The core adds the weights of a mix with 64 bits.
_LARGEST_WEIGHT = 2**32 - 1
_CHOICES = ("sequence", "uniform", "zipf")
#: As of the benchmarks: the largest exponent of Zipf's law.
_STEEPEST = 100
_T = TypeVar("_T")


class Served(NamedTuple):
    """A line of the event log: an acknowledged request; times in picoseconds."""

    tenant: int
    request: int
    worker: int
    submitted: int
    granted: int
    begin: int
    end: int


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
        return _arrivals("paced", {"interval": _time("interval", self.interval, 1)}, seed)


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
            "on": _time("on", self.on, 1),
            "off": _time("off", self.off, 1),
        }
        return _arrivals("bursty", numbers, seed)


@dataclass(frozen=True)
class TraceDriven:
    """Requests at given times [ps] from the beginning of the load on, ascending."""

    times: Sequence[int]

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
        think = _time("think", self.think)
        kind = "poisson" if self.exponential and think > 0 else "paced"
        return _arrivals(kind, {"interval": think}, seed)


ArrivalsLike = Poisson | Paced | Bursty | TraceDriven | ClosedPool


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
        count = arguments.whole("count", self.count, 0)
        # To the core 0 is no mean.
        mean = 0.0 if self.mean is None else float(_time("mean", self.mean, 1))
        if not isinstance(self.first, str):
            return (weight, kind, "fixed", arguments.whole("first", self.first, 0), count, mean, 0.0)
        if self.first not in _CHOICES:
            raise ConfigError(f"first: unknown choice {shown(self.first)}; {nearest(self.first, _CHOICES)}")
        below = arguments.whole("below", self.below, 0 if self.first == "sequence" else 1)
        zipf = _exponent(self.zipf) if self.first == "zipf" else 0.0
        return (weight, kind, self.first, below, count, mean, zipf)


@dataclass(frozen=True)
class Tenant:
    """Requests that belong together.

    Parameters
    ----------
    name : str
        For results.
    arrivals : Poisson, Paced, Bursty, TraceDriven or ClosedPool
        When they come.
    mix : sequence of Ask
        What they ask for.
    window : int [ps] or text with a unit
        Length of the time windows of its statistics, as long as these are few (`_native.Recorder`).
    """

    name: str
    arrivals: ArrivalsLike
    mix: Sequence[Ask]
    window: Time = "1 ms"


class _Statistics(ABC):
    """What both drivers have: the tenants and what has happened to their requests."""

    def __init__(self, server: Server, tenants: Sequence[Tenant]) -> None:
        self.server = server
        self.tenants = _tenants(tenants)
        names = [tenant.name for tenant in self.tenants]
        if len(set(names)) != len(names) or not names:
            raise ConfigError("tenants: at least one, each with a name of its own")
        self._index = {name: index for index, name in enumerate(names)}

    @property
    @abstractmethod
    def now(self) -> int:
        """The time that has been simulated [ps]."""

    @abstractmethod
    def recorder(self, tenant: str | int = 0) -> _native.Recorder:
        """Return the statistics of a tenant, by name or number."""

    def index(self, tenant: str | int) -> int:
        """Return the number of a tenant."""
        if isinstance(tenant, str):
            if tenant not in self._index:
                raise ConfigError(f"tenant: there is no '{tenant}'; there are {', '.join(self._index)}")
            return self._index[tenant]
        return arguments.whole("tenant", tenant, 0, len(self.tenants) - 1)

    def summary(self, tenant: str | int = 0) -> dict[str, Any]:
        """Return the totals of a tenant up to now: counts, latencies [ps], mean number in the system."""
        return dict(self.recorder(tenant).summary(self.now))

    def windows(self, tenant: str | int = 0) -> pd.DataFrame:
        """Return one row per time window of a tenant, up to now."""
        import pandas as pd  # takes a second, and the workers of a run do without

        return pd.DataFrame(self.recorder(tenant).windows(self.now))

    def restart_statistics(self) -> None:
        """Count only what comes from now on: the end of a warm-up."""
        for index in range(len(self.tenants)):
            self.recorder(index).restart(self.now)


@dataclass
class _Running:
    tenant: Tenant
    arrivals: _native.Arrivals
    mix: _native.Mix
    recorder: _native.Recorder
    group: WorkerGroup = field(repr=False)


class Load(_Statistics):
    """Tenants as SimPy processes on one server.

    Parameters
    ----------
    server : Server
        Who serves them.
    tenants : sequence of Tenant
        Who asks.
    seed : int
        Of arrivals and mixes.
    keep_log : bool
        Whether every request is kept in `log`.
    """

    def __init__(
        self,
        server: Server,
        tenants: Sequence[Tenant],
        *,
        seed: int = 1,
        keep_log: bool = False,
    ) -> None:
        super().__init__(server, tenants)
        self.env = server.env
        self.log: list[Served] = []
        self._keep_log = keep_log
        self._running: list[_Running] = []
        for index, tenant in enumerate(self.tenants):
            running = _Running(
                tenant,
                tenant.arrivals.native(_seed(seed, index)),
                _native.Mix([ask.native(server) for ask in tenant.mix], _seed(seed, index) + 1),
                _native.Recorder(_time("window", tenant.window, 1), self.env.now),
                server.main,
            )
            self._running.append(running)
            if isinstance(tenant.arrivals, ClosedPool):
                for _ in range(tenant.arrivals.clients):
                    self.env.process(self._client(index, running))
            else:
                self.env.process(self._open(index, running))

    @property
    def now(self) -> int:
        """The time that has been simulated [ps]."""
        return self.env.now

    def recorder(self, tenant: str | int = 0) -> _native.Recorder:
        """Return the statistics of a tenant, by name or number."""
        return self._running[self.index(tenant)].recorder

    def _ask(self, index: int, running: _Running) -> Execution:
        kind, first, count = running.mix.draw()
        running.recorder.submitted(self.env.now)
        execution = running.group.execute(kind, first, count)

        def record(event: Event) -> None:
            if not execution._ok:
                running.recorder.failed(self.env.now)
                execution._defused = True
                return
            done = execution._value
            running.recorder.completed(done.submitted, done.granted, done.end)
            if self._keep_log:
                self.log.append(
                    Served(index, done.request, done.worker, done.submitted, done.granted, done.begin, done.end)
                )

        execution.callbacks.append(record)
        return execution

    def _open(self, index: int, running: _Running) -> Generator[Event, Any, None]:
        while (gap := running.arrivals.next()) >= 0:
            yield self.env.timeout(gap)
            self._ask(index, running)

    def _client(self, index: int, running: _Running) -> Generator[Event, Any, None]:
        while (think := running.arrivals.next()) >= 0:
            yield self.env.timeout(think)
            with suppress(PowerFailureError):  # counted; the client goes on with its next request
                yield self._ask(index, running)


class NativeLoad(_Statistics):
    """The same tenants, drawn and served by the core itself: nothing in Python decides per request.

    Results are those of `Load` on a server without a pool of its own, request by request. The server must
    have one group of workers, and nobody else may use it.

    Parameters
    ----------
    server, tenants, seed, keep_log
        As for `Load`.
    """

    def __init__(
        self, server: Server, tenants: Sequence[Tenant], *, seed: int = 1, keep_log: bool = False
    ) -> None:
        super().__init__(server, tenants)
        if len(list(server)) != 1:
            raise ConfigError("workers: the core serves one group of workers; use Load for several")
        if server.used:
            raise ConfigError("server: it has served others before, on the clock of SimPy; make a fresh one")
        self._driver = _native.Driver(
            server.session,
            [
                (
                    tenant.arrivals.native(_seed(seed, index)),
                    _native.Mix([ask.native(server) for ask in tenant.mix], _seed(seed, index) + 1),
                    tenant.arrivals.clients if isinstance(tenant.arrivals, ClosedPool) else 0,
                    _time("window", tenant.window, 1),
                )
                for index, tenant in enumerate(self.tenants)
            ],
            keep_log,
        )

    @property
    def now(self) -> int:
        """The time that has been simulated [ps]."""
        return self._driver.now

    @property
    def log(self) -> list[Served]:
        """The acknowledged requests, with `keep_log`."""
        return [Served(*row) for row in self._driver.log()]

    @property
    def waiting(self) -> int:
        """Requests that wait for a worker now."""
        return self._driver.waiting

    def recorder(self, tenant: str | int = 0) -> _native.Recorder:
        """Return the statistics of a tenant, by name or number."""
        return self._driver.recorder(self.index(tenant))

    def run(self, until: Time) -> None:
        """Simulate up to a time; may be called again. Ctrl-C interrupts it between requests."""
        end = picoseconds(until)
        if end < self.now:
            raise ConfigError(f"until: {end} ps lies before {self.now} ps, which is over; choose a later time")
        self._driver.run(end, watcher())

    def finish(self) -> None:
        """Go on until every request has been answered; `now` is then when the last one was.

        Raises
        ------
        ConfigError : a tenant whose requests have no end.
        """
        for tenant in self.tenants:
            if not isinstance(tenant.arrivals, TraceDriven):
                raise ConfigError(f"tenants: the requests of '{tenant.name}' have no end; use run")
        self._driver.finish(watcher())

    def drain(self) -> bytes:
        """Finish what workers do, and return the state, for `restore` on a fresh server; see `LongRun`."""
        self._driver.drain()
        return self._driver.save()

    def restore(self, state: bytes) -> None:
        """Continue from a state of the same tenants."""
        self._driver.restore(state)


def warm_up(server: Server, mix: Sequence[Ask], requests: int, *, seed: int = 1) -> None:
    """Execute requests of a mix on a fresh server in no time: data are then where such requests leave them.

    The caches of the CPU stay cold. Each of the server's workers executes as many as the others.

    Parameters
    ----------
    server : Server
        Nobody has asked it for anything; not one that can be crashed.
    mix : sequence of Ask
        What is asked for.
    requests : int
        How many.
    seed : int
        Of the mix.
    """
    asks = _listed("mix", mix, Ask)
    number = arguments.whole("requests", requests, 0)
    native = _native.Mix([ask.native(server) for ask in asks], arguments.whole("seed", seed, 0))
    with stretch(0, 0):  # how long it takes beside the rest nobody knows
        _native.warm_up(server.session, native, number, watcher())


def _tenants(tenants: Sequence[Tenant]) -> tuple[Tenant, ...]:
    listed = _listed("tenants", tenants, Tenant)
    for tenant in listed:
        if not isinstance(tenant.arrivals, ArrivalsLike):
            raise ConfigError(
                f"arrivals: {shown(tenant.arrivals)} says of no request when it comes; choose Poisson, Paced, "
                "Bursty, TraceDriven or ClosedPool"
            )
        _listed("mix", tenant.mix, Ask)
    return listed


def _listed(key: str, values: Sequence[_T], kind: type[_T]) -> tuple[_T, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ConfigError(f"{key}: {shown(values)} is not a list; give a list of {kind.__name__}")
    listed = tuple(values)
    for value in listed:
        if not isinstance(value, kind):
            raise ConfigError(f"{key}: {shown(value)} is not of type {kind.__name__}; give a list of those")
    return listed


def _seed(seed: int, index: int) -> int:
    return (arguments.whole("seed", seed, 0) + index * _SEED_STEP) % 2**63


def _exponent(value: object) -> float:
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    if not 0 <= number <= _STEEPEST:
        raise ConfigError(f"zipf: {shown(value)} is no exponent; choose 0 to {_STEEPEST}")
    return number


def _time(key: str, value: Time, least: int = 0) -> int:
    try:
        time = picoseconds(value)
    except ConfigError as error:
        raise error.prefixed(key) from None
    if time < least:
        raise ConfigError(f"{key}: {time} ps is too short; choose at least {least} ps")
    return time


def _interval(rate: float) -> float:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1e12:
        raise ConfigError(f"rate: {rate!r} per second; choose a number between 0 and 1e12")
    return 1e12 / rate


def _arrivals(kind: str, numbers: Mapping[str, float], seed: int) -> _native.Arrivals:
    return _native.Arrivals(kind, dict(numbers), [], seed)
