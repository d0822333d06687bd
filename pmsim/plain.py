"""What Python callers write for what a scenario file says: NumPy's numbers, ranges and paths."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

#: Nobody sweeps over more; a longer range would only fill the memory.
_LONGEST = 10**6
#: Of NumPy's types: flags, whole numbers, and numbers. Times and texts are none of these.
_NUMBERS = "biuf"


def plain(value: Any) -> Any:
    """Return a value as a file would have it, where there is exactly one way to say the same.

    NumPy's numbers, also in an array or a pandas Series, are Python's; tuples, ranges and arrays are lists; a
    path is its text. Everything else is left to whoever refuses it.
    """
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple) or (isinstance(value, range) and len(value) <= _LONGEST):
        return [plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    # NumPy takes a tenth of a second to import; who has such a value has it already.
    if getattr(getattr(value, "dtype", None), "kind", "") in _NUMBERS and callable(
        convert := getattr(value, "tolist", None)
    ):
        return convert()
    return value
