#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/machine/page_table.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/simulate.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::workloads {

/// Work for virtual threads, executed functionally on simulated memory: a memory::Source that also says how
/// many threads it has, how long to run it and which threads belong together.
class Workload : public memory::Source {
 public:
  /// What takes long before the first operation: loading data, warming up. make_workload() calls it once,
  /// before anything else. `watch` is told, where there is one.
  virtual void prepare(const Watch& watch) { static_cast<void>(watch); }
  [[nodiscard]] virtual std::uint32_t threads() const = 0;
  /// What is measured, `times_` as long as usual, and the warm-up before it.
  [[nodiscard]] machine::RunLength length() const {
    machine::RunLength length = usual_length();
    length.measured_operations *= times_;
    return length;
  }
  void lengthen(std::int64_t times) noexcept { times_ = times; }
  /// Parts of equally many operations whose ends are noted (SimulateOptions::batches): the throughput has a
  /// confidence interval from them. Ten: short batches are not independent. What long chunks do to each other,
  /// as which modules they share, lasts for as long as a chunk: with 20, intervals of 4 and 16 KiB read by 24
  /// threads hold the mean in 32 and 33 of 40 runs, with 10 in 36 and 35.
  [[nodiscard]] virtual std::uint32_t batches() const { return 10; }
  /// Group of each thread; empty: one group.
  [[nodiscard]] virtual std::vector<std::uint32_t> groups() const { return {}; }
  /// After the run, once: checks what it has left, where that is asked for. Throws SimulationError.
  virtual void end() {}
  /// Numbers about its data structures that no counter of the machine sees, by name; asked for after the run.
  [[nodiscard]] virtual std::map<std::string, double> facts() const { return {}; }
  /// Bytes of PMem that its regions occupy.
  [[nodiscard]] virtual std::uint64_t pmem_footprint() const = 0;

 private:
  /// Long enough for means to be steady.
  [[nodiscard]] virtual machine::RunLength usual_length() const = 0;

  std::int64_t times_ = 1;
};

/// Options of a SimMemory with the capacities of a platform.
[[nodiscard]] memory::SimOptions capacities_of(const machine::PlatformParams& platform);

/// Page size of the mappings of a medium [B].
[[nodiscard]] inline std::int64_t page_bytes(const machine::PlatformParams& platform,
                                             memory::Medium medium) noexcept {
  return medium == memory::Medium::kDram ? platform.tlb.dram_page_size : platform.tlb.page_size;
}

/// Lines of the last-level page-table entries of a region.
[[nodiscard]] inline std::int64_t page_table_lines(const machine::PlatformParams& platform,
                                                   memory::Medium medium, std::uint64_t region_bytes) noexcept {
  constexpr std::int64_t kEntriesInLine = memory::kLineBytes / machine::kEntryBytes;
  return static_cast<std::int64_t>(region_bytes) / page_bytes(platform, medium) / kEntriesInLine;
}

/// Times that a warm-up meets each line of last-level page-table entries, in the mean: of every hundred lines
/// five are then still in no cache.
inline constexpr std::int64_t kMeetings = 3;

/// Accesses at random places of a region after which the caches hold its page-table entries as those of a long
/// run do, as far as they fit; `most` where the caches are full before, or where nobody wants to wait longer.
[[nodiscard]] inline std::int64_t accesses_to_warm_page_tables(const machine::PlatformParams& platform,
                                                               memory::Medium medium,
                                                               std::uint64_t region_bytes,
                                                               std::int64_t most) noexcept {
  return std::min(kMeetings * page_table_lines(platform, medium, region_bytes), most);
}

/// Lines that the caches of `threads` cores and the shared cache hold together: what a run of plain stores has
/// to write before evictions are steady.
[[nodiscard]] std::int64_t cached_lines(const machine::PlatformParams& platform, std::uint32_t threads);

/// Lines that a run has to store before evictions are steady. 0: they leave the caches at once, because it
/// flushes them. Where the caches are persistent (eADR) a flush leaves them there.
[[nodiscard]] inline std::int64_t stores_to_fill_caches(const machine::PlatformParams& platform,
                                                        std::uint32_t threads, bool flushed) {
  return flushed && platform.controller.eadr == 0 ? 0 : cached_lines(platform, threads) * 3 / 2;
}

/// Lines that queues and buffers of the modules hold together, twice: what goes through them until they are as
/// in a long run, also at random places.
[[nodiscard]] inline std::int64_t lines_to_fill_modules(const machine::PlatformParams& platform) {
  const machine::PmemParams& pmem = platform.pmem;
  const std::int64_t blocks = pmem.read_buffer_blocks + pmem.write_buffer_blocks;
  const auto lines_of_block = std::max<std::int64_t>(1, pmem.block_size / std::int64_t{memory::kLineBytes});
  return 2 * pmem.dimms * (blocks * lines_of_block + platform.controller.pmem_write_queue);
}

/// Regions so many times as large as the caches: 3 % of loads at random places hit, which is left to chance.
inline constexpr std::int64_t kRegionsOverCaches = 32;

/// Whether threads that draw from one region find in caches what others have brought. Of regions many times as
/// large as the caches that is left to chance, for coherence takes time.
[[nodiscard]] inline bool meet_in_caches(const machine::PlatformParams& platform, std::uint32_t threads,
                                         std::uint64_t region_bytes) {
  const auto lines = static_cast<std::int64_t>(region_bytes / memory::kLineBytes);
  return threads > 1 && lines < kRegionsOverCaches * cached_lines(platform, threads);
}

/// Loads of a region's lines after which the caches hold as much of it as in a long run. Each line of one that
/// fits costs as much as many hits where nobody has met it: at random places it is met six times in the mean,
/// so one of four hundred is not.
[[nodiscard]] inline std::int64_t loads_to_fill_caches(const machine::PlatformParams& platform,
                                                       std::uint32_t threads, std::int64_t lines, bool random) {
  const std::int64_t cached = cached_lines(platform, threads);
  if (lines <= cached) {
    return random ? 6 * lines : lines * 5 / 4;
  }
  return lines < kRegionsOverCaches * cached ? cached * 3 / 2 : 0;
}

}  // namespace pmsim::workloads
