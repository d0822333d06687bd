#pragma once

#include <cstdint>
#include <string>

#include "pmsim/blocks/sync/driver.hpp"
#include "pmsim/workloads/options/memory.hpp"

namespace pmsim::workloads {

/// All but the seed.
[[nodiscard]] inline blocks::sync::SyncOptions read_contention(Parameters& parameters) {
  using blocks::sync::Meeting;
  const std::string readers = parameters.choice("readers", {"shared", "optimistic"});
  blocks::sync::SyncOptions options;
  options.meeting =
      parameters.choice("operation", {"counter", "latch"}) == "counter" ? Meeting::kCounter : Meeting::kLatch;
  options.readers = readers == "shared" ? memory::LatchMode::kShared : memory::LatchMode::kOptimistic;
  options.read_percent = static_cast<std::uint32_t>(parameters.number("read_percent", 0, 100));
  options.objects = static_cast<std::uint32_t>(parameters.number("objects", 1, 1 << 20));
  options.lines = static_cast<std::uint32_t>(parameters.number("lines", 1, 256));
  options.work = static_cast<std::uint32_t>(parameters.number("work", 0, 1'000'000));
  options.threads = read_threads(parameters);
  return options;
}

}  // namespace pmsim::workloads
