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
    whatever happens to the primary. Asynchronous: when the primary has it; the standby follows.

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
        followed = self.env.process(self._follow(first, count))
        try:
            yield self._primary.execute(self._append, first, count)
            if self._synchronous and not (yield followed):
                raise PowerFailureError("the standby has lost its power before the entry was acknowledged")
        except PowerFailureError:
            appending.defused = True  # as `tell_cut_off`: SimPy would end the run where nobody waits any more
            raise

    def _follow(self, first: int, count: int) -> Generator[Event, Any, bool]:
        self.behind += count
        yield self.env.timeout(self._network)
        try:
            yield self._standby.execute(self._append, first, count)
        except PowerFailureError:
            return False
        finally:
            self.behind -= count
        yield self.env.timeout(self._network)
        return True
