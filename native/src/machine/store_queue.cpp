#include "pmsim/machine/virtual_thread.hpp"

#include <algorithm>
#include <bit>

/// The store queue: works off stores, streaming stores, flushes and fences in program order, after retirement.
namespace pmsim::machine {

using memory::OpKind;

namespace {

bool is_flush(std::uint8_t kind) noexcept {
  return kind == code(OpKind::kClwb) || kind == code(OpKind::kClflushOpt) || kind == code(OpKind::kClflush);
}

}  // namespace

void VirtualThread::enqueue_store(const TimedOp& op) {
  const bool fence = op.kind == code(OpKind::kSfence) || blocks_front_end(op.kind);
  const bool first = queued() == 0;
  QueuedStore& entry = queue_at(queue_tail_++);
  entry = QueuedStore{.line = op.line,
                      .slot = fence ? push_slot(kNever, Cause::kPersist) : 0,
                      .dispatched = now_,
                      .senior = unresolved_ == 0 ? std::max(now_, loads_done_) : kNever,
                      .owned = kNever,
                      .fences_before = fences_dispatched_,
                      .kind = op.kind,
                      .bytes = op.level,
                      .level = op.level,
                      .translation = op.translation,
                      .flags = op.flags};
  const bool store = op.kind == code(OpKind::kStore);
  entry.neighbour = store && op.line - dispatched_line_ <= 1;
  dispatched_line_ = store ? op.line : ~std::uint64_t{0};
  fences_dispatched_ += fence ? 1 : 0;
  if (first) {
    retire_fence_at_head(now_);
  }
  // Only stores own their lines.
  ownership_next_ += op.kind != code(OpKind::kStore) && ownership_next_ == queue_tail_ - 1 ? 1 : 0;
  if (entry.translation != kTlbFirst && op.kind == code(OpKind::kStreamStore) &&
      (unresolved_ == 0 || (op.flags & kTimedDependent) == 0)) {
    // The address is translated when it is known, not when the store leaves the queue: walks of several
    // overlap. Those of plain stores do not, see ask_ownership().
    entry.dispatched = now_ + translation_time(entry.line, entry.translation, now_);
    entry.translation = kTlbFirst;
  }
  if (op.kind == code(OpKind::kStore) && ownership_next_ == queue_tail_ - 1 && may_ask_early(entry) &&
      asks_from(entry) <= now_ && (unresolved_ == 0 || (op.flags & kTimedDependent) == 0)) {
    ask_ownership(entry, now_);
  }
  step(1);
  // Behind others it changes nothing about when the queue acts next, unless it is the next to ask for its line.
  const bool waits_behind = !first && !(store && ownership_next_ == queue_tail_ - 1);
  if (!waits_behind || store_key_changes_ != core_->fill_buffers.changes()) {
    update_store_key();
  }
  if (blocks_front_end(op.kind)) {
    blocked_ = true;
    blocked_by_ = op.kind == code(OpKind::kAtomic) ? Cause::kLatch : Cause::kPersist;
    front_key_ = kNever;
  }
}

void VirtualThread::retire_fence_at_head(Picoseconds at) {
  if (queued() > 0 && queue_at(queue_head_).kind == code(OpKind::kSfence)) {
    slot_at(queue_at(queue_head_).slot).done = at;
    if (rests()) {
      retire_finished();
    }
  }
}

bool VirtualThread::may_ask_early(const QueuedStore& entry) const noexcept {
  if ((entry.flags & kTimedAfterFlush) != 0) {
    return false;
  }
  // Two: persists of few lines that are not cached (OptaneStudy, graph 13). One for who has to walk: persists
  // at random places in small pages (PerMA-Bench). See docs/calibration.md.
  const bool walks = entry.translation != kTlbFirst;
  const std::uint64_t fences_ahead = (entry.flags & kTimedAfterFence) != 0 ? 0 : walks ? 1 : 2;
  return entry.fences_before <= fences_completed_ + fences_ahead;
}

Picoseconds VirtualThread::asks_from(const QueuedStore& entry) const noexcept {
  const bool waits = (entry.flags & kTimedAfterFence) != 0 || entry.fences_before > fences_completed_;
  return waits ? std::max(entry.dispatched, fence_done_) : entry.dispatched;
}

bool VirtualThread::ask_ownership(QueuedStore& entry, Picoseconds at) {
  const bool early = &entry != &queue_at(queue_head_);
  if (early && !may_ask_early(entry)) {
    return false;
  }
  entry.level = level_now(entry.line, entry.level, entry.flags);
  // The tags do not know of those who have looked at a latch again, in virtual time.
  if (entry.kind == code(OpKind::kAtomic) && traffic_->transfers.take(entry.line) && entry.level <= kLlc) {
    entry.level = kFromCore;
  }
  const bool buffered = needs_buffer(entry.level, entry.flags);
  if (buffered && core_->fill_buffers.earliest(sibling_, std::max(at, miss_free_)) > at) {
    return false;
  }
  if (entry.translation != kTlbFirst) {
    // In program order and one at a time, when it is the store's turn to ask: random stores of 64 B in 4 KiB
    // pages take 104 ns each, the interval between two that miss and a walk (docs/calibration.md).
    entry.dispatched = at + translation_time(entry.line, entry.translation, at);
    entry.translation = kTlbFirst;
    return false;
  }
  if (buffered) {
    miss_free_ = at + (entry.level == kL2 ? times_->line_interval
                       : entry.neighbour  ? times_->store_next_interval
                                          : times_->store_miss_interval);
  }
  entry.owned = fetch(entry.line, entry.level, at);
  if (buffered) {
    core_->note_fill(entry.line, entry.owned);
    take_buffer(at, entry.owned, Cause::kStore);
  }
  return true;
}

void VirtualThread::send(std::uint64_t line, Picoseconds at, bool streaming, bool combined) {
  if (streaming) {
    miss_free_ = std::max(miss_free_, at + times_->line_interval);
  }
  const Picoseconds hold = streaming ? times_->stream_hold : 0;
  const Picoseconds delay = streaming ? times_->stream_delay : 0;
  const Picoseconds known = streaming ? 0 : times_->flush_delay;
  const WriteToken token{.thread = id_, .issued = at, .hold = hold, .known = known};
  const Picoseconds accepted = memory_->write(line, at + delay + times_->half_write, at, token);
  if (accepted == kNever) {
    if (!combined) {
      take_waiting_buffer(at);
    }
    ++outstanding_writes_;
  } else {
    const Picoseconds done = accepted + times_->half_write;
    const Picoseconds free = std::max(done, at + hold);
    if (combined) {
      core_->fill_buffers.release(free, Cause::kPersist);
    } else {
      take_buffer(at, free, Cause::kPersist);
    }
    combining_free_ = streaming ? std::max(combining_free_, free) : combining_free_;
    writes_done_ = std::max(writes_done_, done + known);
  }
  interrupted_ = interrupted_ || memory_->has_changed();
}

void VirtualThread::close_write_combining(Picoseconds at) {
  if (combining_bytes_ < memory::kLineBytes) {
    ++counters_
          ->out_of_range_count;  // measurements are of whole lines; a core has more than this one open buffer
  }
  combining_bytes_ = 0;
  core_->close_combining();
  send(combining_line_, at, true, true);
  combining_line_ = ~std::uint64_t{0};
}

void VirtualThread::close_last_write_combining(Picoseconds at) {
  // Not before the stores that may still fill the line have left the queue.
  if (finished_ && queued() == 0 && combining_bytes_ > 0) {
    close_write_combining(at);
  }
}

[[gnu::always_inline]] inline Picoseconds VirtualThread::with_buffer(Picoseconds from, bool any) {
  const FillBuffers& buffers = core_->fill_buffers;
  buffer_wanted_ = std::min(buffer_wanted_, from);
  from = std::max(from, progress_->clock);
  const Picoseconds at = any ? buffers.earliest_of_all(sibling_, from) : buffers.earliest(sibling_, from);
  waits_for_buffer_ = waits_for_buffer_ || at == kNever;
  return at;
}

[[gnu::always_inline]] inline Picoseconds VirtualThread::head_time() {
  const QueuedStore& head = queue_at(queue_head_);
  if (head.senior == kNever) {
    return kNever;
  }
  Picoseconds at = std::max(head.senior, last_commit_);
  if (ordered_flush_) {
    if (outstanding_writes_ > 0) {
      return kNever;
    }
    at = std::max(at, writes_done_);
  }
  switch (head.kind) {
    case code(OpKind::kStore):
      return head.owned != kNever ? std::max(at, head.owned)
                                  : with_buffer(std::max({at, head.dispatched, miss_free_}));
    case code(OpKind::kStreamStore):
      if ((head.flags & kTimedCached) != 0) {
        return with_buffer(std::max({at, head.dispatched, miss_free_}));
      }
      return combining_bytes_ > 0 && combining_line_ == head.line
                 ? at
                 : with_buffer(std::max({at, head.dispatched, miss_free_, streams_again_}), true);
    case code(OpKind::kClwb):
    case code(OpKind::kClflushOpt):
    case code(OpKind::kClflush):
      return (head.flags & kTimedDirty) != 0 ? with_buffer(std::max(at, miss_free_)) : std::max(at, miss_free_);
    case kLatchRelease:
      return at;
    default:  // fences, locked read-modify-writes
      if (combining_bytes_ > 0) {
        return at;
      }
      if (outstanding_writes_ > 0) {
        return kNever;
      }
      at = std::max(at, writes_done_);
      if (head.kind != code(OpKind::kAtomic)) {
        return at;
      }
      return head.owned != kNever ? std::max(at, head.owned)
                                  : with_buffer(std::max({at, head.dispatched, miss_free_}));
  }
}

void VirtualThread::update_store_key() {
  store_key_changes_ = core_->fill_buffers.changes();
  buffer_wanted_ = kNever;
  store_key_ = queued() == 0 ? kNever : head_time();
  while (ownership_next_ != queue_tail_ &&
         (ownership_next_ < queue_head_ || queue_at(ownership_next_).kind != code(OpKind::kStore) ||
          queue_at(ownership_next_).owned != kNever)) {
    ++ownership_next_;
  }
  if (ownership_next_ != queue_tail_) {
    const QueuedStore& entry = queue_at(ownership_next_);
    if (may_ask_early(entry)) {
      store_key_ = std::min(store_key_, needs_buffer(entry.level, entry.flags)
                                            ? with_buffer(std::max(asks_from(entry), miss_free_))
                                            : asks_from(entry));
    }
  }
  store_key_ = std::max(store_key_, progress_->clock);
  core_->fill_buffers.want(sibling_, FillBuffers::kStoreQueue, buffer_wanted_);
}

void VirtualThread::charge_drain(std::uint64_t slot, Picoseconds at) noexcept {
  if (drained_for_ == slot) {
    return;
  }
  drained_for_ = slot;
  if (!settle_slots(slot, at)) {
    ledger_.charge(std::max(writes_done_, fence_done_) >= at ? Cause::kPersist : Cause::kStore, at);
  }
}

void VirtualThread::process_store_queue(Picoseconds at) {
  // The head as well: update_store_key() wakes the thread for it before the cycle of the last commit is over.
  // A flush at the head, which is older, goes first.
  const bool flushes = queued() > 0 && is_flush(queue_at(queue_head_).kind) && head_time() <= at;
  if (!flushes && ownership_next_ != queue_tail_ && (queue_at(ownership_next_).flags & kTimedAfterFlush) == 0 &&
      asks_from(queue_at(ownership_next_)) <= at) {
    ask_ownership(queue_at(ownership_next_), at);
  }
  if (queued() > 0 && head_time() <= at) {
    ordered_flush_ = false;  // what the clflush has written is accepted; later streams wait for nothing
    QueuedStore& head = queue_at(queue_head_);
    bool leaves = true;
    switch (head.kind) {
      case code(OpKind::kStore):
        if (head.owned == kNever) {
          ask_ownership(head, at);
          leaves = false;
        } else {
          last_commit_ = at + times_->cycle;
        }
        break;
      case code(OpKind::kStreamStore):
        if (combining_bytes_ > 0 && combining_line_ != head.line) {
          close_write_combining(at);
          leaves = false;  // once more, with a buffer of its own
        } else if (combining_bytes_ > 0) {
          combining_bytes_ += head.bytes;
          if (combining_bytes_ >= memory::kLineBytes) {
            close_write_combining(at);
          }
          last_commit_ = at + times_->cycle;
        } else {
          if (head.translation != kTlbFirst) {
            head.senior = at + translation_time(head.line, head.translation, at);
            head.translation = kTlbFirst;
            leaves = false;
            break;
          }
          if ((head.flags & kTimedCached) != 0) {
            send(head.line, at, false);
            miss_free_ = at + times_->flush_interval;
          } else if (head.bytes >= memory::kLineBytes) {
            send(head.line, at, true);
          } else if (core_->open_combining()) {
            take_waiting_buffer(at);
            combining_line_ = head.line;
            combining_bytes_ = head.bytes;
          } else {
            ++counters_->out_of_range_count;  // as a buffer that is closed with a part of its line
            send(head.line, at, true);
          }
          last_commit_ = at + times_->cycle;
        }
        break;
      case code(OpKind::kClwb):
      case code(OpKind::kClflushOpt):
      case code(OpKind::kClflush):
        ordered_flush_ = false;
        if ((head.flags & kTimedDirty) != 0) {
          send(head.line, at, false);
          ordered_flush_ = head.kind == code(OpKind::kClflush);
        }
        miss_free_ = at + times_->flush_interval;
        last_commit_ = at;
        break;
      case kLatchRelease:
        traffic_->latches.release(head.line, static_cast<LatchMode>(head.level), at, id_);
        interrupted_ = interrupted_ || traffic_->latches.has_grants();
        break;
      default: {  // fences, locked read-modify-writes
        if (combining_bytes_ > 0) {
          close_write_combining(at);
          leaves = false;
          break;
        }
        const bool atomic = head.kind == code(OpKind::kAtomic);
        if (atomic && head.owned == kNever) {
          charge_drain(head.slot, at);
          ask_ownership(head, at);
          leaves = false;
          break;
        }
        const Picoseconds reached = std::max(head.senior, last_commit_);
        Picoseconds complete = at + (atomic ? times_->atomic : times_->fence);
        if (blocks_front_end(head.kind)) {
          complete = std::max(complete, loads_done_);
        }
        counters_->fence_wait_ps += atomic ? 0 : complete - reached;
        streams_again_ = combining_free_;
        last_commit_ = complete;
        fence_done_ = complete;
        ordered_flush_ = false;
        fence_times_[++fences_completed_ & window_mask_] = complete;
        end_awaiting();
        if (blocks_front_end(head.kind)) {
          slot_at(head.slot).done = complete;
          blocked_ = false;
          stand_for(window_head_, head.slot, complete, blocked_by_);
        }
        break;
      }
    }
    if (leaves) {
      const bool stands = front_key_ == kNever && !rests();
      if (stands) {
        settle_standing(at);
      }
      ++queue_head_;
      close_last_write_combining(at);
      retire_fence_at_head(std::max(at, last_commit_));
      if (front_key_ == kNever) {
        now_ = stands ? std::max(now_, at) : now_;
        wake_front();
      }
    }
  }
  update_store_key();
}

}  // namespace pmsim::machine
