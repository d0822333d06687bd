"""What a program has promised so far: what may be found if the power fails now."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pmsim.errors import ConfigError

#: Threads whose operations overlap may have done them in so many orders that nobody can look at all.
_MOST_HISTORIES = 20_000


@dataclass(frozen=True)
class History:
    """Operations that may have been done, in an order that explains what is found."""

    done: list[Any]  #: of this program, and of those before it
    members: frozenset[int]  #: of this program
    origin: int  #: which history of the programs before it
    content: Any  #: that says so


@dataclass(frozen=True)
class _Pending:
    operation: Any
    after: frozenset[int]  #: had returned when it began, so it comes behind them


class Promise:
    """Follows operations as they begin and return; `legal` is what may be found.

    An operation that has been acknowledged is found. One that has begun and has not been acknowledged is found
    wholly or not at all. Operations of threads that overlap in time may have been done in any order, those that
    do not in the order of time (linearizability: M. Herlihy and J. Wing, TOPLAS 12(3), 1990).

    Parameters
    ----------
    content : callable
        Returns what is found after exactly these operations.
    histories : sequence, optional
        What may have been acknowledged by programs before. None: not even that there is something.
    """

    def __init__(
        self, content: Callable[[list[Any]], Any], histories: Sequence[list[Any]] | None = None
    ) -> None:
        self._content = content
        self._pending: dict[int, _Pending] = {}
        self._begun: set[int] = set()
        self.changes = 0
        self._returned: set[int] = set()  # not acknowledged yet
        self.is_created = histories is not None
        self.legal: list[History] = [
            History(done, frozenset(), origin, content(done)) for origin, done in enumerate(histories or [])
        ]

    def create(self) -> None:
        """A crash may leave nothing from now on, or all of what is created."""
        self.legal = [
            History([], frozenset(), 0, None),
            History([], frozenset(), 0, self._content([])),
        ]

    def created(self) -> None:
        """It is there."""
        self.is_created = True
        self.legal = self.legal[1:]

    def begin(self, index: int, operation: Any) -> None:
        """An operation begins; `index` is one that no other has.

        Raises
        ------
        ConfigError : there are too many orders in which operations may have been done.
        """
        self.changes += 1
        self._begun.add(index)
        self._pending[index] = _Pending(operation, frozenset(self._returned))
        # All that were legal still are; what is new has this one, and then others that are pending.
        new: defaultdict[tuple[int, frozenset[int]], list[History]] = defaultdict(list)
        steps = [(history, index) for history in self.legal]
        for history, following in steps:
            if (longer := self._longer(history, following)) is None:
                continue
            # The same operations in another order may leave the same: all that counts, as expected() says.
            same = new[longer.origin, longer.members]
            if any(equal(longer.content, other.content) for other in same):
                continue
            same.append(longer)
            self.legal.append(longer)
            steps += [(longer, other) for other in self._pending]
            if len(self.legal) > _MOST_HISTORIES:
                raise ConfigError(
                    f"threads: operations may have been done in more than {_MOST_HISTORIES:,} orders; choose"
                    " fewer threads or shorter programs, or let expected() return what does not depend on it"
                )

    def end(self, index: int, acknowledged: bool) -> None:
        """It has returned. If it is acknowledged, so are those that had returned when it began."""
        self.changes += 1
        self._returned.add(index)
        if not acknowledged:
            return
        acknowledges = (self._pending[index].after & self._returned) | {index}
        self.legal = [history for history in self.legal if acknowledges <= history.members]
        for returned in acknowledges:
            del self._pending[returned]
        self._returned -= acknowledges

    @property
    def is_quiet(self) -> bool:
        """Whether all that has begun has been acknowledged."""
        return not self._pending

    def settle(self, content: Any) -> None:
        """Leave the histories that explain what a recovery has found, where there are any."""
        self.legal = [history for history in self.legal if equal(history.content, content)] or self.legal

    def stage(self, index: int) -> str:
        """Say how far an operation has come."""
        if index not in self._begun:
            return "not begun"
        if index not in self._pending:
            return "acknowledged"
        return "waits for its group" if index in self._returned else "in flight"

    def _longer(self, history: History, index: int) -> History | None:
        """Return the history with one more operation, where that can come behind it."""
        pending = self._pending[index]
        if index in history.members or not pending.after <= history.members:
            return None
        done = [*history.done, pending.operation]
        return History(done, history.members | {index}, history.origin, self._content(done))


def equal(content: Any, found: Any) -> bool:
    """Whether they are, even where `==` does not say so in one word."""
    try:
        return bool(content == found)
    except Exception:  # of an array, which compares its elements
        return False
