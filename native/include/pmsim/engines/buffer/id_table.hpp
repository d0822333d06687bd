#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines::buffer {

using memory::Address;

/// A hash table in simulated DRAM from page ids to 64-bit values: open addressing, linear probing, no
/// tombstones (an erased entry is closed by moving later ones back). At most two thirds full. Volatile.
///
/// With frames' addresses as values it is the combined page table of section 4.3: an address says by itself
/// whether the page is in DRAM or on PMem, so one lookup finds either.
class IdTable {
 public:
  struct alignas(16) Entry {
    std::uint64_t key = 0;  ///< id + 1; 0: empty
    std::uint64_t value = 0;
  };
  static_assert(sizeof(Entry) == 16);
  /// Where an entry lies. Good until the next insert or erase.
  struct Found {
    Address bucket = 0;  ///< 0: there is no such entry
    std::uint64_t value = 0;
    explicit operator bool() const noexcept { return bucket != 0; }
  };

  IdTable() = default;
  IdTable(Address base, std::uint64_t entries)
      : base_(base), buckets_(buckets_for(entries)), shift_(64 - std::countr_zero(buckets_)) {}
  [[nodiscard]] static std::uint64_t bytes_for(std::uint64_t entries) noexcept {
    return buckets_for(entries) * sizeof(Entry);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// How often an entry has been inserted or erased: while it stays the same, a Found stays good.
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

  /// For threads: one latch for each of its parts, as PostgreSQL has for those of its buffer mapping.
  void latch_parts(const Latches& latches) noexcept { parts_ = latches; }
  static constexpr std::uint64_t kParts = 128;

  template <memory::Memory M>
  [[nodiscard]] Found find(M& memory, std::uint64_t id) const {
    memory.compute(kHashCycles, kHashInstructions);
    std::uint64_t bucket = home(id);
    const HeldLatch<M> part(memory, parts_.of(bucket), LatchMode::kShared);
    // The id came out of memory just now: the bucket's address waits for it.
    for (auto entry = memory.template load_dependent<Entry>(at(bucket)); entry.key != 0;
         entry = memory.template load<Entry>(at(bucket))) {
      if (entry.key == id + 1)
        return {at(bucket), entry.value};
      bucket = next(bucket);
    }
    return {};
  }
  /// The id must not be there yet.
  template <memory::Memory M>
  void insert(M& memory, std::uint64_t id, std::uint64_t value) {
    ensure((size_ + 1) * 3 <= buckets_ * 2, "page table: more entries than it was made for");
    memory.compute(kHashCycles, kHashInstructions);
    std::uint64_t bucket = home(id);
    const HeldLatch<M> part(memory, parts_.of(bucket), LatchMode::kExclusive);
    if (memory.template load_dependent<std::uint64_t>(at(bucket)) != 0) {
      memory.mispredict();  // expected to be empty
      do {
        bucket = next(bucket);
      } while (memory.template load<std::uint64_t>(at(bucket)) != 0);
    }
    memory.template store<Entry>(at(bucket), Entry{id + 1, value});
    ++size_;
    ++generation_;
  }
  template <memory::Memory M>
  void assign(M& memory, const Found& found, std::uint64_t value) {
    const HeldLatch<M> part(memory, parts_.of((found.bucket - base_) / sizeof(Entry)), LatchMode::kExclusive);
    memory.template store<std::uint64_t>(found.bucket + 8, value);
  }
  template <memory::Memory M>
  void erase(M& memory, const Found& found) {
    std::uint64_t hole = (found.bucket - base_) / sizeof(Entry);
    const HeldLatch<M> part(memory, parts_.of(hole), LatchMode::kExclusive);
    for (std::uint64_t bucket = next(hole);; bucket = next(bucket)) {
      const auto entry = memory.template load<Entry>(at(bucket));
      if (entry.key == 0)
        break;
      // May it move into the hole? Not if its home lies behind the hole, on the way to where it is.
      const std::uint64_t from_home = (bucket - home(entry.key - 1)) & (buckets_ - 1);
      const std::uint64_t from_hole = (bucket - hole) & (buckets_ - 1);
      if (from_home < from_hole)
        continue;
      memory.template store<Entry>(at(hole), entry);
      hole = bucket;
    }
    memory.template store<std::uint64_t>(at(hole), 0);
    --size_;
    ++generation_;
  }
  /// Of a table whose memory may hold anything.
  template <memory::Memory M>
  void clear(M& memory) {
    constexpr std::array<std::byte, 64> kZero{};
    for (std::uint64_t byte = 0; byte < buckets_ * sizeof(Entry); byte += kZero.size())
      memory.write(base_ + byte, kZero);
    size_ = 0;
    ++generation_;
  }
  /// visit(id, value), in no order.
  template <memory::Memory M, typename Visit>
  void for_each(M& memory, Visit&& visit) const {
    for (std::uint64_t bucket = 0; bucket < buckets_; ++bucket) {
      const auto entry = memory.template load<Entry>(at(bucket));
      if (entry.key != 0)
        visit(entry.key - 1, entry.value);
    }
  }

 private:
  /// Multiply, shift, address: three cycles of imul and one each. Counted from the compiled code, not fitted.
  static constexpr std::uint64_t kHashCycles = 5;
  static constexpr std::uint32_t kHashInstructions = 6;

  [[nodiscard]] static std::uint64_t buckets_for(std::uint64_t entries) noexcept {
    return std::bit_ceil(entries + entries / 2 + 4);
  }
  /// Fibonacci hashing: consecutive ids, which leaves get when they are loaded, spread evenly.
  [[nodiscard]] std::uint64_t home(std::uint64_t id) const noexcept {
    return (id * 0x9e3779b97f4a7c15ULL) >> shift_;
  }
  [[nodiscard]] std::uint64_t next(std::uint64_t bucket) const noexcept {
    return (bucket + 1) & (buckets_ - 1);
  }
  [[nodiscard]] Address at(std::uint64_t bucket) const noexcept { return base_ + bucket * sizeof(Entry); }

  Address base_ = 0;
  std::uint64_t buckets_ = 0;
  int shift_ = 63;
  std::uint64_t size_ = 0;
  std::uint64_t generation_ = 0;
  Latches parts_;
};

}  // namespace pmsim::engines::buffer
