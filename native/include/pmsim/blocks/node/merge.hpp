#pragma once

#include <cstdint>

#include "pmsim/blocks/node/balance.hpp"
#include "pmsim/blocks/node/costs.hpp"
#include "pmsim/blocks/node/insert.hpp"
#include "pmsim/blocks/node/node.hpp"
#include "pmsim/blocks/node/persistence.hpp"

namespace pmsim::blocks::node {

/// Micro-operation E10: moves all pairs of a node into its neighbour with the smaller keys, which has room for
/// them, and takes the empty one out of the list. The caller deallocates it.
///
/// Steps as in the published program (mergeLeafNodes of each tree).
template <memory::Memory M>
void merge(Persistence<M>& persistence, Node<M>& target, Node<M>& source) {
  const Geometry& geometry = target.geometry();
  M& memory = target.memory();
  persistence.will_change_front(target);
  persistence.will_change_pointers(target);
  persistence.will_change_pairs(target);

  switch (geometry.layout) {
    case Layout::kSorted:
    case Layout::kUnsorted: {
      const std::uint32_t had = target.count();
      const std::uint32_t moved = source.count();
      for (std::uint32_t at = 0; at < moved; ++at) {
        target.set_pair(had + at, source.pair(at));
        memory.compute(0, kMovePair);
      }
      target.set_count(had + moved);
      break;
    }
    case Layout::kIndirection: {
      const std::uint32_t had = target.slot(0);
      const std::uint32_t moved = source.slot(0);
      for (std::uint32_t slot = 1; slot <= moved; ++slot) {
        const std::uint32_t to = free_place(target);
        target.set_pair(to, source.pair(source.slot(slot)));
        target.set_slot(had + slot, to);
        target.set_used(to, true);
        memory.compute(0, kMovePairByPlace + kChangeBit);
      }
      target.set_slot(0, had + moved);
      break;
    }
    case Layout::kHashing:
    case Layout::kBitmap:
      for (std::uint32_t at = 0; at < geometry.entries; ++at) {
        memory.compute(0, kCompareKey + kChangeBit);
        if (!source.used(at))
          continue;
        const std::uint32_t to = free_place(target);
        target.set_pair(to, source.pair(at));
        if (geometry.layout == Layout::kHashing)
          target.set_hash(to, source.hash(at));
        target.set_used(to, true);
        memory.compute(0, kMovePairByPlace + kChangeBit);
      }
      break;
  }

  const Address next = source.next();
  target.set_next(next);
  if (next != 0) {
    Node<M> neighbour(memory, geometry, next, persistence.changes());
    persistence.will_change_pointers(neighbour);
    neighbour.set_prev(target.base());
  }
}

}  // namespace pmsim::blocks::node
