#pragma once

#include <cstdint>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// What a thread reads under a latch that it does not hold.
struct Reading {
  std::uint64_t line = ~std::uint64_t{0};  ///< of the latch
  Picoseconds began = 0;
  Picoseconds idle = 0;    ///< what the thread had waited for latches and devices then, in all
  Picoseconds work = 0;    ///< what reading it takes; 0: not known
  std::uint32_t held = 0;  ///< latches in hand then
};

}  // namespace pmsim::machine
