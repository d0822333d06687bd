#include <algorithm>
#include <cstdint>

#include "pmsim/workloads/load_warmup.hpp"
#include "pmsim/workloads/options/in_place.hpp"
#include "pmsim/workloads/registry.hpp"
#include "pmsim/workloads/tlb_warmup.hpp"

namespace pmsim::workloads {

namespace {

using namespace blocks::inplace;

constexpr machine::RunLength kLength{.warmup_operations = 10'000, .measured_operations = 50'000};
constexpr std::int64_t kLongestWarmup = 800'000;  ///< loads; a second or two

InPlaceOptions options_of(Parameters& parameters, std::uint64_t seed) {
  InPlaceOptions options = read_in_place(parameters);
  options.extra_instructions =
      static_cast<std::uint32_t>(parameters.number("extra_instructions", 0, 1'000'000));
  options.seed = seed;
  // As in the paper, the log never has to be emptied, whichever thread does how much of the work.
  const std::int64_t measured = kLength.measured_operations * parameters.number_or("length", 1, 1, kMostTimes);
  const auto operations = static_cast<std::uint64_t>(kLength.warmup_operations + measured);
  options.log_bytes = log_bytes_of(options.algorithm, options.bytes, 2 * operations);
  return options;
}

/// The microbenchmark of Fig. 10 (van Renen et al., Building blocks for persistent memory, VLDB Journal 29,
/// 2020, sec. 3.4.4): each thread updates or reads records of its part of an array. With `timed` each operation
/// is timed on its own: it begins when all before it has retired. Without, they follow each other as fast as
/// they can.
///
/// Page tables and caches are warmed before by loads of random records. Updates that flush their lines would
/// leave the caches to page tables in the end, but chains of a read and a persist take as long on a real
/// machine as they do beside caches full of reads (docs/calibration.md, "What was tried for page tables").
/// Where caches are persistent, they are full of records that have been stored to.
class InPlace final : public Workload {
 public:
  InPlace(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)),
        options_(options_of(parameters, seed)),
        driver_(memory_, options_),
        warmup_(seed) {
    timed_ = parameters.number("timed", 0, 1) != 0;
    const bool writes = options_.operation == Operation::kWrite;
    std::int64_t loads = writes ? stores_to_fill_caches(platform, options_.threads, true) : 0;
    dirties_ = loads > 0;
    if (options_.random) {
      const auto lines = static_cast<std::int64_t>(options_.array_bytes / memory::kLineBytes);
      const std::uint64_t part = options_.array_bytes / options_.threads;
      loads = std::max(
          {loads, accesses_to_warm_page_tables(platform, options_.medium, options_.array_bytes, kLongestWarmup),
           accesses_to_warm_tlbs(platform, options_.medium, part) * options_.threads,
           std::min(loads_to_fill_caches(platform, options_.threads, lines, true), kLongestWarmup)});
    }
    warmup_.add(loads);
  }

  [[nodiscard]] std::uint32_t threads() const override { return options_.threads; }
  [[nodiscard]] machine::RunLength usual_length() const override {
    return machine::RunLength::in_order(warmup_.operations(), kLength.warmup_operations,
                                        kLength.measured_operations);
  }
  [[nodiscard]] std::uint64_t pmem_footprint() const override {
    return options_.medium == memory::Medium::kPmem ? options_.array_bytes : 0;
  }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (warmup_.refill(memory_, thread, stream, [&](Random& random) {
          const memory::Address record = driver_.record(thread, random.below(driver_.records()));
          const auto word = memory_.load<std::uint64_t>(record);
          if (dirties_)
            memory_.store<std::uint64_t>(record, word);
        }))
      return;
    memory_.detach();
    driver_.prepare(memory_, thread);
    memory_.attach(stream, thread);
    if (timed_)
      stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
    driver_.operation(memory_, thread);
    stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(options_.bytes));
  }

 private:
  memory::SimMemory memory_;
  InPlaceOptions options_;
  InPlaceDriver<memory::SimMemory> driver_;
  bool timed_ = false;
  bool dirties_ = false;  ///< the warm-up stores what it loads
  LoadWarmup warmup_;
};

}  // namespace

std::unique_ptr<Workload> make_in_place(Parameters& parameters, const machine::PlatformParams& platform,
                                        std::uint64_t seed) {
  return std::make_unique<InPlace>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
