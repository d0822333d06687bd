#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/workloads/access.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

using memory::kLineBytes;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;
constexpr std::int64_t kMaxAccess = std::int64_t{1} << 30;  ///< an operation credits 32 bits of bytes

/// Each thread persists `access_size` bytes after the other, sequentially in its own part of the region, with a
/// fence every `fence_every` bytes and one at the end (LATTester's flush experiments; OptaneStudy, Fig. 13 and
/// 14). With `timed` each persist is timed on its own: it begins when all before it has retired, and lines that
/// are stored through the cache are loaded before, as LATTester does. Without, they follow each other as fast
/// as they can.
class Persist final : public Workload {
 public:
  Persist(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)) {
    const bool dram = parameters.choice("memory", {"dram", "pmem"}) == "dram";
    access_ = access_named(parameters.choice(
        "operation", {"ntstore", "store+clwb", "store+clflushopt", "store+clflush", "store"}));
    const auto threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
    bytes_ = static_cast<std::uint64_t>(parameters.number("access_size", kLineBytes, kMaxAccess));
    fence_every_ = static_cast<std::uint64_t>(parameters.number("fence_every", 0, kMaxBytes));
    const auto region_bytes =
        static_cast<std::uint64_t>(parameters.number("region_size", kLineBytes, kMaxBytes));
    timed_ = parameters.number("timed", 0, 1) != 0;
    if (bytes_ % kLineBytes != 0) {
      parameters.refuse("access_size", "must be a multiple of 64 bytes");
    }
    slots_ = region_bytes / threads / bytes_;
    if (slots_ == 0) {
      parameters.refuse("region_size", "too small: each thread needs room for one access of its own");
    }
    const memory::Address base =
        memory_.allocate(dram ? memory::Medium::kDram : memory::Medium::kPmem, region_bytes,
                         {.name = "region", .alignment = 1 << 21, .backing = memory::Backing::kNone});
    footprint_ = dram ? 0 : region_bytes;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      Random random(mix64(seed) + thread);
      threads_.push_back(Thread{base + thread * slots_ * bytes_, random.below(slots_)});
    }
    const auto lines = static_cast<std::int64_t>(bytes_ / kLineBytes);
    // Stores reach memory only when the caches are full of them.
    const std::int64_t stores =
        access_ == Access::kStream ? 0 : stores_to_fill_caches(platform, threads, access_ != Access::kStore);
    length_ = machine::RunLength::in_order(stores / lines, persists(12'000, 200, lines),
                                           persists(60'000, 400, lines));
  }

  [[nodiscard]] std::uint32_t threads() const override { return static_cast<std::uint32_t>(threads_.size()); }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return footprint_; }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    memory_.attach(stream, thread);
    Thread& state = threads_[thread];
    const memory::Address address = state.base + state.slot * bytes_;
    if (timed_) {
      for (std::uint64_t done = 0; done < bytes_ && access_ != Access::kStream; done += kLineBytes) {
        touch_line(memory_, address + done, Access::kLoad);
      }
      stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
    }
    std::uint64_t unfenced = 0;
    for (std::uint64_t done = 0; done < bytes_; done += kLineBytes) {
      touch_line(memory_, address + done, access_);
      unfenced += kLineBytes;
      if (fence_every_ > 0 && unfenced >= fence_every_) {
        memory_.sfence();
        unfenced = 0;
      }
    }
    if (unfenced > 0) {
      memory_.sfence();
    }
    stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(bytes_));
    state.slot = state.slot + 1 == slots_ ? 0 : state.slot + 1;
  }

 private:
  /// Of so many lines together, but at least `fewest`, as far as these are eight million lines, and one of each
  /// thread.
  [[nodiscard]] std::int64_t persists(std::int64_t together, std::int64_t fewest, std::int64_t lines) const {
    constexpr std::int64_t kMostLines = 8'000'000;
    return std::max(
        {together / lines, std::min(fewest, kMostLines / lines), static_cast<std::int64_t>(threads_.size())});
  }

  struct Thread {
    memory::Address base;
    std::uint64_t slot;
  };

  memory::SimMemory memory_;
  Access access_{};
  std::uint64_t bytes_ = 0;
  std::uint64_t fence_every_ = 0;
  std::uint64_t slots_ = 0;
  std::uint64_t footprint_ = 0;
  bool timed_ = false;
  machine::RunLength length_;
  std::vector<Thread> threads_;
};

}  // namespace

std::unique_ptr<Workload> make_persist(Parameters& parameters, const machine::PlatformParams& platform,
                                       std::uint64_t seed) {
  return std::make_unique<Persist>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
