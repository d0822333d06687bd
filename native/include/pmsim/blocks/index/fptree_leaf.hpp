#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "pmsim/blocks/site.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::index {

using memory::Address;

/// What a barrier is made of: an sfence lets later loads run ahead, an mfence does not.
enum class Fence : std::uint8_t { kSfence, kMfence };

template <memory::Memory M>
void fence(M& memory, Fence kind, memory::Site site) {
  kind == Fence::kSfence ? memory.sfence(site) : memory.mfence(site);
}

/// What an insert flushes before its first barrier.
enum class FirstFlush : std::uint8_t {
  kPairAndFingerprint,  ///< as the paper does
  kPair,  ///< enough: fingerprint and bit share a line, whose stores become durable in program order
};

/// One leaf of an FP-tree (Oukid et al., SIGMOD 2016) as van Renen et al. use it in section 3.5 of "Building
/// Blocks for Persistent Memory" (VLDBJ 2020): unsorted slots, found by one-byte hashes of their keys.
///
///   0   used          32 bits: which slots hold a pair
///   4   fingerprints  32 x 1 byte
///   64  pairs         32 x (8-byte key, 8-byte value); a pair lies in one line
///
/// With more than 32 slots `used` has 64 bits and the fingerprints begin at byte 8. The 56 slots of the FP-tree
/// of van Renen et al. 2018 (section 5.5) fill their 960 bytes exactly.
///
/// The leaf begins on a line, so a positive lookup touches two lines. All-zero bytes are an empty leaf.
///
/// Invariant: a set bit stands for a pair and a fingerprint that are durable, whatever happens. What is durable
/// when: after the first barrier of an insert its pair (and fingerprint); the bit may become durable at any
/// moment after it is stored and is after the second barrier, which acknowledges the insert. A crash before
/// leaves the slot free: whatever its bytes are, nobody reads them. The bitmap is the truth; recovery has
/// nothing to redo.
///
/// Keys of a leaf are distinct: the caller inserts a key that is not there. One thread at a time.
template <std::uint32_t kSlotCount>
  requires(kSlotCount > 0 && kSlotCount <= 56)
struct BasicFpTreeLeaf {
  using Bitmap = std::conditional_t<(kSlotCount <= 32), std::uint32_t, std::uint64_t>;

  static constexpr std::uint32_t kSlots = kSlotCount;
  static constexpr Bitmap kAllUsed = static_cast<Bitmap>(~Bitmap{0}) >> (8 * sizeof(Bitmap) - kSlots);
  static constexpr Address kFingerprints = sizeof(Bitmap);
  static constexpr Address kPairs = 64;
  static constexpr Address kPairBytes = 16;
  static constexpr Address kBytes = kPairs + kSlots * kPairBytes;
  static_assert(kFingerprints + kSlots <= kPairs && kBytes % memory::kLineBytes == 0);

  static constexpr memory::Site kFlushPair = 700;
  static constexpr memory::Site kFlushFingerprint = 701;
  static constexpr memory::Site kFenceEntry = 702;
  static constexpr memory::Site kFlushBit = 703;
  static constexpr memory::Site kFenceBit = 704;
  static constexpr std::array<SiteInfo, 5> kSites{{
      {kFlushPair, "insert: write back the pair"},
      {kFlushFingerprint, "insert: write back the fingerprint",
       "fingerprint and bit share a line: the bit is never durable before the fingerprint stored before it"},
      {kFenceEntry, "insert: barrier between entry and bit"},
      {kFlushBit, "insert: write back the bit"},
      {kFenceBit, "insert: barrier before the acknowledgement"},
  }};

  // Instructions of the compiled code (g++ 12 -O2) beyond the loads, stores and flushes that the memory sees.
  static constexpr std::uint32_t kHashInstructions = 3;    ///< constant, multiply, shift
  static constexpr std::uint32_t kSearchInstructions = 5;  ///< per slot: bt, movslq, jnc, inc, cmp+je
  static constexpr std::uint32_t kMatchInstructions = 4;   ///< address of the pair, compare, branch, return
  static constexpr std::uint32_t kFreeInstructions = 2;    ///< not, tzcnt
  static constexpr std::uint32_t kEntryInstructions = 4;   ///< addresses of pair and fingerprint, the bit

  /// The top byte of a multiplicative hash: all bits of the key count.
  [[nodiscard]] static constexpr std::uint8_t fingerprint(std::uint64_t key) noexcept {
    return static_cast<std::uint8_t>((key * kHashFactor) >> 56);
  }
  static constexpr std::uint64_t kHashFactor = 0x9e37'79b9'7f4a'7c15;

  [[nodiscard]] static constexpr Address pair(Address leaf, std::uint32_t slot) noexcept {
    return leaf + kPairs + slot * kPairBytes;
  }

  /// The first used slot from `slot` on with this fingerprint; kSlots: none. The loop is the paper's; where it
  /// ends is in the data, so no predictor knows it.
  template <memory::Memory M>
  [[nodiscard]] static std::uint32_t find(M& memory, Address leaf, Bitmap used, std::uint8_t hash,
                                          std::uint32_t slot) {
    const std::uint32_t first = slot;
    while (slot < kSlots && ((used >> slot & 1) == 0 ||
                             memory.template load<std::uint8_t>(leaf + kFingerprints + slot) != hash)) {
      ++slot;
    }
    memory.compute(0, (slot - first + 1) * kSearchInstructions);
    if (slot < kSlots) {
      memory.mispredict();
    }
    return slot;
  }

