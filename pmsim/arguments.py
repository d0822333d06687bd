"""What callers give to public functions, checked at the door so that nothing odd fails in the depths."""

import os
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.output_place import place_of

T = TypeVar("T")

#: The core counts with 63 bits.
LARGEST = 2**63 - 1


def whole(key: str, value: object, least: int, most: int = LARGEST) -> int:
    """Return a whole number in [least, most], or raise a ConfigError that names its key."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ConfigError(f"{key}: {shown(value)} is not a whole number; choose at least {least}")
    number = int(value)
    if number < least:
        raise ConfigError(f"{key}: {number} is too few; choose at least {least}")
    if number > most:
        raise ConfigError(f"{key}: {shown(number)} is too much; choose at most {most}")
    return number


def text(key: str, value: object) -> str:
    """Return a text, or raise a ConfigError that names its key."""
    if not isinstance(value, str):
        raise ConfigError(f"{key}: {shown(value)} is not text; write a name in quotes")
    return value


def texts(key: str, value: object) -> tuple[str, ...]:
    """Return several texts, or raise a ConfigError that names their key."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ConfigError(f"{key}: {shown(value)} is not a list of texts; put it in brackets")
    return tuple(text(key, item) for item in value)


def listed(key: str, value: object, kind: type[T]) -> tuple[T, ...]:
    """Return several values of a type, or raise a ConfigError that names their key."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{key}: {shown(value)} is not a list; give a list of {kind.__name__}")
    values = tuple(value)
    for item in values:
        if not isinstance(item, kind):
            raise ConfigError(f"{key}: {shown(item)} is not of type {kind.__name__}; give a list of those")
    return values


def flag(key: str, value: object) -> bool:
    """Return True or False, or raise a ConfigError that names its key."""
    if not isinstance(value, bool):
        raise ConfigError(f"{key}: {shown(value)} is neither True nor False; choose one")
    return value


def path(key: str, value: object) -> Path:
    """Return the path of a file or folder, or raise a ConfigError that names its key."""
    if not isinstance(value, str | Path):
        raise ConfigError(f"{key}: {shown(value)} is not a path; give a text or a pathlib.Path")
    if value == "":  # to pathlib the working directory
        raise ConfigError(f"{key}: the empty text names nothing; give a path, or '.' for the working directory")
    try:
        usable = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise ConfigError(f"{key}: {shown(ascii(str(value)))} cannot name a file; choose another name")
    return Path(value)


def output(key: str, value: object, *inputs: Path) -> Path:
    """Return the path of a file to write, or raise a ConfigError that names its key: none of what is read.

    Nor anything that a file must not replace (`place_of`).
    """
    out = path(key, value)
    try:
        place_of(out)
    except ConfigError as error:
        raise error.prefixed(key) from None
    for file in inputs:
        try:
            same = out.samefile(file)
        except (OSError, ValueError):  # one of them does not exist
            same = False
        if same:
            raise ConfigError(f"{key}: {shown(str(out))} is the input; choose another file")
    return out


def table(key: str, value: object) -> Mapping[str, Any]:
    """Return a mapping whose keys are texts, or raise a ConfigError that names its key."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key}: {shown(value)} is not a table; give a dict")
    for name in value:
        if not isinstance(name, str):
            raise ConfigError(f"{key}: the key {shown(name)} is not text; write it in quotes")
    return value
