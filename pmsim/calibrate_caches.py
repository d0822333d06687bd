"""Latency and effective size of the last-level cache, from chases through working sets of several sizes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CacheFit:
    """The last-level cache that explains the chases best.

    Attributes
    ----------
    size : int [B]
        What this machine finds cached there; less than the whole cache where others share it.
    latency_ns : float [ns]
        Load to use.
    error : float
        Mean of |log(predicted / measured)| over the chases.
    """

    size: int
    latency_ns: float
    error: float


def chase_latency(
    region: int, *, l2_size: int, l2_ns: float, llc_size: int, llc_ns: float, memory_ns: float
) -> float:
    """Mean latency [ns] of a random chase over a region [B].

    The chance that a line is still in L2 is L2's share of the region, and likewise for L2 and the last-level
    cache together, which holds what L2 evicts.
    """
    in_l2 = min(1.0, l2_size / region)
    in_either = min(1.0, (l2_size + llc_size) / region)
    return in_l2 * l2_ns + (in_either - in_l2) * llc_ns + (1 - in_either) * memory_ns


def fit_last_level(
    chases: Mapping[int, float], *, l2_size: int, l2_ns: float, memory_ns: float, largest: int
) -> CacheFit:
    """Search size and latency of the last-level cache over a grid.

    Parameters
    ----------
    chases : mapping of int [B] to float [ns]
        Working set to measured latency; all beyond L2.
    l2_size, l2_ns : int [B], float [ns]
        Of L2.
    memory_ns : float [ns]
        Latency of memory.
    largest : int [B]
        The size that the processor claims.

    Notes
    -----
    Sizes are powers of two from L2's, and the claimed one. Latencies go from L2's to that of memory in steps
    of 4 %.
    """
    powers = range(
        math.ceil(math.log2(l2_size)), max(math.ceil(math.log2(l2_size)), int(math.log2(largest))) + 1
    )
    sizes = sorted({*(2**power for power in powers), max(largest, l2_size)})
    steps = max(1, math.ceil(math.log(max(1.05, memory_ns / l2_ns)) / math.log(1.04)))
    latencies = [l2_ns * (memory_ns / l2_ns) ** (step / steps) for step in range(steps + 1)]
    best: CacheFit | None = None
    for size in sizes:
        for latency in latencies:
            errors = [
                abs(
                    math.log(
                        chase_latency(
                            region,
                            l2_size=l2_size,
                            l2_ns=l2_ns,
                            llc_size=size,
                            llc_ns=latency,
                            memory_ns=memory_ns,
                        )
                        / measured
                    )
                )
                for region, measured in chases.items()
            ]
            error = sum(errors) / len(errors)
            if best is None or error < best.error:
                best = CacheFit(size, latency, error)
    assert best is not None
    return best