  /// The first free slot of a leaf that is not full. Counts trailing zeros, as the authors' published benchmark
  /// does (note 1 of the paper); the listing leaves it open. So there is no branch to mispredict.
  template <memory::Memory M>
  [[nodiscard]] static std::uint32_t find_free(M& memory, Bitmap used) {
    memory.compute(0, kFreeInstructions);
    return static_cast<std::uint32_t>(std::countr_one(used));
  }

  /// The value, if the slot holds the key.
  template <memory::Memory M>
  [[nodiscard]] static std::optional<std::uint64_t> match(M& memory, Address leaf, std::uint32_t slot,
                                                          std::uint64_t key) {
    memory.compute(0, kMatchInstructions);
    const Address at = pair(leaf, slot);
    if (memory.template load_dependent<std::uint64_t>(at) != key) {
      return std::nullopt;
    }
    return memory.template load<std::uint64_t>(at + 8);
  }

  /// The value of the key, or nothing.
  template <memory::Memory M>
  [[nodiscard]] static std::optional<std::uint64_t> lookup(M& memory, Address leaf, std::uint64_t key) {
    memory.compute(0, kHashInstructions);
    const std::uint8_t hash = fingerprint(key);
    const auto used = memory.template load<Bitmap>(leaf);
    for (std::uint32_t slot = 0; (slot = find(memory, leaf, used, hash, slot)) < kSlots; ++slot) {
      if (const auto value = match(memory, leaf, slot, key)) {
        return value;
      }
    }
    return std::nullopt;
  }

  /// Phase 1 of an insert: pair and fingerprint into a free slot, on their way to durability.
  template <memory::Memory M>
  static void write_entry(M& memory, Address leaf, std::uint32_t slot, std::uint64_t key, std::uint64_t value,
                          FirstFlush flush = FirstFlush::kPairAndFingerprint) {
    memory.compute(0, kHashInstructions + kEntryInstructions);
    const Address at = pair(leaf, slot);
    memory.template store<std::uint64_t>(at, key);
    memory.template store<std::uint64_t>(at + 8, value);
    memory.template store<std::uint8_t>(leaf + kFingerprints + slot, fingerprint(key));
    memory.flush(at, kPairBytes, memory::FlushKind::kClwb, kFlushPair);
    if (flush == FirstFlush::kPairAndFingerprint) {
      memory.flush(leaf + kFingerprints + slot, 1, memory::FlushKind::kClwb, kFlushFingerprint);
    }
  }

  /// Phase 2, when a barrier has made phase 1 durable: the bitmap with the bit of the slot set.
  template <memory::Memory M>
  static void publish(M& memory, Address leaf, Bitmap used) {
    memory.template store<Bitmap>(leaf, used);
    memory.flush(leaf, sizeof used, memory::FlushKind::kClwb, kFlushBit);
  }

  /// Durable when it returns true. False: the leaf is full and unchanged (a tree would split it).
  template <memory::Memory M>
  [[nodiscard]] static bool insert(M& memory, Address leaf, std::uint64_t key, std::uint64_t value,
                                   Fence barrier = Fence::kSfence,
                                   FirstFlush flush = FirstFlush::kPairAndFingerprint) {
    const auto used = memory.template load<Bitmap>(leaf);
    if (used == kAllUsed) {
      return false;
    }
    const std::uint32_t slot = find_free(memory, used);
    write_entry(memory, leaf, slot, key, value, flush);
    fence(memory, barrier, kFenceEntry);
    publish(memory, leaf, used | Bitmap{1} << slot);
    fence(memory, barrier, kFenceBit);
    return true;
  }

  /// What recovery finds in one leaf.
  struct Contents {
    struct Entry {
      std::uint64_t key;
      std::uint64_t value;
    };
    std::uint32_t count = 0;
    std::uint32_t wrong_fingerprints = 0;  ///< damage: no crash of insert() leaves one
    std::array<Entry, kSlots> entries{};
  };

  /// Reads the pairs that the bitmap vouches for, for rebuilding the inner nodes, and checks their
  /// fingerprints. Changes nothing, so it may be interrupted and repeated.
  template <memory::Memory M>
  [[nodiscard]] static Contents recover(M& memory, Address leaf) {
    Contents contents;
    auto used = memory.template load<Bitmap>(leaf);
    for (; used != 0; used &= used - 1) {
      const auto slot = static_cast<std::uint32_t>(std::countr_zero(used));
      const Address at = pair(leaf, slot);
      const auto key = memory.template load<std::uint64_t>(at);
      contents.entries[contents.count++] = {key, memory.template load<std::uint64_t>(at + 8)};
      const auto stored = memory.template load<std::uint8_t>(leaf + kFingerprints + slot);
      contents.wrong_fingerprints += stored == fingerprint(key) ? 0 : 1;
    }
    return contents;
  }
};

using FpTreeLeaf = BasicFpTreeLeaf<32>;

}  // namespace pmsim::blocks::index
