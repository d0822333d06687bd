#pragma once

#include <cstdint>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// What the store queue of a thread knows of an entry: a store, a flush, a fence or what else it orders. A host
/// cache line each.
struct alignas(64) QueuedStore {
  std::uint64_t line;
  std::uint64_t slot;  ///< fences: their window slot
  Picoseconds dispatched;
  Picoseconds senior;  ///< when it may leave the queue: all older loads have retired; kNever: not known yet
  Picoseconds owned;   ///< stores: when the line is writable in L1; kNever: not asked for yet
  std::uint64_t fences_before;
  std::uint8_t kind;
  std::uint8_t bytes;
  std::uint8_t level;
  std::uint8_t translation;
  std::uint8_t flags;
  bool neighbour = false;  ///< store: to the line of the store right before, or the next one
};

}  // namespace pmsim::machine
