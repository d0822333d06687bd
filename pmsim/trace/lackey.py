"""Traces of valgrind's tool lackey: what any program loads, stores and computes."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pmsim.errors import ConfigError
from pmsim.trace.micro_ops import Array, kinds
from pmsim.trace.rows import Rows

_LINES_AT_ONCE = 2**20
_LOAD, _STORE, _COMPUTE = kinds("load", "store", "compute")
#: `I  04000a10,3`: an instruction; ` L 1ffe000,8`: it loads; ` S`: it stores; ` M`: it does both.
_LINE = r"^(?P<code>I | L| S| M) (?P<address>[0-9a-f]{1,16}),(?P<size>[0-9]{1,4})\s*$"
#: Valgrind and the program itself write to the same place.
_OTHERS = r"^(==|--|\*\*)\d+"


def read_rows(file: Path, *, dependent: bool) -> Iterator[Rows]:
    """Read a trace of `valgrind --tool=lackey --trace-mem=yes` piece by piece.

    An instruction that accesses memory is its access; those between two accesses are computation, as many
    instructions as they are. lackey knows one thread at a time, and does not say which.

    Parameters
    ----------
    file : Path
        What valgrind has written (`--log-file`); its own lines begin with `==`.
    dependent : bool
        Whether the address of every load depends on the load before. The trace does not say of any.

    Raises
    ------
    ConfigError : unreadable, or a line that is none of lackey's.
    """
    first, row, instructions = 1, 1, 0
    try:
        with file.open(encoding="ascii", errors="replace") as text:
            while lines := list(islice(text, _LINES_AT_ONCE)):
                code, address, size = _parsed(file, lines, first)
                first += len(lines)
                rows, instructions = _rows(code, address, size, instructions, row, dependent=dependent)
                row += len(rows)
                if len(rows):
                    yield rows
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; name a file that valgrind has written") from None


def _parsed(file: Path, lines: list[str], first: int) -> tuple[Array, Array, Array]:
    """Return the letter, the address and the size of every line of lackey's."""
    column = pa.array(lines)
    ours = pc.match_substring_regex(column, _LINE)
    wrong = pc.invert(pc.or_(ours, pc.match_substring_regex(column, _OTHERS)))
    if pc.any(wrong).as_py():
        number = pc.index(wrong, True).as_py()
        raise ConfigError(
            f"{file}: line {first + number} is not of valgrind's lackey; write its log to a file of its own: "
            "valgrind --tool=lackey --trace-mem=yes --log-file=FILE PROGRAM"
        )
    parts = pc.extract_regex(column.filter(ours), _LINE)
    code = pc.index_in(pc.struct_field(parts, "code"), pa.array(["I ", " L", " S", " M"]))
    address = pc.binary_join_element_wise("0x", pc.struct_field(parts, "address"), "").cast(pa.uint64())
    size = pc.struct_field(parts, "size").cast(pa.uint64())
    return tuple(part.to_numpy(zero_copy_only=False) for part in (code, address, size))


def _rows(
    code: Array, address: Array, size: Array, instructions: int, first: int, *, dependent: bool
) -> tuple[Rows, int]:
    """Return the rows, and how many instructions wait for the next access; `instructions` did before."""
    is_access = code > 0
    executed = np.cumsum(~is_access) + instructions
    at_access = executed[is_access]
    between = np.diff(at_access, prepend=0)
    left = int(executed[-1] - (at_access[-1] if len(at_access) else 0)) if len(code) else instructions
    code, address, size = code[is_access], address[is_access], size[is_access]
    computed = np.maximum(between - 1, 0)  # the last one before an access is the access
    loads, stores = code != 2, code != 1
    kept = np.stack([computed > 0, loads, stores], axis=1)
    shape = kept.shape
    kind = np.broadcast_to(np.array([_COMPUTE, _LOAD, _STORE], dtype=np.uint8), shape)[kept]
    where = np.stack([np.zeros_like(address), address, address], axis=1)[kept]
    how_many = np.stack([computed.astype(np.uint64), size, size], axis=1)[kept]
    length = len(kind)
    rows = Rows(
        first=first,
        thread=np.zeros(length, dtype=np.int64),
        batch=None,
        kind=kind,
        window=np.zeros(length, dtype=np.uint8),
        address=where,
        size=how_many,
        flags=(kind == _LOAD).astype(np.uint8) if dependent else np.zeros(length, dtype=np.uint8),
        site=np.zeros(length, dtype=np.uint16),
    )
    return rows, left
