#pragma once

#include <cstdint>

#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::wal {

/// How much log it takes at most to take back the open transaction, from what it has logged: to insert erased
/// rows again, and to split the pages again that were merged, logs more than to erase them. No proof, but the
/// most over tables of rows of 1 to 2,000 bytes, full and half full, in three orders: 2.3 times as much in
/// sorted leaves, and 3 in hashed ones, which a split writes anew; inserted and updated rows 0.9
/// (native tests EngineRollback).
class RollbackBound {
 public:
  explicit RollbackBound(bool hashed_leaves) noexcept : erased_(hashed_leaves ? 4 : 3) {}

  void begin_operation(UndoRecord::Kind kind) noexcept {
    weight_ = kind == UndoRecord::Kind::kErase ? erased_ : kOther;
  }
  void add(std::uint64_t logged_bytes) noexcept { bytes_ += logged_bytes * weight_; }
  /// Another transaction.
  void clear() noexcept {
    bytes_ = 0;
    weight_ = kOther;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::uint64_t kOther = 2;
  std::uint64_t erased_;
  std::uint64_t weight_ = kOther;
  std::uint64_t bytes_ = 0;
};

}  // namespace pmsim::engines::wal
