#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace pmsim::machine {

/// Everything that a lane counts. One list: the struct, its names and its Python keys follow from it.
#define PMSIM_COUNTERS(X)                                                                                   \
  X(loads, "load micro-operations")                                                                         \
  X(stores, "store micro-operations")                                                                       \
  X(stream_stores, "non-temporal store micro-operations")                                                   \
  X(flushes, "clwb, clflushopt and clflush micro-operations")                                               \
  X(fences, "sfence and mfence micro-operations")                                                           \
  X(atomics, "locked read-modify-writes, those of latches among them")                                      \
  X(latches, "latches acquired")                                                                            \
  X(persist_barriers, "fences that had flushes or streaming stores of their thread to wait for")            \
  X(lines_persisted, "lines flushed or streamed to; what one thread does to one line in a row counts once") \
  X(l1_hits, "loads, stores and locked accesses served by L1")                                              \
  X(l2_hits, "served by L2")                                                                                \
  X(llc_hits, "served by the last-level cache")                                                             \
  X(core_transfers, "served by a cache of another core, or not before it had given up its copy")            \
  X(memory_reads, "lines that loads, stores and locked accesses did not find in any cache")                 \
  X(writebacks, "dirty lines evicted from the last-level cache")                                            \
  X(tlb_second_hits, "translations found in the second-level TLB only")                                     \
  X(tlb_walks, "page walks")                                                                                \
  X(prefetches, "lines fetched from memory by the hardware prefetcher")                                     \
  X(dram_read_lines, "64-byte lines read from DRAM")                                                        \
  X(dram_write_lines, "64-byte lines written to DRAM")                                                      \
  X(dram_row_misses, "DRAM reads that had to open a row")                                                   \
  X(dram_forced_drains, "times that reads had to wait for a full DRAM write queue")                         \
  X(pmem_read_lines, "64-byte lines read from PMem modules")                                                \
  X(pmem_write_lines, "64-byte lines written to PMem modules")                                              \
  X(pmem_media_read_blocks, "internal blocks read from the medium")                                         \
  X(pmem_media_write_blocks, "internal blocks written to the medium")                                       \
  X(pmem_partial_writes, "block writes that needed a read-modify-write")                                    \
  X(pmem_buffer_read_hits, "line reads served by a module's buffers")                                       \
  X(pmem_translation_misses, "misses of the modules' address-translation caches")                           \
  X(wear_stalls, "wear-levelling stalls")                                                                   \
  X(memory_mode_hits, "memory-mode reads that hit the DRAM cache")                                          \
  X(memory_mode_misses, "memory-mode reads that missed it")                                                 \
  X(work_ps, "time in neither of the sections below; 0 where sections are not marked")                      \
  X(pages_ps, "time in which pages and lines of them moved between tiers")                                  \
  X(log_ps, "time in which transactions became durable")                                                    \
  X(locks_ps, "time in which rows were locked, and waited for")                                             \
  X(time_core_ps, "time of all threads: instructions and hits in L1")                                       \
  X(time_branch_ps, "... that they waited after mispredicted branches")                                     \
  X(time_l2_ps, "... for loads that L2 served")                                                             \
  X(time_llc_ps, "... for loads that the last-level cache served")                                          \
  X(time_transfer_ps, "... for loads that caches of other cores served")                                    \
  X(time_dram_ps, "... for loads from DRAM")                                                                \
  X(time_pmem_ps, "... for loads from PMem")                                                                \
  X(time_walk_ps, "... for translations that the first-level TLB did not have")                             \
  X(time_store_ps, "... for stores that waited for their lines, and for evictions")                         \
  X(time_persist_ps, "... for fences, flushes and streaming stores")                                        \
  X(time_latch_ps, "... for locked instructions and latches")                                               \
  X(time_device_ps, "... for the block device and groups of commits")                                       \
  X(time_idle_ps, "... for work")                                                                           \
  X(fence_wait_ps, "time that fences waited for flushes and streaming stores")                              \
  X(latch_waits, "times that a thread waited for a latch that another one held")                            \
  X(latch_restarts, "times that optimistic reads began again, because a writer had been there")             \
  X(latch_wait_ps, "time that threads waited for them")                                                     \
  X(write_queue_wait_ps, "time that lines waited to enter a PMem write pending queue")                      \
  X(read_queue_wait_ps, "time that PMem reads waited to enter a read pending queue, and for the medium")    \
  X(block_reads, "block-device read commands")                                                              \
  X(block_writes, "block-device write commands")                                                            \
  X(block_flushes, "block-device cache flushes")                                                            \
  X(block_gathers, "pieces handed over to be written in a group")                                           \
  X(block_groups, "groups of them: a write command and a flush each")                                       \
  X(group_wait_ps, "time that threads waited for groups of others")                                         \
  X(out_of_range_count,                                                                                     \
    "uses that no measurement covers: streamed lines left incomplete, dirty victims of the memory-mode cache")

struct Counters {
#define PMSIM_MEMBER(name, meaning) std::int64_t name = 0;
  PMSIM_COUNTERS(PMSIM_MEMBER)
#undef PMSIM_MEMBER

  /// Calls visit(name, value) for every counter, in declaration order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
#define PMSIM_VISIT(name, meaning) visit(std::string_view(#name), name);
    PMSIM_COUNTERS(PMSIM_VISIT)
#undef PMSIM_VISIT
  }

  /// The sum: the time-free and the timed half of a machine count different things.
  [[nodiscard]] Counters plus(const Counters& other) const {
    Counters result;
#define PMSIM_ADD(name, meaning) result.name = name + other.name;
    PMSIM_COUNTERS(PMSIM_ADD)
#undef PMSIM_ADD
    return result;
  }

  /// What has been counted since `earlier`.
  [[nodiscard]] Counters since(const Counters& earlier) const {
    Counters result;
#define PMSIM_SUBTRACT(name, meaning) result.name = name - earlier.name;
    PMSIM_COUNTERS(PMSIM_SUBTRACT)
#undef PMSIM_SUBTRACT
    return result;
  }
};

}  // namespace pmsim::machine
