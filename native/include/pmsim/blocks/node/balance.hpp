#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "pmsim/blocks/node/costs.hpp"
#include "pmsim/blocks/node/insert.hpp"
#include "pmsim/blocks/node/node.hpp"
#include "pmsim/blocks/node/persistence.hpp"

namespace pmsim::blocks::node {

/// Number of pairs in a node.
template <memory::Memory M>
[[nodiscard]] std::uint32_t size_of(const Node<M>& node) {
  const Geometry& geometry = node.geometry();
  if (!has_bitmap(geometry.layout))
    return node.count();
  if (geometry.layout == Layout::kIndirection)
    return node.slot(0);
  std::uint32_t used = 0;
  for (std::uint32_t word = 0; word < geometry.bitmap_words; ++word)
    used += static_cast<std::uint32_t>(std::popcount(node.bitmap_word(word)));
  node.memory().compute(0, kFreeInWord * geometry.bitmap_words);
  return used;
}

/// The place of the smallest (largest) key of a node without order.
template <memory::Memory M>
[[nodiscard]] std::uint32_t extreme(const Node<M>& node, bool largest) {
  const Geometry& geometry = node.geometry();
  const bool bits = has_bitmap(geometry.layout);
  const std::uint32_t end = bits ? geometry.entries : node.count();
  std::uint64_t word = 0;
  std::uint64_t best = largest ? 0 : std::numeric_limits<std::uint64_t>::max();
  std::uint32_t place = 0;
  scan_array(node.memory(), node.key_at(0), kKeyBytes, end, kFindMinimum,
             [&](std::uint32_t at, std::span<const std::byte> bytes) {
               if (bits && at % 64 == 0)
                 word = node.bitmap_word(at / 64);
               const std::uint64_t key = key_of(bytes);
               if ((!bits || (word >> at % 64 & 1) != 0) && (largest ? key >= best : key <= best)) {
                 best = key;
                 place = at;
               }
               return false;
             });
  return place;
}

/// Micro-operation E9: gives pairs of a node to a neighbour until both have about as many. `to_larger`: the
/// receiver has the larger keys.
///
/// Steps as in the published program (balanceLeafNodes of each tree): blocks of a sorted node, slots of an
/// indirection node; without order the next extreme key is looked for before every move.
template <memory::Memory M>
void balance(Persistence<M>& persistence, Node<M>& donor, Node<M>& receiver, bool to_larger) {
  const Geometry& geometry = donor.geometry();
  M& memory = donor.memory();
  const std::uint32_t given = size_of(donor);
  const std::uint32_t had = size_of(receiver);
  const std::uint32_t stay = (given + had) / 2;
  if (given <= stay)
    return;
  const std::uint32_t moved = given - stay;

  persistence.will_change_front(donor);
  persistence.will_change_front(receiver);
  persistence.will_change_pairs(receiver);
  if (!has_bitmap(geometry.layout) && !(geometry.layout == Layout::kSorted && to_larger)) {
    persistence.will_change_pairs(donor);
  }

  switch (geometry.layout) {
    case Layout::kSorted:
      if (to_larger)
        move_pairs(receiver, 0, moved, had);
      for (std::uint32_t at = 0; at < moved; ++at) {
        receiver.set_pair(to_larger ? at : had + at, donor.pair(to_larger ? stay + at : at));
        memory.compute(0, kMovePair);
      }
      if (!to_larger)
        move_pairs(donor, moved, 0, stay);
      receiver.set_count(had + moved);
      donor.set_count(stay);
      return;
    case Layout::kUnsorted:
      for (std::uint32_t at = 0; at < moved; ++at) {
        const std::uint32_t place = extreme(donor, to_larger);
        const std::uint32_t last = given - at - 1;
        receiver.set_pair(had + at, donor.pair(place));
        receiver.set_count(had + at + 1);
        donor.set_count(last);
        donor.set_pair(place, donor.pair(last));
        memory.compute(0, 2 * kMovePairByPlace);
      }
      return;
    case Layout::kIndirection:
      if (to_larger)
        move_slots(receiver, 1, moved + 1, had);
      for (std::uint32_t at = 0; at < moved; ++at) {
        const std::uint32_t from = donor.slot(to_larger ? stay + at + 1 : at + 1);
        const std::uint32_t to = free_place(receiver);
        receiver.set_pair(to, donor.pair(from));
        receiver.set_slot(to_larger ? at + 1 : had + at + 1, to);
        receiver.set_used(to, true);
        donor.set_used(from, false);
        memory.compute(0, kMovePairByPlace + 2 * kChangeBit);
      }
      if (!to_larger)
        move_slots(donor, moved + 1, 1, stay);
      donor.set_slot(0, stay);
      receiver.set_slot(0, had + moved);
      return;
    case Layout::kHashing:
    case Layout::kBitmap:
      for (std::uint32_t at = 0; at < moved; ++at) {
        const std::uint32_t from = extreme(donor, to_larger);
        const std::uint32_t to = free_place(receiver);
        const Pair pair = donor.pair(from);
        receiver.set_pair(to, pair);
        if (geometry.layout == Layout::kHashing)
          receiver.set_hash(to, hash_of(pair.key));
        receiver.set_used(to, true);
        donor.set_used(from, false);
        memory.compute(0, kMovePairByPlace + 2 * kChangeBit);
      }
      return;
  }
}

}  // namespace pmsim::blocks::node
