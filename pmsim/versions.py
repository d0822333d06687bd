"""What computed a result: versions of the package and of its core."""

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pmsim import _native

#: Folders of the package in which nothing is simulated.
_AFTERWARDS = frozenset({"commands", "plots", "validation"})


def package_version() -> str:
    """Version of the Python package; of the core where the package is used without an installation."""
    try:
        return version("pmsim")
    except PackageNotFoundError:
        return _native.__version__


def native_version() -> str:
    """Version of the compiled core."""
    return _native.__version__


@cache
def native_build() -> str:
    """SHA-256 of the compiled core: kept points of another build are not mixed with new ones."""
    return hashlib.sha256(Path(str(_native.__file__)).read_bytes()).hexdigest()


def files_of(kind: type) -> list[Path]:
    """Return the Python files that decide what points of a kind give, ascending.

    Those of this package, but for what shows results or holds them against others, and those that define the
    class and its bases. A module without a file (a prompt, a notebook) has no part in it.
    """
    package = Path(__file__).parent
    files = {file for file in package.rglob("*.py") if file.relative_to(package).parts[0] not in _AFTERWARDS}
    modules = (sys.modules.get(base.__module__) for base in kind.__mro__)
    files |= {Path(name) for module in modules if (name := getattr(module, "__file__", None)) is not None}
    return sorted(file for file in files if file.is_file())


@cache
def sources_of(kind: type) -> str:
    """SHA-256 of `files_of` a kind."""
    digest = hashlib.sha256()
    for file in files_of(kind):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
