#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// A winner tree over the next event times of a fixed set of agents: the earliest agent in O(1), an update in
/// O(log n). Ties go to the agent with the smaller index, so the order of events is defined.
///
/// Every node carries its winner's key: on the way up an update reads siblings whose places it knows
/// beforehand.
class Tournament {
 public:
  explicit Tournament(std::size_t agents)
      : leaves_(std::bit_ceil(std::max<std::size_t>(2, agents))), nodes_(2 * leaves_) {
    for (std::size_t node = 2 * leaves_ - 1; node > 0; --node) {
      nodes_[node] = node >= leaves_ ? Node{kNever, node - leaves_} : nodes_[node * 2];
    }
  }

  [[nodiscard]] std::size_t earliest() const noexcept { return nodes_[1].agent; }
  [[nodiscard]] Picoseconds earliest_key() const noexcept { return nodes_[1].key; }
  [[nodiscard]] Picoseconds key(std::size_t agent) const noexcept { return nodes_[leaves_ + agent].key; }

  void set(std::size_t agent, Picoseconds key) noexcept {
    std::size_t node = leaves_ + agent;
    Node winner{key, agent};
    nodes_[node] = winner;
    for (; node > 1; node /= 2) {
      const Node& sibling = nodes_[node ^ 1];
      // The left one wins a tie. Keys are never negative, so the comparison may be unsigned: kNever + 1 is no
      // overflow.
      const bool lost =
          static_cast<std::uint64_t>(sibling.key) < static_cast<std::uint64_t>(winner.key) + (node & 1);
      winner.key = lost ? sibling.key : winner.key;
      winner.agent = lost ? sibling.agent : winner.agent;
      nodes_[node / 2] = winner;
    }
  }

  /// Until when `agent`, which must be the earliest, stays the earliest: it may act up to and including this
  /// time. At the key of the next one it wins if its index is the smaller one.
  [[nodiscard]] Picoseconds horizon(std::size_t agent) const noexcept {
    Picoseconds horizon = kNever;
    for (std::size_t node = agent + leaves_; node > 1; node /= 2) {
      // Whoever sits to the left has smaller indices and wins a tie.
      horizon = std::min(horizon, nodes_[node ^ 1].key - static_cast<Picoseconds>(node & 1));
    }
    return horizon;
  }

 private:
  struct Node {
    Picoseconds key = kNever;
    std::size_t agent = 0;
  };

  std::size_t leaves_;
  std::vector<Node> nodes_;  ///< 1 is the root; the children of n are 2 n and 2 n + 1
};

}  // namespace pmsim::machine
