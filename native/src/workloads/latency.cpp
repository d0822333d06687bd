#include <algorithm>
#include <cstdint>
#include <string>

#include "pmsim/core/random.hpp"
#include "pmsim/workloads/access.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

using memory::kLineBytes;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;
constexpr std::int64_t kWarmup = 6'000;
constexpr std::int64_t kLongestWarmup = 800'000;
constexpr std::int64_t kMeasured = 30'000;

/// One access after the other by one thread: dependent loads, or one persistent store (with its fence) at a
/// time. As in LATTester, a line that is stored through the cache is loaded before its time is taken; not so
/// with "same-line", where the time of getting the flushed line back is what that pattern is about.
class Latency final : public Workload {
 public:
  Latency(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)), random_(seed) {
    const bool dram = parameters.choice("memory", {"dram", "pmem"}) == "dram";
    access_ = access_named(
        parameters.choice("operation", {"load", "ntstore", "store+clwb", "store+clflushopt", "store+clflush"}));
    pattern_ = parameters.choice("pattern", {"same-line", "sequential", "random"});
    const auto region_bytes =
        static_cast<std::uint64_t>(parameters.number("region_size", kLineBytes, kMaxBytes));
    lines_ = region_bytes / kLineBytes;
    const memory::Medium medium = dram ? memory::Medium::kDram : memory::Medium::kPmem;
    base_ = memory_.allocate(medium, region_bytes,
                             {.name = "region", .alignment = 1 << 21, .backing = memory::Backing::kNone});
    footprint_ = dram ? 0 : region_bytes;
    settling_ = dram ? kWarmup : std::max(kWarmup, lines_to_fill_modules(platform));
    warmup_ = settling_;
    if (pattern_ == "random") {
      warmup_ = std::max(warmup_, accesses_to_warm_page_tables(platform, medium, region_bytes, kLongestWarmup));
    }
    if (access_ == Access::kLoad && pattern_ != "same-line") {
      const std::int64_t cached = cached_lines(platform, 1);
      const auto lines = static_cast<std::int64_t>(lines_);
      if (lines <= cached) {
        pass_ = std::min(lines, kLongestWarmup);  // one thread meets each exactly once, sooner than at random
        warmup_ += pass_;
      } else {
        const std::int64_t fill = loads_to_fill_caches(platform, 1, lines, pattern_ == "random");
        warmup_ = std::max(warmup_, std::min(fill, kLongestWarmup));
      }
    }
  }

  [[nodiscard]] std::uint32_t threads() const override { return 1; }
  [[nodiscard]] machine::RunLength usual_length() const override {
    return machine::RunLength::in_order(warmup_ - settling_, settling_, kMeasured);
  }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return footprint_; }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    memory_.attach(stream, thread);
    for (int count = 0; count < 16; ++count) {
      const memory::Address address = base_ + next_line() * kLineBytes;
      if (access_ != Access::kLoad && access_ != Access::kStream && pattern_ != "same-line") {
        touch_line(memory_, address, Access::kLoad);
      }
      stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
      if (access_ == Access::kLoad) {
        static_cast<void>(memory_.load_dependent<Line>(address));
      } else {
        touch_line(memory_, address, access_);
        memory_.sfence();
      }
      stream.push(memory::OpKind::kOperationEnd, 0, kLineBytes);
    }
  }

 private:
  std::uint64_t next_line() {
    if (passed_ < pass_) {
      return static_cast<std::uint64_t>(passed_++);
    }
    if (pattern_ == "random") {
      return random_.below(lines_);
    }
    if (pattern_ == "sequential") {
      position_ = position_ + 1 == lines_ ? 0 : position_ + 1;
    }
    return position_;
  }

  memory::SimMemory memory_;
  Random random_;
  Access access_{};
  std::string pattern_;
  memory::Address base_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t footprint_ = 0;
  std::int64_t pass_ = 0;      ///< lines of a region that fits into the caches, met once each before all else
  std::int64_t passed_ = 0;    ///< of these
  std::int64_t settling_ = 0;  ///< accesses until the modules are as in a long run
  std::int64_t warmup_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_latency(Parameters& parameters, const machine::PlatformParams& platform,
                                       std::uint64_t seed) {
  return std::make_unique<Latency>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
