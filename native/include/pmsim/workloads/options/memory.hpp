#pragma once

#include <cstdint>

#include "pmsim/memory/region.hpp"
#include "pmsim/workloads/parameters.hpp"

namespace pmsim::workloads {

// What the simulated workload of a building block and its benchmark on this machine read alike is read once,
// here and beside this file: one function for each block. What only one of them has, it reads itself.

/// [B] Sums of such sizes over all threads are far from overflow.
inline constexpr std::int64_t kLargestRegion = std::int64_t{1} << 43;
inline constexpr std::int64_t kMostThreads = 1024;

/// "memory": where the block's data lie.
[[nodiscard]] inline memory::Medium read_medium(Parameters& parameters) {
  return parameters.choice("memory", {"dram", "pmem"}) == "dram" ? memory::Medium::kDram
                                                                 : memory::Medium::kPmem;
}

/// "threads": each works on a part of its own.
[[nodiscard]] inline std::uint32_t read_threads(Parameters& parameters) {
  return static_cast<std::uint32_t>(parameters.number("threads", 1, kMostThreads));
}

}  // namespace pmsim::workloads
