#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/host/region.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/workloads/access.hpp"

namespace pmsim::host {

namespace {

using memory::kLineBytes;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

/// Chunks of `access_size` bytes, line by line, back to back, with a fence every `fence_every` bytes (0: none).
/// The same accesses with the same parameters as the simulated workload "bandwidth"; an operation is a chunk.
/// Before each repetition the region is flushed out of the caches, and in it a sequential thread visits each
/// line at most once: a large last-level cache does not pass for memory.
class Bandwidth final : public Benchmark {
 public:
  Bandwidth(Parameters& parameters, const Place& place)
      : pmem_(parameters.choice("memory", {"dram", "pmem"}) == "pmem"),
        access_(workloads::access_named(parameters.choice(
            "operation", {"load", "store", "store+clwb", "store+clflushopt", "store+clflush", "ntstore"}))),
        random_(parameters.choice("pattern", {"random", "sequential"}) == "random"),
        chunk_(static_cast<std::uint64_t>(parameters.number("access_size", kLineBytes, kMaxBytes))),
        fence_every_(static_cast<std::uint64_t>(parameters.number("fence_every", 0, kMaxBytes))),
        region_(static_cast<std::uint64_t>(parameters.number("region_size", kLineBytes, kMaxBytes))),
        memory_(host_memory(place, region_)) {
    const auto threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
    if (chunk_ % kLineBytes != 0)
      parameters.refuse("access_size", "must be a multiple of 64 bytes");
    slots_ = region_ / chunk_ / threads;
    if (slots_ == 0)
      parameters.refuse("region_size", "too small: each thread needs room for one access of its own");
    base_ = memory_.allocate(pmem_ ? memory::Medium::kPmem : memory::Medium::kDram, region_,
                             {.name = "region", .alignment = kLineBytes});
    for (std::uint64_t offset = 0; offset < region_; offset += memory::kPageBytes)
      memory_.store<std::uint8_t>(base_ + offset, std::uint8_t{0});
    for (std::uint32_t thread = 0; thread < threads; ++thread)
      threads_.push_back(Thread{Random(thread), base_ + thread * slots_ * chunk_, 0, 0});
    if (access_ != workloads::Access::kLoad && access_ != workloads::Access::kStore)
      workloads::touch_line(memory_, base_,
                            access_);  // refuses a CPU without the instruction, here and not in a thread
  }

  [[nodiscard]] std::uint32_t threads() const override { return static_cast<std::uint32_t>(threads_.size()); }
  [[nodiscard]] std::uint64_t bytes_per_operation() const override { return chunk_; }
  [[nodiscard]] std::uint64_t limit() const override { return slots_; }
  [[nodiscard]] bool is_dax() const override { return pmem_ && memory_.pmem_is_dax(); }

  void reset() override {
    memory_.flush(base_, region_,
                  memory_.features().clflushopt ? memory::FlushKind::kClflushOpt : memory::FlushKind::kClflush);
    memory_.mfence();
  }

  void run(std::uint32_t thread, std::uint64_t operations) override {
    Thread& state = threads_[thread];
    for (std::uint64_t done = 0; done < operations; ++done) {
      const std::uint64_t slot = random_ ? state.random.below(slots_) : state.slot;
      state.slot = state.slot + 1 == slots_ ? 0 : state.slot + 1;
      const memory::Address address = state.base + slot * chunk_;
      for (std::uint64_t offset = 0; offset < chunk_; offset += kLineBytes) {
        workloads::touch_line(memory_, address + offset, access_);
        state.unfenced += kLineBytes;
        if (fence_every_ > 0 && state.unfenced >= fence_every_) {
          memory_.sfence();
          state.unfenced = 0;
        }
      }
    }
  }

 private:
  struct alignas(2 * kLineBytes) Thread {
    Random random;
    memory::Address base;
    std::uint64_t slot;
    std::uint64_t unfenced;
  };

  bool pmem_;
  workloads::Access access_;
  bool random_;
  std::uint64_t chunk_;
  std::uint64_t fence_every_;
  std::uint64_t region_;
  memory::HostMemory memory_;
  memory::Address base_ = 0;
  std::uint64_t slots_ = 0;  ///< places for a chunk in a thread's part of the region
  std::vector<Thread> threads_;
};

}  // namespace

std::unique_ptr<Benchmark> make_bandwidth(Parameters& parameters, const Place& place) {
  return std::make_unique<Bandwidth>(parameters, place);
}

}  // namespace pmsim::host
