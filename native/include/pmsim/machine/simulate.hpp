#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/core/time.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/histogram.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/requests.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::machine {

/// How long to simulate, in operations over all threads: first without and then with measurement.
struct RunLength {
  std::int64_t warmup_operations = 0;
  std::int64_t measured_operations = 0;
  /// Of the warm-up, the first so many, or a few more: what fills TLBs, caches and, in memory mode, DRAM. These
  /// need no clock, so the rest of a machine is left out.
  std::int64_t untimed_operations = 0;

  /// Its three parts, one after the other: `settling` fills queues and buffers.
  [[nodiscard]] static constexpr RunLength in_order(std::int64_t untimed, std::int64_t settling,
                                                    std::int64_t measured) noexcept {
    return {untimed + settling, measured, untimed};
  }
};

/// What the threads of one group have done in the measured part.
struct GroupResult {
  std::int64_t operations = 0;
  std::int64_t user_bytes = 0;
  Histogram latency;                      ///< of operations that the workload brackets with begin and end
  std::vector<std::int64_t> batch_bytes;  ///< user bytes of each batch
};

/// What one lane has measured.
struct LaneResult {
  Picoseconds started = 0;  ///< when the measured part began: what the warm-up took
  Picoseconds elapsed = 0;
  std::int64_t micro_ops = 0;         ///< executed while it was measured
  std::int64_t warmup_micro_ops = 0;  ///< before that
  Counters counters;
  std::vector<GroupResult> groups;
  /// When each batch of the measured part ended, counted from its start.
  std::vector<Picoseconds> batch_ends;
  std::vector<Histogram> batch_latencies;  ///< of each batch, over all groups
};

struct SimulateOptions {
  RunLength length;
  std::vector<std::uint32_t> group_of_thread;  ///< empty: all threads are one group
  std::uint64_t seed = 0;
  std::uint64_t pmem_footprint = 0;
  /// Parts of equally many operations into which the measured part is cut, for confidence intervals and curves
  /// over time.
  std::uint32_t batches = 1;
  Watch watch;
  RequestListener* listener = nullptr;  ///< hears what is asked of main memory; for one platform only
};

/// Executes `source` once and times it on every platform. One LaneResult per platform, in their order.
///
/// All lanes must have the same caches, TLBs and prefetcher as the first one (ConfigError names the field):
/// these are stepped once. Deterministic: the same arguments give the same results bit by bit.
[[nodiscard]] std::vector<LaneResult> simulate(memory::Source& source, std::uint32_t threads,
                                               std::span<const PlatformParams> platforms,
                                               const SimulateOptions& options);

}  // namespace pmsim::machine
