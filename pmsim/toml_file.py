"""Reading TOML files so that whatever is wrong with one becomes a one-line error."""

import tomllib
from pathlib import Path
from typing import Any

from pmsim.errors import ConfigError

#: A file with more bytes than this is none that a person wrote; /dev/zero has no end at all.
LARGEST_FILE = 64 * 2**20


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict : the top-level table.

    Raises
    ------
    ConfigError : missing, a directory, unreadable, not UTF-8 or not TOML.
    """
    return parse_toml(read_text(path), str(path))


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Parse TOML text; ``origin`` names it in messages."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, and whole numbers of thousands of digits
        raise ConfigError(f"{origin}: not TOML: {_one_line(error)}; correct the file") from None
    except RecursionError:
        raise ConfigError(f"{origin}: not usable TOML: nested too deeply; correct the file") from None


def read_text(path: Path, what: str = "TOML", largest: int = LARGEST_FILE) -> str:
    """Read a UTF-8 file of at most so many bytes, or raise a ConfigError that names it."""
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
        text = content.decode("utf-8-sig")  # Windows editors write a byte-order mark, which says nothing more
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a directory; name a file in it") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not {what}: not UTF-8 text; name a text file") from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: cannot be read: {_one_line(error)}; check the path and its permissions"
        ) from None
    if len(content) > largest:
        raise ConfigError(f"{path}: has more than {largest >> 20} MiB; name a text file")
    return text


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
