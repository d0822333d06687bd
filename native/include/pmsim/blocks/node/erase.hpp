#pragma once

#include <cstdint>

#include "pmsim/blocks/node/costs.hpp"
#include "pmsim/blocks/node/insert.hpp"
#include "pmsim/blocks/node/node.hpp"
#include "pmsim/blocks/node/persistence.hpp"

namespace pmsim::blocks::node {

/// Micro-operation E8: takes a pair out of a node, at the place (indirection: the slot) that a search has
/// found.
///
/// Ordered: nodes with a bitmap clear one bit, which publishes itself. Unsorted nodes move their last pair over
/// the one that goes: 24 bytes that are published already, and that a crash could tear. Like sorted nodes they
/// need a transaction.
template <memory::Memory M>
void erase(Persistence<M>& persistence, Node<M>& node, std::uint32_t position) {
  switch (node.geometry().layout) {
    case Layout::kSorted: {
      persistence.will_change_front(node);
      persistence.will_change_pairs(node);
      const std::uint32_t count = node.count();
      move_pairs(node, position + 1, position, count - 1 - position);
      node.set_count(count - 1);
      return;
    }
    case Layout::kUnsorted: {
      persistence.will_change_front(node);
      persistence.will_change_pairs(node);
      const std::uint32_t last = node.count() - 1;
      node.set_count(last);
      if (position != last)
        node.set_pair(position, node.pair(last));
      return;
    }
    case Layout::kIndirection: {
      persistence.will_change_front(node);
      const std::uint32_t count = node.slot(0);
      node.memory().compute(0, kChangeBit);
      node.set_used(node.slot(position), false);
      move_slots(node, position + 1, position, count - position);
      node.set_slot(0, count - 1);
      return;
    }
    case Layout::kHashing:
    case Layout::kBitmap:
      persistence.will_change_front(node);
      node.memory().compute(0, kChangeBit);
      node.set_used(position, false);
      return;
  }
}

/// Whether `persist` makes an insert into or an erase from a node of this layout failure-atomic by order alone.
[[nodiscard]] constexpr bool can_be_ordered(Layout layout, bool inserts) noexcept {
  return has_bitmap(layout) || (layout == Layout::kUnsorted && inserts);
}

}  // namespace pmsim::blocks::node
