#pragma once

#include <cstdint>

#include "pmsim/memory/memory.hpp"

namespace pmsim::engines::btree {

/// Instructions of one round of the search besides its load: halve, add, compare, branch, subtract, loop.
inline constexpr std::uint32_t kProbeInstructions = 6;

/// Binary search over `count` ascending keys: how many are < key, or <= key where kUpper (std::lower_bound,
/// std::upper_bound).
///
/// The code assumed is the branching one that g++ 12 -O2 makes of std::lower_bound: the core guesses where the
/// search goes on and runs ahead. A random key goes right half of the time, and a predictor knows no better; a
/// guess of "left" is therefore as good as any, and each turn to the right is a mispredicted branch. (Where the
/// guess is right the next probe's load has been issued before this one's value is there: branches overlap
/// misses, which conditional moves do not.)
///
/// address_of(slot) makes the key of a slot resident and returns its address.
template <typename Key, bool kUpper, memory::Memory M, typename AddressOf>
[[nodiscard]] inline std::uint32_t search(M& memory, std::uint32_t count, Key key, AddressOf&& address_of) {
  std::uint32_t low = 0;
  std::uint32_t rounds = 0;
  while (count > 0) {
    const std::uint32_t half = count / 2;
    const Key probe = memory.template load<Key>(address_of(low + half));
    if (kUpper ? probe <= key : probe < key) {
      memory.mispredict();
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
    ++rounds;
  }
  memory.compute(0, rounds * kProbeInstructions + 1);
  return low;
}

}  // namespace pmsim::engines::btree
