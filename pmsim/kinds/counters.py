"""What a run counts besides its metrics: the counters of the machine, and those of storage engines.

A scenario asks for them by name: ``metrics = ["bandwidth_gb_s", "counter.tlb_walks"]``.
"""

from functools import cache

from pmsim import _native
from pmsim.kinds.metric import Metric

#: Prefix of the metrics that are counters, for example ``counter.tlb_walks``.
COUNTER_PREFIX = "counter."
#: Of the engine, behind the prefix above.
ENGINE_PREFIX = f"{COUNTER_PREFIX}engine."

#: What storage engines count. Each counts some of it: a store without a buffer manager has no evictions.
ENGINE_COUNTERS = {
    "fixes": "pages fixed",
    "dram_hits": "pages fixed that were in DRAM",
    "dram_misses": "pages fixed that had no frame in DRAM",
    "swizzled_fixes": "pages fixed by a swizzled pointer",
    "direct_fixes": "pages used where they lie on PMem (spitfire: misses; redirect-bm: neither these nor hits)",
    "direct_writes": "pages changed where they lie on PMem (spitfire)",
    "page_table_lookups": "lookups in the page table",
    "cold_reads": "point reads whose leaf came to DRAM from PMem",
    "cold_read_lines": "cache lines that such reads loaded",
    "lines_loaded": "cache lines loaded from PMem to DRAM",
    "lines_written_back": "cache lines written from DRAM to pages on PMem: back, or of admitted pages",
    "pages_loaded_pmem": "frames in DRAM made over pages on PMem",
    "pages_loaded_ssd": "pages loaded from SSD to DRAM",
    "pages_ssd_to_pmem": "pages loaded from SSD to PMem (spitfire)",
    "pages_written_pmem": "pages written from DRAM to PMem: back, or admitted",
    "pages_written_ssd": "pages written to SSD",
    "pages_cleaned": "pages written back for their age, so that the log can be truncated",
    "evictions_dram": "frames evicted from DRAM",
    "evictions_pmem": "pages evicted from PMem",
    "admissions": "pages admitted to PMem",
    "denials": "pages denied admission to PMem",
    "admission_blocked": "pages that were to be admitted while every frame on PMem was in use",
    "mini_allocated": "mini pages allocated",
    "mini_relocated": "mini pages moved to another slab",
    "promotions": "mini pages promoted to full pages",
    "swizzles": "pointers swizzled",
    "unswizzles": "pointers unswizzled",
    "page_copies_in": "copies of whole pages from PMem to DRAM; by read() two of each (whole-page engines)",
    "page_copies_out": "copies of changed pages back to PMem; by write() two of each (whole-page engines)",
    "micro_log_writes": "page writes to PMem that went through the micro log",
    "pages": "pages in use: those that the run has added",
    "pages_allocated": "pages allocated",
    "pages_released": "pages released",
    "splits": "nodes of B+-trees split",
    "merges": "nodes of B+-trees merged",
    "leaves": "leaves in use: those that the run has added (fptree)",
    "leaf_splits": "leaves split (fptree)",
    "leaf_unlinks": "leaves taken out of their list (fptree)",
    "undo_entries": "entries appended to the undo log (fptree)",
    "barriers": "persistency barriers (nvm-direct)",
    "log_batches": "batches appended to the log (nvm-undo: snapshots)",
    "log_bytes": "bytes appended to the log (nvm-undo: of snapshots)",
    "log_early_appends": "batches appended before their transaction committed: its buffer was full",
    "log_aborts": "transactions taken back that had logged something",
    "log_truncations": "truncations of the log",
    "checkpoints": "checkpoints",
}


#: Of the measured part as a whole.
RUN_COUNTERS = {
    f"{COUNTER_PREFIX}{name}": Metric(f"{COUNTER_PREFIX}{name}", unit, meaning)
    for name, unit, meaning in (
        ("elapsed_ps", "ps", "virtual time of the measured part"),
        (
            "user_bytes",
            "B",
            "bytes that the operations read or wrote for their users; of TPC-C, of the rows that they insert",
        ),
    )
}


@cache
def machine_counters() -> dict[str, Metric]:
    """Return the counters of the machine by their names in results, in the order of the core's list."""
    return {
        COUNTER_PREFIX + name: Metric(COUNTER_PREFIX + name, "ps" if name.endswith("_ps") else "", meaning)
        for name, meaning in _native.counters().items()
    }


@cache
def engine_counters() -> dict[str, Metric]:
    """Return the counters of the storage engines by their names in results."""
    return {
        ENGINE_PREFIX + name: Metric(ENGINE_PREFIX + name, "", meaning)
        for name, meaning in ENGINE_COUNTERS.items()
    }
