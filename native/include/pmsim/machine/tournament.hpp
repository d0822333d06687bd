#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// A winner tree over the next event times of a fixed set of agents: an update goes up its O(log n) nodes, and
/// whoever asks for the earliest agent goes down. Ties go to the agent with the smaller index, so the order of
/// events is defined.
///
/// Nodes are keys alone: on the way up that is one minimum a level, and the whole tree of a few dozen agents
/// has a few cache lines of the host.
class Tournament {
 public:
  explicit Tournament(std::size_t agents)
      : leaves_(std::bit_ceil(std::max<std::size_t>(2, agents))), keys_(2 * leaves_, kNever) {}

  [[nodiscard]] std::size_t earliest() const noexcept {
    std::size_t node = 1;
    while (node < leaves_) {
      // To the left where the winner came from there; it does where both have its key.
      node = 2 * node + static_cast<std::size_t>(keys_[2 * node] != keys_[1]);
    }
    return node - leaves_;
  }
  [[nodiscard]] Picoseconds earliest_key() const noexcept { return keys_[1]; }
  [[nodiscard]] Picoseconds key(std::size_t agent) const noexcept { return keys_[leaves_ + agent]; }

  void set(std::size_t agent, Picoseconds key) noexcept {
    Picoseconds* const keys = keys_.data();
    std::size_t node = leaves_ + agent;
    keys[node] = key;
    for (; node > 1; node /= 2) {
      key = std::min(key, keys[node ^ 1]);
      keys[node / 2] = key;
    }
  }

  /// Until when `agent`, which must be the earliest, stays the earliest: it may act up to and including this
  /// time. At the key of the next one it wins if its index is the smaller one.
  [[nodiscard]] Picoseconds horizon(std::size_t agent) const noexcept {
    Picoseconds horizon = kNever;
    for (std::size_t node = agent + leaves_; node > 1; node /= 2) {
      // Whoever sits to the left has smaller indices and wins a tie.
      horizon = std::min(horizon, keys_[node ^ 1] - static_cast<Picoseconds>(node & 1));
    }
    return horizon;
  }

 private:
  std::size_t leaves_;
  std::vector<Picoseconds> keys_;  ///< 1 is the root; the children of n are 2 n and 2 n + 1
};

}  // namespace pmsim::machine
