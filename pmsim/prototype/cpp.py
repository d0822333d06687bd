"""Algorithms in C++ as prototypes: one source, crashed and timed in simulation, and measured on silicon."""

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

from pmsim.arguments import text, texts
from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.prototype.compiled import compiled
from pmsim.prototype.memory import Memory
from pmsim.prototype.program import LATER, Prototype
from pmsim.prototype.subject import told


class CppPrototype(Prototype):
    """A class template in a header of C++: what is left to say in Python is `expected` and `draw`.

    The header includes ``<pmsim/prototype.hpp>``, which says what the template has to have. It is compiled when
    the first object is made, which takes some seconds, and again when a check, a recording or a measurement
    begins and it has changed.

    Attributes
    ----------
    source : str
        The header, meant from the folder of the Python file.
    program : str
        The class template, or an alias of one, with its namespaces; the name of the Python class by default.
    flags : sequence of str
        For the compiler, such as "-mavx2" or "-I/where/ever".
    operations, warmup : int
        How many ``pmsim measure`` times, and how many it runs before.
    """

    source: ClassVar[str]
    program: ClassVar[str] = ""
    flags: ClassVar[Sequence[str]] = ()
    operations: ClassVar[int] = 1000
    warmup: ClassVar[int] = 1000

    _program: Any

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make an object with its program, which a constructor of one's own needs not know of."""
        made = super().__new__(cls)
        made._program = cls.module().Program()
        return made

    @classmethod
    def renew(cls) -> None:
        """Have the next object be of the header as it is then: an editor may have changed it."""
        _MODULES.pop(cls, None)

    @classmethod
    def module(cls, progress: Callable[[str], None] = lambda doing: None) -> ModuleType:
        """Return the extension module of the program, compiled where it has to be, of which `progress` is told.

        Raises
        ------
        ConfigError : no source, no compiler, or a program that does not compile.
        """
        found = _MODULES.get(cls)
        if found is None:
            name = cls.__name__
            program = text(f"{name}.program", cls.program) or name
            found = compiled(_header(cls), program, texts(f"{name}.flags", cls.flags), progress)
            _MODULES[cls] = found
        return found

    def create(self, memory: Memory) -> None:
        """Have the program create its regions."""
        self._program.create(memory)

    def run(self, memory: Memory, operation: Any) -> object:
        """Have the program run an operation."""
        try:
            return None if self._program.run(memory, operation) else LATER
        except TypeError as error:  # what memory is given wrongly is a ConfigError
            takes = re.search(r"arg1: (.*)\) -> ", str(error))
            raise ConfigError(
                f"{self._place()}: run() takes {takes[1] if takes else 'something else'}; draw() returned"
                f" {shown(operation)}"
            ) from None

    def recover(self, memory: Memory) -> Any:
        """Have the program recover."""
        try:
            return self._program.recover(memory)
        except TypeError as error:  # in one line: pybind11 adds the types of C++
            said = told(error).partition("\n")[0]
            raise ConfigError(f"{self._place()}: recover(): {said.partition(' The signature')[0]}") from None

    def _place(self) -> str:
        return f"{type(self).__name__} of {type(self).source}"


#: Of those classes that have been compiled.
_MODULES: dict[type[CppPrototype], ModuleType] = {}


def _header(kind: type[CppPrototype]) -> Path:
    says = next((base for base in kind.__mro__ if "source" in vars(base)), None)
    if says is None:
        raise ConfigError(f"{kind.__name__}.source: is missing; name the header of C++ that has the program")
    try:
        folder = Path(inspect.getfile(says)).parent
    except (TypeError, OSError):  # in a notebook or a shell
        folder = Path.cwd()
    return folder / text(f"{kind.__name__}.source", kind.source)
