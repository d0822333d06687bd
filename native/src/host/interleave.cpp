#include "pmsim/blocks/index/driver.hpp"
#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

namespace {

using blocks::index::Fence;
using blocks::index::FpTreeLeaf;
using blocks::index::InterleaveDriver;
using Options = InterleaveDriver<memory::HostMemory>::Options;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

Options read(Parameters& parameters) {
  Options options;
  options.inserts = parameters.choice("operation", {"lookup", "insert"}) == "insert";
  const std::string interleave = parameters.choice("interleave", {"none", "reads", "writes", "both"});
  options.interleaved = interleave != "none";
  options.how.reads = interleave == "reads" || interleave == "both";
  options.how.writes = interleave == "writes" || interleave == "both";
  if (!options.inserts && options.how.writes)
    parameters.refuse("interleave", "a lookup writes nothing; use \"none\" or \"reads\"");
  options.how.fence =
      parameters.choice("fence", {"sfence", "mfence"}) == "mfence" ? Fence::kMfence : Fence::kSfence;
  options.group_size = static_cast<std::uint32_t>(
      parameters.number("group_size", 1, static_cast<std::int64_t>(blocks::index::kMaxGroup)));
  options.medium =
      parameters.choice("memory", {"dram", "pmem"}) == "dram" ? memory::Medium::kDram : memory::Medium::kPmem;
  options.threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
  options.region_bytes = static_cast<std::uint64_t>(
      parameters.number("region_size", static_cast<std::int64_t>(FpTreeLeaf::kBytes), kMaxBytes));
  if (options.region_bytes / options.threads < FpTreeLeaf::kBytes)
    parameters.refuse("region_size", "too small: each thread needs room for a leaf of 576 bytes");
  return options;
}

}  // namespace

std::unique_ptr<Benchmark> make_interleave(Parameters& parameters, const Place& place) {
  const Options options = read(parameters);
  return std::make_unique<BlockBenchmark<InterleaveDriver>>(place, options.region_bytes + kRegionSlack,
                                                            options.threads, options);
}

}  // namespace pmsim::host
