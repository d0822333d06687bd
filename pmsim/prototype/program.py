"""What a program says of itself to be checked and timed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final

from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.prototype.memory import Memory


class _Later:
    def __repr__(self) -> str:
        return "LATER"


#: What `run` returns of an operation that is acknowledged with a later one.
LATER: Final = _Later()


class Prototype(ABC):
    """An algorithm of one's own: a subclass, each object of which is one run of a program.

    What an object keeps in attributes is volatile. After a crash a new object, made as the first one was, is
    asked to `recover`, and knows nothing but what is in memory.
    """

    #: Persistence points, by their names, whose removal no crash can show, and why.
    redundant: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def renew(cls) -> None:
        """Called before a check, a recording or a measurement begins: what has changed meanwhile counts."""
        return  # what is in Python does not change

    @abstractmethod
    def create(self, memory: Memory) -> None:
        """Allocate all regions, each with a name of its own, and then format them."""

    @abstractmethod
    def run(self, memory: Memory, operation: Any) -> object:
        """Carry out one operation. When it returns, the operation is acknowledged: it must survive.

        What it returns is for nobody, but for `LATER`: that puts the acknowledgement off to the first one that
        begins afterwards and is acknowledged, as in a group of commits. Until then a crash may leave the first
        of those that wait, each wholly, without those behind it.
        """

    @abstractmethod
    def recover(self, memory: Memory) -> Any:
        """Make usable what a crash has left, and return its content.

        None says that a crash has come before `create` was done. `run` may be called afterwards.
        """

    @abstractmethod
    def expected(self, done: Sequence[Any]) -> Any:
        """Return what `recover` has to return (==) after exactly these operations, without any memory."""

    @abstractmethod
    def draw(self, random: Random) -> Any:
        """Return a random operation: any value whose ``repr`` tells a person what it is."""


#: A class without arguments of its own, or whatever else returns a new object each time.
MakePrototype = Callable[[], Prototype]


def one_of(make: MakePrototype) -> Prototype:
    """Return a new object.

    Raises
    ------
    ConfigError : `make` returns something else, or one object again and again.
    """
    made = make() if callable(make) else None
    if not isinstance(made, Prototype):
        raise ConfigError(
            f"prototype: {shown(make)} makes no Prototype; give a subclass, or what returns a new object"
        )
    type(made).renew()
    anew = make()
    if anew is made:
        raise ConfigError(
            "prototype: returns the same object again, which knows what a crash has lost; make a new one"
        )
    return anew
