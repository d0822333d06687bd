#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pmsim/blocks/node/node.hpp"

namespace pmsim::blocks::node {

/// Makes a node usable after a crash of ordered changes. The slots of an indirection node, which a crash may
/// have torn, are made anew from the bitmap and the keys, which are the truth; the other layouts need nothing.
///
/// Nothing is written back: every recovery makes the slots anew, whatever the one before has left of them.
template <memory::Memory M>
void recover(Node<M>& node) {
  const Geometry& geometry = node.geometry();
  if (geometry.layout != Layout::kIndirection)
    return;
  struct Place {
    std::uint64_t key;
    std::uint32_t at;
  };
  std::vector<Place> places;
  for (std::uint32_t at = 0; at < geometry.entries; ++at) {
    if (node.used(at))
      places.push_back({node.key(at), at});
  }
  std::ranges::sort(places, {}, &Place::key);
  node.set_slot(0, static_cast<std::uint32_t>(places.size()));
  for (std::uint32_t slot = 0; slot < places.size(); ++slot)
    node.set_slot(slot + 1, places[slot].at);
}

}  // namespace pmsim::blocks::node
