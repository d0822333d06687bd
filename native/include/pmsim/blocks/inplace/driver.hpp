#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/blocks/inplace/any.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::blocks::inplace {

enum class Operation : std::uint8_t { kWrite, kRead, kDependentRead };

/// The experiment of Fig. 10: one flat array of line-aligned records, updated or read one by one.
struct InPlaceOptions {
  std::string algorithm = "fam";
  std::size_t bytes = 16;  ///< user data of a record
  Operation operation = Operation::kWrite;
  bool random = false;                      ///< else one record after the other
  std::uint64_t array_bytes = 10ULL << 30;  ///< all records together, shared out among the threads
  /// Of each thread's log, for methods with one; a full one is truncated, which costs time.
  std::uint64_t log_bytes = 16ULL << 20;
  std::uint32_t threads = 1;
  memory::Medium medium = memory::Medium::kPmem;
  std::uint64_t seed = 0;
  std::uint32_t extra_instructions = 0;  ///< of the program around each operation, beside the bare loop
  /// Give all records their state at once. On real memory prepare() would bring the record into the caches.
  bool touch_at_once = false;
};

/// Runs one operation after the other on its own part of the array per thread.
///
/// The array is zeros at first: that is a valid state of every algorithm, so nothing is written before it is
/// used and only what is touched takes real memory. Where a record's history matters for cost, prepare() gives
/// one that was never written the state that a long history would (`age()` of the method).
template <memory::Memory M>
class InPlaceDriver {
 public:
  /// Allocates array and logs. Throws ConfigError for a bad size, or an array with fewer records than threads.
  InPlaceDriver(M& memory, const InPlaceOptions& options)
      : options_(options), stride_(stride_of(options.algorithm, options.bytes)) {
    records_ = options.array_bytes / options.threads / stride_;
    if (records_ == 0)
      throw ConfigError("region_size: " + std::to_string(options.array_bytes) +
                        " bytes; each thread needs at least one record of " + std::to_string(stride_) +
                        " bytes, make the region larger");
    const memory::Address array =
        memory.allocate(options.medium, options.array_bytes,
                        {.name = "array", .alignment = 1 << 21, .backing = memory::Backing::kSparse});
    for (std::uint32_t thread = 0; thread < options.threads; ++thread) {
      Random random(mix64(options.seed) + thread);
      const std::uint64_t first = random.below(records_);
      log::Place log;
      if (logs_updates(options.algorithm)) {
        log.bytes = options.log_bytes;
        log.base = memory.allocate(options.medium, log.bytes, {.name = "log", .alignment = 1 << 21});
      }
      threads_.push_back(Thread{.method = AnyMethod::create(memory, options.algorithm, options.bytes, log),
                                .base = array + thread * records_ * stride_,
                                .random = random,
                                .next = first});
    }
    if (options.touch_at_once) {
      for (memory::Address record = array; record < array + options.threads * records_ * stride_;
           record += stride_)
        threads_[0].method.age(memory, record);
    }
  }

  /// Chooses the record of the thread's next operation and gives it a state, if it has none. Not part of the
  /// operation: SimMemory should be detached.
  void prepare(M& memory, std::uint32_t thread) {
    Thread& state = threads_[thread];
    state.record = state.base + choose(state) * stride_;
    if (!options_.touch_at_once)
      state.method.age(memory, state.record);
  }

  /// One update or read of the record that prepare() chose; a value read feeds the next address of dependent
  /// reads.
  void operation(M& memory, std::uint32_t thread) {
    Thread& state = threads_[thread];
    memory.compute(
        0, options_.extra_instructions + (options_.random ? kRandomInstructions : kSequentialInstructions));
    std::array<std::byte, kMostBytes> buffer;
    const std::span<std::byte> value(buffer.data(), options_.bytes);
    const auto words = static_cast<std::uint32_t>(options_.bytes / sizeof(std::uint64_t));
    if (options_.operation == Operation::kWrite) {
      fill(value, ++state.writes);
      memory.compute(0, kWordInstructions * words);
      state.method.update(memory, state.record, value);
    } else {
      const Reads reads =
          options_.operation == Operation::kDependentRead ? Reads::kDependent : Reads::kIndependent;
      // Adds nothing, which neither compiler nor core can know: the address waits for the value. Independent
      // reads must not do it: on real memory they would wait for each other as well.
      const std::uint64_t waits = reads == Reads::kDependent ? state.chain & zero_ : 0;
      state.method.read(memory, state.record + waits, value, reads);
      std::uint64_t sum = 0;
      for (std::size_t at = 0; at < value.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t word;
        std::memcpy(&word, &value[at], sizeof word);
        sum += word;
      }
      memory.compute(0, kWordInstructions * words);
      state.chain = sum;
    }
  }

  /// As operation() would write it for the `count`-th write of a thread.
  static void fill(std::span<std::byte> value, std::uint64_t count) noexcept {
    for (std::size_t at = 0; at < value.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = (count + at) * 0x9e3779b97f4a7c15ULL;
      std::memcpy(&value[at], &word, sizeof word);
    }
  }

  /// From one record to the next [bytes].
  [[nodiscard]] std::uint64_t stride() const noexcept { return stride_; }
  /// Records of each thread.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// The thread's record with this index below records().
  [[nodiscard]] memory::Address record(std::uint32_t thread, std::uint64_t index) const {
    return threads_[thread].base + index * stride_;
  }
  /// Of the thread's latest operation, for tests.
  [[nodiscard]] memory::Address record(std::uint32_t thread) const { return threads_[thread].record; }

  /// As the thread's operation() reads.
  void read(M& memory, std::uint32_t thread, memory::Address record, std::span<std::byte> into,
            Reads reads) const {
    threads_[thread].method.read(memory, record, into, reads);
  }

 private:
  /// Choosing a record: counted by single-stepping the compiled loop of prepare() (GCC 12, -O3).
  static constexpr std::uint32_t kSequentialInstructions = 13;
  static constexpr std::uint32_t kRandomInstructions = 25;
  /// Making or consuming eight bytes of a value: one arithmetic instruction, one load or store.
  static constexpr std::uint32_t kWordInstructions = 2;

  struct Thread {
    AnyMethod method;
    memory::Address base;
    Random random;
    std::uint64_t next;
    memory::Address record = 0;
    std::uint64_t writes = 0;
    std::uint64_t chain = 0;
  };

  std::uint64_t choose(Thread& state) {
    if (options_.random)
      return state.random.below(records_);
    return std::exchange(state.next, state.next + 1 == records_ ? 0 : state.next + 1);
  }

  InPlaceOptions options_;
  std::uint64_t stride_;
  std::uint64_t records_ = 0;
  volatile std::uint64_t zero_ = 0;
  std::vector<Thread> threads_;
};

}  // namespace pmsim::blocks::inplace
