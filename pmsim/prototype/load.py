"""Prototypes in files, as the command line names them."""

import faulthandler
import importlib.util
import os
import sys
from types import ModuleType

from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.prototype.cpp import CppPrototype
from pmsim.prototype.program import Prototype
from pmsim.prototype.subject import told


def names_prototype(name: str) -> bool:
    """Whether a name is ``FILE.py:CLASS``, or means to be."""
    return ".py" in name


def load_prototype(name: str) -> type[Prototype]:
    """Return the class that ``FILE.py:CLASS`` names; the file runs as ``python FILE.py`` would import it.

    Raises
    ------
    ConfigError : no such file, one that fails, or no such prototype in it.
    """
    file, _, wanted = name.rpartition(":") if ".py:" in name else (name, "", "")
    if not os.path.isfile(file):
        raise ConfigError(f"{file}: no such file; name a prototype as FILE.py:CLASS")
    module = _run(file)
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Prototype) and not value.__abstractmethods__
    }
    if not found:
        raise ConfigError(f"{file}: no subclass of pmsim.prototype.Prototype has all methods; write one")
    if not wanted:
        raise ConfigError(f"{file}: {', '.join(found)}: say which, as {file}:{next(iter(found))}")
    if wanted not in found:
        raise ConfigError(f"{file}: no prototype '{wanted}'; {nearest(wanted, found)}")
    if issubclass(found[wanted], CppPrototype) and sys.__stderr__ and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)  # a wild pointer ends Python: say in which method, at least
    return found[wanted]


def _run(file: str) -> ModuleType:
    place = os.path.abspath(file)
    # A name of its own: a file called json.py must not stand in for the module of Python.
    name = f"prototypes_in_{os.path.basename(file).removesuffix('.py')}"
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{file}: is no Python file; name a prototype as FILE.py:CLASS")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, os.path.dirname(place))  # for what it imports
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"{file}: raises {told(error)}; correct it") from None
    return module
