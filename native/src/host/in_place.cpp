#include "pmsim/blocks/inplace/driver.hpp"
#include "pmsim/host/block_benchmark.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

namespace {

using namespace blocks::inplace;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
/// Of each thread: enough that truncations, which a simulated run never meets, are rare.
constexpr std::uint64_t kLogBytes = std::uint64_t{64} << 20;

InPlaceOptions read(Parameters& parameters) {
  const std::string algorithm = parameters.choice("algorithm", {"word", "cow", "log", "fam", "fam-scalar"});
  const std::string operation = parameters.choice("operation", {"write", "read", "dependent-read"});
  InPlaceOptions options;
  options.algorithm = algorithm == "word"  ? Algorithm::kWord
                      : algorithm == "cow" ? Algorithm::kCow
                      : algorithm == "log" ? Algorithm::kLog
                                           : Algorithm::kFam;
  options.path = algorithm == "fam-scalar" ? FamPath::kScalar : FamPath::kAvx2;
  options.operation = operation == "write"  ? Operation::kWrite
                      : operation == "read" ? Operation::kRead
                                            : Operation::kDependentRead;
  options.random = parameters.choice("pattern", {"sequential", "random"}) == "random";
  options.medium =
      parameters.choice("memory", {"dram", "pmem"}) == "dram" ? memory::Medium::kDram : memory::Medium::kPmem;
  options.bytes = static_cast<std::size_t>(parameters.number("update_size", kLeastBytes, kMostBytes));
  options.array_bytes =
      static_cast<std::uint64_t>(parameters.number("region_size", memory::kLineBytes, kMaxBytes));
  options.threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
  options.log_bytes = kLogBytes;
  return options;
}

}  // namespace

std::unique_ptr<Benchmark> make_in_place(Parameters& parameters, const Place& place) {
  const InPlaceOptions options = read(parameters);
  const std::uint64_t logs =
      options.algorithm == Algorithm::kLog ? options.threads * (kLogBytes + kRegionSlack) : 0;
  const std::uint64_t bytes = options.array_bytes + kRegionSlack + logs;
  return std::make_unique<BlockBenchmark<InPlaceDriver>>(place, bytes, options.threads, options);
}

}  // namespace pmsim::host
