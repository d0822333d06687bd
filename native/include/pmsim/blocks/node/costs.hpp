#pragma once

#include <cstdint>

namespace pmsim::blocks::node {

// Instructions beyond the loads and stores that the memory sees, of the compiled loops (g++ 12 -O3). Searches
// have theirs in search.hpp.

inline constexpr std::uint32_t kMovePair = 4;  ///< pair after pair, in order: two addresses, compare, branch
inline constexpr std::uint32_t kMovePairByPlace = 8;  ///< places from two variables: index, scale, add, loop
inline constexpr std::uint32_t kMoveSlot = 3;         ///< next, compare, branch
inline constexpr std::uint32_t kChangeBit = 4;        ///< word, mask, or (and)
inline constexpr std::uint32_t kFindMinimum =
    10;                                          ///< per key: bit check or compare, two conditional moves, loop
inline constexpr std::uint32_t kCompareKey = 4;  ///< split: larger than the split key?

/// A free place: one word is complemented and counted (de Bruijn), several are asked bit by bit, as the
/// published BitOperations::getFreeZero does.
inline constexpr std::uint32_t kFreeInWord = 8;
inline constexpr std::uint32_t kFreePerBit = 9;

/// std::nth_element over a copy of the keys, counted by callgrind for 8 to 160 keys in any order (253, 440,
/// 775, 1481 and 2768 instructions for 8, 18, 37, 79 and 160).
inline constexpr std::uint32_t kSelect = 120;
inline constexpr std::uint32_t kSelectPerKey = 17;

}  // namespace pmsim::blocks::node
