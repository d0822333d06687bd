#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::workloads {

/// Loads with which threads begin, each an operation: by them page tables, TLBs and caches come to hold what
/// they hold in a long run.
///
/// It ends for all threads at once, when they have loaded enough together: a thread that shares its core would
/// else still be at it when the others are measured, and its loads would count.
class LoadWarmup {
 public:
  /// `loads` of all threads together.
  explicit LoadWarmup(std::uint64_t seed, std::int64_t loads = 0)
      : seed_(~mix64(seed)), operations_(loads), left_(loads) {}

  void add(std::int64_t loads) noexcept {
    operations_ += loads;
    left_ += loads;
  }

  /// Operations that it takes of all threads.
  [[nodiscard]] std::int64_t operations() const noexcept { return operations_; }

  /// Executes some more of a thread's by `load(random)`, with a random sequence for each thread; false where
  /// there are none left.
  template <typename Load>
  [[nodiscard]] bool refill(memory::SimMemory& memory, std::uint32_t thread, memory::Stream& stream,
                            const Load& load) {
    if (left_ == 0)
      return false;
    while (randoms_.size() <= thread)
      randoms_.emplace_back(seed_ - randoms_.size());
    memory.attach(stream, thread);
    const std::int64_t count = std::min<std::int64_t>(left_, kAtOnce);
    for (std::int64_t at = 0; at < count; ++at) {
      load(randoms_[thread]);
      memory.operation_end();
    }
    left_ -= count;
    return true;
  }

 private:
  static constexpr std::int64_t kAtOnce = 16;

  std::uint64_t seed_;
  std::int64_t operations_;
  std::int64_t left_;
  std::vector<Random> randoms_;
};

}  // namespace pmsim::workloads
