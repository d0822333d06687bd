#include "pmsim/blocks/node/traverse.hpp"

#include <algorithm>
#include <cstdint>

#include "pmsim/workloads/options/memory.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

using blocks::node::TraverseOptions;

constexpr std::int64_t kSettling = 2'000;
constexpr std::int64_t kMeasured = 16'000;
constexpr std::int64_t kLongestWarmup = 400'000;

TraverseOptions options_from(Parameters& parameters, std::uint64_t seed) {
  TraverseOptions options;
  options.depth = static_cast<std::uint32_t>(parameters.number("depth", 1, 16));
  options.node_bytes = static_cast<std::uint32_t>(parameters.number(
      "node_size", 2 * static_cast<std::int64_t>(memory::kLineBytes), blocks::node::kMostNodeBytes));
  if (options.node_bytes % memory::kLineBytes != 0)
    parameters.refuse("node_size", "inner nodes are whole lines; choose a multiple of 64 bytes");
  const auto medium = [&](std::string_view name) {
    return parameters.choice(name, {"dram", "pmem"}) == "dram" ? memory::Medium::kDram : memory::Medium::kPmem;
  };
  options.inner = medium("inner_memory");
  options.leaves = medium("memory");
  options.level_bytes = static_cast<std::uint64_t>(parameters.number("region_size", 1, kLargestRegion));
  options.seed = seed;
  return options;
}

/// From root to leaf through random children (Götze et al., DaMoN 2020, experiment E2), one traversal at a
/// time. What a long run of them would have in the caches is warmed by traversals.
class TraverseWorkload final : public Workload {
 public:
  TraverseWorkload(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)), options_(options_from(parameters, seed)), driver_(memory_, options_) {
    const std::int64_t levels = driver_.levels();
    const std::int64_t walks =
        accesses_to_warm_page_tables(platform, options_.leaves, bytes_on(options_.leaves), kLongestWarmup);
    const std::int64_t warmup =
        std::clamp<std::int64_t>(std::max(walks, cached_lines(platform, 1)) / levels, 1'000, kLongestWarmup);
    length_ = machine::RunLength::in_order(warmup, kSettling, kMeasured);
  }

  void prepare(const Watch& watch) override { driver_.load(memory_, Poll(watch, Phase::kLoad)); }

  [[nodiscard]] std::uint32_t threads() const override { return 1; }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return bytes_on(memory::Medium::kPmem); }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    driver_.prepare(memory_);
    memory_.attach(stream, thread);
    stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
    driver_.operation(memory_);
    stream.push(memory::OpKind::kOperationEnd, 0, options_.node_bytes);
  }

 private:
  /// Of the tree.
  [[nodiscard]] std::uint64_t bytes_on(memory::Medium medium) const {
    const std::uint64_t inner = options_.inner == medium ? options_.depth : 0;
    return options_.level_bytes * (inner + (options_.leaves == medium ? 1 : 0));
  }

  memory::SimMemory memory_;
  TraverseOptions options_;
  blocks::node::TraverseDriver<memory::SimMemory> driver_;
  machine::RunLength length_;
};

}  // namespace

std::unique_ptr<Workload> make_traverse(Parameters& parameters, const machine::PlatformParams& platform,
                                        std::uint64_t seed) {
  return std::make_unique<TraverseWorkload>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
