#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/host/region.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/workloads/access.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace pmsim::host {

namespace {

using memory::kLineBytes;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr double kTscSeconds = 0.02;
constexpr int kEmpty = 2000;  ///< timings of nothing, whose median is the cost of timing

#if defined(__x86_64__)
/// The time-stamp counter after everything before has completed locally, and before anything after begins.
std::uint64_t ticks() noexcept {
  _mm_lfence();
  const std::uint64_t now = __rdtsc();
  _mm_lfence();
  return now;
}
#else
std::uint64_t ticks() noexcept { return 0; }
#endif

double median(std::vector<std::uint64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

/// One persist at a time, each timed on its own as in LATTester: store, flush, sfence, or streaming store,
/// sfence. The parameters are those of the simulated workload "latency". A line that is stored through the
/// cache is loaded before its time is taken; not so with "same-line".
///
/// An mfence ends each timing. Recent cores (seen on a Golden Cove) let an sfence retire while the flushes
/// before it are still on their way, and hold back the stores behind it instead: without the mfence a persist
/// seems to take 20 ns, and the rate of persists says 200. `gap_ns` passes between one and the next, so that
/// each finds idle queues. The time of a repetition is the median over its operations, less the median time of
/// both fences with nothing to wait for. "none" is a lone sfence: what the fence itself costs.
class Latency final : public Benchmark {
 public:
  Latency(Parameters& parameters, const Place& place)
      : pmem_(parameters.choice("memory", {"dram", "pmem"}) == "pmem"),
        operation_(parameters.choice("operation",
                                     {"none", "ntstore", "store+clwb", "store+clflushopt", "store+clflush"})),
        access_(workloads::access_named(operation_)),
        pattern_(parameters.choice("pattern", {"same-line", "sequential", "random"})),
        region_(static_cast<std::uint64_t>(parameters.number("region_size", kLineBytes, kMaxBytes))),
        gap_ns_(static_cast<double>(parameters.number("gap_ns", 0, 1'000'000))),
        memory_(host_memory(place, region_, false)),
        lines_(region_ / kLineBytes),
        random_(1) {
    base_ = memory_.allocate(pmem_ ? memory::Medium::kPmem : memory::Medium::kDram, region_,
                             {.name = "region", .alignment = kLineBytes});
    for (std::uint64_t offset = 0; offset < region_; offset += memory::kPageBytes)
      memory_.store<std::uint8_t>(base_ + offset, std::uint8_t{0});
    if (operation_ != "none")
      workloads::touch_line(memory_, base_, access_);  // refuses a CPU without the instruction
    measure_clock();
  }

  [[nodiscard]] bool is_dax() const override { return pmem_ && memory_.pmem_is_dax(); }
  void reset() override { taken_.clear(); }

  void run(std::uint32_t /*thread*/, std::uint64_t operations) override {
    const bool load_before = access_ != workloads::Access::kStream && pattern_ != "same-line";
    for (std::uint64_t done = 0; done < operations; ++done) {
      const memory::Address address = base_ + next_line() * kLineBytes;
      if (load_before)
        workloads::touch_line(memory_, address, workloads::Access::kLoad);
      wait(gap_ticks_);
      const std::uint64_t begin = ticks();
      if (operation_ != "none")
        workloads::touch_line(memory_, address, access_);
      fence();
      taken_.push_back(ticks() - begin);
    }
  }

  [[nodiscard]] std::optional<double> own_time_ns() override {
    return taken_.empty() ? std::nullopt : std::optional((median(taken_) - empty_) * ns_per_tick_);
  }

 private:
  std::uint64_t next_line() {
    if (pattern_ == "random")
      return random_.below(lines_);
    if (pattern_ == "sequential")
      position_ = position_ + 1 == lines_ ? 0 : position_ + 1;
    return position_;
  }

  void fence() {
    memory_.sfence();
    if (operation_ != "none")
      memory_.mfence();
  }

  static void wait(std::uint64_t duration) noexcept {
    const std::uint64_t begin = ticks();
    while (ticks() - begin < duration) {
    }
  }

  void measure_clock() {
    const Clock::time_point begin = Clock::now();
    const std::uint64_t first = ticks();
    double elapsed = 0;
    while (elapsed < kTscSeconds)
      elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    const std::uint64_t last = ticks();
    if (last <= first)
      throw ConfigError("latency: this machine has no usable time-stamp counter");
    ns_per_tick_ = elapsed * 1e9 / static_cast<double>(last - first);
    gap_ticks_ = static_cast<std::uint64_t>(gap_ns_ / ns_per_tick_);
    std::vector<std::uint64_t> empty;
    for (int count = 0; count < kEmpty; ++count) {
      const std::uint64_t start = ticks();
      if (operation_ != "none")
        fence();
      empty.push_back(ticks() - start);
    }
    empty_ = median(empty);
  }

  bool pmem_;
  std::string operation_;
  workloads::Access access_;
  std::string pattern_;
  std::uint64_t region_;
  double gap_ns_;
  memory::HostMemory memory_;
  std::uint64_t lines_;
  Random random_;
  memory::Address base_ = 0;
  std::uint64_t position_ = 0;
  double ns_per_tick_ = 0;
  std::uint64_t gap_ticks_ = 0;
  double empty_ = 0;
  std::vector<std::uint64_t> taken_;
};

}  // namespace

std::unique_ptr<Benchmark> make_latency(Parameters& parameters, const Place& place) {
  return std::make_unique<Latency>(parameters, place);
}

}  // namespace pmsim::host
