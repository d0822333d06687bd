"""Simulated annealing on a grid: a walk, and the places that it may ask for next.

Spitfire tunes its four migration probabilities so (Zhou, Arulraj, Pavlo, Cohen: Spitfire, SIGMOD 2021):
change one setting by one step, keep what is better, and now and then what is worse, ever more seldom as the
temperature falls.
"""

import copy
import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from pmsim.search_space import Coordinates

#: A step that loses a tenth of the best value is taken with probability 1/e at the start.
START_TEMPERATURE = 0.1
COOLING = 0.93

#: Moves that are looked at to find what a walk may ask for next: one that stays among places it knows asks for
#: nothing, and each look takes some 20 us.
_LOOK = 1_000


class Walk:
    """A walk over a grid towards low energy: it proposes a place, is told the energy there, and goes or stays.

    Parameters
    ----------
    sizes : sequence of int
        Settings of each axis; the walk starts in the middle.
    steps : int
        Moves to try.
    seed : int
        The walk is a function of it, and of the energies.
    temperature, cooling : float
        A move that raises the energy by a share d of the best magnitude is taken with probability
        exp(-d / temperature); each move multiplies the temperature by `cooling`. A move to infinite energy is
        taken from such a place only: there anywhere else is as good.

    Attributes
    ----------
    proposed : tuple of int or None
        The place whose energy the walk has to be told next; None at its end.
    best : float
        The lowest energy of a place where the walk has been.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        steps: int,
        seed: int,
        temperature: float = START_TEMPERATURE,
        cooling: float = COOLING,
    ) -> None:
        self._choose = random.Random(seed)
        self._sizes = tuple(sizes)
        self._movable = [axis for axis, size in enumerate(sizes) if size > 1]
        self._left = steps if self._movable else 0
        self._temperature, self._cooling = temperature, cooling
        self._place: Coordinates | None = None
        self._current = self.best = math.inf
        self.proposed: Coordinates | None = tuple(size // 2 for size in sizes)

    def judge(self, found: float) -> bool:
        """Take the energy of the proposed place; return whether the walk goes there."""
        accepted = self._place is None
        if not accepted:
            worse = 0.0 if math.isinf(self._current) else (found - self._current) / (abs(self.best) or 1.0)
            # After some ten thousand moves the temperature is too small for a float: what is worse is left.
            accepted = worse <= 0 or (
                self._temperature > 0 and self._choose.random() < math.exp(-worse / self._temperature)
            )
            self._temperature *= self._cooling
        if accepted:
            self._place, self._current, self.best = self.proposed, found, min(self.best, found)
        self.proposed = self._move()
        return accepted

    def copy(self) -> "Walk":
        """Return a walk that goes on as this one would."""
        other = copy.copy(self)
        other._choose = random.Random()
        other._choose.setstate(self._choose.getstate())
        return other

    def _move(self) -> Coordinates | None:
        if self._left == 0 or self._place is None:
            return None
        self._left -= 1
        axis = self._choose.choice(self._movable)
        at = self._place[axis]
        ways = [way for way in (-1, 1) if 0 <= at + way < self._sizes[axis]]
        return (*self._place[:axis], at + self._choose.choice(ways), *self._place[axis + 1 :])


def anneal(
    sizes: Sequence[int],
    energy: Callable[[Coordinates], float],
    steps: int,
    seed: int,
    temperature: float = START_TEMPERATURE,
    cooling: float = COOLING,
) -> Iterator[tuple[Coordinates, float, bool]]:
    """Walk to the end, with the parameters of `Walk`.

    Parameters
    ----------
    energy : callable
        Of a place, to be made small; called again for a place that is visited again.

    Yields
    ------
    place, its energy, and whether the walk went there.
    """
    walk = Walk(sizes, steps, seed, temperature, cooling)
    while (place := walk.proposed) is not None:
        found = energy(place)
        yield place, found, walk.judge(found)


def outlook(walk: Walk, known: Mapping[Coordinates, float]) -> Iterator[Coordinates]:
    """Yield the places whose energies a walk will ask for or may ask for, each once, the likelier ones first.

    An energy that is not `known` may be worse, and the walk stay, as it does at most moves; or it is as good as
    the best so far.
    """
    seen: set[Coordinates] = set()
    futures = deque([(walk.copy(), dict[Coordinates, float]())])
    for _ in range(_LOOK):
        if not futures:
            return
        ahead, assumed = futures.popleft()
        there = ahead.proposed
        if there is None:
            continue
        energy = known.get(there, assumed.get(there))
        if energy is not None:
            ahead.judge(energy)
            futures.appendleft((ahead, assumed))
            continue
        if there not in seen:
            seen.add(there)
            yield there
        for energy in (math.inf, ahead.best):
            future = ahead.copy()
            future.judge(energy)
            futures.append((future, {**assumed, there: energy}))
