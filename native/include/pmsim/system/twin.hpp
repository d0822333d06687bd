#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::system {

/// What a power failure would leave of a service's memory, in virtual time.
///
/// A request is executed at once, but takes time: in the middle of it, the service's own memory is ahead. The
/// twin is a second memory that lags behind: it takes over what a request has done to durable media when the
/// request ends, in the order in which requests end. At a failure, a request in flight counts up to the last
/// barrier (fence or flush of the block device) that its thread has completed, for certain; what it does up to
/// its next barrier may or may not have become durable, as the x86 model of DurabilityTracker has it.
///
/// Legal where requests in flight together touch no common durable lines (each worker its own), or where they
/// are one after the other (`serial`): then the earliest counts so far and the later ones not at all, which is
/// a state that the serial program passes through.
class Twin {
 public:
  /// `source` must be durable as it is, tracked, and must not write but through requests.
  Twin(const memory::SimMemory& source, std::uint32_t workers);

  /// The worker has executed a request that wrote `log`. Its thread has begun `barriers` barriers before it.
  void executed(std::uint32_t worker, std::span<const memory::LogEntry> log, std::uint64_t barriers);
  /// Its request has ended.
  void ended(std::uint32_t worker);
  /// The memory after a failure now, drawn from the legal ones. `completed`: barriers that each worker's thread
  /// has completed. `in_flight`: the workers whose requests count so far; of a serial service at most the one
  /// with the earliest. `lost`: a medium that does not come back.
  [[nodiscard]] memory::SimMemory fail(std::span<const std::uint64_t> completed,
                                       std::span<const std::uint32_t> in_flight, Random& random,
                                       std::optional<memory::Medium> lost);

 private:
  struct InFlight {
    std::vector<memory::LogEntry> log;
    std::uint64_t barriers = 0;
  };

  memory::SimMemory lagging_;
  std::vector<InFlight> in_flight_;
};

}  // namespace pmsim::system
