#include "pmsim/blocks/log/driver.hpp"

#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

namespace {

using blocks::log::DriverOptions;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

DriverOptions read(Parameters& parameters) {
  DriverOptions options;
  options.algorithm =
      parameters.choice("algorithm", {blocks::log::kAlgorithms.begin(), blocks::log::kAlgorithms.end()});
  options.layout = blocks::log::layout_named(
      parameters.choice("layout", {blocks::log::kLayouts.begin(), blocks::log::kLayouts.end()}));
  options.entry_size = static_cast<std::uint64_t>(parameters.number("entry_size", 8, 1 << 28));
  options.group_commit = static_cast<std::uint32_t>(parameters.number("group_commit", 1, 1 << 20));
  options.dancing_fields = static_cast<std::uint32_t>(parameters.number("dancing_fields", 1, 4096));
  options.log_size = static_cast<std::uint64_t>(parameters.number("log_size", 256, kMaxBytes));
  options.threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
  options.medium =
      parameters.choice("memory", {"dram", "pmem"}) == "dram" ? memory::Medium::kDram : memory::Medium::kPmem;
  return options;
}

}  // namespace

std::unique_ptr<Benchmark> make_log(Parameters& parameters, const Place& place) {
  const DriverOptions options = read(parameters);
  const std::uint64_t buffers = (options.entry_size + 256) * options.group_commit + kRegionSlack;
  const std::uint64_t bytes = options.threads * (options.log_size + kRegionSlack + buffers);
  return std::make_unique<BlockBenchmark<blocks::log::LogDriver>>(place, bytes, options.threads, options);
}

}  // namespace pmsim::host
