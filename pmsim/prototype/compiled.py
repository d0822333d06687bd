"""Compiles algorithms in C++ that live outside of pmsim, once for each version of their text."""

import hashlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from shutil import which
from types import ModuleType

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.resources import headers_dir

#: Of the modules that are made here; files differ by what is in them.
_MODULE = "pmsim_program"
_UNIT = """\
#include "{header}"
#include <pmsim/prototype/module.hpp>

PYBIND11_MODULE({module}, module) {{
  pmsim::prototype::bind_errors();
  pmsim::prototype::bind_simulated<{program}<pmsim::prototype::SimulatedMemory>>(module);
  pmsim::prototype::bind_host<{program}<pmsim::prototype::HostMemory>>(module);
}}
"""


def compiled(
    header: Path,
    program: str,
    flags: Sequence[str] = (),
    progress: Callable[[str], None] = lambda doing: None,
) -> ModuleType:
    """Return an extension module with a class template of a header, on simulated memory and on this machine.

    The compiler is `$CXX`, or c++; what it takes beside `flags` is `$CXXFLAGS`. What it has made is kept in
    `$XDG_CACHE_HOME/pmsim` (~/.cache/pmsim), and made again when one of the files that it has read changes.

    Parameters
    ----------
    header : Path
        Of the program.
    program : str
        The class template, or an alias of one.
    flags : sequence of str
        For the compiler.
    progress : callable
        Is told when it compiles.

    Raises
    ------
    ConfigError : no compiler, no such file, or one that does not compile.
    """
    if not header.is_file():
        raise ConfigError(f"{header}: no such file; name the header that has the class template '{program}'")
    if not re.fullmatch(r"\w+(::\w+)*", program):
        raise ConfigError(f"{program}: is no name of a class template in C++")
    header = header.resolve()
    command = [*_compiler(), *_OPTIONS, *shlex.split(os.environ.get("CXXFLAGS", ""))]
    unit = _UNIT.format(header=header, program=program, module=_MODULE)
    asked = json.dumps([command, *flags, unit, *map(str, _includes()), _digest(_library())])
    folder = _kept() / hashlib.sha256(asked.encode()).hexdigest()[:32]
    module = _latest(folder)
    if module is None:
        progress(f"compiling {header}")
        module = _compile(command, flags, unit, folder, header)
    return _load(module)


#: As the core is built.
_OPTIONS = ("-std=c++20", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")


def _compiler() -> list[str]:
    asked = shlex.split(os.environ.get("CXX", ""))
    found = asked or [name for name in ("c++", "g++", "clang++") if which(name)][:1]
    if not found or not which(found[0]):
        raise ConfigError(
            f"{found[0] if found else 'c++'}: no such C++ compiler; install one, or name it in CXX"
        )
    return found


@cache
def _includes() -> tuple[Path, ...]:
    """Return where headers are: of the core, of pybind11, of Python."""
    import pybind11

    python = Path(sysconfig.get_paths()["include"])
    if not (python / "Python.h").is_file():
        raise ConfigError(f"{python}/Python.h: the headers of Python are missing; install them (python3-dev)")
    return headers_dir(), Path(pybind11.get_include()), python


@cache
def _library() -> Path:
    """Return the library of HostMemory, which is installed beside the core."""
    library = Path(_native.__file__).parent / "libpmsim_host.a"
    if not library.is_file():
        raise ConfigError(f"{library}: this library of pmsim is missing; install pmsim again")
    return library


def _kept() -> Path:
    """Return the folder of what has been compiled."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(caches) / "pmsim" / "programs"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _latest(folder: Path) -> Path | None:
    """Return the module whose sources are what they were, if there is one."""
    try:
        kept = json.loads((folder / "made.json").read_text())
        if all(_digest(Path(file)) == digest for file, digest in kept["read"].items()):
            module = folder / kept["module"]
            return module if module.is_file() else None
    except (OSError, ValueError, KeyError):
        pass  # made again
    return None


def _compile(command: Sequence[str], flags: Sequence[str], unit: str, folder: Path, header: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In a place of its own, so that processes which do the same at once do not disturb each other.
        with tempfile.TemporaryDirectory(dir=folder) as place:
            return _kept_from(Path(place), command, flags, unit, folder, header)
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}; have it writable, or set XDG_CACHE_HOME") from None


def _kept_from(
    place: Path, command: Sequence[str], flags: Sequence[str], unit: str, folder: Path, header: Path
) -> Path:
    source, module, rule = place / "program.cpp", place / "program.so", place / "program.d"
    source.write_text(unit)
    includes = [option for path in _includes() for option in ("-isystem", str(path))]
    done = subprocess.run(
        [*command, *includes, "-MD", "-MF", str(rule), "-o", str(module), str(source), str(_library()), *flags],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        log = folder / "errors.txt"
        log.write_text(done.stderr)
        raise ConfigError(f"{header}: does not compile: {_first_error(done.stderr)}; all of it is in {log}")
    files = {file: _digest(Path(file)) for file in _dependencies(rule.read_text()) if file != str(source)}
    made = place / "made.json"
    # A name of its own: a module that a process has loaded stays what it is.
    kept = folder / f"{_digest(module)[:32]}.so"
    made.write_text(json.dumps({"module": kept.name, "read": files}))
    module.replace(kept)
    made.replace(folder / made.name)
    return kept


def _dependencies(rule: str) -> Iterable[str]:
    """Yield the files of a rule for make, as compilers write it."""
    for word in re.findall(r"(?:\\ |[^\s\\])+", rule.partition(": ")[2].replace("\\\n", " ")):
        yield word.replace("\\ ", " ").replace("$$", "$")


def _first_error(text: str) -> str:
    errors = re.findall(r"^.*?(?:error|fatal error): .*$", text, re.MULTILINE)
    first: str = errors[0] if errors else (text.strip() or "the compiler says nothing").splitlines()[0]
    return first.strip()


@cache  # its types are registered once in a process
def _load(path: Path) -> ModuleType:
    # Under a name of its own, by which pybind11 finds modules again; by the last part, Python its beginning.
    spec = importlib.util.spec_from_file_location(f"pmsim_programs.{path.stem}.{_MODULE}", path)
    assert spec is not None  # by its name it is an extension module
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
