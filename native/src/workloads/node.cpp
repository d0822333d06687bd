#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "pmsim/blocks/node/driver.hpp"
#include "pmsim/core/poll.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/workloads/load_warmup.hpp"
#include "pmsim/workloads/options/node.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

using blocks::node::NodeOptions;
using blocks::node::Operation;
using Driver = blocks::node::NodeDriver<memory::SimMemory>;

constexpr std::int64_t kSettling = 200;
constexpr std::int64_t kMeasured = 4'000;
/// An operation that looks for an extreme key before every move has thousands of micro-operations.
constexpr std::int64_t kMeasuredBalances = 1'000;
constexpr std::int64_t kLongestWarmup = 400'000;

NodeOptions options_from(Parameters& parameters, std::uint64_t seed) {
  NodeOptions options = read_node(parameters);
  options.seed = seed;
  return options;
}

/// Micro-operations on data nodes of B+-trees (Götze et al., DaMoN 2020, experiments E1, E3 to E5 and E8 to
/// E10). As in the published program each is timed on its own, from when everything before it has ended, and
/// then undone: the node is written anew, written back and fenced, which takes time on the machine but not in
/// the operation.
///
/// Page tables and caches are warmed before by loads of random lines of nodes, or by searches where searches
/// are measured: those look at the same few lines of each node, which the caches come to hold. Where caches are
/// persistent, they are full of lines that have been stored to.
class NodeWorkload final : public Workload {
 public:
  NodeWorkload(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)),
        options_(options_from(parameters, seed)),
        driver_(memory_, options_),
        warmup_(seed) {
    const std::int64_t walks =
        accesses_to_warm_page_tables(platform, options_.medium, options_.region_bytes, kLongestWarmup);
    const bool searches = options_.operation == Operation::kSearch;
    const std::int64_t stores = searches ? 0 : stores_to_fill_caches(platform, 1, true);
    dirties_ = stores > 0;
    const std::int64_t loads = std::max(
        stores,
        std::clamp<std::int64_t>(std::max(walks, cached_lines(platform, 1) / 2), 1'000, kLongestWarmup));
    length_ = machine::RunLength::in_order(
        loads, kSettling, options_.operation == Operation::kBalance ? kMeasuredBalances : kMeasured);
    if (!searches)  // else the searches of length_ do it
      warmup_.add(loads);
  }

  void prepare(const Watch& watch) override { driver_.load(memory_, Poll(watch, Phase::kLoad)); }

  [[nodiscard]] std::uint32_t threads() const override { return 1; }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override {
    return options_.medium == memory::Medium::kPmem ? options_.region_bytes : 0;
  }

  [[nodiscard]] std::map<std::string, double> facts() const override {
    const double operations = static_cast<double>(std::max<std::uint64_t>(driver_.operations(), 1));
    return {{"entries", options_.geometry.entries},
            {"bytes_per_pair", static_cast<double>(options_.geometry.bytes) / options_.geometry.entries},
            {"bytes_changed_per_op", static_cast<double>(driver_.persistence().bytes()) / operations},
            {"lines_written_per_op", static_cast<double>(driver_.persistence().lines()) / operations}};
  }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (warmup_.refill(memory_, thread, stream, [&](Random& random) { load_line(random); }))
      return;
    memory_.detach();
    driver_.prepare(memory_);
    memory_.attach(stream, thread);
    driver_.fetch(memory_);
    stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
    driver_.operation(memory_);
    stream.push(memory::OpKind::kOperationEnd, 0, options_.geometry.bytes);
    // The clock is read behind an lfence: nothing of what follows begins before the operation has ended.
    stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
    driver_.restore(memory_);
  }

 private:
  void load_line(Random& random) {
    const std::uint64_t node = random.below(driver_.nodes());
    const std::uint64_t line =
        random.below((options_.geometry.end() + memory::kLineBytes - 1) / memory::kLineBytes);
    const memory::Address at = driver_.node(node) + line * memory::kLineBytes;
    const auto byte = memory_.load<std::uint8_t>(at);
    if (dirties_)
      memory_.store<std::uint8_t>(at, byte);
  }

  memory::SimMemory memory_;
  NodeOptions options_;
  Driver driver_;
  bool dirties_ = false;  ///< the warm-up stores what it loads
  LoadWarmup warmup_;
  machine::RunLength length_;
};

}  // namespace

std::unique_ptr<Workload> make_node(Parameters& parameters, const machine::PlatformParams& platform,
                                    std::uint64_t seed) {
  return std::make_unique<NodeWorkload>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
