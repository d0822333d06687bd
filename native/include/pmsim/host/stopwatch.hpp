#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pmsim/memory/host_memory.hpp"

namespace pmsim::host {

/// Times operations that are done one at a time, each on its own, as LATTester does.
///
/// An mfence ends each timing. Recent cores (seen on a Golden Cove) let an sfence retire while the flushes
/// before it are still on their way, and hold back the stores behind it instead: without the mfence a persist
/// seems to take 20 ns, and the rate of persists says 200. The time of an operation is the median of all, less
/// the median time of the fences with nothing to wait for.
class Stopwatch {
 public:
  /// `gap_ns` passes before each operation, so that it finds idle queues. Not `drained`: a lone sfence ends it.
  /// Throws ConfigError on a machine without a time-stamp counter.
  Stopwatch(memory::HostMemory& memory, double gap_ns, bool drained = true);

  void clear() noexcept { taken_.clear(); }

  template <typename Operation>
  void time(const Operation& operation) {
    wait();
    const std::uint64_t begin = ticks();
    operation();
    fence();
    taken_.push_back(ticks() - begin);
  }

  /// Median [ns] since clear(); nothing where nothing has been timed.
  [[nodiscard]] std::optional<double> median_ns();

 private:
  /// The time-stamp counter after everything before has completed locally, and before anything after begins.
  [[nodiscard]] static std::uint64_t ticks() noexcept;
  void wait() const noexcept;
  void fence();

  memory::HostMemory& memory_;
  bool drained_;
  double ns_per_tick_ = 0;
  std::uint64_t gap_ticks_ = 0;
  double empty_ = 0;  ///< median of timings of nothing [ticks]
  std::vector<std::uint64_t> taken_;
};

}  // namespace pmsim::host
