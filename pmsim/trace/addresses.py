"""Where accesses of a program outside of pmsim lie in the simulated address space."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pmsim.arguments import whole
from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.trace.micro_ops import WINDOW_SHIFT, Array

#: Pages of 2 MiB, the page size of most profiles: what lies together in one stays together.
_PAGE_SHIFT = 21
_DRAM, _PMEM = 1, 2


class AddressSpace:
    """Gives virtual pages of 2 MiB a place in DRAM or PMem, in the order in which they are first touched.

    An operating system does so with huge pages of a fresh machine: programs use a few parts of 2^48 bytes, and
    a machine has to have what they use, no more.

    Parameters
    ----------
    pmem : sequence of (int, int)
        Ranges of virtual addresses that are persistent memory, begin and end; all else is DRAM.
    """

    def __init__(self, pmem: Sequence[tuple[int, int]]) -> None:
        self._pmem = tuple(pmem)
        self._places: dict[tuple[int, int], int] = {}
        self._used = {_DRAM: 0, _PMEM: 0}

    def place(self, addresses: Array) -> Array:
        """Return the simulated addresses of virtual ones, in their order."""
        window = np.full(len(addresses), _DRAM, dtype=np.uint64)
        for begin, end in self._pmem:
            window[(addresses >= np.uint64(begin)) & (addresses < np.uint64(end))] = _PMEM
        pages = (addresses >> np.uint64(_PAGE_SHIFT)) | (window << np.uint64(62))
        found, first, which = np.unique(pages, return_index=True, return_inverse=True)
        simulated = np.empty(len(found), dtype=np.uint64)
        for number in np.argsort(first, kind="stable"):
            simulated[number] = self._page(int(window[first[number]]), int(found[number]))
        offset = addresses & np.uint64((1 << _PAGE_SHIFT) - 1)
        placed: Array = simulated[which] + offset
        return placed

    def _page(self, window: int, page: int) -> int:
        key = (window, page)
        if key not in self._places:
            self._places[key] = self._used[window]
            self._used[window] += 1
        return (window << WINDOW_SHIFT) + (self._places[key] << _PAGE_SHIFT)


def ranges(key: str, given: object) -> tuple[tuple[int, int], ...]:
    """Return ranges of virtual addresses, checked, in their order.

    Raises
    ------
    ConfigError : no ranges; or one is empty, too high, or overlaps another one.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise ConfigError(f"{key}: {shown(given)} is no list of ranges; write [(begin, end), ...]")
    checked = []
    for part in given:
        if not isinstance(part, Sequence) or isinstance(part, str | bytes) or len(part) != 2:
            raise ConfigError(f"{key}: {shown(part)} is no range; write (begin, end)")
        checked.append((whole(key, part[0], 0), whole(key, part[1], 0)))
    ordered = sorted(checked)
    for begin, end in ordered:
        if not begin < end <= 1 << 62:
            raise ConfigError(
                f"{key}: {begin:#x}-{end:#x} holds no address; write the first one and the one after the last"
            )
    for (_, end), (begin, _) in pairwise(ordered):
        if begin < end:
            raise ConfigError(f"{key}: ranges overlap at {begin:#x}; name each address once")
    return tuple(ordered)
