"""Load on a server: who asks when for what, driven by SimPy processes or, with identical results, natively."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from simpy.events import Event

from pmsim import _native, arguments
from pmsim.des.arrivals import ArrivalsLike, ClosedPool, TraceDriven
from pmsim.des.asks import Ask
from pmsim.des.request import PowerFailureError
from pmsim.des.server import Server
from pmsim.des.times import Time, duration, picoseconds
from pmsim.des.worker_group import Execution, WorkerGroup
from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.standing import watcher

if TYPE_CHECKING:
    import pandas as pd

#: Distance between the seeds of tenants: 2**64 over the golden ratio.
_SEED_STEP = 0x9E3779B97F4A7C15


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
                _native.Recorder(duration("window", tenant.window, 1), self.env.now),
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
    have one group of workers, and nobody else may use it: the load has a clock of its own, so requests and
    faults of SimPy processes need `Load`.

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
            raise ConfigError(
                "workers: a NativeLoad needs one group of workers; make the server with their number, or use "
                "Load, whose tenants the first group serves"
            )
        if server.native_now is not None:
            raise ConfigError("server: another NativeLoad drives it; make a fresh one")
        if server.used:
            raise ConfigError("server: it has served others before, on the clock of SimPy; make a fresh one")
        self._driver = _native.Driver(
            server.session,
            [
                (
                    tenant.arrivals.native(_seed(seed, index)),
                    _native.Mix([ask.native(server) for ask in tenant.mix], _seed(seed, index) + 1),
                    tenant.arrivals.clients if isinstance(tenant.arrivals, ClosedPool) else 0,
                    duration("window", tenant.window, 1),
                )
                for index, tenant in enumerate(self.tenants)
            ],
            keep_log,
        )
        driver = self._driver
        server.native_now = lambda: driver.now
        server.main.refuse()

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


def _tenants(tenants: Sequence[Tenant]) -> tuple[Tenant, ...]:
    listed = arguments.listed("tenants", tenants, Tenant)
    for tenant in listed:
        if not isinstance(tenant.arrivals, ArrivalsLike):
            raise ConfigError(
                f"arrivals: {shown(tenant.arrivals)} says of no request when it comes; choose Poisson, Paced, "
                "Bursty, TraceDriven or ClosedPool"
            )
        arguments.listed("mix", tenant.mix, Ask)
    return listed


def _seed(seed: int, index: int) -> int:
    return (arguments.whole("seed", seed, 0) + index * _SEED_STEP) % 2**63
