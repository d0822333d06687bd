#pragma once

#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::blocks::sync {

using memory::Address;
using memory::LatchMode;

/// What threads do where they meet.
enum class Meeting : std::uint8_t {
  kCounter,  ///< add one to a counter
  kLatch,    ///< read, or change, lines under a latch
};

struct SyncOptions {
  Meeting meeting = Meeting::kCounter;
  LatchMode readers = LatchMode::kShared;
  std::uint32_t read_percent = 0;  ///< of the operations under a latch; the others write
  std::uint32_t objects = 1;       ///< counters or latches, of which each operation takes any
  std::uint32_t lines = 1;         ///< of data under each latch
  std::uint32_t work = 0;  ///< multiplications between two operations, each of which waits for the one before
  std::uint32_t threads = 1;
  std::uint64_t seed = 1;
};

/// Threads that meet, on any memory: the smallest program that scales as its hottest line does.
///
/// Each object has lines of its own: its counter or latch, and behind it the data. Writers add one to the first
/// word of every line of data, so all of these are equal whenever nobody writes.
template <memory::Memory M>
class SyncDriver {
 public:
  /// Multiplication and addition.
  static constexpr std::uint32_t kWorkCycles = 4, kWorkInstructions = 3;
  static constexpr std::uint32_t kInstructions = 8;  ///< of the loop around an operation: choosing, counting

  SyncDriver(M& memory, const SyncOptions& options) : options_(options), threads_(options.threads) {
    // Two lines: what processors fetch together must not make neighbours share.
    stride_ = (std::uint64_t{2} + options_.lines + options_.lines % 2) * memory::kLineBytes;
    base_ = memory.allocate(memory::Medium::kDram, options_.objects * stride_,
                            {.name = "objects", .alignment = memory::kPageBytes});
    for (std::uint32_t thread = 0; thread < options_.threads; ++thread)
      threads_[thread].random = Random(mix64(options_.seed) + thread);
  }

  [[nodiscard]] Address object(std::uint64_t index) const noexcept { return base_ + index * stride_; }
  /// The lines of an object that operations use: its word, and its data.
  [[nodiscard]] std::uint32_t lines() const noexcept {
    return options_.meeting == Meeting::kCounter ? 1 : 1 + options_.lines;
  }
  [[nodiscard]] Address line_of(std::uint64_t index, std::uint32_t which) const noexcept {
    return which == 0 ? object(index) : line(object(index), which - 1);
  }

  void operation(M& memory, std::uint32_t thread) {
    Thread& state = threads_[thread];
    memory.compute(0, kInstructions);
    work(memory, state);
    const Address chosen = object(options_.objects == 1 ? 0 : state.random.below(options_.objects));
    if (options_.meeting == Meeting::kCounter) {
      state.chain += memory.fetch_add(chosen, 1);
    } else if (options_.read_percent != 0 && state.random.below(100) < options_.read_percent) {
      read(memory, state, chosen);
    } else {
      write(memory, chosen);
    }
  }

 private:
  struct alignas(128) Thread {
    Random random{0};
    std::uint64_t chain = 1;
  };

  [[nodiscard]] static Address line(Address object, std::uint32_t index) noexcept {
    return object + (std::uint64_t{2} + index) * memory::kLineBytes;
  }
  void work(M& memory, Thread& state) {
    if (options_.work == 0)
      return;
    std::uint64_t chain = state.chain;
    for (std::uint32_t step = 0; step < options_.work; ++step) {
      chain = chain * 0x9e3779b97f4a7c15ULL + 1;
      asm volatile("" : "+r"(chain));  // not unrolled into fewer
    }
    state.chain = chain;
    memory.compute(std::uint64_t{kWorkCycles} * options_.work, kWorkInstructions * options_.work);
  }
  void read(M& memory, Thread& state, Address object) {
    std::uint64_t sum;
    std::uint64_t version;
    do {
      version = memory.acquire(object, options_.readers);
      sum = 0;
      for (std::uint32_t index = 0; index < options_.lines; ++index)
        sum += memory.template load<std::uint64_t>(line(object, index));
    } while (!memory.release(object, options_.readers, version));
    state.chain += sum;
  }
  void write(M& memory, Address object) {
    const std::uint64_t version = memory.acquire(object, LatchMode::kExclusive);
    for (std::uint32_t index = 0; index < options_.lines; ++index) {
      const auto word = memory.template load<std::uint64_t>(line(object, index));
      memory.template store<std::uint64_t>(line(object, index), word + 1);
    }
    memory.release(object, LatchMode::kExclusive, version);
  }

  SyncOptions options_;
  std::uint64_t stride_;
  Address base_ = 0;
  std::vector<Thread> threads_;
};

}  // namespace pmsim::blocks::sync
