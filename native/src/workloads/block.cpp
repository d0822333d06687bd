#include <algorithm>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;
constexpr std::int64_t kWarmup = 500;
constexpr std::int64_t kLongestWarmup = 2'000'000;  // a second or two; caches of 800 MB in requests of 4 KiB

/// Synchronous block I/O by `threads` callers, each with one request outstanding: read, write, or write
/// followed by a flush of the device's cache.
class Block final : public Workload {
 public:
  Block(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)) {
    const std::string operation = parameters.choice("operation", {"read", "write", "write+flush"});
    read_ = operation == "read";
    flush_ = operation == "write+flush";
    random_ = parameters.choice("pattern", {"random", "sequential"}) == "random";
    const auto threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
    bytes_ = static_cast<std::uint64_t>(parameters.number("access_size", 512, 1 << 24));
    const auto region_bytes = static_cast<std::uint64_t>(parameters.number("region_size", 4096, kMaxBytes));
    if (bytes_ % memory::kSectorBytes != 0) {
      parameters.refuse("access_size", "must be a multiple of 512 bytes");
    }
    if (platform.block.capacity == 0) {
      parameters.refuse("platform", "has no block device (block.capacity = 0); name one with block_device");
    }
    slots_ = region_bytes / threads / bytes_;
    if (slots_ == 0) {
      parameters.refuse("region_size", "too small: each thread needs room for one access of its own");
    }
    const memory::Address base = memory_.allocate(memory::Medium::kBlock, region_bytes,
                                                  {.name = "file", .backing = memory::Backing::kNone});
    buffer_ =
        memory_.allocate(memory::Medium::kDram, bytes_, {.name = "buffer", .backing = memory::Backing::kNone});
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      threads_.push_back(Thread{Random(mix64(seed) + thread), base + thread * slots_ * bytes_});
    }
    // A flush keeps the cache empty, unless the cache is durable: that one has nothing to flush and fills up.
    const bool fills = !read_ && (!flush_ || platform.block.write_cache_durable);
    const std::int64_t warmup = fills ? writes_until_steady(platform.block) : kWarmup;
    length_ = {warmup, std::max<std::int64_t>(4'000, warmup / 10)};
  }

  [[nodiscard]] std::uint32_t threads() const override { return static_cast<std::uint32_t>(threads_.size()); }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return 0; }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    memory_.attach(stream, thread);
    Thread& state = threads_[thread];
    const std::uint64_t slot = random_ ? state.random.below(slots_) : state.slot;
    state.slot = state.slot + 1 == slots_ ? 0 : state.slot + 1;
    const memory::Address address = state.base + slot * bytes_;
    stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
    if (read_) {
      memory_.block_read(address, buffer_, bytes_);
    } else {
      memory_.block_write(address, buffer_, bytes_);
    }
    if (flush_) {
      memory_.block_flush();
    }
    stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(bytes_));
  }

 private:
  /// An empty cache takes writes as fast as the link brings them, whatever the medium can do. It fills by what
  /// comes in beyond what the medium takes meanwhile: after ten times its size only less than a tenth beyond
  /// that has not filled it.
  [[nodiscard]] std::int64_t writes_until_steady(const machine::BlockDeviceParams& device) const {
    return std::clamp<std::int64_t>(10 * (device.write_cache / static_cast<std::int64_t>(bytes_)), kWarmup,
                                    kLongestWarmup);
  }

  struct Thread {
    Random random;
    memory::Address base;
    std::uint64_t slot = 0;
  };

  memory::SimMemory memory_;
  std::vector<Thread> threads_;
  memory::Address buffer_ = 0;
  bool read_ = false;
  bool flush_ = false;
  bool random_ = false;
  std::uint64_t bytes_ = 0;
  std::uint64_t slots_ = 0;
  machine::RunLength length_;
};

}  // namespace

std::unique_ptr<Workload> make_block(Parameters& parameters, const machine::PlatformParams& platform,
                                     std::uint64_t seed) {
  return std::make_unique<Block>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
