#include "pmsim/machine/virtual_thread.hpp"

#include <algorithm>
#include <bit>

/// Loads and prefetches that were dispatched and wait: for the load before them, a translation or a fill
/// buffer.
namespace pmsim::machine {

using memory::OpKind;

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

bool VirtualThread::defer_load(const TimedOp& op, bool dependent, int prefetch) {
  if (unresolved_ == kAllPending) {
    front_key_ = kNever;
    return false;
  }
  const int index = std::countr_one(unresolved_);
  PendingLoad& load = pending_[static_cast<std::size_t>(index)];
  const Picoseconds translated = op.translation == kTlbFirst ? walk_end(op.line, now_) : 0;
  load = PendingLoad{op, push_slot(kNever), std::max(now_, translated), -1};
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
  const std::uint32_t bit = std::uint32_t{1} << index;
  unresolved_ |= bit;
  timed_ |= load.ready == kNever ? 0 : bit;
  chained_ |= load.producer >= 0 ? bit : 0;
  trigger_ = index;
  pending_key_ = std::min(pending_key_, load.ready);
  step(1);
  return true;
}

bool VirtualThread::wait_at_module(const TimedOp& op) {
  if (unresolved_ == kAllPending) {
    front_key_ = kNever;
    front_waits_for_pending_ = true;
    return false;
  }
  const int index = std::countr_one(unresolved_);
  PendingLoad& load = pending_[static_cast<std::size_t>(index)];
  load = PendingLoad{op, push_slot(kNever), kNever, kAtModule};
  if (op.kind == code(OpKind::kLoad)) {
    last_pending_ = index;
  } else {
    slot_at(load.slot).done = now_;  // a prefetch retires at once
  }
  unresolved_ |= std::uint32_t{1} << index;
  core_->fill_buffers.take_waiting();
  interrupted_ = interrupted_ || memory_->has_changed();
  step(1);
  return true;
}

void VirtualThread::admitted(const Admission& admission) {
  const Picoseconds done = admission.done + times_->half_read;
  core_->fill_buffers.release(done);
  core_->note_fill(pending_[admission.token.load].op.line, done);
  complete_pending(admission.token.load, admission.entered, done);
}

void VirtualThread::issue_prefetches_of(int load, Picoseconds at) {
  trigger_ = trigger_ == load ? -1 : trigger_;
  if (waiting_prefetches_.empty()) {
    return;
  }
  std::erase_if(waiting_prefetches_, [&](const WaitingPrefetch& waiting) {
    if (waiting.load == load && core_->arrival(waiting.line) == kNever) {
      issue_hardware_prefetch(waiting.line, at);
    }
    return waiting.load == load;
  });
}

void VirtualThread::update_pending_key() noexcept {
  pending_key_ = kNever;
  for (std::uint32_t left = timed_; left != 0; left &= left - 1) {
    pending_key_ = std::min(pending_key_, pending_[static_cast<std::size_t>(std::countr_zero(left))].ready);
  }
}

void VirtualThread::postpone_to(Picoseconds free, Picoseconds at) {
  for (std::uint32_t left = timed_; left != 0; left &= left - 1) {
    const std::uint32_t bit = left & (0 - left);
    PendingLoad& load = pending_[static_cast<std::size_t>(std::countr_zero(left))];
    const TimedOp& op = load.op;
    if (load.ready != at || op.translation != kTlbFirst || walk_end(op.line, at) > at ||
        !needs_buffer(level_now(op.line, op.level, op.flags), op.flags)) {
      continue;
    }
    load.ready = free;
    if (free == kNever) {
      timed_ &= ~bit;
      want_buffer_ |= bit;
      waits_for_buffer_ = true;
    }
  }
}

void VirtualThread::issue_pending(Picoseconds at) {
  // The oldest of them: those that waited for one translation go in program order.
  std::size_t index = kPendingLoads;
  for (std::uint32_t left = timed_; left != 0; left &= left - 1) {
    const auto candidate = static_cast<std::size_t>(std::countr_zero(left));
    if (pending_[candidate].ready == at &&
        (index == kPendingLoads || pending_[candidate].slot < pending_[index].slot)) {
      index = candidate;
    }
  }
  const std::uint32_t bit = std::uint32_t{1} << index;
  PendingLoad& load = pending_[index];
  if (load.op.translation != kTlbFirst) {
    load.ready = at + translation_time(load.op.line, load.op.translation, at);
    load.op.translation = kTlbFirst;
    update_pending_key();
    return;
  }
  if (const Picoseconds translated = walk_end(load.op.line, at); translated > at) {
    load.ready = translated;
    update_pending_key();
    return;
  }
  const std::uint8_t level = level_now(load.op.line, load.op.level, load.op.flags);
  if (const Picoseconds free = core_->fill_buffers.earliest();
      needs_buffer(level, load.op.flags) && free > at) {
    postpone_to(free, at);
    update_pending_key();
    return;
  }
  const Picoseconds done = fetch_load(load.op.line, level, at, index);
  if (done == kNever) {
    core_->fill_buffers.take_waiting();
    load.ready = kNever;
    load.producer = kAtModule;
    timed_ &= ~bit;
    issue_prefetches_of(static_cast<int>(index), at);
    interrupted_ = interrupted_ || memory_->has_changed();
    update_pending_key();
    return;
  }
  if (needs_buffer(level, load.op.flags)) {
    core_->fill_buffers.take(done);
  }
  complete_pending(index, at, done);
}

void VirtualThread::complete_pending(std::size_t index, Picoseconds at, Picoseconds done) {
  PendingLoad& load = pending_[index];
  if (load.op.kind == code(OpKind::kLoad)) {
    slot_at(load.slot).done = done;
    loads_done_ = std::max(loads_done_, done);
  } else {
    core_->note_fill(load.op.line, done);
  }
  const std::uint32_t bit = std::uint32_t{1} << index;
  unresolved_ &= ~bit;
  timed_ &= ~bit;
  issue_prefetches_of(static_cast<int>(index), at);
  if (last_pending_ == static_cast<int>(index)) {
    last_pending_ = -1;
    last_load_done_ = done;
  }
  for (std::uint32_t left = chained_; left != 0; left &= left - 1) {
    PendingLoad& other = pending_[static_cast<std::size_t>(std::countr_zero(left))];
    if (other.producer == static_cast<int>(index)) {
      other.producer = -1;
      // A load of the line that a prefetch brings waits in the same fill buffer; a dependent one needs the
      // value.
      other.ready = load.op.kind == code(OpKind::kPrefetch) ? at : done;
      chained_ &= ~(left & (0 - left));
      timed_ |= left & (0 - left);
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
  if (rests()) {
    retire_finished();
  }
  now_ = front_waits_for_pending_ ? std::max(now_, at) : now_;
  front_waits_for_pending_ = false;
  wake_front();
}

}  // namespace pmsim::machine
