#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/memory/stream.hpp"
#include "pmsim/workloads/access.hpp"
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
///
/// It ends for all threads at once, when they have loaded enough together: a thread that shares its core would
/// else still be at it when the others are measured, and its loads would count.
class TlbWarmup {
 public:
  explicit TlbWarmup(std::uint64_t seed) : seed_(~mix64(seed)) {}

  /// A thread will access [base, base + bytes).
  void add(const machine::PlatformParams& platform, std::uint32_t thread, memory::Address base,
           std::uint64_t bytes) {
    while (threads_.size() <= thread)
      threads_.push_back({.random = Random(seed_ - threads_.size())});
    threads_[thread].ranges.push_back({base, bytes / memory::kLineBytes});
    left_ += accesses_to_warm_tlbs(platform, memory::medium_of(base), bytes);
    operations_ = left_;
  }

  /// Operations that it takes of all threads.
  [[nodiscard]] std::int64_t operations() const noexcept { return operations_; }

  /// Executes some more of a thread's; false where there are none left, or the thread accesses nothing.
  [[nodiscard]] bool refill(memory::SimMemory& memory, std::uint32_t thread, memory::Stream& stream) {
    if (left_ == 0 || thread >= threads_.size() || threads_[thread].ranges.empty())
      return false;
    Thread& state = threads_[thread];
    memory.attach(stream, thread);
    for (int count = 0; count < 16 && left_ > 0; ++count, --left_) {
      const Range& range = state.ranges[state.next++ % state.ranges.size()];
      touch_line(memory, range.base + state.random.below(range.lines) * memory::kLineBytes, Access::kLoad);
      memory.operation_end();
    }
    return true;
  }

 private:
  struct Range {
    memory::Address base;
    std::uint64_t lines;
  };
  struct Thread {
    Random random;
    std::vector<Range> ranges{};
    std::size_t next = 0;  ///< range
  };

  std::uint64_t seed_;
  std::vector<Thread> threads_;
  std::int64_t operations_ = 0;
  std::int64_t left_ = 0;  ///< of all threads
};

}  // namespace pmsim::workloads
