"""Relative paths in files: they are meant from the folder of the file that has them."""

import os
from pathlib import Path


def from_here(folder: Path, file: str) -> str:
    """Return, from the working directory, a path that a file of this folder has."""
    return os.path.normpath(folder / file)


def from_folder(folder: Path, file: str) -> str:
    """Return what a file of this folder has to say for a path from the working directory."""
    return file if os.path.isabs(file) else os.path.relpath(file, folder)
