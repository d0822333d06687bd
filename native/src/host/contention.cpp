#include "pmsim/workloads/options/contention.hpp"
#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

std::unique_ptr<Benchmark> make_contention(Parameters& parameters, const Place& place) {
  const blocks::sync::SyncOptions options = workloads::read_contention(parameters);
  const std::uint64_t bytes = (std::uint64_t{3} + options.lines) * memory::kLineBytes * options.objects;
  return std::make_unique<BlockBenchmark<blocks::sync::SyncDriver>>(place, bytes + kRegionSlack,
                                                                    options.threads, options);
}

}  // namespace pmsim::host
