#pragma once

#include <cstdint>
#include <functional>

#include "pmsim/engines/wal/record.hpp"
#include "pmsim/engines/wal/rollback_bound.hpp"
#include "pmsim/engines/wal/undo_list.hpp"

namespace pmsim::engines::wal {

/// What the log knows of a thread and its open transaction: what a thread has in its own memory, so on the
/// host.
struct Transaction {
  std::uint64_t buffer = 0;  ///< the thread's batch buffer
  std::uint32_t log = 0;     ///< and its log
  bool open = false;
  std::uint64_t number = 0;
  Lsn age = 0;             ///< of what it changes; of one log, from where it is appended on
  std::uint64_t used = 0;  ///< of the batch buffer, by records
  Lsn first_lsn = 0;       ///< of several logs: in the batch buffer
  bool entered = false;    ///< CommitOrder
  bool undoing = false;
  Lsn first_part = 0;             ///< where parts of it are in the log already; or 0
  std::uint64_t parts_bytes = 0;  ///< in these
  RollbackBound rollback;
  std::function<void()> placed{};  ///< Engine::on_placed
  UndoList undo{};
};

}  // namespace pmsim::engines::wal
