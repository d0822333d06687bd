#pragma once

#include <cstdint>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/time_ledger.hpp"
#include "pmsim/machine/timed_op.hpp"

namespace pmsim::machine {

/// A load, or a prefetch, that has left the front end and has not been served: it waits for an address, a
/// translation, a fill buffer or its module.
struct PendingLoad {
  TimedOp op;
  std::uint64_t slot;
  int producer;  ///< index of that producer, -1: none, kAtModule: a module will say when it has read the line
  Picoseconds translated = 0;   ///< until then it waits for its translation; 0: it need not
  Picoseconds issued = 0;       ///< until then for a fill buffer,
  Cause buffer = Cause::kCore;  ///< which was held for that
};

/// A prefetch of the hardware that a pending load will cause when it issues.
struct WaitingPrefetch {
  std::uint64_t line;
  std::uint8_t level;  ///< that has the line
  int load;            ///< its place among the pending ones
};

}  // namespace pmsim::machine
