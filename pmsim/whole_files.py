"""Files that are there whole or not at all, and tables as Parquet takes them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pmsim.output_place import place_of

if TYPE_CHECKING:
    import pandas as pd


def replace_file(path: Path, content: bytes) -> None:
    """Write a file beside the old one and put it in its place; if that fails, the old one is as it was."""
    place = place_of(path)
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def one_type_each(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return the frame with words in columns that mix numbers and words, which Parquet has no type for."""
    objects = [str(name) for name in frame if frame[name].dtype == object]
    mixed = [name for name in objects if len({type(value) for value in frame[name].dropna()}) > 1]
    return frame.assign(**{name: frame[name].map(str, na_action="ignore") for name in mixed})
