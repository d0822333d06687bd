#pragma once

#include "pmsim/core/error.hpp"

namespace pmsim::machine {

/// No thread of a run can go on. Where somebody else says what threads do, it is no bug of pmsim: the latches
/// of a trace may wait for each other.
class StandstillError : public SimulationError {
 public:
  using SimulationError::SimulationError;
};

/// A latch is released that nobody holds in that mode. The same of a trace.
class NotHeldError : public SimulationError {
 public:
  using SimulationError::SimulationError;
};

}  // namespace pmsim::machine
