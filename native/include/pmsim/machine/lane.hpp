#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/core_timing.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/memory_system.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/tournament.hpp"
#include "pmsim/machine/virtual_thread.hpp"

namespace pmsim::machine {

/// The timing of one platform: its threads, cores and memory system in one virtual time. The agent (thread or
/// PMem module) that is earliest acts next, until its time passes the runner-up's.
class Lane {
 public:
  /// `coherent`: as the hierarchy that has classified what `feed` supplies.
  Lane(const PlatformParams& params, std::uint32_t threads, Feed& feed, std::uint64_t seed,
       std::uint64_t pmem_footprint, bool coherent = false);

  /// Acts until `operations` operations (over all threads) have ended, or every thread has finished, or its
  /// threads have taken `timed_operations` or a batch more from their feed. Returns true while there is work
  /// left before that goal.
  bool run(std::int64_t operations, std::int64_t timed_operations);

  /// What takes no time of what operations do before the first run(): the translations that the modules of PMem
  /// keep, and what DRAM holds in memory mode.
  void execute_untimed(std::span<const TimedOp> ops);

  /// Acts up to and including `until`. Returns the time of the next action, kNever where all threads have
  /// finished.
  Picoseconds run_until(Picoseconds until);

  /// Lets a sleeping thread ask its feed again at `at`, which must not lie before what has been acted.
  void wake(std::uint32_t thread, Picoseconds at);
  /// Acts strictly before `before`, and stops at once when an operation has retired (see take_retired()), so
  /// that the caller can give out work at that operation's end. Returns the time of the next action; kNever:
  /// all threads sleep. `poll` is called between the pieces of long operations, and may throw. SimulationError
  /// where threads act and nobody gets on, as in run().
  Picoseconds serve(Picoseconds before, const std::function<void()>& poll = {});
  /// Operations that have retired since the last call, in the order in which that became known.
  void take_retired(std::vector<Retired>& into) {
    into.clear();
    into.swap(progress_->retired);
  }
  /// See MemorySystem.
  void listen(RequestListener& listener) noexcept { memory_.listen(listener); }
  /// Faults of devices: see MemorySystem.
  void stall(memory::Medium medium, Picoseconds now, Picoseconds duration) {
    memory_.stall(medium, now, duration);
    settle_modules();
  }
  void slow(memory::Medium medium, Picoseconds now, std::int64_t percent) {
    memory_.slow(medium, now, percent);
    settle_modules();
  }
  /// Makes up for what memory devices did before `time`, so that their counters are those of that time.
  void settle(Picoseconds time) {
    memory_.catch_up_all(time);
    for (VirtualThread& thread : threads_)
      thread.settle_time(time);
  }
  /// Settles, and returns the counters without the waits that threads have begun and that end later.
  [[nodiscard]] Counters counters_at(Picoseconds time) {
    settle(time);
    Counters counters = *counters_;
    for (const VirtualThread& thread : threads_)
      thread.ledger().take_back(time, counters);
    return counters;
  }

  [[nodiscard]] bool finished() const noexcept;
  [[nodiscard]] Picoseconds now() const noexcept { return now_; }
  [[nodiscard]] std::int64_t operations() const noexcept { return progress_->operations; }
  [[nodiscard]] const Counters& counters() const noexcept { return *counters_; }
  [[nodiscard]] std::vector<VirtualThread>& threads() noexcept { return threads_; }
  [[nodiscard]] const std::vector<VirtualThread>& threads() const noexcept { return threads_; }
  [[nodiscard]] const PlatformParams& params() const noexcept { return params_; }

 private:
  /// The next agent acts, at `at`.
  void step(Picoseconds at, Picoseconds until);
  void step_thread(std::size_t thread, Picoseconds until);
  void step_module(std::size_t module);
  void settle_thread(std::size_t thread);
  void settle_modules();
  /// Threads that have got the latch they waited for go on.
  void settle_latches();
  /// The same of a group of block writes.
  void settle_groups();
  /// Threads of the same core may go on, because a buffer of it has changed.
  void settle_core_of(std::size_t thread);
  void settle_siblings_of(std::size_t thread);

  PlatformParams params_;
  std::unique_ptr<Counters> counters_;  ///< stable address: devices hold it
  std::unique_ptr<Progress> progress_;  ///< stable address: threads hold it
  std::unique_ptr<CoreTimes> times_;    ///< stable address, too
  std::unique_ptr<CoreTraffic> traffic_;
  MemorySystem memory_;
  std::vector<CoreTiming> cores_;
  std::uint32_t core_count_;
  std::vector<VirtualThread> threads_;
  std::uint32_t thread_count_;
  Tournament agents_;
  std::vector<Grant> grants_;
  std::vector<LatchTable::Grant> latched_;
  std::vector<GroupCommit::Woken> woken_;
  Picoseconds now_ = 0;
  std::int64_t served_actions_ = 0;
};

}  // namespace pmsim::machine
