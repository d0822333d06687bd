#include "pmsim/workloads/options/contention.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

/// Threads that add to counters, or read and write data under latches. With `timed` each operation is timed on
/// its own: it begins when all before it has retired. Without, they follow each other as fast as they can.
class Contention final : public Workload {
 public:
  Contention(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)),
        options_(with_seed(read_contention(parameters), seed)),
        flags_(parameters.number("timed", 0, 1) != 0 ? std::uint8_t{memory::kSerialising} : std::uint8_t{0}),
        driver_(memory_, options_) {}

  [[nodiscard]] std::uint32_t threads() const override { return options_.threads; }
  [[nodiscard]] machine::RunLength usual_length() const override { return {10'000, 50'000}; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return 0; }
  [[nodiscard]] bool shares_lines() const noexcept override { return true; }

  /// One operation at a time: others may come in between any two.
  void refill(std::uint32_t thread, memory::Stream& stream) override {
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

  memory::SimMemory memory_;
  blocks::sync::SyncOptions options_;
  std::uint8_t flags_;  ///< of kOperationBegin
  blocks::sync::SyncDriver<memory::SimMemory> driver_;
};

}  // namespace

std::unique_ptr<Workload> make_contention(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed) {
  return std::make_unique<Contention>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
