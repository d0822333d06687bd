#pragma once

#include <stdexcept>
#include <string>

namespace pmsim {

/// The user asked for something that cannot be: the message names the key and the remedy.
/// Becomes pmsim.ConfigError in Python.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The data do not fit into the memories that they were given: a sweep over capacities goes on without the
/// point. Becomes pmsim.CapacityError in Python.
class CapacityError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// The simulation needs more memory than the machine has that runs it. Nothing about the simulated machine: on
/// another host, or alone on this one, the same point has a result. Becomes pmsim.HostMemoryError in Python.
class HostMemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The simulation broke one of its own rules (a deadlock, an impossible state): a bug of pmsim.
/// Becomes pmsim.SimulationError in Python.
class SimulationError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Out of line, so that a check is no more than its branch where it stands.
[[noreturn, gnu::cold, gnu::noinline]] inline void broken_invariant(const char* message) {
  throw SimulationError(std::string("pmsim bug: ") + message);
}

/// Checks an invariant in every build; the cost of one predictable branch.
inline void ensure(bool condition, const char* message) {
  if (!condition) [[unlikely]]
    broken_invariant(message);
}

}  // namespace pmsim
