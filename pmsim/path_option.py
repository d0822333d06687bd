"""Options of commands that name a file or a folder."""

from pathlib import Path
from typing import Any

import typer


def path_option(meaning: str, metavar: str = "PATH", **more: Any) -> Any:
    """Return a `typer.Option` for a path, which says what it means; `more` is as Typer's."""
    return typer.Option(parser=_named, metavar=metavar, help=meaning, **more)


def _named(text: str | Path) -> Path:
    # To pathlib the empty text, as of a variable that is not set, is the working directory.
    if not str(text).strip():
        raise typer.BadParameter("the empty text names nothing; write . for the working directory")
    return Path(text)
