"""Work that nobody waits for, until there is too much of it: page propagation, checkpoints, group commit."""

from collections import deque
from collections.abc import Generator, Sequence
from typing import Any

from simpy.events import Event

from pmsim import arguments
from pmsim.des.environment import Environment
from pmsim.des.request import Completion, PowerFailureError, tell_cut_off
from pmsim.des.server import Server
from pmsim.des.times import Time, picoseconds
from pmsim.des.worker_group import WorkerGroup
from pmsim.errors import ConfigError


class _Write:
    """A page on its way to its durable copy."""

    __slots__ = ("ended", "page")

    def __init__(self, page: int) -> None:
        self.page = page
        self.ended: Event | None = None  # made for who waits


class DirtyPages:
    """Which pages of a buffer in DRAM differ from their durable copies, oldest first.

    A transaction that changes a page calls `change`; while the buffer is full of dirty pages it waits until one
    has been written back. Nobody writes back unless a process does it: `PagePropagation` in the background, or
    the transaction itself (`change_and_evict`). Where these or `Checkpoints` write, a power failure of their
    server empties the buffer. Who writes with `take` and `written` alone calls `forget` at the failure itself,
    before waiting for the recovery.

    Parameters
    ----------
    env : Environment
        The clock.
    limit : int
        Dirty pages that fit into the buffer.
    """

    def __init__(self, env: Environment, limit: int) -> None:
        limit = arguments.whole("limit", limit, 1)
        self.env = env
        self.limit = limit
        self.stalls = 0
        self.stalled_ps = 0
        self._oldest: deque[int] = deque()
        self._dirty: set[int] = set()
        self._writes: dict[_Write, None] = {}  # oldest first
        self._taken: deque[_Write] = deque()  # those of `take`
        self._failures = 0
        self._room: dict[int, Event] = {}  # for whom waits to change a page, in the order of their coming
        self._more: list[Event] = []

    def __len__(self) -> int:
        """Return how many pages are dirty, those that are being written included."""
        return len(self._dirty) + len(self._writes)

    @property
    def left(self) -> int:
        """How many pages are dirty that nobody writes."""
        return len(self._dirty)

    def change(self, page: int) -> Generator[Event, Any, None]:
        """Change a page, waiting for room where the buffer is full: ``yield from dirty.change(page)``."""
        if page in self._dirty:
            return
        began = self.env.now
        while page not in self._dirty and len(self) >= self.limit:
            yield self._room_for(page)
        if self.env.now > began:
            self.stalls += 1
            self.stalled_ps += self.env.now - began
        self._mark(page)

    def change_and_evict(self, page: int, group: WorkerGroup, flush: str | int) -> Generator[Event, Any, None]:
        """Change a page; where the buffer is full, write the oldest one back first, and wait for it."""
        if page in self._dirty:
            return
        began = self.env.now
        while page not in self._dirty and len(self) >= self.limit:
            self.lost_with(group.server)
            oldest = self.begin()
            if oldest is None:  # all of them are being written by others
                yield self._room_for(page)
                continue
            yield group.execute(flush, oldest.page)
            self.end(oldest)
        if page in self._dirty:
            self._wake_next()  # changed by another one meanwhile; who waits next may write a page back
        if self.env.now > began:
            self.stalls += 1
            self.stalled_ps += self.env.now - began
        self._mark(page)

    def take(self) -> int | None:
        """Return the oldest dirty page, which the caller now writes back; None: there is none."""
        write = self.begin()
        if write is None:
            return None
        self._taken.append(write)
        return write.page

    def written(self) -> None:
        """Tell that a page that was taken is durable: the one that was taken first."""
        if self._taken:
            self.end(self._taken.popleft())

    def begin(self) -> _Write | None:
        """Take the oldest dirty page as `take` does, for who tells which of several has been written."""
        if not self._oldest:
            return None
        write = _Write(self._oldest.popleft())
        self._dirty.discard(write.page)
        self._writes[write] = None
        return write

    def end(self, write: _Write) -> None:
        """Tell that a page is durable that `begin` has taken."""
        if write not in self._writes:
            return  # forgotten since
        del self._writes[write]
        if write.ended is not None:
            write.ended.succeed()
        self._wake_next()

    def settle(self) -> Generator[Event, Any, None]:
        """Wait until all pages that are being written now, by whomever, are durable.

        Raises
        ------
        PowerFailureError : they were forgotten instead.
        """
        failures = self._failures
        for write in list(self._writes):
            if write in self._writes:
                if write.ended is None:
                    write.ended = self.env.event()
                yield write.ended
            if failures != self._failures:
                raise PowerFailureError("the power failed before the pages were durable")

    def more(self) -> Event:
        """Return an event that happens when the next page becomes dirty."""
        event = self.env.event()
        self._more.append(event)
        return event

    def forget(self) -> None:
        """Forget all: the power has failed.

        To be called at the failure: what has been changed or taken since is forgotten, too.
        """
        self._oldest.clear()
        self._dirty.clear()
        self._failures += 1
        ended = [write.ended for write in self._writes if write.ended is not None]
        self._writes.clear()
        self._taken.clear()
        for event in (*ended, *self._room.values()):
            event.succeed()
        self._room.clear()

    def lost_with(self, server: Server) -> None:
        """Forget all whenever the power of a server fails, at the failure."""
        if self.forget not in server.at_power_failure:
            server.at_power_failure.append(self.forget)

    def _room_for(self, page: int) -> Event:
        """Return an event that happens when a page has been written back, or this one is dirty."""
        return self._room.setdefault(page, self.env.event())

    def _wake_next(self) -> None:
        if self._room:
            self._room.pop(next(iter(self._room))).succeed()

    def _mark(self, page: int) -> None:
        if page in self._dirty:
            return  # changed by another one meanwhile
        self._dirty.add(page)
        self._oldest.append(page)
        if page in self._room:
            self._room.pop(page).succeed()  # who changes a dirty page needs no room
        waiting, self._more = self._more, []
        for event in waiting:
            event.succeed()


