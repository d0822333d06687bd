"""Readers of published measurement sets, one file each; every reader turns its set into `Measurement` rows."""

import os
from collections.abc import Sequence
from pathlib import Path

from pmsim.errors import ConfigError
from pmsim.validation.loaders import optane_study, perma_bench
from pmsim.validation.loaders.common import DataSet, Measurement, Skipped
from pmsim.validation.loaders.optane_study import Units

LAYOUTS = (optane_study.LAYOUT, perma_bench.LAYOUT)

__all__ = ["DataSet", "Measurement", "Skipped", "Units", "load"]


def load(folders: Sequence[Path], optane_units: Units = "labelled") -> list[DataSet]:
    """Read the data sets in some folders, or in their direct subfolders, recognised by content.

    Parameters
    ----------
    folders : clones of the published repositories, or folders with parts of them.
    optane_units : see `optane_study.load`.

    Raises
    ------
    ConfigError : a folder is missing or holds no known data set, or a file in it is malformed.
    """
    found: dict[tuple[str, Path], DataSet] = {}
    for folder in folders:
        if not os.path.isdir(folder):  # Path.is_dir fails for names that no folder can have
            raise ConfigError(f"{folder}: not a directory; name the folder of a data set with --data")
        here = _load_one(folder, optane_units)
        if not here:
            below = _subfolders(folder)
            here = [data_set for path in below for data_set in _load_one(path, optane_units)]
        if not here:
            raise ConfigError(
                f"{folder}: no known data set here; known: {'; '.join(LAYOUTS)}; name another folder"
            )
        # However a folder is written, its measurements count once.
        for data_set in here:
            found.setdefault((data_set.name, data_set.folder.resolve()), data_set)
    return list(found.values())


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror}; check its permissions") from None


def _load_one(folder: Path, optane_units: Units) -> list[DataSet]:
    found = []
    if optane_study.recognises(folder):
        found.append(optane_study.load(folder, optane_units))
    if perma_bench.recognises(folder):
        found.append(perma_bench.load(folder))
    return found
