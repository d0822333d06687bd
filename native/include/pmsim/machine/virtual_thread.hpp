#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/core/time.hpp"
#include "pmsim/machine/buffer_line.hpp"
#include "pmsim/machine/core_timing.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/histogram.hpp"
#include "pmsim/machine/latch_table.hpp"
#include "pmsim/machine/marks.hpp"
#include "pmsim/machine/memory_system.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/pending_load.hpp"
#include "pmsim/machine/queued_store.hpp"
#include "pmsim/machine/reading.hpp"
#include "pmsim/machine/thread_environment.hpp"
#include "pmsim/machine/time_ledger.hpp"
#include "pmsim/machine/timed_loads.hpp"
#include "pmsim/machine/timed_op.hpp"

namespace pmsim::machine {

/// The timing of one hardware thread. Three agents act in its name, each at its own time:
///
/// - the front end dispatches in program order, as far as the window and the fill buffers allow;
/// - dependent loads wait for the load before them and issue when its value is there;
/// - the store queue, in program order and after retirement: commits stores (their ownership is fetched as
///   soon as they are dispatched), sends streaming stores and flushes, and completes fences.
///
/// A mispredicted branch stops the front end until the value that decides it is there.
///
/// An sfence completes when all earlier flushes and streaming stores have been accepted by the controllers. It
/// retires before, when everything older has left the store queue, and holds its window slot until then. So the
/// loads behind it run ahead as far as the window reaches while the stores before it wait for their lines or an
/// older fence for its writes, and freely while its own flushes are on their way. A store behind three fences
/// that have not completed does not ask for its line, and behind two of them does not walk for its page.
/// Streaming stores behind a fence find no buffer until those it has drained are free. An mfence also stops the
/// front end, and so does a locked read-modify-write, which also needs its line. Behind that of a latch the
/// front end stops until nobody holds the latch who excludes the thread; it is given up when the store before
/// has committed. What is read under a latch that is not held is read again where a writer has been there
/// meanwhile. Every action happens in global time order, so shared queues see requests in order.
///
/// An operation ends when everything in it has retired and its fences have completed. Unless its begin is one
/// that waits, it begins when everything before it has retired and the operation before has ended: as for a
/// client that has one request under way, latencies do not overlap, although their instructions do.
class VirtualThread {
 public:
  VirtualThread(std::uint32_t id, const PlatformParams& params, std::int64_t threads_on_core,
                const CoreTimes& times, CoreTiming& core, MemorySystem& memory, CoreTraffic& traffic,
                Counters& counters, Progress& progress, Feed& feed, std::uint64_t seed);

  /// Acts up to and including `limit`. Returns when it wants to act next, kNever while it waits for a grant or
  /// has finished. Returns early after writing to PMem, because the module may now act first, and where
  /// Progress says so.
  Picoseconds advance(Picoseconds limit);

  /// A write of this thread has been accepted.
  void granted(const Grant& grant);
  /// A load of this thread that waited for its module has entered it.
  void admitted(const Admission& admission);
  /// A fill buffer of the core has changed: whoever waits for one may go on.
  void buffers_changed();
  /// A write of the core has been accepted, perhaps one that held a writeback slot.
  void slots_changed();
  /// The thread has the latch that it waited for.
  void latched(const LatchTable::Grant& grant);
  /// A group has ended that the thread has waited for: what it had gathered is durable, or it leads the next
  /// one.
  void group_ended(const GroupCommit::Woken& woken);

  /// Ends the sleep of a thread whose feed had nothing: it asks again at `at`, or as soon as its front end is
  /// free. What the thread does then is what it would have done had it never slept.
  void wake(Picoseconds at);
  [[nodiscard]] bool sleeping() const noexcept { return sleeping_; }
  /// Of fences and flushes of the block device, those whose end the thread has seen by `at`, since its start.
  [[nodiscard]] std::uint64_t barriers_completed(Picoseconds at) const noexcept {
    return fences_completed_ + block_flushes_ - (block_flush_done_ > at ? 1 : 0);
  }
  /// Those that it has begun.
  [[nodiscard]] std::uint64_t barriers_begun() const noexcept { return fences_dispatched_ + block_flushes_; }

  /// All buffers were taken by writes that wait for acceptance when it last looked.
  [[nodiscard]] bool waits_for_buffer() const noexcept { return waits_for_buffer_; }
  [[nodiscard]] Picoseconds next_action() const noexcept;
  [[nodiscard]] bool finished() const noexcept { return finished_ && queued() == 0 && unresolved_ == 0; }
  [[nodiscard]] Picoseconds now() const noexcept { return now_; }
  /// Of a thread that has finished: when its last operation has retired.
  [[nodiscard]] Picoseconds ended_at() const noexcept { return std::max(now_, retired_); }

