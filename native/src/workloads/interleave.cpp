#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/workloads/load_warmup.hpp"
#include "pmsim/workloads/options/interleave.hpp"
#include "pmsim/workloads/registry.hpp"
#include "pmsim/workloads/tlb_warmup.hpp"

namespace pmsim::workloads {

namespace {

using blocks::index::FirstFlush;
using blocks::index::FpTreeLeaf;
using Driver = blocks::index::InterleaveDriver<memory::SimMemory>;

constexpr std::int64_t kSettling = 2'000;
constexpr std::int64_t kMeasured = 16'000;
constexpr std::int64_t kLongestWarmup = 400'000;

Driver::Options options_from(Parameters& parameters, std::uint64_t seed) {
  Driver::Options options = read_interleave<memory::SimMemory>(parameters);
  options.how.first_flush = parameters.choice("first_flush", {"pair+fingerprint", "pair"}) == "pair"
                                ? FirstFlush::kPair
                                : FirstFlush::kPairAndFingerprint;
  options.how.switch_cycles = static_cast<std::uint64_t>(parameters.number("cpu_cycles", 0, 100'000));
  options.seed = seed;
  options.fill_at_once = false;
  return options;
}

/// Lookups in or inserts into the leaves of an FP-tree, plain or interleaved by coroutines (van Renen et al.,
/// section 3.5). One refill is one plain operation or one group; the latency of a group is from its start to
/// the end of its last operation.
///
/// The region may be far larger than host memory: a leaf is filled when it is first chosen, without time. The
/// caches are warmed before by loads of random leaves, so that page-table entries and leaves are in the shared
/// cache as far as they fit. Where caches are persistent, they are full of leaves that have been stored to.
class InterleaveWorkload final : public Workload {
 public:
  InterleaveWorkload(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)),
        options_(options_from(parameters, seed)),
        driver_(memory_, options_),
        footprint_(options_.medium == memory::Medium::kPmem ? options_.region_bytes : 0),
        warmup_(seed) {
    const std::int64_t walks =
        accesses_to_warm_page_tables(platform, options_.medium, options_.region_bytes, kLongestWarmup);
    const std::int64_t translations =
        accesses_to_warm_tlbs(platform, options_.medium, options_.region_bytes / options_.threads) *
        options_.threads;
    const std::int64_t loads = std::clamp<std::int64_t>(
        std::max({walks, cached_lines(platform, options_.threads) / 2, translations}), 1'000, kLongestWarmup);
    const std::int64_t stores = options_.inserts ? stores_to_fill_caches(platform, options_.threads, true) : 0;
    dirties_ = stores > 0;
    warmup_.add(std::max(loads, stores / kLinesOfWalk));
    length_ = machine::RunLength::in_order(warmup_.operations(), kSettling, kMeasured);
  }

  [[nodiscard]] std::uint32_t threads() const override { return options_.threads; }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return footprint_; }

  [[nodiscard]] std::map<std::string, double> facts() const override {
    const auto operations = static_cast<double>(std::max<std::uint64_t>(calls_ * driver_.group(), 1));
    return {{"suspensions_per_op", static_cast<double>(driver_.suspensions()) / operations}};
  }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (warmup_.refill(memory_, thread, stream, [&](Random& random) { load_leaf(thread, random); }))
      return;
    memory_.detach();
    driver_.prepare(memory_, thread);
    memory_.attach(stream, thread);
    memory_.operation_begin();
    driver_.operation(memory_, thread);
    ++calls_;
    for (std::uint32_t operation = 0; operation < driver_.group(); ++operation) {
      stream.push(memory::OpKind::kOperationEnd, 0, kPairBytes);
    }
  }

 private:
  static constexpr std::int64_t kLinesOfWalk = 2;  ///< of a leaf: bitmap and fingerprints, and the pair
  static constexpr std::uint32_t kPairBytes = static_cast<std::uint32_t>(FpTreeLeaf::kPairBytes);

  /// What any lookup reads of one, and an insert changes.
  void load_leaf(std::uint32_t thread, Random& random) {
    const std::uint64_t leaf = thread * driver_.leaves_per_thread() + random.below(driver_.leaves_per_thread());
    const memory::Address at = driver_.address(leaf);
    const auto slot = static_cast<std::uint32_t>(random.below(FpTreeLeaf::kSlots));
    const auto bitmap = memory_.load<std::uint32_t>(at);
    const memory::Address pair = FpTreeLeaf::pair(at, slot);
    const auto key = memory_.load<std::uint64_t>(pair);
    if (dirties_) {
      memory_.store<std::uint32_t>(at, bitmap);
      memory_.store<std::uint64_t>(pair, key);
    }
  }

  memory::SimMemory memory_;
  Driver::Options options_;
  Driver driver_;
  std::uint64_t footprint_;
  bool dirties_ = false;  ///< the warm-up stores what it loads
  LoadWarmup warmup_;
  machine::RunLength length_;
  std::uint64_t calls_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_interleave(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed) {
  return std::make_unique<InterleaveWorkload>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
