"""Workers of a server, and the requests that wait for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import simpy
from simpy.events import Event

from pmsim import arguments
from pmsim.des.parts import LARGEST
from pmsim.des.request import Request
from pmsim.des.times import NEVER
from pmsim.errors import ConfigError

if TYPE_CHECKING:
    from pmsim.des.server import Server


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

    def cancel(self) -> bool:
        """Withdraw the request if no worker has begun it; its event then never fires.

        Returns
        -------
        bool : whether it was withdrawn. A worker ends what it has begun, and who waits for that is told; what
            has been acknowledged, cut off or withdrawn before is as it was.
        """
        return self.group._withdraw(self)


class WorkerGroup:
    """Some of a server's workers, and the requests that wait for them.

    Attributes
    ----------
    pool : simpy.Resource or None
        Who gets a worker next; its capacity is the number of workers. None: first come, first served, without
        the events of a resource: a request that finds a worker free begins in the same event. Other processes
        may ask it for a worker, too; what they have or wait for is theirs, whatever becomes of the power.
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
        self._largest_first = [first for first, _ in server.largest]
        self._largest_count = [count for _, count in server.largest]

    @property
    def busy(self) -> int:
        """Workers that are executing a request now."""
        return 0 if self._down else len(self.numbers) - len(self._free)

    @property
    def waiting(self) -> int:
        """Requests that wait for a worker."""
        in_pool = 0 if self.pool is None else sum(map(self._asked_for, self.pool.put_queue))
        return len(self._queue) + in_pool

    def _asked_for(self, grant: Any) -> bool:
        return getattr(grant, "group", None) is self

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
        ConfigError : unknown kind, no whole number from 0 on, more than the kind takes (the largest group of
            a log), a priority that nobody looks at, or a server that a `NativeLoad` drives. The server
            is as it was.
        """
        if isinstance(kind, Request):
            first, count = kind.first, kind.count
            kind = kind.kind
        server = self.server
        if isinstance(kind, str):
            kind = server.kind(kind)
        try:  # for every request, so in one go: of whole numbers of 64 bits nothing is left
            odd = (
                (kind | first | count) >> 64
                or kind >= self._kinds
                or first > self._largest_first[kind]
                or count > self._largest_count[kind]
            )
        except TypeError:
            odd = True
        if odd:
            if server.native_now is not None:
                raise server.driven()
            kind = arguments.whole("kind", kind, 0, self._kinds - 1)
            first = arguments.whole("first", first, 0, self._largest_first[kind])
            count = arguments.whole("count", count, 0, LARGEST)
            if count > (most := self._largest_count[kind]):
                raise ConfigError(f"count: {count} entries at once; choose at most largest_group = {most}")
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
        grant.group = self
        grant.callbacks.append(self._granted)

    def _granted(self, grant: Any) -> None:
        execution: Execution = grant.execution
        if execution.number not in self.server._outstanding:
            return  # the power has failed meanwhile, or it has been withdrawn
        if self._down:  # somebody else has given a worker back, of which there is none now
            self._queue.append(execution)
        else:
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

    def _withdraw(self, execution: Execution) -> bool:
        if execution.worker >= 0 or self.server._outstanding.pop(execution.number, None) is None:
            return False
        if execution in self._queue:
            self._queue.remove(execution)
        if self.pool is not None:
            if execution.grant.triggered:
                self.pool.release(execution.grant)
            else:
                execution.grant.cancel()
        return True

    def refuse(self) -> None:
        """Take no requests any more: a `NativeLoad` drives the server."""
        self._kinds = 0  # each is odd now, and what is odd is looked at twice

    def _lose_power(self) -> None:
        self._down = True
        self._queue.clear()
        self._free = []
        if self.pool is not None:
            for grant in filter(self._asked_for, list(self.pool.put_queue)):
                grant.cancel()
            # Nobody gets a worker because the power fails: the places of those that are cut off stay taken.
            self._blockers = [grant for grant in self.pool.users if self._asked_for(grant)]
            for _ in range(len(self.numbers) - self.pool.count):
                blocker: Any = self.pool.request()
                blocker.group = self
                self._blockers.append(blocker)

    def _regain_power(self) -> None:
        self._down = False
        self._free = list(self.numbers)
        if self.pool is not None:
            for blocker in self._blockers:
                self.pool.release(blocker)
            self._blockers = []
        while self._queue and self._free:
            self._give(self._queue.popleft())
