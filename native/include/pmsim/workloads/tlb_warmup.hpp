#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/memory/stream.hpp"
#include "pmsim/workloads/access.hpp"
#include "pmsim/workloads/load_warmup.hpp"
#include "pmsim/workloads/workload.hpp"

namespace pmsim::workloads {

/// Loads of one thread after which its TLBs hold as much of `bytes` as in a long run of accesses at random
/// places: each page that fits has been met `kMeetings` times, in the mean.
[[nodiscard]] inline std::int64_t accesses_to_warm_tlbs(const machine::PlatformParams& platform,
                                                        memory::Medium medium, std::uint64_t bytes) noexcept {
  const std::int64_t pages = static_cast<std::int64_t>(bytes) / page_bytes(platform, medium) + 1;
  return kMeetings * std::min(pages, platform.tlb.second_level_entries);
}

/// The first operations of threads that access memory at random places: loads of lines, by which their TLBs,
/// and the first levels of their caches, come to hold translations. Every thread has TLBs of its own, and a run
/// that many threads share is too short to fill them all: with 16, chains of reads of DRAM became a quarter
/// faster before they were steady.
class TlbWarmup {
 public:
  explicit TlbWarmup(std::uint64_t seed) : loads_(seed) {}

  /// A thread will access [base, base + bytes).
  void add(const machine::PlatformParams& platform, std::uint32_t thread, memory::Address base,
           std::uint64_t bytes) {
    if (threads_.size() <= thread)
      threads_.resize(thread + 1);
    threads_[thread].ranges.push_back({base, bytes / memory::kLineBytes});
    loads_.add(accesses_to_warm_tlbs(platform, memory::medium_of(base), bytes));
  }

  /// Operations that it takes of all threads.
  [[nodiscard]] std::int64_t operations() const noexcept { return loads_.operations(); }

  /// Executes some more of a thread's; false where there are none left, or the thread accesses nothing.
  [[nodiscard]] bool refill(memory::SimMemory& memory, std::uint32_t thread, memory::Stream& stream) {
    if (thread >= threads_.size() || threads_[thread].ranges.empty())
      return false;
    Thread& state = threads_[thread];
    return loads_.refill(memory, thread, stream, [&](Random& random) {
      const Range& range = state.ranges[state.next++ % state.ranges.size()];
      touch_line(memory, range.base + random.below(range.lines) * memory::kLineBytes, Access::kLoad);
    });
  }

 private:
  struct Range {
    memory::Address base;
    std::uint64_t lines;
  };
  struct Thread {
    std::vector<Range> ranges;
    std::size_t next = 0;  ///< range
  };

  LoadWarmup loads_;
  std::vector<Thread> threads_;
};

}  // namespace pmsim::workloads
