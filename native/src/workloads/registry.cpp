#include "pmsim/workloads/registry.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "pmsim/core/error.hpp"

namespace pmsim::workloads {

namespace {

constexpr std::array kKinds{
    WorkloadKind{"bandwidth", make_bandwidth},
    WorkloadKind{"latency", make_latency},
    WorkloadKind{"persist", make_persist},
    WorkloadKind{"operations", make_operations},
    WorkloadKind{"mixed", make_mixed},
    WorkloadKind{"block", make_block},
    WorkloadKind{"interleave", make_interleave},
    WorkloadKind{"contention", make_contention},
    WorkloadKind{"in-place", make_in_place},
    WorkloadKind{"node", make_node},
    WorkloadKind{"traverse", make_traverse},
    WorkloadKind{"log", make_log},
    WorkloadKind{"page-flush", make_page_flush},
    WorkloadKind{"sorted-run", make_sorted_run},
    WorkloadKind{"oltp", make_oltp},
    WorkloadKind{"restart", make_restart},
};

std::unique_ptr<Workload> unprepared(std::string_view name, Parameters& parameters,
                                     const machine::PlatformParams& platform, std::uint64_t seed) {
  std::string known;
  for (const WorkloadKind& kind : kKinds) {
    if (kind.name == name) {
      std::unique_ptr<Workload> workload = kind.make(parameters, platform, seed);
      workload->lengthen(parameters.number_or("length", 1, 1, kMostTimes));
      parameters.require_all_read();
      return workload;
    }
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw ConfigError("workload \"" + std::string(name) + "\" is unknown; known: " + known);
}

}  // namespace

std::span<const WorkloadKind> workload_kinds() noexcept { return kKinds; }

std::unique_ptr<Workload> make_workload(std::string_view name, Parameters parameters,
                                        const machine::PlatformParams& platform, std::uint64_t seed,
                                        const Watch& watch) {
  std::unique_ptr<Workload> workload = unprepared(name, parameters, platform, seed);
  workload->prepare(watch);
  return workload;
}

void check_workload(std::string_view name, Parameters parameters, const machine::PlatformParams& platform) {
  static_cast<void>(unprepared(name, parameters, platform, 0));
}

memory::SimOptions capacities_of(const machine::PlatformParams& platform) {
  const auto bytes = [](std::int64_t capacity) { return static_cast<std::uint64_t>(capacity); };
  // In memory mode PMem is what a program sees; DRAM is its cache. Without modules there is no PMem.
  const bool memory_mode = platform.controller.memory_mode != 0;
  const std::uint64_t pmem = platform.pmem.dimms > 0 ? bytes(platform.pmem.capacity) : 0;
  memory::SimOptions options{.capacities =
                                 memory::Capacities::of(memory_mode ? pmem : bytes(platform.dram.capacity),
                                                        pmem, bytes(platform.block.capacity))};
  options.capacities.one_main_memory = memory_mode;
  return options;
}

std::int64_t cached_lines(const machine::PlatformParams& platform, std::uint32_t threads) {
  const std::int64_t cores = std::min<std::int64_t>(threads, platform.core.cores);
  return (platform.llc.size + cores * platform.l2.size) / static_cast<std::int64_t>(memory::kLineBytes);
}

}  // namespace pmsim::workloads
