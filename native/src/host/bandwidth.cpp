#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/host/region.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/workloads/access.hpp"

namespace pmsim::host {

namespace {

using memory::kLineBytes;
using workloads::Access;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMostInstructions = 1 << 20;
constexpr std::uint64_t kInstructionBlock = 16;

/// Instructions that wait for nothing in memory. Every third writes no register but the flags, as in programs,
/// and the others no flags: of both, cores rename fewer than they have instructions in flight (docs/measure.md,
/// "Zen 3").
inline void execute_instructions(std::uint64_t instructions) noexcept {
  std::uint64_t a = 0, b = 0;
  // The sixteenth ends the loop: its subtraction and its jump are one to the core.
  for (std::uint64_t left = instructions / kInstructionBlock; left > 0; --left) {
#if defined(__x86_64__)
    asm volatile(".rept 5\n\tlea 1(%0), %0\n\tlea 1(%1), %1\n\ttest %0, %1\n\t.endr"
                 : "+r"(a), "+r"(b)
                 :
                 : "cc");
#endif
  }
}

/// Chunks of `access_size` bytes, line by line, `instructions` apart, with a fence every `fence_every` bytes
/// (0: none). The same accesses with the same parameters as the simulated workload "bandwidth"; an operation is
/// a chunk. Before each repetition the region is flushed out of the caches, and in it a sequential thread
/// visits each line at most once: a large last-level cache does not pass for memory.
class Bandwidth final : public Benchmark {
 public:
  Bandwidth(Parameters& parameters, const Place& place)
      : pmem_(parameters.choice("memory", {"dram", "pmem"}) == "pmem"),
        access_(workloads::access_named(parameters.choice(
            "operation", {"load", "store", "store+clwb", "store+clflushopt", "store+clflush", "ntstore"}))),
        random_(parameters.choice("pattern", {"random", "sequential"}) == "random"),
        chunk_(static_cast<std::uint64_t>(parameters.number("access_size", kLineBytes, kMaxBytes))),
        fence_every_(static_cast<std::uint64_t>(parameters.number("fence_every", 0, kMaxBytes))),
        instructions_(static_cast<std::uint64_t>(parameters.number("instructions", 0, kMostInstructions))),
        region_(static_cast<std::uint64_t>(parameters.number("region_size", kLineBytes, kMaxBytes))),
        memory_(host_memory(place, region_, false)) {
    const auto threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
    if (instructions_ % kInstructionBlock != 0)
      parameters.refuse("instructions", "must be a multiple of 16");
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
      threads_.push_back(Thread{mix64(thread), base_ + thread * slots_ * chunk_, 0, 0});
    if (access_ != Access::kLoad && access_ != Access::kStore)
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
    random_ ? run<true>(threads_[thread], operations) : run<false>(threads_[thread], operations);
  }

 private:
  struct alignas(2 * kLineBytes) Thread {
    std::uint64_t random;
    memory::Address base;
    std::uint64_t slot;
    std::uint64_t unfenced;
  };

  /// A loop for each access: a choice in every turn is as many instructions as a turn has.
  template <bool kRandom>
  void run(Thread& thread, std::uint64_t operations) {
    switch (access_) {
      case Access::kStore:
        return write<kRandom, Access::kStore>(thread, operations);
      case Access::kStoreClwb:
        return write<kRandom, Access::kStoreClwb>(thread, operations);
      case Access::kStoreClflushOpt:
        return write<kRandom, Access::kStoreClflushOpt>(thread, operations);
      case Access::kStoreClflush:
        return write<kRandom, Access::kStoreClflush>(thread, operations);
      case Access::kStream:
        return write<kRandom, Access::kStream>(thread, operations);
      default:
        return read<kRandom>(thread, operations);
    }
  }

  /// A word of each line. How many loads are under way depends on how many instructions lie between them: there
  /// are 21, not many more than the 13 of the simulated workload. HostMemory checks addresses, which is as many
  /// again.
  template <bool kRandom>
  void read(Thread& thread, std::uint64_t operations) {
    Thread state = thread;
    const std::byte* const part = memory_.view(state.base, slots_ * chunk_).data();
    const std::uint64_t chunk_bytes = chunk_;
    for (std::uint64_t done = 0; done < operations; ++done) {
      const std::byte* const chunk = part + next<kRandom>(state) * chunk_bytes;
      for (std::uint64_t offset = 0; offset < chunk_bytes; offset += kLineBytes)
        static_cast<void>(*reinterpret_cast<const volatile std::uint64_t*>(chunk + offset));
      execute_instructions(instructions_);
    }
    thread = state;
  }

  template <bool kRandom, Access kAccess>
  void write(Thread& thread, std::uint64_t operations) {
    for (std::uint64_t done = 0; done < operations; ++done) {
      const memory::Address address = thread.base + next<kRandom>(thread) * chunk_;
      for (std::uint64_t offset = 0; offset < chunk_; offset += kLineBytes) {
        workloads::touch_line(memory_, address + offset, kAccess);
        thread.unfenced += kLineBytes;
        if (fence_every_ > 0 && thread.unfenced >= fence_every_) {
          memory_.sfence();
          thread.unfenced = 0;
        }
      }
      execute_instructions(instructions_);
    }
  }

  template <bool kRandom>
  std::uint64_t next(Thread& thread) const {
    if constexpr (kRandom) {
      // Of all generators with a good upper half the one of the fewest instructions: Knuth's for MMIX.
      thread.random = thread.random * 6364136223846793005ULL + 1442695040888963407ULL;
      __extension__ using Wide = unsigned __int128;
      return static_cast<std::uint64_t>((static_cast<Wide>(thread.random) * slots_) >> 64);
    }
    const std::uint64_t slot = thread.slot;
    thread.slot = slot + 1 == slots_ ? 0 : slot + 1;
    return slot;
  }

  bool pmem_;
  Access access_;
  bool random_;
  std::uint64_t chunk_;
  std::uint64_t fence_every_;
  std::uint64_t instructions_;  ///< between a chunk and the next, beside those of the loop
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
