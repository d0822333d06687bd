#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pmsim/memory/micro_op.hpp"

namespace pmsim::memory {

/// The copy behind Memory::copy_lines: 16 bytes at a time on the portable baseline (SSE2), four lines a turn,
/// so that pointers and loop cost a quarter. Between two misses of a core that fills its window the turns
/// count.
inline void copy_lines(std::byte* to, const std::byte* from, std::uint32_t lines) noexcept {
  constexpr std::ptrdiff_t kTurn = 4 * kLineBytes;
  const std::byte* const end = from + std::size_t{lines} * kLineBytes;
  // One line after the other: all of a line is asked for before the next one.
  for (; end - from >= kTurn; to += kTurn, from += kTurn) {
    std::memcpy(to, from, kLineBytes);
    std::memcpy(to + kLineBytes, from + kLineBytes, kLineBytes);
    std::memcpy(to + 2 * kLineBytes, from + 2 * kLineBytes, kLineBytes);
    std::memcpy(to + 3 * kLineBytes, from + 3 * kLineBytes, kLineBytes);
  }
  for (; from != end; to += kLineBytes, from += kLineBytes)
    std::memcpy(to, from, kLineBytes);
}

/// Its instructions, g++ 12 -O2 for baseline x86-64, beside one load and one store per line, which are
/// micro-operations of their own. benchmarks/gather.cpp counts them.
struct CopyInstructions {
  static constexpr std::uint32_t kEntry = 6;  ///< its end, whether there is a turn, whether something is left
  static constexpr std::uint32_t kTurn = 30;  ///< four lines: 24 more moves, two pointers, four of the loop
  static constexpr std::uint32_t kOdd = 2;    ///< once, where lines are left
  static constexpr std::uint32_t kOddLine = 10;  ///< six more moves, two pointers, compare, branch
  /// Of one line of a copy, in order: four of a turn make up kTurn.
  [[nodiscard]] static constexpr std::uint32_t of(std::uint32_t line, std::uint32_t lines) noexcept {
    if (line >= lines / 4 * 4)
      return kOddLine;
    return (line % 4 + 1) * kTurn / 4 - line % 4 * kTurn / 4;
  }
};

}  // namespace pmsim::memory
