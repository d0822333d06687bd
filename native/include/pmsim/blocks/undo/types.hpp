#pragma once

#include <cstdint>

#include "pmsim/core/error.hpp"
#include "pmsim/memory/memory.hpp"

/// Failure-atomic transactions as PMDK has them (libpmemobj 1.8, src/libpmemobj/{tx,ulog,memops,palloc,lane}.c;
/// comments name the function that they follow), for P. Goetze, A. K. Tharanatha, K.-U. Sattler, "Data
/// structure primitives on persistent memory: an evaluation", DaMoN 2020.
namespace pmsim::blocks::undo {

using memory::Address;
using memory::kLineBytes;
using memory::Memory;
using memory::Site;

/// Where something lives. open() must be given the same place as create().
struct Place {
  Address base = 0;         ///< on a line; all zero when it is created
  std::uint64_t bytes = 0;  ///< whole lines
};

struct Options {
  /// CPU cycles of each call of the library (begin, add_range, allocate, free, commit, abort): what PMDK
  /// computes and looks up in DRAM besides the bytes that it moves, flushes and checks, which are counted as
  /// they are.
  std::uint32_t library_cycles = 0;
};

/// A transaction has no room for what it wants to note. Nothing of it has been written then; the transaction is
/// as before the call.
class UndoLogFull : public ConfigError {
 public:
  UndoLogFull(std::uint64_t needed, std::uint64_t free, std::uint64_t capacity);
  explicit UndoLogFull(std::uint64_t actions);
};

/// What a log entry does to its target: the top three bits of its first word (ulog.h, ulog_operation_type).
enum class Operation : std::uint8_t { kSet = 0, kAnd = 1, kOr = 2, kRestore = 6 };
inline constexpr int kOperationShift = 61;
inline constexpr std::uint64_t kTargetMask = (std::uint64_t{1} << kOperationShift) - 1;

[[nodiscard]] constexpr std::uint64_t target_word(Operation operation, Address target) noexcept {
  return static_cast<std::uint64_t>(operation) << kOperationShift | target;
}
[[nodiscard]] constexpr Operation operation_of(std::uint64_t word) noexcept {
  return static_cast<Operation>(word >> kOperationShift);
}
[[nodiscard]] constexpr Address target_of(std::uint64_t word) noexcept { return word & kTargetMask; }

}  // namespace pmsim::blocks::undo
