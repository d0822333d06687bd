#pragma once

#include <type_traits>

#include "pmsim/prototype.hpp"

namespace pmsim::prototype {

template <typename Run>
struct RunTraits {
  static_assert(sizeof(Run) == 0, "run() takes the memory, by reference, and one operation");
  using Value = int;  // no further errors
};
template <typename Program, typename M, typename Result, typename Operation>
struct RunTraits<Result (Program::*)(M&, Operation)> {
  using Value = std::remove_cvref_t<Operation>;
  static_assert(std::is_void_v<Result> || std::is_same_v<Result, Acknowledged>,
                "run() returns nothing, or Acknowledged");
};
template <typename Program, typename M, typename Result, typename Operation>
struct RunTraits<Result (Program::*)(M&, Operation) const> : RunTraits<Result (Program::*)(M&, Operation)> {};
template <typename Program, typename M, typename Result, typename Operation>
struct RunTraits<Result (Program::*)(M&, Operation) noexcept> : RunTraits<Result (Program::*)(M&, Operation)> {
  static_assert(sizeof(Program) == 0, "run() is noexcept, and what fails in memory passes through it");
};

/// No further errors where there is not one run().
template <typename Program>
struct OperationIn {
  static_assert(sizeof(Program) == 0, "run() is one public method, neither overloaded nor a template");
  using Value = int;
};
template <typename Program>
  requires requires { &Program::run; }
struct OperationIn<Program> : RunTraits<decltype(&Program::run)> {};

/// What `run(memory, operation)` of a program takes, as a value.
template <typename Program>
using OperationOf = typename OperationIn<Program>::Value;

/// Runs an operation, and says whether it has been acknowledged.
template <typename Program, typename M>
bool acknowledges(Program& program, M& memory, const OperationOf<Program>& operation) {
  if constexpr (std::is_void_v<decltype(program.run(memory, operation))>) {
    program.run(memory, operation);
    return true;
  } else {
    return program.run(memory, operation) == Acknowledged::kNow;
  }
}

}  // namespace pmsim::prototype