class PagePropagation:
    """Background writers that keep the dirty pages of a buffer below a target.

    Parameters
    ----------
    dirty : DirtyPages
        The buffer.
    group : WorkerGroup
        Whose threads write: one process for each of `writers`.
    target : int
        Dirty pages that are left alone.
    writers : int, optional
        By default one for each worker of the group.
    flush : str
        The request that writes page `first` back.
    """

    def __init__(
        self,
        dirty: DirtyPages,
        group: WorkerGroup,
        *,
        target: int,
        writers: int | None = None,
        flush: str = "pages.flush",
    ) -> None:
        target = arguments.whole("target", target, 0, dirty.limit - 1)
        self.dirty = dirty
        self.group = group
        self.target = target
        self.pages_written = 0
        self._kind = group.server.kind(flush)
        dirty.lost_with(group.server)
        for _ in range(len(group.numbers) if writers is None else arguments.whole("writers", writers, 1)):
            dirty.env.process(self._write())

    def _write(self) -> Generator[Event, Any, None]:
        dirty = self.dirty
        while True:
            # Those of other writers do not count: for one page too many each of them would write one.
            write = dirty.begin() if dirty.left > self.target else None
            if write is None:
                yield dirty.more()
                continue
            try:
                yield self.group.execute(self._kind, write.page)
            except PowerFailureError:
                continue
            dirty.end(write)
            self.pages_written += 1


