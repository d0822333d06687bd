#pragma once

#include <algorithm>
#include <cstdint>

#include "pmsim/blocks/page/line_mask.hpp"

namespace pmsim::blocks::page {

/// What the hybrid technique knows about the machine: a handful of device figures, none of them measured on
/// page flushes. The workload takes them from the platform's parameters, `pmsim measure` from microbenchmarks.
/// All times in picoseconds.
struct CostModel {
  std::int64_t stream_line = 0;  ///< one thread streams a line, among many
  std::int64_t read_line = 0;    ///< one thread reads a line from DRAM, among many: latency over fill buffers
  std::int64_t persist = 0;      ///< one flushed or streamed line and its fence, alone
  std::int64_t repeat = 0;       ///< how long after a persist the same line can be stored to again
  std::int64_t block_write = 0;  ///< all modules together write a block
  std::uint32_t lines_per_block = 4;

  /// Time of one page flush by copy on write, with `threads` writers at work: the thread's own work, or its
  /// share of the medium, whichever is longer. A load and a streaming store each hold a fill buffer of the
  /// core, so their times add up; help by the prefetcher, which begins anew in every 4 KiB, is not counted on.
  [[nodiscard]] std::int64_t cow(std::uint32_t lines, std::uint32_t threads) const noexcept {
    const std::int64_t own = lines * (read_line + stream_line) + 2 * persist;
    const std::int64_t blocks = (lines + lines_per_block - 1) / lines_per_block + 1;  // and the header's
    return std::max(own, threads * blocks * block_write);
  }

  /// Time of one page flush by micro log. The log's head is persisted three times, each time waiting until the
  /// line can be stored to again; dirty lines are read, streamed to the log and streamed to the page, where
  /// every touched block is written as a whole.
  [[nodiscard]] std::int64_t micro_log(const LineMask& dirty, std::uint32_t threads) const {
    const std::int64_t count = dirty.count();
    const std::int64_t own = count * (read_line + 2 * stream_line) + 4 * persist + 3 * repeat;
    const std::int64_t blocks =
        (count + lines_per_block - 1) / lines_per_block + dirty.groups(lines_per_block) + 1;
    return std::max(own, threads * blocks * block_write);
  }

  [[nodiscard]] bool prefers_micro_log(const LineMask& dirty, std::uint32_t lines,
                                       std::uint32_t threads) const {
    return micro_log(dirty, threads) < cow(lines, threads);
  }
};

}  // namespace pmsim::blocks::page
