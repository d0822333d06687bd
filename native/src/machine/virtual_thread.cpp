#include "pmsim/machine/virtual_thread.hpp"

#include <algorithm>
#include <bit>

#include "pmsim/core/error.hpp"

namespace pmsim::machine {

using memory::OpKind;

namespace {

constexpr std::uint8_t code(OpKind kind) { return static_cast<std::uint8_t>(kind); }

}  // namespace

VirtualThread::VirtualThread(std::uint32_t id, const PlatformParams& params, std::int64_t threads_on_core,
                             const CoreTimes& times, CoreTiming& core, MemorySystem& memory, Counters& counters,
                             Progress& progress, Feed& feed)
    : id_(id),
      times_(&times),
      core_(&core),
      memory_(&memory),
      counters_(&counters),
      progress_(&progress),
      feed_(&feed),
      instruction_time_(kSecond * threads_on_core / (params.core.frequency * params.core.dispatch_width)),
      window_limit_(
          static_cast<std::uint64_t>(std::max<std::int64_t>(1, params.core.window / threads_on_core))),
      window_(std::bit_ceil(2 * window_limit_ + 16)),
      window_mask_(window_.size() - 1),
      queue_(std::bit_ceil(static_cast<std::uint64_t>(params.core.store_buffer))),
      queue_mask_(queue_.size() - 1),
      queue_capacity_(
          static_cast<std::uint64_t>(std::max<std::int64_t>(1, params.core.store_buffer / threads_on_core))) {}

Picoseconds VirtualThread::next_action() const noexcept {
  return std::min({front_key_, store_key_, pending_key_});
}

Picoseconds VirtualThread::advance(Picoseconds limit) {
  for (;;) {
    const Picoseconds next = next_action();
    if (next > limit || next == kNever) {
      return next;
    }
    if (pending_key_ == next) {
      issue_pending(next);
    } else if (store_key_ == next) {
      process_store_queue(next);
    } else {
      dispatch(limit);
    }
    if (interrupted_) {
      interrupted_ = false;
      return next_action();
    }
  }
}

void VirtualThread::wake_front() {
  if (front_key_ == kNever && !finished_ && !mfence_blocks_) {
    front_key_ = now_;
  }
}

void VirtualThread::step(std::uint32_t instructions) {
  now_ += instruction_time_ * instructions;
  position_ += instructions;
}

std::uint64_t VirtualThread::push_slot(Picoseconds done, Picoseconds begin) {
  slot_at(window_tail_) = Slot{position_, done, begin};
  return window_tail_++;
}

void VirtualThread::retire_head() {
  const Slot& head = slot_at(window_head_);
  retired_ = std::max(retired_, head.done);
  if (head.begin >= 0) {
    latency_.record(std::max(retired_, head.begin) - head.begin);
  }
  ++window_head_;
}

void VirtualThread::retire_finished() {
  while (window_head_ != window_tail_ && slot_at(window_head_).done != kNever) {
    retire_head();
  }
}

bool VirtualThread::make_room(std::uint32_t instructions, Picoseconds limit) {
  while (window_head_ != window_tail_) {
    const Slot& head = slot_at(window_head_);
    const bool full = window_tail_ - window_head_ >= window_.size() - 1;
    if (!full && position_ + instructions <= head.position + window_limit_) {
      break;
    }
    if (head.done == kNever) {
      front_key_ = kNever;
      return false;
    }
    retire_head();
    now_ = std::max(now_, retired_);
  }
  front_key_ = now_;
  return now_ <= limit;
}

bool VirtualThread::drain_window(Picoseconds limit) {
  while (window_head_ != window_tail_) {
    if (slot_at(window_head_).done == kNever) {
      front_key_ = kNever;
      return false;
    }
    retire_head();
    now_ = std::max(now_, retired_);
  }
  now_ = std::max({now_, loads_done_, streams_again_});
  front_key_ = now_;
  return now_ <= limit;
}

void VirtualThread::dispatch(Picoseconds last) {
  for (;;) {
    // The other two agents win ties; their keys may have moved with the operation before.
    const Picoseconds limit = std::min({last, store_key_ - 1, pending_key_ - 1});
    if (now_ > limit) {
      return;
    }
    if (next_ == end_) {
      feed_->next(id_, next_, end_);
      progress_->taken += end_ - next_;
      interrupted_ = progress_->taken >= progress_->may_take;
      if (next_ == end_) {
        finished_ = true;
        front_key_ = kNever;
        // What still sits in an open write-combining buffer leaves it.
        if (combining_bytes_ > 0) {
          close_write_combining(now_);
        }
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
              std::max(static_cast<Picoseconds>(op.line) * times_->cycle, instruction_time_ * op.instructions);
          position_ += op.instructions;
        }
        break;
      case code(OpKind::kLoad):
        consumed = dispatch_load(op, limit);
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
        consumed = dispatch_store(op, limit);
        break;
      case kWriteback:
        consumed = dispatch_writeback(op, limit);
        break;
      case kHwPrefetch:
        dispatch_hardware_prefetch(op.line);
        break;
      case code(OpKind::kBlockRead):
      case code(OpKind::kBlockWrite):
      case code(OpKind::kBlockFlush):
        consumed = dispatch_block_io(op, limit);
        break;
      case code(OpKind::kOperationBegin):
        if ((op.flags & kTimedSerialising) != 0) {
          consumed = drain_window(limit);
        } else if ((op.flags & kTimedDependent) != 0) {
          consumed = unresolved_ == 0;
          now_ = std::max(now_, loads_done_);
          front_key_ = consumed ? now_ : kNever;
          consumed = consumed && now_ <= limit;
        }
        if (consumed) {
          begin_ = now_;
        }
        break;
      case code(OpKind::kOperationEnd):
        consumed = make_room(0, limit);
        if (consumed) {
          push_slot(now_, begin_);
          begin_ = -1;
          ++operations_;
          progress_->reached_at = now_;
          interrupted_ = ++progress_->operations >= progress_->goal;
          user_bytes_ += static_cast<std::int64_t>(op.line);
        }
        break;
      default:
        throw SimulationError("pmsim bug: unknown timed operation");
    }
    if (!consumed) {
      return;
    }
    ++next_;
    ++timed_ops_;
    if (front_key_ != kNever) {
      front_key_ = now_;
    } else {
      return;  // an mfence has stopped the front end
    }
    if (interrupted_) {
      return;
    }
  }
}

Picoseconds VirtualThread::translation_time(std::uint64_t line, std::uint8_t translation, Picoseconds at) {
  switch (translation) {
    case kTlbFirst:
      return 0;
    case kTlbSecond:
      return times_->tlb_second;
    case kWalkL2:
      return times_->walk + times_->l2;
    case kWalkLlc:
      return times_->walk + times_->llc;
    default: {
      const Picoseconds walked = at + times_->walk;
      return memory_->read(page_table_line(line >> times_->page_line_shift), walked + times_->half_read, at) +
             times_->half_read - at;
    }
  }
}

Picoseconds VirtualThread::fetch(std::uint64_t line, std::uint8_t level, Picoseconds at) {
  switch (level) {
    case kL1:
      return std::max(at + times_->l1, core_->arrival(line));
    case kL2:
      return std::max(at + times_->l2, core_->arrival(line));
    case kLlc:
      return at + times_->llc;
    default: {
      const Picoseconds arrives = memory_->read(line, at + times_->half_read, at) + times_->half_read;
      core_->note_fill(line, arrives);
      return arrives;
    }
  }
}

std::uint8_t VirtualThread::level_now(std::uint64_t line, std::uint8_t level,
                                      std::uint8_t flags) const noexcept {
  const bool dropped = (flags & kTimedInFlight) != 0 && core_->arrival(line) == kNever;
  return dropped ? static_cast<std::uint8_t>(kFromMemory) : level;
}

bool VirtualThread::resolve_branch(Picoseconds limit) {
  if (last_pending_ >= 0) {
    front_key_ = kNever;  // until that load has issued
    return false;
  }
  now_ = std::max(now_, last_load_done_);
  front_key_ = now_;
  if (now_ > limit) {
    return false;
  }
  now_ += times_->mispredict;
  return true;
}

int VirtualThread::pending_prefetch(std::uint64_t line) const noexcept {
  for (std::uint32_t left = unresolved_; left != 0; left &= left - 1) {
    const int index = std::countr_zero(left);
    const TimedOp& op = pending_[static_cast<std::size_t>(index)].op;
    if (op.line == line && op.kind == code(OpKind::kPrefetch)) {
      return index;
    }
  }
  return -1;
}

bool VirtualThread::dispatch_load(const TimedOp& op, Picoseconds limit) {
  trigger_ = -1;
  if (!make_room(1, limit)) {
    return false;
  }
  const bool dependent = (op.flags & kTimedDependent) != 0 && (last_pending_ >= 0 || last_load_done_ > now_);
  const int prefetch = (op.flags & kTimedInFlight) != 0 ? pending_prefetch(op.line) : -1;
  if (dependent || prefetch >= 0 || op.translation != kTlbFirst) {
    return defer_load(op, dependent, prefetch);
  }
  const std::uint8_t level = level_now(op.line, op.level, op.flags);
  if (needs_buffer(level) && wait_for_buffer()) {
    return false;
  }
  const Picoseconds done = fetch(op.line, level, now_);
  if (needs_buffer(level)) {
    core_->fill_buffers.take(done);
  }
  push_slot(done, -1);
  last_load_done_ = done;
  last_pending_ = -1;
  loads_done_ = std::max(loads_done_, done);
  step(1);
  return true;
}

bool VirtualThread::defer_load(const TimedOp& op, bool dependent, int prefetch) {
  if (unresolved_ == kAllPending) {
    front_key_ = kNever;
    return false;
  }
  const int index = std::countr_one(unresolved_);
  PendingLoad& load = pending_[static_cast<std::size_t>(index)];
  load = PendingLoad{op, push_slot(kNever, -1), now_, -1};
  if (dependent) {
    load.ready = last_pending_ >= 0 ? kNever : last_load_done_;
    load.producer = last_pending_;
  } else if (prefetch >= 0) {
    load.ready = kNever;  // the line is not even on its way
    load.producer = prefetch;
  }
  if (op.kind == code(OpKind::kLoad)) {
    last_pending_ = index;
  } else {
    slot_at(load.slot).done = now_;  // a prefetch retires at once
  }
  unresolved_ |= std::uint32_t{1} << index;
  trigger_ = index;
  pending_key_ = std::min(pending_key_, load.ready);
  step(1);
  return true;
}

bool VirtualThread::wait_for_buffer() {
  const Picoseconds free = core_->fill_buffers.earliest();
  if (free <= now_) {
    return false;
  }
  now_ = free == kNever ? now_ : free;
  front_key_ = free;
  waits_for_buffer_ = free == kNever;
  return true;
}

bool VirtualThread::dispatch_prefetch(const TimedOp& op, Picoseconds limit) {
  trigger_ = -1;
  if (!make_room(1, limit)) {
    return false;
  }
  if (op.translation != kTlbFirst) {
    return defer_load(op, false, -1);
  }
  const std::uint8_t level = level_now(op.line, op.level, op.flags);
  if (needs_buffer(level) && wait_for_buffer()) {
    return false;
  }
  const Picoseconds done = fetch(op.line, level, now_);
  if (needs_buffer(level)) {
    core_->fill_buffers.take(done);
  }
  core_->note_fill(op.line, done);
  step(1);
  return true;
}

void VirtualThread::dispatch_hardware_prefetch(std::uint64_t line) {
  if (trigger_ < 0) {
    issue_hardware_prefetch(line, now_);
    return;
  }
  core_->note_fill(line, kNever);  // not on its way: whoever wants it before has to fetch it
  waiting_prefetches_.push_back({line, trigger_});
}

void VirtualThread::issue_hardware_prefetch(std::uint64_t line, Picoseconds at) {
  if (core_->prefetch_slots.earliest() > at) {
    core_->note_fill(line, kNever);  // no place in the queue: dropped, the line will be fetched on demand
    return;
  }
  const Picoseconds done = memory_->read(line, at + times_->half_read, at) + times_->half_read;
  core_->prefetch_slots.take(done);
  core_->note_fill(line, done);
}

void VirtualThread::issue_prefetches_of(int load, Picoseconds at) {
  trigger_ = trigger_ == load ? -1 : trigger_;
  std::erase_if(waiting_prefetches_, [&](const WaitingPrefetch& waiting) {
    if (waiting.load == load && core_->arrival(waiting.line) == kNever) {
      issue_hardware_prefetch(waiting.line, at);
    }
    return waiting.load == load;
  });
}

bool VirtualThread::dispatch_writeback(const TimedOp& op, Picoseconds limit) {
  if (const Picoseconds free = core_->writeback_slots.earliest(); free > now_) {
    // The miss that evicts this line waits until the line has a place to go.
    front_key_ = free;  // kNever: a grant wakes it, never a sibling's fill buffer
    now_ = front_key_ == kNever ? now_ : front_key_;
    if (front_key_ > limit) {
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

bool VirtualThread::dispatch_block_io(const TimedOp& op, Picoseconds limit) {
  if (!drain_window(limit)) {
    return false;
  }
  BlockDevice& device = memory_->block_device();
  if (op.kind == code(OpKind::kBlockRead)) {
    now_ = device.read(op.line, op.instructions, now_);
  } else if (op.kind == code(OpKind::kBlockWrite)) {
    now_ = device.write(op.line, op.instructions, now_);
  } else {
    now_ = device.flush(now_);
  }
  return true;
}

bool VirtualThread::dispatch_store(const TimedOp& op, Picoseconds limit) {
  trigger_ = -1;
  if (!make_room(1, limit)) {
    return false;
  }
  if (queued() == queue_capacity_) {
    front_key_ = kNever;
    return false;
  }
  const bool fence = op.kind == code(OpKind::kSfence) || op.kind == code(OpKind::kMfence);
  if (fence && fences_dispatched_ != fences_completed_) {
    front_key_ = kNever;  // a fence is not dispatched while another one waits
    return false;
  }
  QueuedStore& entry = queue_at(queue_tail_++);
  entry = QueuedStore{.line = op.line,
                      .slot = fence ? push_slot(kNever, -1) : 0,
                      .dispatched = now_,
                      .senior = unresolved_ == 0 ? std::max(now_, loads_done_) : kNever,
                      .owned = kNever,
                      .fences_before = fences_dispatched_,
                      .kind = op.kind,
                      .bytes = op.level,
                      .level = op.level,
                      .translation = op.translation,
                      .flags = op.flags};
  fences_dispatched_ += fence ? 1 : 0;
  if (op.kind == code(OpKind::kStore) && ownership_next_ == queue_tail_ - 1 && may_ask_early(entry) &&
      asks_from(entry) <= now_ && (unresolved_ == 0 || (op.flags & kTimedDependent) == 0)) {
    ask_ownership(entry, now_);
  }
  step(1);
  update_store_key();
  if (op.kind == code(OpKind::kMfence)) {
    mfence_blocks_ = true;
    front_key_ = kNever;
  }
  return true;
}

bool VirtualThread::may_ask_early(const QueuedStore& entry) const noexcept {
  const bool must_wait = (entry.flags & kTimedAfterFence) != 0 && entry.fences_before != fences_completed_;
  return (entry.flags & kTimedAfterFlush) == 0 && !must_wait;
}

Picoseconds VirtualThread::asks_from(const QueuedStore& entry) const noexcept {
  return (entry.flags & kTimedAfterFence) != 0 ? std::max(entry.dispatched, fence_done_) : entry.dispatched;
}

bool VirtualThread::ask_ownership(QueuedStore& entry, Picoseconds at) {
  const bool early = &entry != &queue_at(queue_head_);
  if (early && !may_ask_early(entry)) {
    return false;
  }
  if (entry.translation != kTlbFirst) {
    entry.dispatched = at + translation_time(entry.line, entry.translation, at);
    entry.translation = kTlbFirst;
    return false;
  }
  entry.level = level_now(entry.line, entry.level, entry.flags);
  if (needs_buffer(entry.level) && core_->fill_buffers.earliest() > at) {
    return false;
  }
  entry.owned = fetch(entry.line, entry.level, at);
  if (needs_buffer(entry.level)) {
    core_->note_fill(entry.line, entry.owned);
    core_->fill_buffers.take(entry.owned);
  }
  return true;
}

void VirtualThread::update_pending_key() noexcept {
  pending_key_ = kNever;
  for (std::uint32_t left = unresolved_; left != 0; left &= left - 1) {
    pending_key_ = std::min(pending_key_, pending_[static_cast<std::size_t>(std::countr_zero(left))].ready);
  }
}

void VirtualThread::issue_pending(Picoseconds at) {
  std::uint32_t candidates = unresolved_;
  while (pending_[static_cast<std::size_t>(std::countr_zero(candidates))].ready != at) {
    candidates &= candidates - 1;
  }
  const auto index = static_cast<std::size_t>(std::countr_zero(candidates));
  PendingLoad& load = pending_[index];
  if (load.op.translation != kTlbFirst) {
    load.ready = at + translation_time(load.op.line, load.op.translation, at);
    load.op.translation = kTlbFirst;
    update_pending_key();
    return;
  }
  const std::uint8_t level = level_now(load.op.line, load.op.level, load.op.flags);
  if (const Picoseconds free = core_->fill_buffers.earliest(); needs_buffer(level) && free > at) {
    load.ready = free;
    waits_for_buffer_ = waits_for_buffer_ || load.ready == kNever;
    update_pending_key();
    return;
  }
  const Picoseconds done = fetch(load.op.line, level, at);
  if (needs_buffer(level)) {
    core_->fill_buffers.take(done);
  }
  if (load.op.kind == code(OpKind::kLoad)) {
    slot_at(load.slot).done = done;
    loads_done_ = std::max(loads_done_, done);
  } else {
    core_->note_fill(load.op.line, done);
  }
  unresolved_ &= ~(std::uint32_t{1} << index);
  issue_prefetches_of(static_cast<int>(index), at);
  if (last_pending_ == static_cast<int>(index)) {
    last_pending_ = -1;
    last_load_done_ = done;
  }
  for (std::uint32_t left = unresolved_; left != 0; left &= left - 1) {
    PendingLoad& other = pending_[static_cast<std::size_t>(std::countr_zero(left))];
    if (other.producer == static_cast<int>(index)) {
      other.producer = -1;
      // A load of the line that a prefetch brings waits in the same fill buffer; a dependent one needs the
      // value.
      other.ready = load.op.kind == code(OpKind::kPrefetch) ? at : done;
    }
  }
  update_pending_key();
  if (unresolved_ == 0) {
    for (std::uint64_t entry = queue_head_; entry != queue_tail_; ++entry) {
      QueuedStore& store = queue_at(entry);
      if (store.senior == kNever) {
        store.senior = std::max(store.dispatched, loads_done_);
      }
    }
    update_store_key();
  }
  if (finished_) {
    retire_finished();
  }
  wake_front();
}

void VirtualThread::send(std::uint64_t line, Picoseconds at, bool streaming, bool combined) {
  const Picoseconds hold = streaming ? times_->stream_hold : 0;
  const Picoseconds delay = streaming ? times_->stream_delay : 0;
  const WriteToken token{.thread = id_, .issued = at, .hold = hold};
  const Picoseconds accepted = memory_->write(line, at + delay + times_->half_write, at, token);
  if (accepted == kNever) {
    if (!combined) {
      core_->fill_buffers.take_waiting();
    }
    ++outstanding_writes_;
  } else {
    const Picoseconds done = accepted + times_->half_write;
    const Picoseconds free = std::max(done, at + hold);
    if (combined) {
      core_->fill_buffers.release(free);
    } else {
      core_->fill_buffers.take(free);
    }
    combining_free_ = streaming ? std::max(combining_free_, free) : combining_free_;
    writes_done_ = std::max(writes_done_, done);
  }
  interrupted_ = interrupted_ || memory_->has_changed();
}

void VirtualThread::close_write_combining(Picoseconds at) {
  if (combining_bytes_ < memory::kLineBytes) {
    ++counters_
          ->out_of_range_count;  // measurements are of whole lines; a core has more than this one open buffer
  }
  combining_bytes_ = 0;
  send(combining_line_, at, true, true);
  combining_line_ = ~std::uint64_t{0};
}

Picoseconds VirtualThread::head_time() {
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
  if (head.kind != code(OpKind::kSfence) && head.kind != code(OpKind::kMfence)) {
    at = std::max(at, queue_free_);
  }
  switch (head.kind) {
    case code(OpKind::kStore):
      return head.owned != kNever ? std::max(at, head.owned)
                                  : std::max({at, head.dispatched, core_->fill_buffers.earliest()});
    case code(OpKind::kStreamStore):
      return combining_bytes_ > 0 && combining_line_ == head.line
                 ? at
                 : std::max(std::max(at, streams_again_), core_->fill_buffers.earliest());
    case code(OpKind::kClwb):
    case code(OpKind::kClflushOpt):
    case code(OpKind::kClflush):
      return (head.flags & kTimedDirty) != 0 ? std::max(at, core_->fill_buffers.earliest()) : at;
    default:  // fences
      if (combining_bytes_ > 0) {
        return at;
      }
      return outstanding_writes_ > 0 ? kNever : std::max(at, writes_done_);
  }
}

void VirtualThread::update_store_key() {
  store_key_ = queued() == 0 ? kNever : head_time();
  waits_for_buffer_ =
      waits_for_buffer_ || (store_key_ == kNever && queued() > 0 && core_->fill_buffers.all_wait());
  while (ownership_next_ != queue_tail_ &&
         (ownership_next_ < queue_head_ || queue_at(ownership_next_).kind != code(OpKind::kStore) ||
          queue_at(ownership_next_).owned != kNever)) {
    ++ownership_next_;
  }
  if (ownership_next_ != queue_tail_) {
    const QueuedStore& entry = queue_at(ownership_next_);
    if (may_ask_early(entry)) {
      store_key_ = std::min(store_key_, needs_buffer(entry.level)
                                            ? std::max(asks_from(entry), core_->fill_buffers.earliest())
                                            : asks_from(entry));
    }
  }
}

void VirtualThread::process_store_queue(Picoseconds at) {
  // The head as well: update_store_key() wakes the thread for it before the cycle of the last commit is over.
  if (ownership_next_ != queue_tail_ && (queue_at(ownership_next_).flags & kTimedAfterFlush) == 0 &&
      asks_from(queue_at(ownership_next_)) <= at) {
    ask_ownership(queue_at(ownership_next_), at);
  }
  if (queued() > 0 && head_time() <= at) {
    QueuedStore& head = queue_at(queue_head_);
    bool leaves = true;
    switch (head.kind) {
      case code(OpKind::kStore):
        if (head.owned == kNever) {
          ask_ownership(head, at);
          leaves = false;
        } else {
          if (head.level >= kLlc && head.line - streak_line_ > 1) {
            queue_free_ = at + times_->store_miss_interval;
          }
          streak_line_ = head.line;
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
          if (head.bytes >= memory::kLineBytes) {
            send(head.line, at, true);
          } else {
            core_->fill_buffers.take_waiting();
            combining_line_ = head.line;
            combining_bytes_ = head.bytes;
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
        queue_free_ = at + times_->flush_interval;
        streak_line_ = ~std::uint64_t{0};
        last_commit_ = at;
        break;
      default: {  // fences
        streak_line_ = ~std::uint64_t{0};
        if (combining_bytes_ > 0) {
          close_write_combining(at);
          leaves = false;
          break;
        }
        const Picoseconds reached = std::max(head.senior, last_commit_);
        Picoseconds complete = at + times_->fence;
        if (head.kind == code(OpKind::kMfence)) {
          complete = std::max(complete, loads_done_);
        }
        counters_->fence_wait_ps += complete - reached;
        streams_again_ = combining_free_;
        slot_at(head.slot).done = complete;
        if (finished_) {
          retire_finished();
        }
        last_commit_ = complete;
        fence_done_ = complete;
        ordered_flush_ = false;
        ++fences_completed_;
        if (head.kind == code(OpKind::kMfence)) {
          mfence_blocks_ = false;
          now_ = std::max(now_, complete);
        }
        break;
      }
    }
    if (leaves) {
      ++queue_head_;
      if (front_key_ == kNever) {
        now_ = std::max(now_, finished_ ? now_ : std::min(at, last_commit_));
        wake_front();
      }
    }
  }
  update_store_key();
}

void VirtualThread::granted(const Grant& grant) {
  const Picoseconds done = grant.accepted + times_->half_write;
  if (grant.token.writeback) {
    core_->writeback_slots.release(grant.accepted);
  } else {
    const Picoseconds free = std::max(done, grant.token.issued + grant.token.hold);
    core_->fill_buffers.release(free);
    combining_free_ = grant.token.hold > 0 ? std::max(combining_free_, free) : combining_free_;
    --outstanding_writes_;
    writes_done_ = std::max(writes_done_, done);
  }
}

void VirtualThread::buffers_changed() {
  waits_for_buffer_ = false;
  if (unresolved_ != 0) {
    for (std::uint32_t left = unresolved_; left != 0; left &= left - 1) {
      PendingLoad& load = pending_[static_cast<std::size_t>(std::countr_zero(left))];
      if (load.producer == -1 && load.ready == kNever) {
        load.ready = core_->fill_buffers.earliest();
      }
    }
    update_pending_key();
  }
  update_store_key();
  wake_front();
}

}  // namespace pmsim::machine
