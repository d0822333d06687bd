"""One clock for SimPy and the native core."""

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Protocol

import simpy
from simpy.core import BoundClass, EmptySchedule, StopSimulation
from simpy.events import NORMAL, URGENT, Event, EventPriority, Timeout

from pmsim.des.times import NEVER, Time, picoseconds


class Core(Protocol):
    """What an environment advances: a part of the simulation that lives in the native core."""

    def advance(self, before: int) -> int:
        """Act strictly before a time, schedule what is due (at most at that time), and stop at the first.

        Returns
        -------
        int [ps] : when there is something to do next; `NEVER`: not before somebody asks.
        """


class ExactTimeout(Timeout):
    """A timeout whose delay is a whole number of picoseconds, or a text with a unit."""

    def __init__(self, env: "Environment", delay: Time, value: Any = None) -> None:
        super().__init__(env, delay if type(delay) is int and delay >= 0 else picoseconds(delay), value)


class Environment(simpy.Environment):
    """A SimPy environment whose time is virtual picoseconds, as plain integers.

    Native servers attach themselves (`Core`). Before an event is processed, the core is advanced to its time
    and no further; what the core completes on the way enters the queue as an event at its own time. Floats and
    NumPy integers are converted exactly or refused, so the clock is never anything but an ``int``.

    Order at one time: completions of the core, in the order of servers and workers; then SimPy's own events, in
    the order in which they were scheduled; then what the core does at that time.

    Parameters
    ----------
    initial_time : int [ps] or text with a unit
        Where the clock begins.
    """

    _now: int

    def __init__(self, initial_time: Time = 0) -> None:
        super().__init__(picoseconds(initial_time))
        self._cores: list[Core] = []
        self._nexts: list[int] = []
        self._core_next = NEVER

    @property
    def now(self) -> int:
        """The current time [ps]."""
        return self._now

    if TYPE_CHECKING:

        def timeout(self, delay: Time = 0, value: Any = None) -> ExactTimeout:
            """Return an event that is processed after `delay` ([ps] or text with a unit)."""

    else:
        timeout = BoundClass(ExactTimeout)

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: Time = 0) -> None:
        """Schedule an event, `delay` from now ([ps] or text with a unit)."""
        if type(delay) is not int or delay < 0:
            delay = picoseconds(delay)
        heappush(self._queue, (self._now + delay, priority, next(self._eid), event))

    def schedule_at(self, event: Event, at: int) -> None:
        """Schedule a completion of the core at its own time [ps]: before SimPy's own events of that time."""
        heappush(self._queue, (at, URGENT, next(self._eid), event))

    def attach(self, core: Core) -> int:
        """Advance `core` together with the others from now on; returns its number for `wake`."""
        self._cores.append(core)
        self._nexts.append(NEVER)
        return len(self._cores) - 1

    def wake(self, number: int) -> None:
        """Tell that a core has been given something to do now."""
        self._nexts[number] = self._core_next = self._now

    def step(self) -> None:
        """Process the next event, after advancing the core to it."""
        queue = self._queue
        if self._core_next < NEVER:
            peek = queue[0][0] if queue else NEVER
            # At `now` the core has been: it acts strictly before, and has said what is due.
            if self._core_next <= peek != self._now:
                self._advance(peek)  # type: ignore[arg-type]
        # The rest is simpy.Environment.step(), written out: it runs for every event.
        if not queue:
            raise EmptySchedule
        self._now, _, _, event = heappop(queue)  # type: ignore[assignment]
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        try:
            for callback in callbacks:
                callback(event)
        except StopSimulation:
            event.callbacks = callbacks[callbacks.index(callback) + 1 :]
            self.schedule(event, EventPriority(-1))
            raise
        if not event._ok and not hasattr(event, "_defused"):
            exception = type(event._value)(*event._value.args)
            exception.__cause__ = event._value
            raise exception

    def peek(self) -> int:
        """Return the time of the next event [ps]; `NEVER`: there is none."""
        # Whoever asks wants to know what step() will process, so the core has to say it first.
        queue = self._queue
        peek = int(queue[0][0]) if queue else NEVER
        if self._core_next < NEVER and self._core_next <= peek:
            self._advance(peek)
        return int(queue[0][0]) if queue else NEVER

    def run(self, until: Time | Event | None = None) -> Any:
        """Run until a time ([ps] or text with a unit), an event, or the end.

        Raises
        ------
        ConfigError : a time that is no whole number of picoseconds.
        """
        stop: Event | None = None
        if isinstance(until, Event):
            stop = until
        elif until is not None:
            stop = self._stop_at(picoseconds(until))
        if stop is not None:
            if stop.callbacks is None:
                return stop.value  # type: ignore[unreachable]
            stop.callbacks.append(StopSimulation.callback)
        try:
            self._loop()
        except StopSimulation as stopped:
            return stopped.args[0]
        except EmptySchedule:
            if stop is not None:
                raise RuntimeError(
                    f'No scheduled events left but "until" event was not triggered: {stop}'
                ) from None
        return None

    def _stop_at(self, at: int) -> Event:
        if at <= self._now:
            raise ValueError(f"until ({at}) must be greater than the current simulation time")
        stop = Event(self)
        stop._ok = True
        stop._value = None
        self.schedule(stop, URGENT, at - self._now)
        return stop

    def _loop(self) -> None:
        # step() for ever, in one frame.
        queue = self._queue
        while True:
            if self._core_next < NEVER:
                peek = queue[0][0] if queue else NEVER
                if self._core_next <= peek != self._now:
                    self._advance(peek)  # type: ignore[arg-type]
            if not queue:
                raise EmptySchedule
            self._now, _, _, event = heappop(queue)  # type: ignore[assignment]
            callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
            try:
                for callback in callbacks:
                    callback(event)
            except StopSimulation:
                event.callbacks = callbacks[callbacks.index(callback) + 1 :]
                self.schedule(event, EventPriority(-1))
                raise
            if not event._ok and not hasattr(event, "_defused"):
                exception = type(event._value)(*event._value.args)
                exception.__cause__ = event._value
                raise exception

    def _advance(self, peek: int) -> None:
        if len(self._cores) == 1:
            self._core_next = self._nexts[0] = self._cores[0].advance(peek)
            return
        # Several machines: always the one that is behind, so that none passes another one's completion.
        queue, nexts = self._queue, self._nexts
        while True:
            first = min(nexts)
            number = nexts.index(first)
            if first >= peek or first == NEVER:
                # Something due exactly at the bound may still have to be reported.
                for other, at in enumerate(nexts):
                    if at == peek != NEVER:
                        nexts[other] = self._cores[other].advance(peek)
                break
            second = min((at for other, at in enumerate(nexts) if other != number), default=NEVER)
            nexts[number] = self._cores[number].advance(min(peek, second if first < second else first + 1))
            if queue:
                peek = min(peek, int(queue[0][0]))
        self._core_next = min(nexts)
