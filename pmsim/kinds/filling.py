"""Whether tiers of a buffer manager were still filling while it was measured."""

import math
from collections.abc import Mapping

#: Of less it is not said, as of misses at the end of a warm-up.
_TRANSACTIONS_PER_PAGE = 100
#: Pages that come to a tier, and pages that leave it, by the counters of the engine.
_FLOWS = (
    (("pages_loaded_pmem", "pages_loaded_ssd"), "evictions_dram"),
    (("admissions", "pages_ssd_to_pmem"), "evictions_pmem"),
)


def is_filling(facts: Mapping[str, float], transactions: float, prefix: str = "engine.") -> bool:
    """Tell whether DRAM or PMem took more pages than it gave up.

    Not where the data have grown by as many, where chance explains it (two standard deviations), or where it is
    less than a page in a hundred transactions.

    Parameters
    ----------
    facts : mapping
        With the counters of the engine; what an engine does not count is 0.
    transactions : float
        In which they were counted.
    prefix : str
        Before the names of the counters.
    """

    def pages(name: str) -> float:
        return facts.get(prefix + name, 0.0)

    grown = pages("pages_allocated") - pages("pages_released")
    for comes, leaves in _FLOWS:
        taken, given = sum(map(pages, comes)), pages(leaves)
        chance = 2 * math.sqrt(taken + given)
        if taken - given - grown > max(chance, transactions / _TRANSACTIONS_PER_PAGE):
            return True
    return False
