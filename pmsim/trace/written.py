"""Files that appear under their names when they are complete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pmsim.errors import ConfigError
from pmsim.output_place import place_of


@contextmanager
def written(out: Path) -> Iterator[Path]:
    """Name a file to write, which takes the name `out` if all goes well.

    Raises
    ------
    ConfigError : it cannot be written.
    """
    place = place_of(out)
    partial = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        yield partial
        partial.replace(place)
    except OSError as error:
        raise ConfigError(f"{out}: {error.strerror or error}; name a writable place with enough room") from None
    finally:
        partial.unlink(missing_ok=True)
