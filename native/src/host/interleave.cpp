#include "pmsim/workloads/options/interleave.hpp"
#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

std::unique_ptr<Benchmark> make_interleave(Parameters& parameters, const Place& place) {
  const auto options = workloads::read_interleave<memory::HostMemory>(parameters);
  return std::make_unique<BlockBenchmark<blocks::index::InterleaveDriver>>(
      place, options.region_bytes + kRegionSlack, options.threads, options);
}

}  // namespace pmsim::host
