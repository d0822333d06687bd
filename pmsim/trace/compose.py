"""Make the micro-operations of a trace from rows: accesses within lines, each in its place, in batches."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pmsim import _native
from pmsim.errors import ConfigError
from pmsim.trace import micro_ops
from pmsim.trace.addresses import AddressSpace
from pmsim.trace.micro_ops import (
    KINDS,
    LINE_BYTES,
    MICRO_OP,
    SECTOR_BYTES,
    WINDOW_BYTES,
    WINDOW_SHIFT,
    Array,
    is_one_of,
)
from pmsim.trace.rows import Rows

#: Longer accesses are somebody's mistake: a bulk copy is many instructions.
_LONGEST_ACCESS = 2**24
_MOST_LINES_AT_ONCE = 2**22
#: Threads share caches, which a thread enters batch by batch. Where a file has neither batches nor operations
#: of a workload, so many micro-operations are one: a part of what a core's window holds.
_UNMARKED_BATCH = 64
_LONGEST_BATCH = 2**16
_BLOCK_WINDOW = 1 + micro_ops.MEDIA.index("block")
(_END,) = micro_ops.kinds("operation_end")


class Composer:
    """Writes rows to a trace.

    Parameters
    ----------
    source : str
        Names the file in messages.
    writer : _native.TraceWriter
        Has a thread for each of `threads`.
    threads : sequence of int
        What rows call the threads.
    space : AddressSpace
        Places virtual addresses.
    marked : bool
        Whether the rows tell where operations of the workload end: each is a batch then.
    """

    def __init__(
        self,
        source: str,
        writer: _native.TraceWriter,
        threads: Sequence[int],
        space: AddressSpace,
        *,
        marked: bool,
    ) -> None:
        self._source = source
        self._writer = writer
        self._space = space
        self._marked = marked
        self.operations = 0  #: added so far
        self._names = np.array(sorted(threads), dtype=np.int64)
        nothing = (np.empty(0, dtype=MICRO_OP), np.empty(0, dtype=np.int64))
        self._waiting = [nothing for _ in threads]

    def add(self, rows: Rows) -> None:
        """Add rows, in the order of the file.

        Raises
        ------
        ConfigError : a row that no machine can execute.
        """
        self._check(rows)
        lines = self._lines(rows)
        if len(rows) > 1 and lines.sum() > _MOST_LINES_AT_ONCE:
            for piece in np.array_split(np.arange(len(rows)), 2):
                self.add(rows.take(piece))
            return
        pieces, number = _pieces(rows, lines)
        self.operations += len(pieces)
        operations = np.empty(len(pieces), dtype=MICRO_OP)
        operations["kind"] = pieces.kind
        operations["bytes"] = pieces.size
        operations["flags"] = np.where(
            number == 0, pieces.flags, 0
        )  # what is behind a line's end waits for nothing
        operations["site"] = pieces.site
        operations["address"] = self._simulated(pieces)
        whose = np.searchsorted(self._names, pieces.thread)
        order = np.argsort(whose, kind="stable")
        bounds = np.searchsorted(whose[order], np.arange(len(self._names) + 1))
        for thread in np.flatnonzero(np.diff(bounds)):
            mine = order[bounds[thread] : bounds[thread + 1]]
            batch = np.zeros(len(mine), dtype=np.int64) if pieces.batch is None else pieces.batch[mine]
            self._append(int(thread), operations[mine], batch, told=pieces.batch is not None)

    def finish(self) -> None:
        """Write what waits for the end of its batch, and the end of the file."""
        for thread, (rest, _) in enumerate(self._waiting):
            if len(rest):
                self._writer.append(thread, rest.tobytes(), [len(rest)])
        self._writer.finish()

    def _append(self, thread: int, added: Array, batch: Array, *, told: bool) -> None:
        before, before_batch = self._waiting[thread]
        operations = np.concatenate([before, added])
        batch = np.concatenate([before_batch, batch])
        if told:
            ends = np.flatnonzero(np.diff(batch)) + 1
        elif self._marked:
            ends = np.flatnonzero(operations["kind"] == _END) + 1
        else:
            ends = np.arange(_UNMARKED_BATCH, len(operations) + 1, _UNMARKED_BATCH)
        ends = _with_longest(ends, len(operations))
        cut = int(ends[-1]) if len(ends) else 0
        if cut:
            sizes = np.diff(ends, prepend=0)
            self._writer.append(thread, operations[:cut].tobytes(), sizes.tolist())
        self._waiting[thread] = (operations[cut:], batch[cut:])

    def _simulated(self, pieces: Rows) -> Array:
        """Return addresses with their windows."""
        address = pieces.address + (pieces.window.astype(np.uint64) << np.uint64(WINDOW_SHIFT))
        placed = ~is_one_of(pieces.kind, *micro_ops.WITHOUT_PLACE)
        virtual = placed & (pieces.window == 0)
        device = virtual & is_one_of(pieces.kind, *micro_ops.OF_A_BLOCK_DEVICE)
        address[device] += np.uint64(_BLOCK_WINDOW << WINDOW_SHIFT)
        virtual &= ~device
        address[virtual] = self._space.place(pieces.address[virtual])
        simulated: Array = address
        return simulated

    def _lines(self, rows: Rows) -> Array:
        """Return how many lines each row is of."""
        of_lines = is_one_of(rows.kind, *micro_ops.OF_LINES)
        self._refuse(rows, "bytes", of_lines & (rows.size > _LONGEST_ACCESS), "choose at most 16 MiB")
        last = (rows.address % np.uint64(LINE_BYTES)) + np.maximum(rows.size, 1) - np.uint64(1)
        return np.where(of_lines, last // np.uint64(LINE_BYTES) + np.uint64(1), 1).astype(np.int64)

    def _check(self, rows: Rows) -> None:
        placed = ~is_one_of(rows.kind, *micro_ops.WITHOUT_PLACE)
        block = is_one_of(rows.kind, *micro_ops.OF_A_BLOCK_DEVICE)
        accesses = is_one_of(rows.kind, "load", "store", "stream_store", *micro_ops.OF_SECTORS)
        word = is_one_of(rows.kind, *micro_ops.OF_A_WORD)
        over = (rows.address % np.uint64(LINE_BYTES)) + rows.size > LINE_BYTES
        fits = rows.size < 2**32
        elsewhere = (rows.window == _BLOCK_WINDOW) != block
        self._refuse(rows, "bytes", accesses & (rows.size == 0), "say how many")
        self._refuse(rows, "bytes", ~fits, "choose less than 4 GiB")
        transfer = is_one_of(rows.kind, *micro_ops.OF_SECTORS)
        sectors = f"a block device moves whole sectors of {SECTOR_BYTES} bytes"
        self._refuse(rows, "bytes", transfer & (rows.size % SECTOR_BYTES != 0), sectors)
        self._refuse(rows, "address", transfer & (rows.address % np.uint64(SECTOR_BYTES) != 0), sectors)
        self._refuse(rows, "bytes", word & over, "a locked access lies within a line of 64 bytes")
        self._refuse(
            rows,
            "medium",
            placed & (rows.window != 0) & elsewhere,
            "block_... are of block, all others of dram or pmem",
        )
        far = (rows.window != 0) | block
        beyond = rows.address + rows.size > WINDOW_BYTES
        self._refuse(rows, "address", placed & far & beyond, "a medium has 16 TiB")
        self._refuse(rows, "address", placed & (rows.address >= 1 << 62), "addresses have at most 62 bits")
        cycles = is_one_of(rows.kind, "compute") & (rows.address >= 1 << 32)
        self._refuse(rows, "address", cycles, "of compute it is the cycles, less than 2^32")

    def _refuse(self, rows: Rows, column: str, wrong: Array, remedy: str) -> None:
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            problem = f"row {rows.first + row}: {KINDS[rows.kind[row]]} with {_told(rows, column, row)}"
            raise ConfigError(f"{self._source}: {column}: {problem}; {remedy}")


def _pieces(rows: Rows, lines: Array) -> tuple[Rows, Array]:
    """Cut rows at the ends of lines; return the pieces, and the number of each within its row."""
    if (lines == 1).all():
        return rows, np.zeros(len(rows), dtype=np.int64)
    pieces = rows.take(np.repeat(np.arange(len(rows)), lines))
    number = np.arange(len(pieces)) - np.repeat(np.cumsum(lines) - lines, lines)
    line = np.uint64(LINE_BYTES)
    end = pieces.address + pieces.size
    begin = np.where(
        number == 0, pieces.address, pieces.address // line * line + number.astype(np.uint64) * line
    )
    cut = is_one_of(pieces.kind, *micro_ops.OF_LINES)
    pieces.size = np.where(cut, np.minimum(end, (begin // line + np.uint64(1)) * line) - begin, pieces.size)
    pieces.address = begin
    return pieces, number


def _with_longest(ends: Array, length: int) -> Array:
    """Return where batches end, none of which is longer than a trace may have."""
    bounds = np.concatenate([[0], ends, [length]])
    for begin, end in pairwise(bounds):
        if end - begin > _LONGEST_BATCH:
            more = np.arange(begin + _LONGEST_BATCH, end, _LONGEST_BATCH)
            ends = np.union1d(ends, more)
    return ends


def _told(rows: Rows, column: str, row: int) -> str:
    """Write what a row says in a column."""
    if column == "medium":
        return micro_ops.MEDIA[rows.window[row] - 1]
    return str(rows.size[row]) if column == "bytes" else hex(rows.address[row])
