#pragma once

#include <cstdint>
#include <span>

#include "pmsim/blocks/node/node.hpp"

namespace pmsim::blocks::node {

/// What tells a scan which places of a node hold pairs.
enum class IterateBy : std::uint8_t {
  kCount,   ///< the first `count` places: sorted, unsorted
  kBitmap,  ///< the places whose bit is set: indirection, hashing, bitmap; in no order
  kSlots,   ///< the places that the slots name: indirection, in the order of the keys
};

[[nodiscard]] constexpr bool can_iterate(Layout layout, IterateBy by) noexcept {
  return by == IterateBy::kCount    ? !has_bitmap(layout)
         : by == IterateBy::kBitmap ? has_bitmap(layout)
                                    : layout == Layout::kIndirection;
}

// Instructions per place (g++ 12 -O3), loads of nodes among them: the loop, and a call of a std::function that
// copies the key out, which the published scan() makes for each pair.
inline constexpr std::uint32_t kIterateCall = 9;  ///< compare, load, call; two loads, a store, return
inline constexpr std::uint32_t kIterateCount =
    8;  ///< addresses of key and value, arguments, next, compare, branch
inline constexpr std::uint32_t kIterateBit =
    15;  ///< word, mask, and, branch; arguments, three increments, loop
inline constexpr std::uint32_t kIterateSlot =
    10;  ///< slot, addresses, arguments, next, the count's load, compare

/// Micro-operation E3: visits a chain of nodes from `first` on and copies out every key. Returns the sum of the
/// keys, modulo 2^64.
template <memory::Memory M>
std::uint64_t iterate(M& memory, const Geometry& geometry, Address first, IterateBy by) {
  std::uint64_t sum = 0;
  Changes none;
  for (Address at = first; at != 0;) {
    const Node<M> node(memory, geometry, at, none);
    if (at != first)  // only the node before says where it is
      static_cast<void>(memory.template load_dependent<std::uint64_t>(at));
    switch (by) {
      case IterateBy::kCount:
        scan_array(
            memory, node.key_at(0), kKeyBytes, node.count(), kIterateCount + kIterateCall,
            [&](std::uint32_t, std::span<const std::byte> bytes) { return sum += key_of(bytes), false; });
        break;
      case IterateBy::kBitmap: {
        std::uint64_t word = 0;
        scan_array(memory, node.key_at(0), kKeyBytes, geometry.entries, kIterateBit + kIterateCall,
                   [&](std::uint32_t place, std::span<const std::byte> bytes) {
                     if (place % 64 == 0)
                       word = node.bitmap_word(place / 64);
                     sum += (word >> place % 64 & 1) != 0 ? key_of(bytes) : 0;
                     return false;
                   });
        break;
      }
      case IterateBy::kSlots: {
        const std::uint32_t count = node.slot(0);
        for (std::uint32_t slot = 1; slot <= count; ++slot) {
          sum += memory.template load_dependent<std::uint64_t>(node.key_at(node.slot(slot)));
          memory.compute(0, kIterateSlot + kIterateCall - 2);
        }
        break;
      }
    }
    at = node.next();
  }
  return sum;
}

}  // namespace pmsim::blocks::node
