"""What computed a result: versions of the package and of its core."""

import hashlib
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