  /// Makes the books of its time complete: of a front end that stands or sleeps up to `time`, else as far as it
  /// has come.
  void settle_time(Picoseconds time) noexcept;
  [[nodiscard]] const TimeLedger& ledger() const noexcept { return ledger_; }

  [[nodiscard]] std::int64_t operations() const noexcept { return operations_; }
  [[nodiscard]] std::int64_t user_bytes() const noexcept { return user_bytes_; }
  [[nodiscard]] const Histogram& latency() const noexcept { return latency_; }
  void clear_latency() noexcept { latency_.clear(); }

 private:
  /// A window slot of an operation that is not finished at its dispatch. In-order retirement walks over them.
  struct Slot {
    std::uint64_t position;
    Picoseconds done;  ///< kNever: not known yet
  };
  /// An operation that has retired before the last of its fences has completed.
  struct AwaitingEnd {
    Picoseconds begin;
    Picoseconds retired;
    std::uint64_t fences;
  };
  static constexpr std::uint64_t kNoSlot = Mark::kNoSlot;
  static constexpr int kAtModule = -2;
  static constexpr std::size_t kPendingLoads = BufferLine::kLoads;
  static constexpr std::uint64_t kAllPending = ~std::uint64_t{0};

  [[nodiscard]] std::size_t queued() const noexcept {
    return static_cast<std::size_t>(queue_tail_ - queue_head_);
  }
  [[nodiscard]] QueuedStore& queue_at(std::uint64_t index) noexcept { return queue_[index & queue_mask_]; }
  [[nodiscard]] Slot& slot_at(std::uint64_t index) noexcept { return window_[index & window_mask_]; }

  void dispatch(Picoseconds last);
  /// The host's misses of a batch overlap when they are asked for together.
  void look_ahead() const noexcept;
  /// Window slots for so many instructions. False: not before `limit`, or nobody knows when.
  bool make_room(std::uint32_t instructions, Picoseconds limit) {
    if (has_room(instructions)) {
      front_key_ = now_;
      return now_ <= limit;
    }
    return retire_for_room(instructions, limit);
  }
  [[nodiscard]] bool has_room(std::uint32_t instructions) const noexcept {
    return position_ + instructions <= room_until_ && window_tail_ - window_head_ < window_mask_;
  }
  bool retire_for_room(std::uint32_t instructions, Picoseconds limit);
  /// The next operation will find the store queue full, unless a store leaves it before, which wakes the front
  /// end: its own turn would change nothing. It has room in the window, so nothing has to retire for it.
  [[nodiscard]] bool store_queue_stops_next() const noexcept {
    return queued() == queue_capacity_ && next_ != end_ && next_->kind >= code(memory::OpKind::kStore) &&
           next_->kind <= code(memory::OpKind::kMfence) && has_room(1);
  }
  bool drain_window(Picoseconds limit);
  /// Retires in order until `stop(slot, its index, when those before have retired, whether a mark is there)`
  /// says so. False: one that has not finished is in the way.
  template <typename Stop>
  bool retire_until(Stop&& stop);
  void mark_retires(Picoseconds retired);
  void push_mark(Picoseconds begin, std::uint64_t fences) noexcept {
    marks_.push({window_tail_, begin, fences});
    push_slot(now_);
  }
  /// Time up to now was that of the section before.
  void enter_section(std::uint64_t section, Picoseconds retired);
  void record_latency(Picoseconds begin, Picoseconds end);
  /// A fence has completed: operations that waited for it have ended.
  void end_awaiting();
  /// Of a thread that dispatches nothing more, for now or for ever.
  [[nodiscard]] bool rests() const noexcept { return finished_ || sleeping_; }
  /// Of a thread that rests: operations that end later have to retire all the same.
  void retire_finished();
  std::uint64_t push_slot(Picoseconds done, Cause cause = Cause::kCore) noexcept {
    slot_at(window_tail_) = Slot{position_, done};
    waits_[window_tail_ & window_mask_] = Wait{cause, false, Cause::kCore};
    room_until_ = window_head_ == window_tail_ ? position_ + window_limit_ : room_until_;
    return window_tail_++;
  }
  void step(std::uint32_t instructions);
  /// What the block device has brought, a thread finds in memory when it reads under a latch again.
  void stand_for_device(Picoseconds until) noexcept;
  /// The front end stands until `until`, because of `cause`.
  void stand(Picoseconds until, Cause cause) noexcept {
    ledger_.charge(Cause::kCore, now_);
    ledger_.charge(cause, until);
    now_ = std::max(now_, until);
  }
  /// The same, first because of the slots [first, last) that are done by then, in program order.
  void stand_for(std::uint64_t first, std::uint64_t last, Picoseconds until, Cause rest) noexcept {
    charge_slots(first, last, until);
    stand(until, rest);
  }
  void charge_slots(std::uint64_t first, std::uint64_t last, Picoseconds until) noexcept;
  /// What is done later than `until` counts as far as that.
  void charge_slot(std::uint64_t index, Picoseconds until) noexcept;
  /// Why a front end stands that nobody has told when it may go on.
  [[nodiscard]] Cause stands_because() noexcept;
  /// By the last of the store queue, which waits for all before it.
  [[nodiscard]] bool blocked_by_queue() noexcept {
    return blocked_ && queued() > 0 && blocks_front_end(queue_at(queue_tail_ - 1).kind);
  }
  /// It stands because something in the window has not finished.
  [[nodiscard]] bool stands_for_window() const noexcept;
  /// Charges what it stands for up to `time`, slots in program order first.
  void settle_standing(Picoseconds time) noexcept;
  /// Charges the slots before `end`, and what a load in the way waits for. False: they have all finished.
  [[nodiscard]] bool settle_slots(std::uint64_t end, Picoseconds time) noexcept;
  void settle_pending(const PendingLoad& load, Picoseconds time) noexcept;
  /// What a load waits for, or, if that is over, has waited for from when it could ask for its line.
  [[nodiscard]] Cause cause_of(std::uint64_t line, std::uint8_t level, Picoseconds at = 0,
                               Picoseconds done = 0) const noexcept;
  void wake_front();
  /// The front end acts now, unless it is beyond `limit`.
  bool acts_by(Picoseconds limit);
  /// What the front end has waited for, because of `cause`, is there at `at`.
  void go_on(Picoseconds at, Cause cause);

