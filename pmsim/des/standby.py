"""A hot standby that is fed by the log of another machine."""

from collections.abc import Generator
from typing import Any

from simpy.events import Event, Process

from pmsim.des.environment import Environment
from pmsim.des.request import PowerFailureError
from pmsim.des.times import Time, picoseconds
from pmsim.des.worker_group import WorkerGroup
from pmsim.errors import ConfigError


class HotStandby:
    """Entries go to a log here and, over a network, to a log on a second machine.

    Synchronous: an entry is acknowledged when both have it durably, so the standby has every acknowledged entry
    whatever happens to the primary. Asynchronous: when the primary has it; the standby follows. What a power
    failure of the standby cuts off is sent again and waits for its recovery, whatever its client has been told;
    so an entry that was durable all the same is there twice.

    Parameters
    ----------
    primary, standby : WorkerGroup
        Workers of two servers on one clock.
    network : int [ps] or text with a unit
        One way.
    synchronous : bool
        Whom an acknowledgement waits for.
    append : str
        The request of both that appends entries `first` to `first + count - 1`.

    Attributes
    ----------
    behind : int
        Entries that have been given to `append` and are not durable on the standby yet.
    """

    def __init__(
        self,
        primary: WorkerGroup,
        standby: WorkerGroup,
        *,
        network: Time,
        synchronous: bool = True,
        append: str = "log.append",
    ) -> None:
        if primary.server is standby.server:
            raise ConfigError("standby: it is the primary's own machine; give a second server")
        if primary.env is not standby.env:
            raise ConfigError("standby: its clock is another one; both servers need one Environment")
        self.env: Environment = primary.env
        self.behind = 0
        self._primary = primary
        self._standby = standby
        self._network = picoseconds(network)
        self._synchronous = synchronous
        self._append = append

    def append(self, first: int, count: int = 1) -> Process:
        """Append entries; the event is their acknowledgement, and fails with `PowerFailureError`.

        A power failure of an append that nobody waits for does not end the run.
        """
        return self.env.process(self._both(first, count))

    def _both(self, first: int, count: int) -> Generator[Event, Any, None]:
        appending = self.env.active_process
        assert appending is not None
        followed = self.env.event()
        self.env.process(self._follow(first, count, followed))
        try:
            yield self._primary.execute(self._append, first, count)
            if self._synchronous and not (yield followed):
                raise PowerFailureError("the standby has lost its power before the entry was acknowledged")
        except PowerFailureError:
            appending.defused = True  # as `tell_cut_off`: SimPy would end the run where nobody waits any more
            raise

    def _follow(self, first: int, count: int, followed: Event) -> Generator[Event, Any, None]:
        self.behind += count
        yield self.env.timeout(self._network)
        while True:
            try:
                yield self._standby.execute(self._append, first, count)
                break
            except PowerFailureError:  # sent again at once, before later entries: the log keeps its order
                if not followed.triggered:
                    followed.succeed(False)
        self.behind -= count
        if not followed.triggered:
            yield self.env.timeout(self._network)
            followed.succeed(True)