class Checkpoints:
    """Every so often: write all dirty pages back, then truncate the logs.

    Parameters
    ----------
    env : Environment
        The clock.
    period : int [ps] or text with a unit
        From the end of one checkpoint to the begin of the next.
    dirty : DirtyPages, optional
        What is written back; none: the logs are truncated only.
    writers : WorkerGroup, optional
        Who writes pages back.
    logs : sequence of WorkerGroup
        Groups of one worker each, whose logs are truncated.
    """

    def __init__(
        self,
        env: Environment,
        *,
        period: Time,
        dirty: DirtyPages | None = None,
        writers: WorkerGroup | None = None,
        logs: Sequence[WorkerGroup] = (),
        flush: str = "pages.flush",
        truncate: str = "log.truncate",
    ) -> None:
        if (dirty is None) != (writers is None):
            raise ConfigError("writers: dirty pages and those who write them back come together")
        for log in logs:
            if len(log.numbers) != 1:
                raise ConfigError("logs: each worker has a log of its own; give groups of one worker")
        self.env = env
        self.period = picoseconds(period)
        if self.period < 1:  # of nothing to write and to truncate time would stand still
            raise ConfigError("period: 0 ps between two checkpoints; choose at least 1 ps")
        self.taken: list[tuple[int, int]] = []
        self._dirty = dirty
        self._writers = writers
        self._logs = tuple(logs)
        self._flush = flush
        self._truncate = truncate
        if dirty is not None and writers is not None:
            dirty.lost_with(writers.server)
        env.process(self._run())

    def _run(self) -> Generator[Event, Any, None]:
        while True:
            yield self.env.timeout(self.period)
            began = self.env.now
            try:
                yield from self._pages()
                yield self.env.all_of([log.execute(self._truncate) for log in self._logs])
            except PowerFailureError:
                continue
            self.taken.append((began, self.env.now))

    def _pages(self) -> Generator[Event, Any, None]:
        if self._dirty is None or self._writers is None:
            return
        # Those that are dirty now; what becomes dirty meanwhile is the next checkpoint's.
        todo = len(self._dirty)
        workers = len(self._writers.numbers)
        while todo > 0:
            batch = [write for _ in range(min(workers, todo)) if (write := self._dirty.begin()) is not None]
            if not batch:
                break
            yield self.env.all_of([self._writers.execute(self._flush, write.page) for write in batch])
            for write in batch:
                self._dirty.end(write)
            todo -= len(batch)
        # Others may have taken some of them, and be at it: the log is still needed.
        yield from self._dirty.settle()


class GroupCommit:
    """Entries of several transactions that become durable together.

    A group is closed when it has `size` entries, or `timeout` after its first one. Groups are appended one
    after the other; while one is, the next one gathers, until that ends or it is full, even beyond its
    time-out.

    Parameters
    ----------
    group : WorkerGroup
        Whose worker appends: a log of one worker, so entries have one order.
    size : int
        Entries of a full group.
    timeout : int [ps] or text with a unit
        How long the first entry of a group waits for others.
    append : str
        The request that appends entries `first` to `first + count - 1` and commits.
    """

    def __init__(self, group: WorkerGroup, *, size: int, timeout: Time, append: str = "log.append") -> None:
        if len(group.numbers) != 1:
            raise ConfigError("group: each worker has a log of its own; group commit needs a group of one")
        self._kind = group.server.kind(append)
        _, largest_group = group.server.largest[self._kind]
        self.env: Environment = group.env
        self.group = group
        self.size = arguments.whole("size", size, 1, min(largest_group, arguments.LARGEST))
        self.timeout = picoseconds(timeout)
        self.groups = 0
        self.entries = 0
        self._next = 0
        self._gathering: list[Event] = []
        self._number = 0  # of the group that gathers
        self._due = False  # it has waited long enough
        self._appends = 0  # groups that are closed and not durable yet
        group.server.at_power_failure.append(self._forget)

    def append(self) -> tuple[int, Event]:
        """Add an entry.

        Returns
        -------
        (int, Event) : its number, and the event of its being durable; fails with `PowerFailureError`.
        """
        entry = self._next
        self._next += 1
        event = self.env.event()
        self._gathering.append(event)
        if len(self._gathering) == self.size:
            self._close()
        elif len(self._gathering) == 1:
            self.env.process(self._expire(self._number))
        return entry, event

    def _expire(self, number: int) -> Generator[Event, Any, None]:
        yield self.env.timeout(self.timeout)
        if number != self._number:
            return
        self._due = True
        self._close_due()

    def _close_due(self) -> None:
        # Closed earlier it would only wait for the worker, in a queue of small groups instead of a large one.
        if self._due and not self._appends:
            self._close()

    def _gathered(self) -> list[Event]:
        members, self._gathering = self._gathering, []
        self._number += 1
        self._due = False
        return members

    def _forget(self) -> None:
        _tell_lost(self._gathered())

    def _close(self) -> None:
        members = self._gathered()
        execution = self.group.execute(self._kind, self._next - len(members), len(members))
        self._appends += 1

        def tell(event: Event) -> None:
            self._appends -= 1
            self._close_due()
            if not event._ok:
                execution._defused = True
                _tell_lost(members)
                return
            done: Completion = event._value
            self.groups += 1
            self.entries += len(members)
            for member in members:
                member.succeed(done)

        execution.callbacks.append(tell)


def _tell_lost(members: list[Event]) -> None:
    for member in members:
        tell_cut_off(member, "the group was durable")
