"""Which files are tables, told by their names."""

from pathlib import Path

from pmsim.errors import ConfigError
from pmsim.messages import shown

SUFFIXES = (".parquet", ".csv", ".csv.gz", ".csv.zst")


def is_table(path: Path) -> bool:
    """Return whether a file is a table, by its name."""
    return path.name.lower().endswith(SUFFIXES)


def check_is_table(out: Path) -> None:
    """Refuse a name that no table has, for what is asked to be written as one (`ConfigError`)."""
    if not is_table(out):
        raise ConfigError(f"out: {shown(str(out))} is no table; choose a name in {', '.join(SUFFIXES)}")
