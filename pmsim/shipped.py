"""Scenarios that come with pmsim, by name."""

import os
from pathlib import Path

from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.resources import scenarios_dir


def scenario_names() -> list[str]:
    """Return the names of the shipped scenarios, such as "device/latency", sorted."""
    folder = scenarios_dir()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))


def find_scenario(name: str) -> Path:
    """Return the file of a scenario: a path of one's own, or the name of a shipped one.

    Raises
    ------
    ConfigError : neither; names the nearest shipped scenarios.
    """
    if not name.strip():
        raise ConfigError("scenario: the empty text names nothing; choose one of `pmsim list scenarios`")
    names = scenario_names()
    path = Path(name)
    if name in names and not path.is_file():
        return scenarios_dir() / f"{name}.toml"
    if path.suffix == ".toml" or os.path.exists(name):  # Path.exists fails for names that no file can have
        return path
    # Shipped scenarios go without the ending, so one's own are tried without it, too.
    own = [f"{name}.toml"] if os.path.isfile(f"{name}.toml") else names
    raise ConfigError(f"{name}: no such file or shipped scenario; {nearest(name, own)}")
