#pragma once

#include <cstdint>
#include <string_view>

#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/system/part.hpp"

namespace pmsim::system {

/// Most bytes, and rows, of an engine that a part may ask for.
inline constexpr std::int64_t kMaxEngineBytes = std::int64_t{1} << 43;
/// How full the leaves of their tables are loaded.
inline constexpr double kLeafFill = 0.7;

/// Bytes of all regions on a medium. What an engine has taken is the difference: other parts have theirs.
[[nodiscard]] inline std::uint64_t bytes_in_use(const memory::SimMemory& memory, memory::Medium medium) {
  std::uint64_t bytes = 0;
  for (const memory::RegionPlace& region : memory.regions().places(medium))
    bytes += region.bytes;
  return bytes;
}

/// Reads what the parts with a storage engine have in common.
[[nodiscard]] inline engines::EngineOptions engine_options(workloads::Parameters& parameters,
                                                           std::uint32_t workers, std::uint64_t seed) {
  const auto bytes = [&](std::string_view name) {
    return static_cast<std::uint64_t>(parameters.number(name, 0, kMaxEngineBytes));
  };
  engines::EngineOptions options;
  options.engine = parameters.text("engine");
  options.dram_bytes = bytes("dram_capacity");
  options.pmem_bytes = bytes("pmem_capacity");
  options.ssd_bytes = bytes("ssd_capacity");
  options.page_bytes = static_cast<std::uint32_t>(parameters.number("page_size", 4096, 65536));
  options.log_device = parameters.choice("log_device", {"pmem", "ssd"});
  options.log_bytes = bytes("log_size");
  options.logs = parameters.choice("logs", {"shared", "per-thread"});
  options.commits = parameters.choice("commits", {"single", "group"});
  options.cleaning = parameters.choice("cleaning", {"due", "paced"});
  options.library_cycles = static_cast<std::uint32_t>(parameters.number("library_cycles", 0, 1'000'000));
  options.system_call_cycles =
      static_cast<std::uint32_t>(parameters.number("system_call_cycles", 0, 1'000'000));
  options.system_call_copies = static_cast<std::uint32_t>(parameters.number("system_call_copies", 1, 2));
  options.cpu_cycles = static_cast<std::uint32_t>(parameters.number("cpu_cycles", 0, 1'000'000));
  options.transaction_cycles =
      static_cast<std::uint32_t>(parameters.number("transaction_cycles", 0, 1'000'000));
  options.threads = workers;
  options.latches = parameters.choice("latches", {"none", "shared", "optimistic"});
  options.fixes = parameters.choice("fixes", {"counted", "optimistic"});
  options.seed = seed;
  return options;
}

}  // namespace pmsim::system
