#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pmsim/core/random.hpp"
#include "pmsim/host/region.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/host/stopwatch.hpp"
#include "pmsim/workloads/access.hpp"

namespace pmsim::host {

namespace {

using memory::kLineBytes;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

/// One persist at a time, each timed on its own (stopwatch.hpp): store, flush, sfence, or streaming store,
/// sfence. The parameters are those of the simulated workload "latency". A line that is stored through the
/// cache is loaded before its time is taken; not so with "same-line". `gap_ns` passes between one and the next.
/// "none" is a lone sfence: what the fence itself costs.
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
    stopwatch_.emplace(memory_, gap_ns_, operation_ != "none");
  }

  [[nodiscard]] bool is_dax() const override { return pmem_ && memory_.pmem_is_dax(); }
  void reset() override { stopwatch_->clear(); }

  void run(std::uint32_t /*thread*/, std::uint64_t operations) override {
    const bool load_before = access_ != workloads::Access::kStream && pattern_ != "same-line";
    for (std::uint64_t done = 0; done < operations; ++done) {
      const memory::Address address = base_ + next_line() * kLineBytes;
      if (load_before)
        workloads::touch_line(memory_, address, workloads::Access::kLoad);
      stopwatch_->time([&] {
        if (operation_ != "none")
          workloads::touch_line(memory_, address, access_);
      });
    }
  }

  [[nodiscard]] std::optional<double> own_time_ns() override { return stopwatch_->median_ns(); }

 private:
  std::uint64_t next_line() {
    if (pattern_ == "random")
      return random_.below(lines_);
    if (pattern_ == "sequential")
      position_ = position_ + 1 == lines_ ? 0 : position_ + 1;
    return position_;
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
  std::optional<Stopwatch> stopwatch_;
};

}  // namespace

std::unique_ptr<Benchmark> make_latency(Parameters& parameters, const Place& place) {
  return std::make_unique<Latency>(parameters, place);
}

}  // namespace pmsim::host
