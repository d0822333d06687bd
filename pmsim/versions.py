"""What computed a result: versions of the package and of its core."""

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pmsim import _native


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


@cache
def sources_of(kind: type) -> str:
    """SHA-256 of the Python files that define a class and its bases: what its instances do.

    A module without a file (a prompt, a notebook) has no part in it.
    """
    modules = (sys.modules.get(base.__module__) for base in kind.__mro__)
    files = {Path(name) for module in modules if (name := getattr(module, "__file__", None)) is not None}
    digest = hashlib.sha256()
    for file in sorted(file for file in files if file.is_file()):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