  /// When a walk that acts at `at` has an entry for which it can ask from `begins` on.
  [[nodiscard]] Picoseconds page_table_entry(std::uint64_t line, Level level, Picoseconds begins,
                                             Picoseconds at);
  [[nodiscard]] Picoseconds translation_time(std::uint64_t line, std::uint8_t translation, Picoseconds at);
  /// Brings a line into L1; returns when it can be used. Reserves nothing in the future: what has to wait, for
  /// a translation or a buffer, asks again when its time has come. Queues see requests in order so.
  Picoseconds fetch(std::uint64_t line, std::uint8_t level, Picoseconds at);
  /// The same for the load that pending_[index] is, or would be. kNever: it waits for its module, if it has a
  /// place in pending_.
  Picoseconds fetch_load(std::uint64_t line, std::uint8_t level, Picoseconds at, std::size_t index);
  /// Lets a load that has found its module full wait in its fill buffer. False: it has no place in pending_.
  bool wait_at_module(const TimedOp& op);
  /// The level that serves a line now: where it was, if the prefetch that the tags know of has been dropped.
  [[nodiscard]] std::uint8_t level_now(std::uint64_t line, std::uint8_t level,
                                       std::uint8_t flags) const noexcept;
  /// A load that has a place among the pending ones issues later, not before `translated`.
  /// `bringer`: whoever brings its line, which it waits for; -1: nobody does.
  void defer_load(const TimedOp& op, bool dependent, int bringer, Picoseconds translated);
  /// Of the front end: it stands until a buffer for its next access is free, or waits to be told.
  bool front_lacks_buffer(std::uint8_t level, std::uint8_t flags);
  void take_buffer(Picoseconds at, Picoseconds until, Cause what) noexcept {
    interrupted_ = core_->fill_buffers.take(sibling_, at, until, what) || interrupted_;
  }
  void take_waiting_buffer(Picoseconds at) noexcept {
    interrupted_ = core_->fill_buffers.take_waiting(sibling_, at) || interrupted_;
  }
  /// Lines from beyond L2 come through a fill buffer, and those that a prefetch brings, which may still be on
  /// their way: otherwise late prefetches would add to the misses that a core has under way. Other hits in L2
  /// hold theirs for so short a time that it does not matter.
  [[nodiscard]] static bool needs_buffer(std::uint8_t level, std::uint8_t flags) noexcept {
    return level >= kLlc || (level == kL2 && (flags & kTimedInFlight) != 0);
  }
  /// When the page walk that an older access of the line's page has begun ends; 0: there is none.
  [[nodiscard]] Picoseconds walk_end(std::uint64_t line, Picoseconds at) const noexcept {
    return core_->walks(at) ? core_->walk_end(times_->pages.of(line * memory::kLineBytes)) : 0;
  }

