"""Whether output can be written, tried before anything that takes long."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pmsim.errors import ConfigError

#: Files that `Result.save` writes; here, as what imports results takes a second.
RUN_OUTPUTS = ("results.parquet", "scenario.resolved.toml", "provenance.json", "report.html")


def place_of(path: Path) -> Path:
    """Return where a file is to be written that replaces another one: where a link leads to.

    Raises
    ------
    ConfigError : what is there is a device, a pipe or a socket, which a file in its place would destroy, or a
        link that cannot be followed.
    """
    try:
        place = path.resolve() if path.is_symlink() else path
        mode = place.stat().st_mode
    except FileNotFoundError:
        return place
    except (OSError, RuntimeError):  # links in a circle are one or the other, by the version of Python
        if path.is_symlink():
            raise ConfigError(f"{path}: is a link that cannot be followed; name a file") from None
        return path  # who writes there is told why not
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ConfigError(f"{path}: is a device, a pipe or a socket, which a file would replace; name a file")
    return place


def check_output_folder(folder: Path, files: Iterable[str], *, make: bool = True) -> None:
    """Make the folder of some output files, and refuse it where one of them could not be written.

    Parameters
    ----------
    folder : Path
        With all above it that is not there.
    files : iterable of str
        Names of the files in it.
    make : bool
        False: nothing is left behind; tried is the folder, or what is there of the path to it.

    Raises
    ------
    ConfigError : names the folder or the file.
    """
    try:
        there = folder if make else _existing(folder)
        if there == folder:
            folder.mkdir(parents=True, exist_ok=True)
        _probe(there)
        outputs = [folder / name for name in files]
        taken = next((file for file in outputs if file.is_dir()), None)
    except OSError as error:
        raise _refused(folder, error.strerror, "directory") from None
    for file in outputs:
        _place(file)
    if taken is not None:
        raise ConfigError(f"--out {taken}: is a directory; delete it, or choose another output directory")


def check_output_file(path: Path) -> None:
    """Make the folder of an output file, and refuse it where the file could not be written.

    Raises
    ------
    ConfigError : names the file.
    """
    try:
        if path.is_dir():
            raise ConfigError(f"--out {path}: is a directory; name a file in it")
        place = _place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        _probe(place.parent)
        if place.exists():
            place.open("ab").close()
        elif len(os.fsencode(place.name)) > os.pathconf(place.parent, "PC_NAME_MAX"):
            raise _refused(path, "the name is too long", "file")
    except OSError as error:
        raise _refused(path, error.strerror, "file") from None


def _place(path: Path) -> Path:
    try:
        return place_of(path)
    except ConfigError as error:
        raise ConfigError(f"--out {error}") from None


def _existing(folder: Path) -> Path:
    # A link to nothing is there, too: no folder can be made in its place. Names that are too long raise here,
    # as they do where folders are made.
    for place in (folder, *folder.parents):
        with suppress(FileNotFoundError, NotADirectoryError):
            place.lstat()
            return place
    return folder


def _probe(folder: Path) -> None:
    # Asking for permissions does not tell of file systems that take no files.
    probe = folder / f".pmsim-probe.{os.getpid()}"
    probe.touch()
    probe.unlink()


def _refused(path: Path, problem: str | None, what: str) -> ConfigError:
    other = "output directory" if what == "directory" else what
    return ConfigError(f"--out {path}: cannot be written: {problem}; choose another {other}")
