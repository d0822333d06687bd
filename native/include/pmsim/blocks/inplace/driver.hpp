#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "pmsim/blocks/inplace/atomic_word.hpp"
#include "pmsim/blocks/inplace/cow.hpp"
#include "pmsim/blocks/inplace/fam.hpp"
#include "pmsim/blocks/inplace/log.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::blocks::inplace {

enum class Algorithm : std::uint8_t { kWord, kCow, kLog, kFam };
enum class Operation : std::uint8_t { kWrite, kRead, kDependentRead };

/// The experiment of Fig. 10: one flat array of line-aligned records, updated or read one by one.
struct InPlaceOptions {
  Algorithm algorithm = Algorithm::kFam;
  std::size_t bytes = 16;  ///< user data of a record
  Operation operation = Operation::kWrite;
  bool random = false;                      ///< else one record after the other
  std::uint64_t array_bytes = 10ULL << 30;  ///< all records together, shared out among the threads
  std::uint64_t log_bytes = 16ULL << 20;    ///< of each thread's log; a full one is truncated, which costs time
  std::uint32_t threads = 1;
  memory::Medium medium = memory::Medium::kPmem;
  std::uint64_t seed = 0;
  FamPath path = FamPath::kAvx2;
  std::uint32_t extra_instructions = 0;  ///< of the program around each operation, beside the bare loop
  /// Give all records their state at once. On real memory prepare() would bring the record into the caches.
  bool touch_at_once = false;
};

/// Runs one operation after the other on its own part of the array per thread.
///
/// The array is zeros at first: that is a valid state of every algorithm, so nothing is written before it is
/// used and only what is touched takes real memory. Copy-on-write alone has a state that matters for cost:
/// prepare() gives a record that was never written one of its two copies at random, as a long history of
/// updates would.
template <memory::Memory M>
class InPlaceDriver {
 public:
  /// Allocates array and logs. Throws ConfigError for a bad size, or an array with fewer records than threads.
  InPlaceDriver(M& memory, const InPlaceOptions& options) : options_(options), word_(8), cow_(8), fam_(8) {
    switch (options.algorithm) {
      case Algorithm::kWord:
        word_ = AtomicWord(options.bytes);
        stride_ = word_.stride();
        break;
      case Algorithm::kCow:
        cow_ = Cow(options.bytes);
        stride_ = cow_.stride();
        break;
      case Algorithm::kFam:
        fam_ = Fam(options.bytes, options.path);
        stride_ = fam_.stride();
        break;
      case Algorithm::kLog:
        require_record_bytes(options.bytes);
        stride_ = whole_lines(options.bytes);
        break;
    }
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
      threads_.push_back(Thread{.base = array + thread * records_ * stride_, .random = random, .next = first});
      if (options.algorithm == Algorithm::kLog) {
        const memory::Address log =
            memory.allocate(options.medium, options.log_bytes, {.name = "log", .alignment = 1 << 21});
        logged_.push_back(Logged::create(memory, options.bytes, {.base = log, .bytes = options.log_bytes}));
      }
    }
    if (options.touch_at_once) {
      for (memory::Address record = array; record < array + options.threads * records_ * stride_;
           record += stride_)
        touch(memory, record);
    }
  }

  /// Chooses the record of the thread's next operation and gives it a state, if it has none. Not part of the
  /// operation: SimMemory should be detached.
  void prepare(M& memory, std::uint32_t thread) {
    Thread& state = threads_[thread];
    state.record = state.base + choose(state) * stride_;
    if (!options_.touch_at_once)
      touch(memory, state.record);
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
      update(memory, thread, state.record, value);
    } else {
      const Reads reads =
          options_.operation == Operation::kDependentRead ? Reads::kDependent : Reads::kIndependent;
      // Adds nothing, which neither compiler nor core can know: the address waits for the value. Independent
      // reads must not do it: on real memory they would wait for each other as well.
      const std::uint64_t waits = reads == Reads::kDependent ? state.chain & zero_ : 0;
      read(memory, thread, state.record + waits, value, reads);
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

  void read(M& memory, std::uint32_t thread, memory::Address record, std::span<std::byte> into, Reads reads) {
    switch (options_.algorithm) {
      case Algorithm::kWord:
        return word_.read(memory, record, into, reads);
      case Algorithm::kCow:
        return cow_.read(memory, record, into, reads);
      case Algorithm::kLog:
        return logged_[thread].read(memory, record, into, reads);
      case Algorithm::kFam:
        return fam_.read(memory, record, into, reads);
    }
  }

 private:
  /// Choosing a record: counted by single-stepping the compiled loop of prepare() (GCC 12, -O3).
  static constexpr std::uint32_t kSequentialInstructions = 13;
  static constexpr std::uint32_t kRandomInstructions = 25;
  /// Making or consuming eight bytes of a value: one arithmetic instruction, one load or store.
  static constexpr std::uint32_t kWordInstructions = 2;

  struct Thread {
    memory::Address base;
    Random random;
    std::uint64_t next;
    memory::Address record = 0;
    std::uint64_t writes = 0;
    std::uint64_t chain = 0;
  };

  /// The copy that a record of copy-on-write begins with; the other algorithms have no state to give. One that
  /// was written has its value in the copy that counts, and no value is all zeros.
  void touch(M& memory, memory::Address record) {
    if (options_.algorithm != Algorithm::kCow || (mix64(record) & 1) == 0)
      return;
    if (memory.template load<std::uint8_t>(record) != 0)
      return;
    std::array<std::byte, kMostBytes> buffer;
    const std::span<std::byte> value(buffer.data(), options_.bytes);
    cow_.read(memory, record, value, Reads::kIndependent);
    if (std::ranges::all_of(value, [](std::byte byte) { return byte == std::byte{0}; }))
      memory.template store<std::uint8_t>(record, 1);
  }

  std::uint64_t choose(Thread& state) {
    if (options_.random)
      return state.random.below(records_);
    return std::exchange(state.next, state.next + 1 == records_ ? 0 : state.next + 1);
  }

  void update(M& memory, std::uint32_t thread, memory::Address record, std::span<const std::byte> value) {
    switch (options_.algorithm) {
      case Algorithm::kWord:
        return word_.update(memory, record, value);
      case Algorithm::kCow:
        return cow_.update(memory, record, value);
      case Algorithm::kLog:
        return logged_[thread].update(memory, record, value);
      case Algorithm::kFam:
        return fam_.update(memory, record, value);
    }
  }

  InPlaceOptions options_;
  AtomicWord word_;
  Cow cow_;
  Fam fam_;
  std::vector<Logged> logged_;  ///< by thread
  std::uint64_t stride_ = 0;
  std::uint64_t records_ = 0;
  volatile std::uint64_t zero_ = 0;
  std::vector<Thread> threads_;
};

}  // namespace pmsim::blocks::inplace
