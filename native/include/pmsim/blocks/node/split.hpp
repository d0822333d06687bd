#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pmsim/blocks/node/costs.hpp"
#include "pmsim/blocks/node/node.hpp"
#include "pmsim/blocks/node/persistence.hpp"

namespace pmsim::blocks::node {

/// How the upper half of a node gets into the new one.
enum class Split : std::uint8_t {
  kMove,  ///< pair by pair
  kCopy,  ///< the whole node, then the bitmap of either says which half is whose; layouts with a bitmap
};

/// The smallest key of the upper half of a full node whose keys are in no order: its keys are copied and
/// selected.
template <memory::Memory M>
[[nodiscard]] std::uint64_t split_key(const Node<M>& node) {
  const std::uint32_t entries = node.geometry().entries;
  std::vector<std::uint64_t> keys(entries);
  node.memory().read(node.key_at(0), std::as_writable_bytes(std::span(keys)));
  node.memory().compute(0, kSelect + kSelectPerKey * entries);
  const auto middle = keys.begin() + (entries + 1) / 2;
  std::nth_element(keys.begin(), middle, keys.end());
  return *middle;
}

/// Copies all lines of a node over those of a new one.
template <memory::Memory M>
void copy_node(const Node<M>& from, Node<M>& to, Changes& changes) {
  std::array<std::byte, memory::kLineBytes> line;
  const std::uint32_t bytes = from.geometry().end();
  for (std::uint32_t at = 0; at < bytes; at += memory::kLineBytes) {
    const auto part = std::span(line).first(std::min<std::size_t>(line.size(), bytes - at));
    from.memory().read(from.base() + at, part);
    to.memory().write(to.base() + at, part);
  }
  changes.note(to.base(), bytes);
}

/// Links a new node behind another one.
template <memory::Memory M>
void link_behind(Persistence<M>& persistence, Node<M>& node, Node<M>& fresh) {
  persistence.will_change_pointers(node);
  if (const Address next = node.next(); next != 0) {
    Node<M> neighbour(node.memory(), node.geometry(), next, persistence.changes());
    persistence.will_change_pointers(neighbour);
    fresh.set_next(next);
    neighbour.set_prev(fresh.base());
  }
  node.set_next(fresh.base());
  fresh.set_prev(node.base());
}

/// Micro-operation E5: moves the upper half of a full node into a new, empty one and links it behind. `fresh`
/// has an empty front (count 0, no bit set, no neighbours); its other bytes are of no meaning. Returns its
/// smallest key.
///
/// Steps as in the published program (splitLeafNode of each tree). Allocation is the caller's.
template <memory::Memory M>
std::uint64_t split(Persistence<M>& persistence, Node<M>& node, Node<M>& fresh, Split how) {
  const Geometry& geometry = node.geometry();
  M& memory = node.memory();
  const std::uint32_t middle = (geometry.entries + 1) / 2;
  std::uint64_t smallest = 0;

  switch (geometry.layout) {
    case Layout::kSorted: {
      persistence.will_change_front(node);
      const std::uint32_t upper = node.count() - middle;
      for (std::uint32_t at = 0; at < upper; ++at) {
        fresh.set_pair(at, node.pair(middle + at));
        memory.compute(0, kMovePair);
      }
      fresh.set_count(upper);
      node.set_count(middle);
      smallest = fresh.key(0);
      break;
    }
    case Layout::kUnsorted: {
      persistence.will_change_front(node);
      persistence.will_change_pairs(node);
      smallest = split_key(node);
      std::uint32_t lower = 0;
      std::uint32_t upper = 0;
      for (std::uint32_t at = 0; at < geometry.entries; ++at) {
        const Pair pair = node.pair(at);
        memory.compute(0, kCompareKey + kMovePair);
        // The lower half closes up. The program stores a pair to its own place, too.
        pair.key >= smallest ? fresh.set_pair(upper++, pair) : node.set_pair(lower++, pair);
      }
      node.set_count(lower);
      fresh.set_count(upper);
      break;
    }
    case Layout::kIndirection: {
      persistence.will_change_front(node);
      const std::uint32_t upper = node.slot(0) - middle;
      if (how == Split::kCopy)
        copy_node(node, fresh, persistence.changes());
      for (std::uint32_t slot = middle + 1; slot <= middle + upper; ++slot) {
        node.set_used(node.slot(slot), false);
        memory.compute(0, kChangeBit);
      }
      for (std::uint32_t slot = 1; slot <= upper; ++slot) {
        memory.compute(0, kMoveSlot);
        if (how == Split::kCopy) {
          fresh.set_slot(slot, fresh.slot(middle + slot));
          continue;
        }
        fresh.set_slot(slot, slot - 1);
        fresh.set_pair(slot - 1, node.pair(node.slot(middle + slot)));
        fresh.set_used(slot - 1, true);
        memory.compute(0, kChangeBit + kMovePairByPlace);
      }
      if (how == Split::kCopy) {
        for (std::uint32_t word = 0; word < geometry.bitmap_words; ++word)
          fresh.set_bitmap_word(word, ~node.bitmap_word(word) & all_used(node, word));
      }
      fresh.set_slot(0, upper);
      node.set_slot(0, middle);
      smallest = fresh.key(fresh.slot(1));
      break;
    }
    case Layout::kHashing:
    case Layout::kBitmap: {
      persistence.will_change_front(node);
      smallest = split_key(node);
      if (how == Split::kCopy) {
        std::array<std::uint64_t, kMostNodeBytes / kPairBytes / 64 + 1> lower{};
        scan_array(memory, node.key_at(0), kKeyBytes, geometry.entries, kCompareKey + kChangeBit,
                   [&](std::uint32_t at, std::span<const std::byte> bytes) {
                     lower[at / 64] |= std::uint64_t{key_of(bytes) < smallest} << at % 64;
                     return false;
                   });
        copy_node(node, fresh, persistence.changes());
        for (std::uint32_t word = 0; word < geometry.bitmap_words; ++word) {
          node.set_bitmap_word(word, lower[word]);
          fresh.set_bitmap_word(word, ~lower[word] & all_used(node, word));
        }
        break;
      }
      std::uint32_t upper = 0;
      for (std::uint32_t at = 0; at < geometry.entries; ++at) {
        memory.compute(0, kCompareKey);
        if (node.key(at) < smallest)
          continue;
        fresh.set_pair(upper, node.pair(at));
        if (geometry.layout == Layout::kHashing)
          fresh.set_hash(upper, node.hash(at));
        fresh.set_used(upper, true);
        node.set_used(at, false);
        memory.compute(0, 2 * kChangeBit + kMovePair);
        ++upper;
      }
      break;
    }
  }
  link_behind(persistence, node, fresh);
  return smallest;
}

}  // namespace pmsim::blocks::node
