#include <string_view>

#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/workloads/options/page_flush.hpp"

namespace pmsim::host {

namespace {

using namespace blocks::page;

/// Micro logs and what else a store keeps beside its pages and slots.
constexpr std::uint64_t kOtherBytes = std::uint64_t{64} << 20;

/// "hybrid" chooses by the figures of a profile of this machine [ps]; the other techniques need none.
CostModel read_costs(Parameters& parameters) {
  const auto figure = [&](std::string_view name) { return parameters.number(name, 0, std::int64_t{1} << 40); };
  CostModel costs;
  costs.stream_line = figure("cost_stream_line");
  costs.read_line = figure("cost_read_line");
  costs.persist = figure("cost_persist");
  costs.repeat = figure("cost_repeat");
  costs.block_write = figure("cost_block_write");
  costs.lines_per_block = static_cast<std::uint32_t>(parameters.number("cost_lines_per_block", 1, 1 << 20));
  return costs;
}

}  // namespace

std::unique_ptr<Benchmark> make_page_flush(Parameters& parameters, const Place& place) {
  DriverOptions options = workloads::read_page_flush(parameters);
  options.fill = true;
  if (options.technique == Technique::kHybrid)
    options.costs = read_costs(parameters);
  // Pages, slots with their headers, and the snapshots of "checksum".
  const std::uint64_t pages = options.store.pages + options.store.writers * options.store.spare_slots;
  const std::uint64_t bytes = 3 * pages * (options.store.page_bytes + 256) + kOtherBytes + kRegionSlack;
  return std::make_unique<BlockBenchmark<PageFlushDriver>>(place, bytes, options.store.writers, options);
}

}  // namespace pmsim::host
