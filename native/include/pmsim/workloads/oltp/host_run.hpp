#pragma once

#include <cstdint>

#include "pmsim/workloads/parameters.hpp"

namespace pmsim::workloads::oltp {

/// Runs a benchmark on a storage engine natively: on this machine's DRAM, which stands in for PMem as well, and
/// on a temporary file as the SSD. After `warmup` transactions, which are not timed, `operations` are. Returns
/// their CPU seconds. Takes the same parameters as the workload `oltp` as far as they concern engine and
/// benchmark.
///
/// Not a prediction of anything: it says how much of a simulation's time the engine itself takes.
[[nodiscard]] double host_cpu_seconds(Parameters& parameters, std::uint64_t warmup, std::uint64_t operations,
                                      std::uint64_t seed);

}  // namespace pmsim::workloads::oltp
