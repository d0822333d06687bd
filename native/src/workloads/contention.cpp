#include <algorithm>

#include "pmsim/workloads/load_warmup.hpp"
#include "pmsim/workloads/options/contention.hpp"
#include "pmsim/workloads/registry.hpp"
#include "pmsim/workloads/tlb_warmup.hpp"

namespace pmsim::workloads {

namespace {

constexpr machine::RunLength kLength{.warmup_operations = 10'000, .measured_operations = 50'000};
constexpr std::int64_t kLongestWarmup = 2'000'000;  ///< objects' lines; a second or two

/// Threads that add to counters, or read and write data under latches. With `timed` each operation is timed on
/// its own: it begins when all before it has retired. Without, they follow each other as fast as they can.
///
/// Where there are more objects than the operations before the measured ones meet, caches and TLBs are warmed
/// before: objects are loaded, and stored to by as many as write.
class Contention final : public Workload {
 public:
  Contention(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)),
        options_(with_seed(read_contention(parameters), seed)),
        flags_(parameters.number("timed", 0, 1) != 0 ? std::uint8_t{memory::kSerialising} : std::uint8_t{0}),
        driver_(memory_, options_),
        warmup_(seed, warmup_of(platform)) {}

  [[nodiscard]] std::uint32_t threads() const override { return options_.threads; }
  [[nodiscard]] machine::RunLength usual_length() const override {
    return machine::RunLength::in_order(warmup_.operations(), kLength.warmup_operations,
                                        kLength.measured_operations);
  }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return 0; }
  [[nodiscard]] bool shares_lines() const noexcept override { return true; }

  /// One operation at a time: others may come in between any two.
  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (warmup_.refill(memory_, thread, stream, [&](Random& random) { touch(random); }))
      return;
    memory_.attach(stream, thread);
    stream.push(memory::OpKind::kOperationBegin, 0, 0, flags_);
    driver_.operation(memory_, thread);
    stream.push(memory::OpKind::kOperationEnd, 0, 0);
  }

 private:
  [[nodiscard]] static blocks::sync::SyncOptions with_seed(blocks::sync::SyncOptions options,
                                                           std::uint64_t seed) {
    options.seed = seed;
    return options;
  }

  /// Objects that threads meet before anything is timed.
  [[nodiscard]] std::int64_t warmup_of(const machine::PlatformParams& platform) const {
    const std::int64_t lines_of_object = driver_.lines();
    const std::int64_t lines = options_.objects * lines_of_object;
    const std::uint64_t bytes = driver_.object(options_.objects) - driver_.object(0);
    const std::int64_t touched =
        std::min(loads_to_fill_caches(platform, options_.threads, lines, true), kLongestWarmup);
    const std::int64_t needed =
        std::max(touched / lines_of_object,
                 accesses_to_warm_tlbs(platform, memory::Medium::kDram, bytes) * options_.threads);
    return needed <= kLength.warmup_operations ? 0 : needed;
  }
  void touch(Random& random) {
    const std::uint64_t object = random.below(options_.objects);
    const bool writes = options_.read_percent == 0 || random.below(100) >= options_.read_percent;
    for (std::uint32_t which = 0; which < driver_.lines(); ++which) {
      const memory::Address line = driver_.line_of(object, which);
      const auto word = memory_.load<std::uint64_t>(line);
      if (writes)
        memory_.store<std::uint64_t>(line, word);
    }
  }

  memory::SimMemory memory_;
  blocks::sync::SyncOptions options_;
  std::uint8_t flags_;  ///< of kOperationBegin
  blocks::sync::SyncDriver<memory::SimMemory> driver_;
  LoadWarmup warmup_;
};

}  // namespace

std::unique_ptr<Workload> make_contention(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed) {
  return std::make_unique<Contention>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
