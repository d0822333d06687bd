#pragma once

#include <bit>
#include <cstdint>

#include "pmsim/blocks/node/costs.hpp"
#include "pmsim/blocks/node/node.hpp"
#include "pmsim/blocks/node/persistence.hpp"

namespace pmsim::blocks::node {

/// The first place that holds no pair, of a node with a bitmap; `entries` where it is full.
template <memory::Memory M>
[[nodiscard]] std::uint32_t free_place(const Node<M>& node) {
  const Geometry& geometry = node.geometry();
  for (std::uint32_t word = 0; word < geometry.bitmap_words; ++word) {
    const std::uint64_t used = node.bitmap_word(word);
    const auto first = static_cast<std::uint32_t>(std::countr_one(used));
    node.memory().compute(0, geometry.bitmap_words == 1 ? kFreeInWord : kFreePerBit * (first + 1));
    if (first < node.bits_in(word))
      return word * 64 + first;
  }
  return geometry.entries;
}

/// Moves `count` pairs from one place of a node to another, last or first one first, as the shift of a sorted
/// node needs it.
template <memory::Memory M>
void move_pairs(Node<M>& node, std::uint32_t from, std::uint32_t to, std::uint32_t count) {
  for (std::uint32_t moved = 0; moved < count; ++moved) {
    const std::uint32_t at = to > from ? count - 1 - moved : moved;
    node.set_pair(to + at, node.pair(from + at));
    node.memory().compute(0, kMovePair);
  }
}

/// Likewise for slots.
template <memory::Memory M>
void move_slots(Node<M>& node, std::uint32_t from, std::uint32_t to, std::uint32_t count) {
  for (std::uint32_t moved = 0; moved < count; ++moved) {
    const std::uint32_t at = to > from ? count - 1 - moved : moved;
    node.set_slot(to + at, node.slot(from + at));
    node.memory().compute(0, kMoveSlot);
  }
}

/// Micro-operation E4: puts a pair into a node that has room, whose place the search has found: of a sorted
/// node where the key belongs, of an indirection node the slot where it belongs (from 1), of a hashing or
/// bitmap node a free place; of no meaning for unsorted ones.
///
/// Ordered: a pair is durable before the count or the bit that publishes it is stored. Slots are not 8 bytes,
/// so they may be torn; recovery makes them anew from bitmap and keys (recover.hpp). Sorted nodes move what is
/// already published: they have no order that would help, only a transaction.
template <memory::Memory M>
void insert(Persistence<M>& persistence, Node<M>& node, std::uint32_t position, const Pair& pair) {
  switch (node.geometry().layout) {
    case Layout::kSorted: {
      persistence.will_change_front(node);
      persistence.will_change_pairs(node);
      const std::uint32_t count = node.count();
      move_pairs(node, position, position + 1, count - position);
      node.set_pair(position, pair);
      node.set_count(count + 1);
      return;
    }
    case Layout::kUnsorted: {
      persistence.will_change_pairs(node);
      persistence.will_change_front(node);
      const std::uint32_t count = node.count();
      node.set_pair(count, pair);
      persistence.publish();
      node.set_count(count + 1);
      return;
    }
    case Layout::kIndirection: {
      persistence.will_change_front(node);
      persistence.will_change_pairs(node);
      const std::uint32_t place = free_place(node);
      node.set_pair(place, pair);
      persistence.publish();
      const std::uint32_t count = node.slot(0);
      move_slots(node, position, position + 1, count + 1 - position);
      node.set_slot(position, place);
      node.memory().compute(0, kChangeBit);
      node.set_used(place, true);
      node.set_slot(0, count + 1);
      return;
    }
    case Layout::kHashing:
    case Layout::kBitmap: {
      persistence.will_change_pairs(node);
      persistence.will_change_front(node);
      node.set_pair(position, pair);
      if (node.geometry().layout == Layout::kHashing)
        node.set_hash(position, hash_of(pair.key));
      persistence.publish();
      node.memory().compute(0, kChangeBit);
      node.set_used(position, true);
      return;
    }
  }
}

}  // namespace pmsim::blocks::node
