#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pmsim/machine/params.hpp"
#include "pmsim/workloads/parameters.hpp"
#include "pmsim/workloads/workload.hpp"

namespace pmsim::workloads {

/// Most that a run can be longer than usual.
inline constexpr std::int64_t kMostTimes = 1'000;

/// One kind of workload. To add one: write its file, declare its factory, add a row to registry.cpp.
struct WorkloadKind {
  std::string_view name;
  std::unique_ptr<Workload> (*make)(Parameters& parameters, const machine::PlatformParams& platform,
                                    std::uint64_t seed);
};

[[nodiscard]] std::span<const WorkloadKind> workload_kinds() noexcept;

/// Makes a workload and prepares it. `watch`: see Workload::prepare. Throws ConfigError for an unknown name, an
/// unknown parameter or a value that cannot be.
[[nodiscard]] std::unique_ptr<Workload> make_workload(std::string_view name, Parameters parameters,
                                                      const machine::PlatformParams& platform,
                                                      std::uint64_t seed, const Watch& watch = {});

/// Makes a workload and drops it, before anything takes long: throws what make_workload() would throw before it
/// prepares, also where the host does not give the memory.
void check_workload(std::string_view name, Parameters parameters, const machine::PlatformParams& platform);

std::unique_ptr<Workload> make_bandwidth(Parameters& parameters, const machine::PlatformParams& platform,
                                         std::uint64_t seed);
std::unique_ptr<Workload> make_latency(Parameters& parameters, const machine::PlatformParams& platform,
                                       std::uint64_t seed);
std::unique_ptr<Workload> make_persist(Parameters& parameters, const machine::PlatformParams& platform,
                                       std::uint64_t seed);
std::unique_ptr<Workload> make_operations(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed);
std::unique_ptr<Workload> make_mixed(Parameters& parameters, const machine::PlatformParams& platform,
                                     std::uint64_t seed);
std::unique_ptr<Workload> make_interleave(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed);
std::unique_ptr<Workload> make_page_flush(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed);
std::unique_ptr<Workload> make_block(Parameters& parameters, const machine::PlatformParams& platform,
                                     std::uint64_t seed);
std::unique_ptr<Workload> make_contention(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed);
std::unique_ptr<Workload> make_in_place(Parameters& parameters, const machine::PlatformParams& platform,
                                        std::uint64_t seed);
std::unique_ptr<Workload> make_node(Parameters& parameters, const machine::PlatformParams& platform,
                                    std::uint64_t seed);
std::unique_ptr<Workload> make_traverse(Parameters& parameters, const machine::PlatformParams& platform,
                                        std::uint64_t seed);
std::unique_ptr<Workload> make_log(Parameters& parameters, const machine::PlatformParams& platform,
                                   std::uint64_t seed);
std::unique_ptr<Workload> make_sorted_run(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed);
std::unique_ptr<Workload> make_oltp(Parameters& parameters, const machine::PlatformParams& platform,
                                    std::uint64_t seed);
std::unique_ptr<Workload> make_restart(Parameters& parameters, const machine::PlatformParams& platform,
                                       std::uint64_t seed);

}  // namespace pmsim::workloads
