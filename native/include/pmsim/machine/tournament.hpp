#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// A winner tree over the next event times of a fixed set of agents: an update goes up its O(log n) nodes. Ties
/// go to the agent with the smaller index, so the order of events is defined.
///
/// A node is one word, an agent's key with its index below: the smaller of two words is the one that is
/// earlier, on a tie the one with the smaller index, and it says whose it is. Nobody has to go down the tree to
/// find that out. What the index takes from the key is made up for by a base that all keys count from.
///
/// Invariant: a word's key is the time since `base_`, below `never_`; `never_` stands for kNever.
class Tournament {
 public:
  explicit Tournament(std::size_t agents)
      : leaves_(std::bit_ceil(std::max<std::size_t>(2, agents))),
        index_bits_(std::countr_zero(leaves_)),
        never_((std::uint64_t{1} << (63 - index_bits_)) - 1),
        words_(2 * leaves_ + static_cast<std::size_t>(index_bits_)) {
    for (std::size_t agent = 0; agent < leaves_; ++agent) {
      words_[leaves_ + agent] = never_ << index_bits_ | agent;
    }
    play_all();
  }

  [[nodiscard]] std::size_t earliest() const noexcept { return agent_of(words_[1]); }
  [[nodiscard]] Picoseconds earliest_key() const noexcept { return key_of(words_[1]); }

  /// Up to and including this time an agent that is the earliest, or is about to be, may act before another one
  /// has to: at the key of the next one it wins if its index is the smaller one. Its own key does not count.
  /// What is met on the way is noted for set_after_horizon().
  [[nodiscard]] Picoseconds horizon(std::size_t agent) noexcept {
    std::uint64_t* const words = words_.data();
    std::uint64_t* met = words + 2 * leaves_;
    std::uint64_t next = ~std::uint64_t{0};
    for (std::size_t node = leaves_ + agent; node > 1; node /= 2) {
      next = std::min(next, words[node ^ 1]);
      *met++ = next;
    }
    return key_of(next) - (agent_of(next) < agent ? 1 : 0);
  }

  /// set() for the agent whose horizon() was the last call: no node on its way waits for the one below.
  void set_after_horizon(std::size_t agent, Picoseconds key) {
    const std::uint64_t moved = base_changes_;
    const std::uint64_t word = word_of(agent, key);
    if (base_changes_ != moved) [[unlikely]] {
      set(agent, key);
      return;
    }
    std::uint64_t* const words = words_.data();
    const std::uint64_t* met = words + 2 * leaves_;
    std::size_t node = leaves_ + agent;
    words[node] = word;
    for (node /= 2; node > 0; node /= 2) {
      words[node] = std::min(word, *met++);
    }
  }

  void set(std::size_t agent, Picoseconds key) {
    std::uint64_t word = word_of(agent, key);
    std::uint64_t* const words = words_.data();
    std::size_t node = leaves_ + agent;
    words[node] = word;
    for (; node > 1; node /= 2) {
      word = std::min(word, words[node ^ 1]);
      words[node / 2] = word;
    }
  }

 private:
  [[nodiscard]] std::uint64_t word_of(std::size_t agent, Picoseconds key) {
    const std::uint64_t never = key == kNever ? 1 : 0;
    std::uint64_t since = static_cast<std::uint64_t>(key - base_);
    since = never != 0 ? never_ : since;
    if (since >= never_ + never) [[unlikely]] {
      move_base(key);
      since = static_cast<std::uint64_t>(key - base_);
    }
    return since << index_bits_ | agent;
  }
  [[nodiscard]] std::size_t agent_of(std::uint64_t word) const noexcept { return word & (leaves_ - 1); }
  [[nodiscard]] Picoseconds key_of(std::uint64_t word) const noexcept {
    const std::uint64_t since = word >> index_bits_;
    return since == never_ ? kNever : base_ + static_cast<Picoseconds>(since);
  }

  void play_all() noexcept {
    for (std::size_t node = leaves_ - 1; node > 0; --node) {
      words_[node] = std::min(words_[2 * node], words_[2 * node + 1]);
    }
  }

  /// Moves the base to where all keys and `key` have room: once in days of virtual time for a few dozen agents,
  /// in an hour for a thousand.
  [[gnu::noinline]] void move_base(Picoseconds key) {
    Picoseconds low = key;
    Picoseconds high = key;
    for (std::size_t agent = 0; agent < leaves_; ++agent) {
      if (const Picoseconds other = key_of(words_[leaves_ + agent]); other != kNever) {
        low = std::min(low, other);
        high = std::max(high, other);
      }
    }
    const auto spread = static_cast<std::uint64_t>(high - low);
    if (spread >= never_) {
      throw ConfigError(
          "an operation takes hours or days of virtual time, more than the threads of a run can be apart; "
          "choose higher bandwidths and shorter latencies of block, or less to compute at once");
    }
    const Picoseconds before = base_;
    ++base_changes_;
    base_ = std::max<Picoseconds>(0, low - static_cast<Picoseconds>((never_ - 1 - spread) / 2));
    for (std::size_t agent = 0; agent < leaves_; ++agent) {
      std::uint64_t& word = words_[leaves_ + agent];
      if (word >> index_bits_ != never_) {
        const Picoseconds other = before + static_cast<Picoseconds>(word >> index_bits_);
        word = static_cast<std::uint64_t>(other - base_) << index_bits_ | agent;
      }
    }
    play_all();
  }

  std::size_t leaves_;
  int index_bits_;
  std::uint64_t never_;
  Picoseconds base_ = 0;
  std::uint64_t base_changes_ = 0;  ///< what horizon() has noted counts from the base of its time
  /// 1 is the root; the children of n are 2 n and 2 n + 1. Behind them what horizon() has met: at each node of
  /// its way the earliest one beside it.
  std::vector<std::uint64_t> words_;
};

}  // namespace pmsim::machine