  /// A load that has taken its window slot in a run of hits, and is here because something needs its value.
  [[nodiscard]] static bool is_hit_of_a_run(const TimedOp& op) noexcept { return op.instructions == 0; }
  /// The pending load or prefetch that will bring the line, -1: none.
  [[nodiscard]] int pending_fetch(std::uint64_t line) const noexcept;
  /// True, and the front end stops: the load has to wait for its translation and finds no place, which is how
  /// most turns of a front end end. dispatch_load() would find the same, and nothing has to retire for it.
  [[nodiscard]] bool pending_loads_stop(const TimedOp& op) noexcept {
    if (unresolved_ != kAllPending || !has_room(1) ||
        (op.translation == kTlbFirst && walk_end(op.line, now_) <= now_)) {
      return false;
    }
    trigger_ = -1;
    front_key_ = kNever;
    front_waits_for_pending_ = true;
    return true;
  }
  /// Of some load that has been dispatched it is not known when its value is there. Prefetches have none.
  [[nodiscard]] bool awaits_loads() const noexcept;
  bool resolve_branch(Picoseconds limit);
  bool dispatch_operation_begin(const TimedOp& op, Picoseconds limit);
  bool dispatch_operation_end(const TimedOp& op, Picoseconds limit);
  bool dispatch_load(const TimedOp& op, Picoseconds limit);
  bool dispatch_prefetch(const TimedOp& op, Picoseconds limit);
  bool dispatch_store(const TimedOp& op, Picoseconds limit) {
    trigger_ = -1;
    if (!make_room(1, limit)) {
      return false;
    }
    if (queued() == queue_capacity_) {
      front_key_ = kNever;
      return false;
    }
    enqueue_store(op);
    return true;
  }
  void enqueue_store(const TimedOp& op);
  /// What those wait for that wait for it.
  [[nodiscard]] static Cause cause_of(const QueuedStore& head) noexcept;
  bool dispatch_writeback(const TimedOp& op, Picoseconds limit);
  /// The prefetcher sees an access when it issues: behind a load that still waits, its prefetches wait too.
  void dispatch_hardware_prefetch(const TimedOp& op);
  void issue_hardware_prefetch(std::uint64_t line, std::uint8_t level, Picoseconds at);
  void issue_prefetches_of(int load, Picoseconds at) {
    trigger_ = trigger_ == load ? -1 : trigger_;
    if (!waiting_prefetches_.empty()) {
      issue_waiting_prefetches_of(load, at);
    }
  }
  void issue_waiting_prefetches_of(int load, Picoseconds at);
  bool dispatch_block_io(const TimedOp& op, Picoseconds limit);
  bool dispatch_block_gather(const TimedOp& op, Picoseconds limit);
  bool dispatch_block_commit(Picoseconds limit);
  /// The thread waits for a command of its group. False: its commit goes on then.
  enum class Leading : std::uint8_t { kNothing, kWrite, kFlush };
  [[nodiscard]] bool lead(Leading command, Picoseconds until) noexcept;
  /// The thread has come back from a flush of the device now.
  void block_flushed() noexcept;
  [[nodiscard]] bool dispatch_latch_acquire(const TimedOp& op);
  [[nodiscard]] bool dispatch_latch_validate(const TimedOp& op);
  /// False: the front end waits, until latched().
  [[nodiscard]] bool gets_latch(std::uint64_t line, LatchMode mode);

