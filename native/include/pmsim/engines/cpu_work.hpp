#pragma once

#include <algorithm>
#include <cstdint>

#include "pmsim/memory/memory.hpp"

namespace pmsim::engines {

/// CPU work besides the instructions that the algorithms count: one instruction per cycle. In pieces, because a
/// core takes instructions into its window one by one: a piece as large as the window would first wait for
/// every earlier load, which ordinary code overlaps with.
template <memory::Memory M>
void cpu_work(M& memory, std::uint32_t cycles) {
  constexpr std::uint32_t kPiece = 32;
  for (; cycles > 0; cycles -= std::min(cycles, kPiece)) {
    const std::uint32_t piece = std::min(cycles, kPiece);
    memory.compute(piece, piece);
  }
}

}  // namespace pmsim::engines
