"""Micro-operations as NumPy sees them: 16 bytes each, as in `native/include/pmsim/memory/micro_op.hpp`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pmsim import _native

#: A column; what it holds is said where it is used.
Array = npt.NDArray[Any]

MICRO_OP = np.dtype([("address", "<u8"), ("bytes", "<u4"), ("kind", "u1"), ("flags", "u1"), ("site", "<u2")])

#: Names of the kinds, in the order of their numbers.
KINDS = tuple(_native.micro_op_kinds())
#: Memories and the block device; the window of each in the simulated address space begins at its number x 2^44.
MEDIA = ("dram", "pmem", "block")
WINDOW_SHIFT = 44
WINDOW_BYTES = 1 << WINDOW_SHIFT
LINE_BYTES = 64
SECTOR_BYTES = 512

_NUMBER = {name: number for number, name in enumerate(KINDS)}


def kinds(*names: str) -> tuple[int, ...]:
    """Return the numbers of kinds."""
    return tuple(_NUMBER[name] for name in names)


def is_one_of(column: Array, *names: str) -> Array:
    """Return where a column of kinds has one of those."""
    wanted = np.zeros(256, dtype=bool)
    wanted[list(kinds(*names))] = True
    found: Array = wanted[column]
    return found


#: Kinds whose address is a plain number, or none.
WITHOUT_PLACE = ("sfence", "mfence", "compute", "operation_begin", "operation_end")
#: Kinds that may name more bytes than a line has, which are that many lines.
OF_LINES = ("load", "store", "stream_store", "clwb", "clflushopt", "clflush", "prefetch")
#: Kinds that are of one place within a line.
OF_A_WORD = ("atomic", "acquire", "release")
#: Kinds that move whole sectors of a block device.
OF_SECTORS = ("block_read", "block_write", "block_gather")
OF_A_BLOCK_DEVICE = ("block_read", "block_write", "block_flush", "block_gather", "block_commit")

_NONE = {"": 0}
_WAITS = _NONE | {"dependent": 1}
_MARKS = _WAITS | {"serialising": 2, "dependent+serialising": 3}
_LATCH_MODES = {"shared": 0, "exclusive": 1, "optimistic": 2, "attempt": 3}
_FLAGS = {
    "load": _WAITS,
    "acquire": _LATCH_MODES,
    "release": _LATCH_MODES,
    "compute": _MARKS | {"section": 4},
    "operation_begin": _MARKS,
    "operation_end": _MARKS,
}
#: What flags are called in tables.
FLAGS = tuple(_MARKS | {"section": 4} | _LATCH_MODES)
NO_SUCH_FLAG = 255


def flag_values() -> Array:
    """Return the value of each of `FLAGS`, one row per kind; `NO_SUCH_FLAG` where the kind has none such."""
    values = np.full((len(KINDS), len(FLAGS)), NO_SUCH_FLAG, dtype=np.uint8)
    for kind, name in enumerate(KINDS):
        for flag, value in _FLAGS.get(name, _NONE).items():
            values[kind, FLAGS.index(flag)] = value
    return values