  void issue_pending(Picoseconds at);
  /// Of a pending load whose time has come: all that it waits for is a fill buffer.
  [[nodiscard]] bool lacks_only_buffer(const TimedOp& op, Picoseconds at) const noexcept {
    return op.translation == kTlbFirst && walk_end(op.line, at) <= at &&
           needs_buffer(level_now(op.line, op.level, op.flags), op.flags);
  }
  /// No fill buffer is free at `at`: every pending load that would now ask for one asks again at `free`.
  void postpone_to(Picoseconds free, Picoseconds at);
  /// Who in line lacks something else leaves it.
  void check_line(Picoseconds at);
  void join_line(std::size_t index, Picoseconds free);
  /// The place in line of the load that tries next: loads that found no buffer try again, and any of the oldest
  /// may be the one that finds it free.
  [[nodiscard]] std::size_t next_in_line() noexcept;
  /// A pending load has been served: at `done` its value is there.
  void complete_pending(std::size_t index, Picoseconds at, Picoseconds done, Cause cause);
  void update_pending_key() noexcept {
    pending_key_ = std::min(line_.asks_at(), timed_.next());
    core_->fill_buffers.want(sibling_, FillBuffers::kPendingLoads, line_.empty() ? kNever : 0);
  }
  void process_store_queue(Picoseconds at);
  void update_store_key();
  /// Lets an sfence retire that has become the oldest of the queue.
  void retire_fence_at_head(Picoseconds at);
  [[nodiscard]] bool may_ask_early(const QueuedStore& entry) const noexcept;
  /// When the line can be asked for, as far as the store itself is concerned.
  [[nodiscard]] Picoseconds asks_from(const QueuedStore& entry) const noexcept;
  bool ask_ownership(QueuedStore& entry, Picoseconds at);
  /// The line goes to its controller. `combined`: it has held its fill buffer since its first bytes were
  /// written.
  void send(std::uint64_t line, Picoseconds at, bool streaming, bool combined = false);
  void close_write_combining(Picoseconds at);
  /// Of a thread that has finished: nobody else would.
  void close_last_write_combining(Picoseconds at);
  [[nodiscard]] Picoseconds head_time();
  /// When an entry of the queue that wants a buffer from `from` on has one; any: streaming stores.
  [[nodiscard]] Picoseconds with_buffer(Picoseconds from, bool any = false);
  /// All that stood before the locked read-modify-write of this slot has left the queue: what the front end has
  /// waited so far is due to that.
  void charge_drain(std::uint64_t slot, Picoseconds at) noexcept;

  std::uint32_t id_;
  std::size_t sibling_;  ///< among the threads of its core
  const CoreTimes* times_;
  CoreTiming* core_;
  MemorySystem* memory_;
  Counters* counters_;
  Progress* progress_;
  Feed* feed_;
  Picoseconds instruction_time_;
  Picoseconds compute_cycle_;  ///< of computation that states its cycles
  std::uint64_t window_limit_;

  const TimedOp* next_ = nullptr;
  const TimedOp* end_ = nullptr;
  bool finished_ = false;
  bool sleeping_ = false;
  bool interrupted_ = false;
  bool blocked_ = false;  ///< the front end: by an mfence, a locked read-modify-write, a latch or a group
  Cause blocked_by_ = Cause::kCore;
  bool waits_for_buffer_ = false;
  bool front_waits_for_pending_ = false;  ///< for a place among the pending loads
  // Which of the two matters: a front end that is woken for what it may not have acts for nothing.
  bool front_waits_for_buffer_ = false;
  bool front_waits_for_slot_ = false;  ///< for writebacks

  Picoseconds now_ = 0;  ///< dispatch time of the next operation
  Picoseconds front_key_ = 0;
  Picoseconds store_key_ = kNever;
  Picoseconds pending_key_ = kNever;

  std::uint64_t position_ = 0;
  std::vector<Slot> window_;
  std::uint64_t window_mask_;
  /// What a slot waits for, and if it was a pending load, what that has waited for before.
  struct Wait {
    Cause cause;
    bool pended;
    Cause buffer;
  };
  struct Before {
    Picoseconds translated;
    Picoseconds issued;
  };
  std::vector<Wait> waits_;     ///< beside the window
  std::vector<Before> before_;  ///< the same, of those that were pending loads
  TimeLedger ledger_;
  std::uint64_t window_head_ = 0;
  std::uint64_t window_tail_ = 0;
  std::uint64_t room_until_ = kNoSlot;  ///< the window of its oldest slot ends there; no slot: nowhere
  Marks marks_;
  std::vector<AwaitingEnd> awaiting_;     ///< in order
  std::vector<Picoseconds> fence_times_;  ///< ring, by number: when those of the window's operations completed
  Picoseconds retired_ = 0;
  Picoseconds begin_ = Mark::kNoOperation;  ///< of the operation that the front end is in, or what a Mark says
  Picoseconds begun_ = 0;                   ///< when the last kOperationBegins has retired
  Picoseconds ended_ = 0;                   ///< the last operation that has
  std::uint64_t section_ = 0;
  Picoseconds section_began_ = 0;

