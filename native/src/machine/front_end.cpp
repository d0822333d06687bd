#include "pmsim/machine/virtual_thread.hpp"

#include <algorithm>
#include <bit>

#include "pmsim/core/error.hpp"

/// The front end: dispatches in program order, as far as the window and the fill buffers allow.
namespace pmsim::machine {

using memory::OpKind;

namespace {

constexpr std::uint64_t kPageLines = 64;  ///< of 4 KiB: what modules usually translate by

}  // namespace

void VirtualThread::wake_front() {
  if (front_key_ == kNever && !rests() && !blocked_) {
    front_key_ = now_;
  }
}

bool VirtualThread::acts_by(Picoseconds limit) {
  if (now_ > limit) {
    return false;
  }
  progress_->clock = std::max(progress_->clock, now_);
  return true;
}

void VirtualThread::go_on(Picoseconds at, Cause cause) {
  stand(at, cause);
  if (front_key_ != kNever) {
    front_key_ = now_;  // something else has woken it before, and it has not acted yet
  }
  wake_front();
}

void VirtualThread::step(std::uint32_t instructions) {
  now_ += instruction_time_ * instructions;
  position_ += instructions;
}

bool VirtualThread::retire_for_room(std::uint32_t instructions, Picoseconds limit) {
  const std::uint64_t before = window_head_;
  const std::uint64_t wanted = position_ + instructions;
  const auto has_room = [wanted, reach = window_limit_, tail = window_tail_, most = window_mask_](
                            const Slot& slot, std::uint64_t index) {
    return wanted <= slot.position + reach && tail - index < most;
  };
  const auto stop = [has_room, now = now_](const Slot& slot, std::uint64_t index, Picoseconds retired,
                                           bool marked) {
    // What has finished by then costs no time and is not looked for again; marks retire when somebody needs
    // room.
    return has_room(slot, index) && (slot.done > std::max(now, retired) || marked);
  };
  const bool finished = retire_until(stop);
  if (window_head_ != before && retired_ > now_) {
    stand_for(before, window_head_, retired_, Cause::kCore);
  }
  front_key_ = finished ? now_ : kNever;
  return finished && acts_by(limit);
}

bool VirtualThread::drain_window(Picoseconds limit) {
  const std::uint64_t before = window_head_;
  const bool finished = retire_until([](const Slot&, std::uint64_t, Picoseconds, bool) { return false; }) &&
                        fences_completed_ == fences_dispatched_;
  if (window_head_ != before && retired_ > now_) {
    stand_for(before, window_head_, retired_, Cause::kCore);
  }
  if (finished) {
    stand(std::max({loads_done_, streams_again_, fence_done_}), Cause::kPersist);
  }
  front_key_ = finished ? now_ : kNever;
  return finished && acts_by(limit);
}

void VirtualThread::look_ahead() const noexcept {
  std::uint64_t page = ~std::uint64_t{0};
  for (const TimedOp* op = next_; op != end_; ++op) {
    if (op->level != kFromMemory || op->line / kPageLines == page) {
      continue;
    }
    if (op->kind <= code(OpKind::kStore) || op->kind == code(OpKind::kPrefetch)) {
      page = op->line / kPageLines;
      memory_->look_ahead(op->line);
    }
  }
}

void VirtualThread::dispatch(Picoseconds last) {
  for (;;) {
    // The other two agents win ties; their keys may have moved with the operation before.
    const Picoseconds limit = std::min(last, std::min(store_key_, pending_key_) - 1);
    if (!acts_by(limit)) {
      if (store_queue_stops_next()) {
        front_key_ = kNever;
      }
      return;
    }
    if (next_ == end_) {
      feed_->next(id_, next_, end_);
      progress_->taken += end_ - next_;
      look_ahead();
      interrupted_ = progress_->taken >= progress_->may_take;
      if (next_ == end_ && feed_->sleeps()) {
        sleeping_ = true;
        front_key_ = kNever;
        retire_finished();
        return;
      }
      if (next_ == end_) {
        finished_ = true;
        front_key_ = kNever;
        close_last_write_combining(now_);
        retire_finished();
        return;
      }
    }
    const TimedOp& op = *next_;
    bool consumed = true;
    switch (op.kind) {
      case code(OpKind::kCompute):
        consumed =
            make_room(op.instructions, limit) && ((op.flags & kTimedDependent) == 0 || resolve_branch(limit));
        if (consumed) {
          now_ +=
              std::max(static_cast<Picoseconds>(op.line) * compute_cycle_, instruction_time_ * op.instructions);
          if ((op.flags & kTimedSerialising) != 0) {
            stand(now_ + times_->mispredict, Cause::kBranch);
          }
          position_ += op.instructions;
        }
        break;
      case code(OpKind::kLoad):
        consumed = !pending_loads_stop(op) && dispatch_load(op, limit);
        break;
      case code(OpKind::kPrefetch):
        consumed = dispatch_prefetch(op, limit);
        break;
      case code(OpKind::kStore):
      case code(OpKind::kStreamStore):
      case code(OpKind::kClwb):
      case code(OpKind::kClflushOpt):
      case code(OpKind::kClflush):
      case code(OpKind::kSfence):
      case code(OpKind::kMfence):
      case code(OpKind::kAtomic):
        consumed = dispatch_store(op, limit);
        break;
      case kLatchRelease:
        consumed = dispatch_store(op, limit);
        held_ -= consumed && static_cast<LatchMode>(op.level) != LatchMode::kAttempt ? 1 : 0;
        break;
      case kLatchAcquire:
        consumed = dispatch_latch_acquire(op);
        break;
      case kLatchValidate:
        consumed = dispatch_latch_validate(op);
        break;
      case kWriteback:
        consumed = dispatch_writeback(op, limit);
        break;
      case kHwPrefetch:
        dispatch_hardware_prefetch(op);
        break;
      case code(OpKind::kBlockRead):
      case code(OpKind::kBlockWrite):
      case code(OpKind::kBlockFlush):
        consumed = dispatch_block_io(op, limit);
        break;
      case code(OpKind::kBlockGather):
        consumed = dispatch_block_gather(op, limit);
        break;
      case code(OpKind::kBlockCommit):
        consumed = dispatch_block_commit(limit);
        break;
      case code(OpKind::kOperationBegin):
        consumed = dispatch_operation_begin(op, limit);
        break;
      case code(OpKind::kOperationEnd):
        consumed = dispatch_operation_end(op, limit);
        break;
      case kSectionMark:
        consumed = make_room(0, limit);
        if (consumed) {
          push_mark(Mark::kSectionBegins, op.line);
        }
        break;
      default:
        throw SimulationError("pmsim bug: unknown timed operation");
    }
    if (!consumed) {
      return;
    }
    ++next_;
    if (front_key_ != kNever) {
      front_key_ = now_;
    } else {
      return;  // the front end is blocked
    }
    if (interrupted_) {
      return;
    }
  }
}

bool VirtualThread::dispatch_operation_begin(const TimedOp& op, Picoseconds limit) {
  if ((op.flags & kTimedSerialising) != 0) {
    if (!drain_window(limit)) {
      return false;
    }
    begin_ = now_;
  } else if ((op.flags & kTimedDependent) != 0) {
    stand_for(window_head_, window_tail_, loads_done_, Cause::kCore);
    front_key_ = awaits_loads() ? kNever : now_;
    if (front_key_ > limit) {
      return false;
    }
    begin_ = now_;
  } else {
    if (!make_room(0, limit)) {
      return false;
    }
    push_mark(Mark::kOperationBegins, 0);
    begin_ = Mark::kBegunThere;
  }
  return true;
}

bool VirtualThread::dispatch_operation_end(const TimedOp& op, Picoseconds limit) {
  if (!make_room(0, limit)) {
    return false;
  }
  if (begin_ != Mark::kNoOperation) {
    push_mark(begin_, (op.flags & kTimedDependent) != 0 ? 0 : fences_dispatched_);
    begin_ = Mark::kNoOperation;
  } else {
    push_slot(now_);
  }
  ++operations_;
  progress_->reached_at = now_;
  interrupted_ = ++progress_->operations >= progress_->goal;
  user_bytes_ += static_cast<std::int64_t>(op.line);
  return true;
}

bool VirtualThread::dispatch_latch_acquire(const TimedOp& op) {
  const auto mode = static_cast<LatchMode>(op.level);
  Reading& reading = reading_[op.line % reading_.size()];
  if (mode == LatchMode::kOptimistic)
    reading = Reading{.line = op.line, .began = now_, .idle = idle_, .held = held_};
  if (mode == LatchMode::kAttempt && reading.line == op.line) {
    // Of the version that it has been reading: where that has gone it reads again first. From here on it knows.
    if (!dispatch_latch_validate(op))
      return false;
    reading = Reading{.line = op.line, .began = now_, .idle = idle_, .held = held_};
  }
  held_ += mode == LatchMode::kShared || mode == LatchMode::kExclusive ? 1 : 0;
  static_cast<void>(gets_latch(op.line, mode));
  return true;
}

bool VirtualThread::gets_latch(std::uint64_t line, LatchMode mode) {
  if (traffic_->latches.acquire(line, mode, id_))
    return true;
  ++counters_->latch_waits;
  latch_asked_ = now_;
  blocked_ = true;
  blocked_by_ = Cause::kLatch;
  front_key_ = kNever;
  return false;
}

/// The branch on it is predicted to find nothing. Where a writer has been there, the thread waits until there
/// is none, fetches the word again, reads again, which takes as long as its front end took, and looks once
/// more. Loads that the front end has not waited for cost nothing the second time: the caches have what has
/// missed then, and what the writer has changed comes beside the word. What it has waited for others' latches
/// and for the block device meanwhile, and read again under those further down, it does not have to do again:
/// with a leaf in hand it would otherwise let the next one wait for its own wait, and so on without end.
bool VirtualThread::dispatch_latch_validate(const TimedOp& op) {
  Reading& reading = reading_[op.line % reading_.size()];
  if (reading.line != op.line)
    return true;
  if (!traffic_->latches.is_written(op.line, reading.began, id_)) {
    reading = {};  // it is over
    return true;
  }
  ++counters_->latch_restarts;
  const Picoseconds noticed = std::max(now_, loads_done_);
  if (reading.work == 0)
    reading.work = std::max<Picoseconds>(now_ - reading.began - (idle_ - reading.idle), 1);
  const Picoseconds again = reading.work;
  idle_ += again;
  stand_for(window_head_, window_tail_, noticed, Cause::kCore);
  stand(noticed + times_->mispredict, Cause::kLatch);
  reading.began = now_;
  if (held_ > reading.held) {
    // With a latch in hand that it has acquired since: a thread would give that up, and wait then. To wait with
    // it in hand for who comes down the tree could be to wait for itself.
    reading = {};
    stand(now_ + again, Cause::kLatch);
    front_key_ = now_;
    return false;
  }
  if (gets_latch(op.line, LatchMode::kOptimistic)) {
    // The writer has taken the word away.
    reading.began = traffic_->transfers.look_again(op.line, now_, times_->llc);
    idle_ += reading.began - now_;
    stand(reading.began + again, Cause::kLatch);
    front_key_ = now_;
  } else {
    reads_again_ = again;
  }
  return false;
}

bool VirtualThread::resolve_branch(Picoseconds limit) {
  if (last_pending_ >= 0) {
    front_key_ = kNever;  // until that load has issued
    return false;
  }
  if (last_load_done_ > now_) {
    // An older load may take longer: what is oldest counts, as when the front end stands for the window.
    static_cast<void>(settle_slots(window_tail_, last_load_done_));
    stand(last_load_done_, Cause::kCore);
  }
  front_key_ = now_;
  if (now_ > limit) {
    return false;
  }
  stand(now_ + times_->mispredict, Cause::kBranch);
  return true;
}

bool VirtualThread::dispatch_load(const TimedOp& op, Picoseconds limit) {
  trigger_ = -1;
  if (!make_room(op.instructions, limit)) {
    return false;
  }
  const bool dependent = (op.flags & kTimedDependent) != 0 && (last_pending_ >= 0 || last_load_done_ > now_);
  const bool may_be_waiting = (op.flags & kTimedInFlight) != 0 || is_hit_of_a_run(op);
  const int bringer = may_be_waiting ? pending_fetch(op.line) : -1;
  const Picoseconds translated = op.translation == kTlbFirst ? walk_end(op.line, now_) : 0;
  if (dependent || bringer >= 0 || op.translation != kTlbFirst || translated > now_) {
    if (unresolved_ == kAllPending) {
      front_key_ = kNever;
      front_waits_for_pending_ = true;
      return false;
    }
    core_->fill_buffers.want(sibling_, FillBuffers::kFrontEnd, kNever);
    defer_load(op, dependent, bringer, translated);
    return true;
  }
  const std::uint8_t level = level_now(op.line, op.level, op.flags);
  if (front_lacks_buffer(level, op.flags)) {
    return false;
  }
  const Picoseconds done =
      fetch_load(op.line, level, now_, static_cast<std::size_t>(std::countr_one(unresolved_)));
  if (done == kNever) {
    return wait_at_module(op);
  }
  if (needs_buffer(level, op.flags)) {
    take_buffer(now_, done, cause_of(op.line, level, now_, done));
  }
  push_slot(done, cause_of(op.line, level, now_, done));
  last_load_done_ = done;
  last_pending_ = -1;
  loads_done_ = std::max(loads_done_, done);
  step(op.instructions);
  return true;
}

bool VirtualThread::front_lacks_buffer(std::uint8_t level, std::uint8_t flags) {
  const Picoseconds free = needs_buffer(level, flags) ? core_->fill_buffers.earliest(sibling_, now_) : now_;
  core_->fill_buffers.want(sibling_, FillBuffers::kFrontEnd, free > now_ ? now_ : kNever);
  if (free <= now_) {
    return false;
  }
  if (free != kNever) {
    stand(free, core_->fill_buffers.earliest_held_for());
  }
  front_key_ = free;
  front_waits_for_buffer_ = free == kNever;
  waits_for_buffer_ = waits_for_buffer_ || front_waits_for_buffer_;
  return true;
}

bool VirtualThread::dispatch_prefetch(const TimedOp& op, Picoseconds limit) {
  trigger_ = -1;
  if (!make_room(1, limit)) {
    return false;
  }
  const Picoseconds translated = op.translation == kTlbFirst ? walk_end(op.line, now_) : 0;
  if (op.translation != kTlbFirst || translated > now_) {
    if (unresolved_ == kAllPending) {
      front_key_ = kNever;
      front_waits_for_pending_ = true;
      return false;
    }
    core_->fill_buffers.want(sibling_, FillBuffers::kFrontEnd, kNever);
    defer_load(op, false, -1, translated);
    return true;
  }
  const std::uint8_t level = level_now(op.line, op.level, op.flags);
  if (front_lacks_buffer(level, op.flags)) {
    return false;
  }
  const Picoseconds done =
      fetch_load(op.line, level, now_, static_cast<std::size_t>(std::countr_one(unresolved_)));
  if (done == kNever) {
    return wait_at_module(op);
  }
  if (needs_buffer(level, op.flags)) {
    take_buffer(now_, done, cause_of(op.line, level, now_, done));
  }
  core_->note_fill(op.line, done, level);
  step(1);
  return true;
}

void VirtualThread::dispatch_hardware_prefetch(const TimedOp& op) {
  if (trigger_ < 0) {
    issue_hardware_prefetch(op.line, op.level, now_);
    return;
  }
  core_->note_dropped(op.line, op.level);  // not on its way: whoever wants it before has to fetch it
  waiting_prefetches_.push_back({op.line, op.level, trigger_});
}

void VirtualThread::issue_hardware_prefetch(std::uint64_t line, std::uint8_t level, Picoseconds at) {
  if (core_->prefetch_slots.earliest() > at) {
    core_->note_dropped(line, level);  // no place in the queue: the line will be fetched on demand
    return;
  }
  Picoseconds done = 0;
  if (level == kFromMemory) {
    ++counters_->prefetches;
    done = memory_->read(line, at + times_->half_read, at) + times_->half_read;
    interrupted_ = interrupted_ || memory_->has_changed();
  } else {
    done = fetch(line, level, at);
  }
  core_->prefetch_slots.take(done);
  core_->note_fill(line, done, level);
}

bool VirtualThread::dispatch_writeback(const TimedOp& op, Picoseconds limit) {
  if (const Picoseconds free = core_->writeback_slots.earliest(); free > now_) {
    // The miss that evicts this line waits until the line has a place to go.
    front_key_ = free;  // kNever: a grant wakes it, never a sibling's fill buffer
    if (free != kNever) {
      stand(free, Cause::kStore);
    }
    front_waits_for_slot_ = front_key_ == kNever;
    if (front_waits_for_slot_ || !acts_by(limit)) {
      return false;
    }
  }
  const WriteToken token{.thread = id_, .writeback = true, .issued = now_};
  const Picoseconds accepted = memory_->write(op.line, now_ + times_->half_write, now_, token);
  if (accepted == kNever) {
    core_->writeback_slots.take_waiting();
  } else {
    core_->writeback_slots.take(accepted);
  }
  interrupted_ = memory_->has_changed();
  return true;
}

}  // namespace pmsim::machine
