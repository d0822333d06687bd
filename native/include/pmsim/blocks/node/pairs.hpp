#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pmsim/blocks/node/node.hpp"

namespace pmsim::blocks::node {

/// All pairs of a node in the order of their keys, for checks and recovery: what its layout says that it holds.
template <memory::Memory M>
[[nodiscard]] std::vector<Pair> pairs_of(const Node<M>& node) {
  std::vector<Pair> pairs;
  const Geometry& geometry = node.geometry();
  if (has_bitmap(geometry.layout)) {
    for (std::uint32_t at = 0; at < geometry.entries; ++at) {
      if (node.used(at))
        pairs.push_back(node.pair(at));
    }
  } else {
    const std::uint32_t count = std::min(node.count(), geometry.entries);
    for (std::uint32_t at = 0; at < count; ++at)
      pairs.push_back(node.pair(at));
  }
  std::ranges::sort(pairs, {}, &Pair::key);
  return pairs;
}

}  // namespace pmsim::blocks::node
