"""Rows of a trace before they are micro-operations: what a table or another tool says."""

from dataclasses import dataclass

from pmsim.trace.micro_ops import Array


@dataclass
class Rows:
    """A piece of a trace, in the order of the file. All arrays are of one length.

    Attributes
    ----------
    first : int
        Number of the first row in the file, from 1, for messages.
    thread : array of int64
        Whose operation it is; any numbers.
    batch : array of int64 or None
        Operations of a thread that are executed at once have one number; None where the file does not say.
    kind : array of uint8
        Number in `micro_ops.KINDS`.
    window : array of uint8
        1 dram, 2 pmem, 3 block; 0 where the address is a virtual one.
    address, size : array of uint64
        In the window, or virtual; of compute: cycles, and instructions.
    flags : array of uint8
    site : array of uint16
        As in the core.
    """

    first: int
    thread: Array
    batch: Array | None
    kind: Array
    window: Array
    address: Array
    size: Array
    flags: Array
    site: Array

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.kind)

    def take(self, rows: Array) -> "Rows":
        """Return the rows that a mask or their places select."""
        return Rows(
            first=self.first,
            thread=self.thread[rows],
            batch=None if self.batch is None else self.batch[rows],
            kind=self.kind[rows],
            window=self.window[rows],
            address=self.address[rows],
            size=self.size[rows],
            flags=self.flags[rows],
            site=self.site[rows],
        )
