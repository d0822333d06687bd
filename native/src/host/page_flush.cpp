#include <algorithm>

#include "pmsim/blocks/page/driver.hpp"
#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

namespace {

using namespace blocks::page;

/// Micro logs and what else a store keeps beside its pages and slots.
constexpr std::uint64_t kOtherBytes = std::uint64_t{64} << 20;

/// Without "hybrid", whose cost model is derived from a platform.
DriverOptions read(Parameters& parameters) {
  const std::string technique =
      parameters.choice("technique", {"cow", "cow-load", "cow-invalidate", "microlog", "checksum", "crc32c"});
  DriverOptions options;
  options.technique =
      static_cast<Technique>(std::ranges::find(kTechniqueNames, technique) - kTechniqueNames.begin());
  options.store.page_bytes = static_cast<std::uint32_t>(parameters.number("page_size", 64, 65536));
  options.store.pages = static_cast<std::uint64_t>(parameters.number("pages", 1, std::int64_t{1} << 24));
  options.store.writers = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
  options.store.write =
      parameters.choice("write", {"ntstore", "store+clwb"}) == "ntstore" ? Write::kStream : Write::kStoreFlush;
  options.dirty_lines = static_cast<std::uint32_t>(parameters.number("dirty_lines", 1, 1024));
  options.fill = true;
  return options;
}

}  // namespace

std::unique_ptr<Benchmark> make_page_flush(Parameters& parameters, const Place& place) {
  const DriverOptions options = read(parameters);
  // Pages, slots with their headers, and the snapshots of "checksum".
  const std::uint64_t pages = options.store.pages + options.store.writers * options.store.spare_slots;
  const std::uint64_t bytes = 3 * pages * (options.store.page_bytes + 256) + kOtherBytes + kRegionSlack;
  return std::make_unique<BlockBenchmark<PageFlushDriver>>(place, bytes, options.store.writers, options);
}

}  // namespace pmsim::host
