"""What kinds and parts with a storage engine on a file system have in common: what a system call costs."""

from typing import Annotated

from pydantic import Field

from pmsim.kinds.types import Count, CountOrZero

#: CPU cycles of read() and write() beside their copies: entry and return, file table, inode, the block's
#: address. Assumed: half a microsecond at 2.6 GHz. docs/engines/files.md has what other values would change.
SYSTEM_CALL_CYCLES = 1300

SystemCallCycles = Annotated[
    CountOrZero,
    Field(
        le=1_000_000,
        description="file-bm: CPU cycles of read() and write() beside their copies",
    ),
]

#: Copies of a page by read() or write(): through a buffer of the kernel (Mustafa et al., section IV.A), or
#: straight.
SYSTEM_CALL_COPIES = 2

SystemCallCopies = Annotated[
    Count,
    Field(
        le=2,
        description="file-bm: copies of a page by read() or write(); 2: through a buffer of the kernel",
    ),
]
