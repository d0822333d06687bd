"""Chains of operations in words: ``rp_512,wp_64_cache`` is PerMA-Bench's code, not a legend."""

import re
from itertools import groupby

_STEP = re.compile(
    r"(?P<what>[rw])(?P<memory>[dp]?)_(?P<size>\d+)(?:_(?P<flush>[a-z]+))?(?:_(?P<offset>-?\d+))?"
)
_WHAT = {"r": "read", "w": "write"}
_MEMORIES = {"d": "DRAM", "p": "PMem", "": "PMem"}
_FLUSHES = {"cache": "clwb", "cacheinv": "clflushopt", "nocache": "ntstore", "none": "no flush"}


def chain_label(chain: str) -> str:
    """Return what a chain does: ``2 x read 512 B (PMem) + write 64 B (PMem, clwb, at +320 B)``."""
    parts = []
    for words, same in groupby(map(_words, chain.split(","))):
        times = sum(1 for _ in same)
        parts.append(f"{times} x {words}" if times > 1 else words)
    return " + ".join(parts)


def _words(step: str) -> str:
    match = _STEP.fullmatch(step.strip())
    if match is None:
        return step.strip()
    how = [_MEMORIES[match["memory"]]]
    if match["flush"]:
        how.append(_FLUSHES.get(match["flush"], match["flush"]))
    if match["offset"]:
        how.append(f"at {int(match['offset']):+d} B")
    return f"{_WHAT[match['what']]} {match['size']} B ({', '.join(how)})"
