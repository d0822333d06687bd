"""Traces of valgrind's tool lackey: what any program loads, stores and computes."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from pmsim.errors import ConfigError
from pmsim.trace.micro_ops import Array, kinds
from pmsim.trace.rows import Rows
from pmsim.trace.source import Source

_LINES_AT_ONCE = 2**20
_CODES = ("I ", " L", " S", " M")
_LOAD, _STORE, _COMPUTE = kinds("load", "store", "compute")
_END, _BEGIN = kinds("operation_end", "operation_begin")
#: `I  04000a10,3`: an instruction; ` L 1ffe000,8`: it loads; ` S`: it stores; ` M`: it does both.
_LINE = r"^(?P<code>I | L| S| M) (?P<address>[0-9a-f]{1,16}),(?P<size>[0-9]{1,4})\s*$"
#: Valgrind and the program itself write to the same place.
_OTHERS = r"^(==|--|\*\*)\d+"


class Lackey(Source):
    """A log of `valgrind --tool=lackey --trace-mem=yes`.

    An instruction that accesses memory is its access; those between two accesses are computation, as many
    instructions as they are. lackey knows one thread at a time, and does not say which.

    Parameters
    ----------
    file : Path
        What valgrind has written (`--log-file`); its own lines begin with `==`.
    dependent : bool
        Whether the address of every load depends on the load before. The log does not say of any.
    mark : int, optional
        An address: where the program stores to it an operation of the workload ends, and the next begins. What
        follows the last such store is left out.
    """

    form = "lackey"

    def __init__(self, file: Path, *, dependent: bool, mark: int | None) -> None:
        self._file = file
        self._dependent = dependent
        self._mark = mark

    def outline(self) -> tuple[list[int], int]:
        """Return one thread, and how often the program stores to the mark.

        Raises
        ------
        ConfigError : unreadable, or never.
        """
        if self._mark is None:
            return [0], 0
        stores = tuple(f" {letter} {self._mark:08x}," for letter in "SM")
        ended = sum(line.startswith(stores) for line in self._lines())
        if not ended:
            raise ConfigError(
                f"{self._file}: nothing is stored to mark {self._mark:#x}; `nm PROGRAM` tells addresses"
            )
        return [0], ended

    def pieces(self) -> Iterator[Rows]:
        """Read the log.

        Raises
        ------
        ConfigError : unreadable, or a line that is none of lackey's.
        """
        left = self.outline()[1]
        first, row, instructions = 1, 1, 0
        text = self._lines()
        while lines := list(islice(text, _LINES_AT_ONCE)):
            code, address, size = _parsed(self._file, lines, first)
            rows, instructions = _rows(code, address, size, instructions, self._mark)
            if self._dependent:
                rows.flags[rows.kind == _LOAD] = 1
            rows.first = row
            first += len(lines)
            row += len(rows)
            ends = np.flatnonzero(rows.kind == _END)
            if left and len(ends) >= left:
                yield rows.take(np.arange(ends[left - 1] + 1))
                return
            left -= len(ends)
            yield rows
        if instructions:
            rest = _of(np.array([_COMPUTE], dtype=np.uint8), [0], [instructions])
            rest.first = row
            yield rest

    def _lines(self) -> Iterator[str]:
        try:
            with self._file.open(encoding="ascii", errors="replace") as text:
                yield from text
        except OSError as error:
            raise ConfigError(
                f"{self._file}: {error.strerror}; name a file that valgrind has written"
            ) from None


def _parsed(file: Path, lines: list[str], first: int) -> tuple[Array, Array, Array]:
    """Return the letter, the address and the size of every line of lackey's."""
    column = pa.array(lines)
    ours = pc.match_substring_regex(column, _LINE)
    wrong = pc.invert(pc.or_(ours, pc.match_substring_regex(column, _OTHERS)))
    if pc.any(wrong).as_py():
        number = pc.index(wrong, True).as_py()
        if first + number == 1 and (suffix := _suffix_of_table(lines[0])):
            raise ConfigError(f"{file}: line 1 is that of a table, not of valgrind's lackey; name it {suffix}")
        raise ConfigError(
            f"{file}: line {first + number} is not of valgrind's lackey; write its log to a file of its own: "
            "valgrind --tool=lackey --trace-mem=yes --log-file=FILE PROGRAM"
        )
    parts = pc.extract_regex(column.filter(ours), _LINE)
    code = pc.index_in(pc.struct_field(parts, "code"), pa.array(_CODES))
    address = pc.binary_join_element_wise("0x", pc.struct_field(parts, "address"), "").cast(pa.uint64())
    size = pc.struct_field(parts, "size").cast(pa.uint64())
    return tuple(part.to_numpy(zero_copy_only=False) for part in (code, address, size))


def _suffix_of_table(line: str) -> str:
    """Return how a table ends that begins with this line, whose name does not say that it is one."""
    if line.startswith("PAR1"):
        return ".parquet"
    # A mark of the byte order is no ASCII.
    columns = {cell.strip().strip('"') for cell in line.lstrip("\ufffd").split(",")}
    return ".csv" if {"kind", "address"} <= columns else ""


def _rows(code: Array, address: Array, size: Array, instructions: int, mark: int | None) -> tuple[Rows, int]:
    """Return the rows, and how many instructions wait for the next access; `instructions` did before."""
    is_access = code > 0
    executed = np.cumsum(~is_access) + instructions
    at_access = executed[is_access]
    between = np.diff(at_access, prepend=0)
    left = int(executed[-1] - (at_access[-1] if len(at_access) else 0)) if len(code) else instructions
    code, address, size = code[is_access], address[is_access], size[is_access]
    computed = np.maximum(between - 1, 0)  # the last one before an access is the access
    loads, stores = code != _CODES.index(" S"), code != _CODES.index(" L")
    is_mark = stores & (address == mark) if mark is not None else np.zeros(len(code), dtype=bool)
    loads, stores = loads & ~is_mark, stores & ~is_mark
    # Of each access, what there is of a computation before it, a load, a store, an end and a beginning.
    kept = np.stack([computed > 0, loads, stores, is_mark, is_mark], axis=1)
    nothing = np.zeros_like(address)
    kinds_of = np.array([_COMPUTE, _LOAD, _STORE, _END, _BEGIN], dtype=np.uint8)
    kind = np.broadcast_to(kinds_of, kept.shape)[kept]
    where = np.stack([nothing, address, address, nothing, nothing], axis=1)[kept]
    how_many = np.stack([computed.astype(np.uint64), size, size, nothing, nothing], axis=1)[kept]
    return _of(kind, where, how_many), left


def _of(kind: Array, address: ArrayLike, size: ArrayLike) -> Rows:
    """Return rows of the one thread, whose addresses are virtual."""
    length = len(kind)
    return Rows(
        first=0,
        thread=np.zeros(length, dtype=np.int64),
        batch=None,
        kind=kind,
        window=np.zeros(length, dtype=np.uint8),
        address=np.asarray(address, dtype=np.uint64),
        size=np.asarray(size, dtype=np.uint64),
        flags=np.zeros(length, dtype=np.uint8),
        site=np.zeros(length, dtype=np.uint16),
    )
