#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// A winner tree over the next event times of a fixed set of agents: an update goes up its O(log n) nodes. Ties
/// go to the agent with the smaller index, so the order of events is defined.
///
/// Nodes are keys alone: on the way up that is one minimum a level, and the whole tree of a few dozen agents
/// has a few cache lines of the host. The way down to an agent waits for the host at every level; so the
/// runner-up is looked for before the earliest agent acts, and the host does both at once.
class Tournament {
 public:
  explicit Tournament(std::size_t agents)
      : leaves_(std::bit_ceil(std::max<std::size_t>(2, agents))), keys_(2 * leaves_, kNever) {}

  [[nodiscard]] std::size_t earliest() const noexcept { return earliest_; }
  [[nodiscard]] Picoseconds earliest_key() const noexcept { return keys_[1]; }

  void set(std::size_t agent, Picoseconds key) noexcept {
    update(agent, key);
    const Picoseconds first = keys_[leaves_ + earliest_];
    if (agent == earliest_) {
      earliest_ = leftmost_with(keys_[1], 1);
    } else if (key < first || (key == first && agent < earliest_)) {
      earliest_ = agent;
    }
  }

  /// Who is next after the earliest agent.
  struct RunnerUp {
    std::size_t agent;
    /// Up to and including this time the earliest one may act: at the key of the runner-up it wins if its index
    /// is the smaller one.
    Picoseconds horizon;
  };
  [[nodiscard]] RunnerUp runner_up() const noexcept {
    Picoseconds horizon = kNever;
    Picoseconds key = kNever;
    std::size_t best = 1;
    for (std::size_t node = leaves_ + earliest_; node > 1; node /= 2) {
      const Picoseconds other = keys_[node ^ 1];
      // Who sits to the left has smaller indices than all who have been looked at, and wins a tie. Keys are
      // never negative, so the comparison may be unsigned: kNever + 1 is no overflow.
      const std::size_t left = node & 1;
      const bool wins = static_cast<std::uint64_t>(other) < static_cast<std::uint64_t>(key) + left;
      key = wins ? other : key;
      best = wins ? node ^ 1 : best;
      horizon = std::min(horizon, other - static_cast<Picoseconds>(left));
    }
    return RunnerUp{leftmost_with(key, best), horizon};
  }

  /// The earliest agent has acted and wants to act again at `key`; nothing else has changed since runner_up().
  void replace_earliest(Picoseconds key, const RunnerUp& next) noexcept {
    update(earliest_, key);
    earliest_ = key > next.horizon ? next.agent : earliest_;
  }

 private:
  void update(std::size_t agent, Picoseconds key) noexcept {
    Picoseconds* const keys = keys_.data();
    std::size_t node = leaves_ + agent;
    keys[node] = key;
    for (; node > 1; node /= 2) {
      key = std::min(key, keys[node ^ 1]);
      keys[node / 2] = key;
    }
  }
  /// The agent with the smallest index below `node` that has its key.
  [[nodiscard]] std::size_t leftmost_with(Picoseconds key, std::size_t node) const noexcept {
    while (node < leaves_) {
      node = 2 * node + static_cast<std::size_t>(keys_[2 * node] != key);
    }
    return node - leaves_;
  }

  std::size_t leaves_;
  std::vector<Picoseconds> keys_;  ///< 1 is the root; the children of n are 2 n and 2 n + 1
  std::size_t earliest_ = 0;
};

}  // namespace pmsim::machine
