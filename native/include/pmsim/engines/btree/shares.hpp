#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pmsim::engines::btree {

/// How entries are dealt out to the nodes of a level when a tree is built: `fill` of `capacity` to each over
/// all nodes, by turns one more and one less where a node cannot hold that share exactly; at least one.
class Shares {
 public:
  Shares(double fill, std::uint32_t capacity) : each_(fill * capacity) {}

  /// Of the first `nodes` nodes together.
  [[nodiscard]] std::uint64_t until(std::uint64_t nodes) const {
    // Plus a little: 0.66 * 50 is 33 minus an error of rounding.
    const double entries = std::floor(each_ * static_cast<double>(nodes) + 1e-6);
    return std::max(nodes, static_cast<std::uint64_t>(entries));
  }
  /// Of the node with this index.
  [[nodiscard]] std::uint64_t of(std::uint64_t index) const { return until(index + 1) - until(index); }
  /// Inner nodes that have so many children, each one more than it has entries.
  [[nodiscard]] std::uint64_t nodes_above(std::uint64_t children) const {
    const auto room = [this](std::uint64_t nodes) { return until(nodes) + nodes; };
    auto nodes = static_cast<std::uint64_t>(static_cast<double>(children) / (std::max(each_, 1.0) + 1));
    while (room(nodes) < children)
      ++nodes;
    while (nodes > 1 && room(nodes - 1) >= children)
      --nodes;
    return nodes;
  }

 private:
  double each_;
};

}  // namespace pmsim::engines::btree
