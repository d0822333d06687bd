#include "pmsim/workloads/options/in_place.hpp"
#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

namespace {

using namespace blocks::inplace;

/// Of each thread: enough that truncations, which a simulated run never meets, are rare.
constexpr std::uint64_t kLogBytes = std::uint64_t{64} << 20;

}  // namespace

std::unique_ptr<Benchmark> make_in_place(Parameters& parameters, const Place& place) {
  InPlaceOptions options = workloads::read_in_place(parameters);
  options.log_bytes = kLogBytes;
  options.touch_at_once = true;
  const std::uint64_t logs = logs_updates(options.algorithm) ? options.threads * (kLogBytes + kRegionSlack) : 0;
  const std::uint64_t bytes = options.array_bytes + kRegionSlack + logs;
  return std::make_unique<BlockBenchmark<InPlaceDriver>>(place, bytes, options.threads, options);
}

}  // namespace pmsim::host
