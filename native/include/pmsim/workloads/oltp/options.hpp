#pragma once

#include <cstdint>
#include <string_view>

#include "pmsim/engines/options.hpp"
#include "pmsim/workloads/oltp/choice.hpp"
#include "pmsim/workloads/parameters.hpp"

namespace pmsim::workloads::oltp {

/// A number that may have a fraction: such parameters come as texts. Throws ConfigError where it is none, or
/// not from `low` to `high`.
[[nodiscard]] double real_number(Parameters& parameters, std::string_view name, double low, double high);

/// The parameters of an engine, at scale. Throws ConfigError where one is missing or cannot be.
[[nodiscard]] engines::EngineOptions read_engine_options(Parameters& parameters, std::uint64_t seed);

/// The parameters of a benchmark on this engine, at scale.
[[nodiscard]] WorkloadOptions read_workload_options(Parameters& parameters,
                                                    const engines::EngineOptions& engine, std::uint64_t seed);

}  // namespace pmsim::workloads::oltp
