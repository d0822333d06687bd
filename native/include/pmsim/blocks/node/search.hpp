#pragma once

#include <cstdint>
#include <span>

#include "pmsim/blocks/node/node.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim::blocks::node {

/// Whether the core knows the branches of an operation that depend on keys.
enum class Branches : std::uint8_t {
  kLearnt,   ///< the same key at the same place in every node, as in the published program
  kUnknown,  ///< keys differ: where a search ends is mispredicted, and so is every other step of a binary one
};

// Instructions of the compiled loops (g++ 12 -O3), loads included, per element or step.
inline constexpr std::uint32_t kLinearInstructions = 6;    ///< compare, branch, two increments, compare, branch
inline constexpr std::uint32_t kBitCheckInstructions = 7;  ///< word, mask, and, branch
inline constexpr std::uint32_t kHashInstructions = 5;      ///< compare, branch, increment, compare, branch
inline constexpr std::uint32_t kBinaryInstructions = 10;   ///< middle, compare, two branches, new fence
inline constexpr std::uint32_t kSlotInstructions = 1;      ///< the slot's load

/// Micro-operation E1: the place of a key (indirection: its slot), or the number of entries where it is not
/// there (indirection: one more).
///
/// sorted        binary search over the keys
/// unsorted      all keys, as far as the count
/// bitmap        all keys whose bit is set
/// hashing       all hashes; keys only where hash and bit match
/// indirection   binary search over the slots, each of which names a key
///
/// The first place that a binary search looks at follows from the count, so its load waits for the header, and
/// through slots for the slot as well; a linear search waits for nothing but room in the window. Compilers make
/// branches of the comparisons (g++ 12 -O3), which the core predicts: further places do not wait for the keys
/// before them. (They wait for the count, too, which the stream does not say: here they may be asked for
/// earlier.)
template <memory::Memory M>
[[nodiscard]] std::uint32_t search(const Node<M>& node, std::uint64_t key, Branches branches) {
  M& memory = node.memory();
  const Geometry& geometry = node.geometry();
  const auto lost = [&] {
    if (branches == Branches::kUnknown)
      memory.mispredict();
  };

  switch (geometry.layout) {
    case Layout::kSorted: {
      bool first = true;
      std::uint32_t low = 0;
      std::uint32_t high = node.count();
      while (low < high) {
        const std::uint32_t middle = (low + high - 1) / 2;
        const auto found =
            first ? memory.template load_dependent<std::uint64_t>(node.key_at(middle)) : node.key(middle);
        first = false;
        memory.compute(0, kBinaryInstructions - 1);
        if (found == key)
          return lost(), middle;
        if ((mix64(key + middle) & 1) != 0)
          lost();
        (found < key ? low : high) = found < key ? middle + 1 : middle;
      }
      return lost(), geometry.entries;
    }
    case Layout::kIndirection: {
      bool first = true;
      std::uint32_t low = 1;
      std::uint32_t high = node.slot(0) + 1;
      while (low < high) {
        const std::uint32_t middle = (low + high - 1) / 2;
        const std::uint32_t place =
            first ? memory.template load_dependent<std::uint8_t>(node.slot_at(middle)) : node.slot(middle);
        const auto found = memory.template load_dependent<std::uint64_t>(node.key_at(place));
        first = false;
        memory.compute(0, kBinaryInstructions + kSlotInstructions - 2);
        if (found == key)
          return lost(), middle;
        if ((mix64(key + middle) & 1) != 0)
          lost();
        (found < key ? low : high) = found < key ? middle + 1 : middle;
      }
      return lost(), geometry.entries + 1;
    }
    case Layout::kUnsorted: {
      const std::uint32_t count = node.count();
      std::uint32_t place = geometry.entries;
      scan_array(memory, node.key_at(0), kKeyBytes, count, kLinearInstructions,
                 [&](std::uint32_t at, std::span<const std::byte> bytes) {
                   return key_of(bytes) == key && (place = at, true);
                 });
      return lost(), place;
    }
    case Layout::kBitmap: {
      std::uint32_t place = geometry.entries;
      std::uint64_t word = 0;
      scan_array(memory, node.key_at(0), kKeyBytes, geometry.entries,
                 kLinearInstructions + kBitCheckInstructions,
                 [&](std::uint32_t at, std::span<const std::byte> bytes) {
                   if (at % 64 == 0)
                     word = node.bitmap_word(at / 64);
                   return (word >> at % 64 & 1) != 0 && key_of(bytes) == key && (place = at, true);
                 });
      return lost(), place;
    }
    case Layout::kHashing: {
      const std::uint8_t hash = hash_of(key);
      std::uint32_t place = geometry.entries;
      scan_array(memory, node.base() + geometry.hashes, 1, geometry.entries, kHashInstructions,
                 [&](std::uint32_t at, std::span<const std::byte> bytes) {
                   if (std::to_integer<std::uint8_t>(bytes[0]) != hash)
                     return false;
                   lost();
                   memory.compute(0, kBitCheckInstructions + 2);
                   return node.used(at) && node.key(at) == key && (place = at, true);
                 });
      if (place == geometry.entries)
        lost();
      return place;
    }
  }
  return geometry.entries;
}

}  // namespace pmsim::blocks::node
