#include "pmsim/workloads/options/log.hpp"
#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

std::unique_ptr<Benchmark> make_log(Parameters& parameters, const Place& place) {
  const blocks::log::DriverOptions options = workloads::read_log(parameters);
  const std::uint64_t buffers = (options.entry_size + 256) * options.group_commit + kRegionSlack;
  const std::uint64_t bytes = options.threads * (options.log_size + kRegionSlack + buffers);
  return std::make_unique<BlockBenchmark<blocks::log::LogDriver>>(place, bytes, options.threads, options);
}

}  // namespace pmsim::host
