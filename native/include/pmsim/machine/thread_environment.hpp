#pragma once

#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/fills.hpp"
#include "pmsim/machine/group_commit.hpp"
#include "pmsim/machine/latch_table.hpp"
#include "pmsim/machine/line_transfers.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/timed_op.hpp"

/// What a virtual thread acts in: who feeds it, and what it shares with the other threads of its lane.
namespace pmsim::machine {

/// Supplies a virtual thread with classified micro-operations, batch by batch.
class Feed {
 public:
  Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  virtual ~Feed() = default;
  /// The next operations of `thread`: [first, last), valid until its next call. Empty: the thread has finished.
  virtual void next(std::uint32_t thread, const TimedOp*& first, const TimedOp*& last) = 0;
  /// Whether an empty answer means "nothing for now": the thread then sleeps until wake().
  [[nodiscard]] virtual bool sleeps() const noexcept { return false; }
};

/// An operation that has retired: everything between its begin and its end, fences included.
struct Retired {
  std::uint32_t thread;
  Picoseconds begin;
  Picoseconds end;  ///< never before the time of the action that made it known
};

/// What the cores of a lane share besides memory.
struct CoreTraffic {
  CoreTraffic(const PlatformParams& params, std::uint32_t threads)
      : transfers(params.llc.transfer_latency), latches(threads), group(threads) {}
  LaneFills fills;
  LineTransfers transfers;
  LatchTable latches;
  GroupCommit group;
};

/// How far the threads of a lane have come together, and where they stop to be looked at.
struct Progress {
  Picoseconds clock = 0;        ///< who acts now acts at that time
  std::int64_t operations = 0;  ///< ended so far
  std::int64_t goal = 0;        ///< a thread that ends this many stops at once
  Picoseconds reached_at = 0;   ///< when the latest operation ended
  std::int64_t taken = 0;       ///< timed operations handed out so far
  std::int64_t may_take = 0;    ///< a thread that takes this many stops before its next operation
  bool reports = false;         ///< operations are written to `retired`, and a thread stops at each
  std::vector<Retired> retired;
};

}  // namespace pmsim::machine