  std::array<PendingLoad, kPendingLoads> pending_{};
  std::uint64_t unresolved_ = 0;     ///< bit i: pending_[i] is in use
  std::uint64_t chained_ = 0;        ///< those that have a producer among them
  TimedLoads timed_;                 ///< those of which is known when they can try to issue
  BufferLine line_;                  ///< those that lack nothing but a fill buffer, and have the time of all
  std::size_t fill_buffer_credits_;  ///< so many at the front of the line may take the next free buffer
  Random random_;
  std::uint64_t line_checked_ = 0;  ///< walks noted by the core when nobody in line lacked more than a buffer
  bool line_in_flight_ = false;     ///< somebody in line asks for a line that a prefetch may be bringing
  int last_pending_ = -1;
  int trigger_ = -1;  ///< the pending load that the next hardware prefetches belong to, -1: it has issued
  std::vector<WaitingPrefetch> waiting_prefetches_;
  Picoseconds last_load_done_ = 0;
  Picoseconds loads_done_ = 0;

  std::vector<QueuedStore> queue_;
  std::uint64_t queue_mask_;
  std::uint64_t queue_capacity_;
  std::uint64_t queue_head_ = 0;
  std::uint64_t queue_tail_ = 0;
  std::uint64_t store_key_changes_ = 0;  ///< fill_buffers.changes() when the store key was computed
  std::uint64_t drained_for_ = kNoSlot;  ///< the locked read-modify-write that has the store queue for itself
  std::uint64_t ownership_next_ = 0;     ///< first queue entry whose ownership may still have to be asked for
  std::uint64_t fences_dispatched_ = 0;
  std::uint64_t fences_completed_ = 0;
  std::uint64_t block_flushes_ = 0;
  Picoseconds block_flush_done_ = 0;     ///< of the last one
  Leading leading_ = Leading::kNothing;  ///< of the group that it leads
  Picoseconds group_asked_ = 0;          ///< since when it waits for a group of others
  Picoseconds group_seen_;               ///< how long it takes to see that that has ended: the way of a line
  Picoseconds buffer_wanted_ = kNever;   ///< from when on the first of the queue to want one does
  Picoseconds last_commit_ = 0;
  Picoseconds fence_done_ = 0;  ///< the latest fence that has completed
  /// The way from L1 to what lies below takes the next line of a store, or flush, from then on.
  Picoseconds miss_free_ = 0;
  std::uint64_t dispatched_line_ = ~std::uint64_t{0};  ///< of the store before, where nothing came between
  Picoseconds combining_free_ = 0;  ///< when the write-combining buffers of all lines streamed so far are free
  Picoseconds streams_again_ = 0;  ///< the same, as of the last fence: streaming stores behind it wait for that
  bool ordered_flush_ = false;     ///< a clflush is on its way: nothing overtakes it
  int outstanding_writes_ = 0;     ///< not yet accepted
  Picoseconds writes_done_ = 0;
  std::uint64_t combining_line_ = ~std::uint64_t{0};
  std::uint32_t combining_bytes_ = 0;

  std::int64_t operations_ = 0;
  std::int64_t user_bytes_ = 0;
  Histogram latency_;
  CoreTraffic* traffic_;
  Picoseconds latch_asked_ = 0;
  Picoseconds reads_again_ = 0;        ///< for that long, when the thread has the latch
  std::uint32_t held_ = 0;             ///< latches in hand, as far as the front end has come
  Picoseconds idle_ = 0;               ///< spent waiting for latches and devices, and reading again, in all
  std::array<Reading, 64> reading_{};  ///< direct-mapped by line
};

template <typename Stop>
bool VirtualThread::retire_until(Stop&& stop) {
  bool finished = true;
  std::uint64_t head = window_head_;
  Picoseconds retired = retired_;
  const Slot* const window = window_.data();
  const std::uint64_t mask = window_mask_;
  const std::uint64_t tail = window_tail_;
  std::uint64_t marked = marks_.front().slot;
  for (; head != tail; ++head) {
    const Slot& slot = window[head & mask];
    if (stop(slot, head, retired, marked == head)) {
      break;
    }
    if (slot.done == kNever) {
      finished = false;
      break;
    }
    retired = std::max(retired, slot.done);
    if (marked == head) {
      mark_retires(retired);
      marked = marks_.front().slot;
    }
  }
  window_head_ = head;
  retired_ = retired;
  room_until_ = head == tail ? kNoSlot : window[head & mask].position + window_limit_;
  return finished;
}

}  // namespace pmsim::machine
