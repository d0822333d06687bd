#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// A winner tree over the next event times of a fixed set of agents: the earliest agent in O(1), an update in
/// O(log n). Ties go to the agent with the smaller index, so the order of events is defined.
class Tournament {
 public:
  explicit Tournament(std::size_t agents)
      : leaves_(std::bit_ceil(std::max<std::size_t>(2, agents))), keys_(leaves_, kNever), winners_(leaves_) {
    for (std::size_t node = leaves_ - 1; node > 0; --node) {
      winners_[node] = node * 2 >= leaves_ ? node * 2 - leaves_ : winners_[node * 2];
    }
  }

  [[nodiscard]] std::size_t earliest() const noexcept { return winners_[1]; }
  [[nodiscard]] Picoseconds key(std::size_t agent) const noexcept { return keys_[agent]; }

  void set(std::size_t agent, Picoseconds key) noexcept {
    keys_[agent] = key;
    for (std::size_t node = (agent + leaves_) / 2; node > 0; node /= 2) {
      const std::size_t left = winner_of(node * 2);
      const std::size_t right = winner_of(node * 2 + 1);
      winners_[node] = keys_[right] < keys_[left] ? right : left;
    }
  }

  /// The earliest time among all agents but `agent`, which must be the earliest.
  [[nodiscard]] Picoseconds runner_up(std::size_t agent) const noexcept {
    Picoseconds second = kNever;
    for (std::size_t node = agent + leaves_; node > 1; node /= 2) {
      second = std::min(second, keys_[winner_of(node ^ 1)]);
    }
    return second;
  }

 private:
  [[nodiscard]] std::size_t winner_of(std::size_t node) const noexcept {
    return node >= leaves_ ? node - leaves_ : winners_[node];
  }

  std::size_t leaves_;
  std::vector<Picoseconds> keys_;
  std::vector<std::size_t> winners_;
};

}  // namespace pmsim::machine
