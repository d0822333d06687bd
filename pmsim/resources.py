"""Where the files that come with pmsim are: in the working tree, or in the installed package."""

from pathlib import Path

from pmsim.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent


def scenarios_dir() -> Path:
    """Folder of the shipped scenarios."""
    return _folder("scenarios")


def validation_dir() -> Path:
    """Folder of the published claims and the data that goes with them."""
    return _folder("validation")


def headers_dir() -> Path:
    """Folder of the headers of the core, for algorithms in C++ that live outside of it."""
    return _folder("include", within="native")


def _folder(name: str, within: str = "") -> Path:
    # The working tree wins: an edited scenario counts at once, without a new installation.
    root = _PACKAGE.parent
    in_tree = (root / "pyproject.toml").is_file() and (root / "native").is_dir()
    folder = root / within / name if in_tree else _PACKAGE / "_data" / name
    if not folder.is_dir():
        raise ConfigError(f"{folder}: the folder '{name}' of pmsim is missing; install pmsim again")
    return folder
