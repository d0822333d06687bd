#include "pmsim/machine/virtual_thread.hpp"

#include <algorithm>
#include <bit>

/// Loads and prefetches that were dispatched and wait: for the load before them, a translation or a fill
/// buffer.
namespace pmsim::machine {

using memory::OpKind;

int VirtualThread::pending_fetch(std::uint64_t line) const noexcept {
  for (std::uint64_t left = unresolved_; left != 0; left &= left - 1) {
    const int index = std::countr_zero(left);
    const TimedOp& op = pending_[static_cast<std::size_t>(index)].op;
    if (op.line == line && op.level != kL1) {
      return index;
    }
  }
  return -1;
}

bool VirtualThread::awaits_loads() const noexcept {
  for (std::uint64_t left = unresolved_; left != 0; left &= left - 1) {
    if (pending_[static_cast<std::size_t>(std::countr_zero(left))].op.kind == code(OpKind::kLoad)) {
      return true;
    }
  }
  return false;
}

void VirtualThread::defer_load(const TimedOp& op, bool dependent, int bringer, Picoseconds translated) {
  const int index = std::countr_one(unresolved_);
  PendingLoad& load = pending_[static_cast<std::size_t>(index)];
  load =
      PendingLoad{op, push_slot(kNever, cause_of(op.line, op.level)), -1, translated > now_ ? translated : 0};
  const std::uint64_t slot = load.slot;
  Picoseconds ready = std::max(now_, translated);
  if (dependent) {
    ready = last_pending_ >= 0 ? kNever : last_load_done_;
    load.producer = last_pending_;
  } else if (bringer >= 0) {
    ready = kNever;  // the line is not even on its way
    load.producer = bringer;
  }
  if (op.kind == code(OpKind::kLoad)) {
    last_pending_ = index;
  } else {
    slot_at(slot).done = now_;  // a prefetch retires at once
  }
  if (op.translation != kTlbFirst && ready == now_ && !interrupted_) {
    // Its walk begins at once: it would be the thread's next action.
    ready += translation_time(op.line, op.translation, now_);
    load.op.translation = kTlbFirst;
    load.translated = ready;
  }
  const std::uint64_t bit = std::uint64_t{1} << index;
  unresolved_ |= bit;
  chained_ |= load.producer >= 0 ? bit : 0;
  trigger_ = index;
  if (ready != kNever) {
    timed_.add(static_cast<std::size_t>(index), slot, ready);
    pending_key_ = std::min(pending_key_, ready);
  }
  step(op.instructions);
}

bool VirtualThread::wait_at_module(const TimedOp& op) {
  if (unresolved_ == kAllPending) {
    front_key_ = kNever;
    front_waits_for_pending_ = true;
    return false;
  }
  const int index = std::countr_one(unresolved_);
  PendingLoad& load = pending_[static_cast<std::size_t>(index)];
  load = PendingLoad{op, push_slot(kNever, cause_of(op.line, kFromMemory)), kAtModule, 0, now_};
  if (op.kind == code(OpKind::kLoad)) {
    last_pending_ = index;
  } else {
    slot_at(load.slot).done = now_;  // a prefetch retires at once
  }
  unresolved_ |= std::uint64_t{1} << index;
  take_waiting_buffer(now_);
  step(1);
  return true;
}

void VirtualThread::admitted(const Admission& admission) {
  const Picoseconds done = admission.done + times_->half_read;
  const std::uint64_t line = pending_[admission.token.load].op.line;
  const Cause cause = cause_of(line, kFromMemory);
  core_->fill_buffers.release(done, cause);
  core_->note_fill(line, done);
  complete_pending(admission.token.load, admission.entered, done, cause);
}

void VirtualThread::issue_waiting_prefetches_of(int load, Picoseconds at) {
  std::erase_if(waiting_prefetches_, [&](const WaitingPrefetch& waiting) {
    if (waiting.load == load && core_->fills().is_dropped(waiting.line)) {
      issue_hardware_prefetch(waiting.line, waiting.level, at);
    }
    return waiting.load == load;
  });
}

void VirtualThread::check_line(Picoseconds at) {
  for (std::size_t place = line_.size(); place-- > 0;) {
    const PendingLoad& load = pending_[line_[place]];
    if (!lacks_only_buffer(load.op, at)) {
      timed_.add(line_[place], load.slot, at);
      line_.leave(place);
    }
  }
  line_checked_ = core_->walks_noted();
}

void VirtualThread::join_line(std::size_t index, Picoseconds free) {
  const PendingLoad& load = pending_[index];
  if (!line_.empty() && line_.asks_at() != free) {
    if (free != kNever) {
      timed_.add(index, load.slot, free);  // one is free before that which those in line have been told of
      return;
    }
    for (const Picoseconds asked = line_.asks_at(); !line_.empty(); line_.leave_front()) {
      timed_.add(line_.front(), line_.front_key(), asked);
    }
  }
  line_in_flight_ = (load.op.flags & kTimedInFlight) != 0 || (line_in_flight_ && !line_.empty());
  line_checked_ = line_.empty() ? core_->walks_noted() : line_checked_;
  line_.join(index, load.slot);
  line_.ask_at(free);
}

void VirtualThread::postpone_to(Picoseconds free, Picoseconds at) {
  if (line_.asks_at() == at) {
    // Those in line lacked nothing else when they joined it. That can have changed by a walk, which they see
    // then, or by a prefetch.
    if (line_checked_ != core_->walks_noted() || line_in_flight_) {
      check_line(at);
    }
    if (!line_.empty()) {
      line_.ask_at(free);
    }
  }
  std::uint64_t others = 0;
  while (timed_.next() == at) {
    const std::size_t index = timed_.front();
    timed_.leave_front();
    if (lacks_only_buffer(pending_[index].op, at)) {
      join_line(index, free);
    } else {
      others |= std::uint64_t{1} << index;
    }
  }
  for (; others != 0; others &= others - 1) {
    const auto index = static_cast<std::size_t>(std::countr_zero(others));
    timed_.add(index, pending_[index].slot, at);
  }
  waits_for_buffer_ = waits_for_buffer_ || (free == kNever && !line_.empty());
}

std::size_t VirtualThread::next_in_line() noexcept {
  const std::size_t candidates = std::min(fill_buffer_credits_, line_.size());
  return candidates > 1 ? static_cast<std::size_t>(random_.below(candidates)) : 0;
}

void VirtualThread::issue_pending(Picoseconds at) {
  // The oldest of them: those that waited for one translation go in program order.
  const bool in_line = line_.asks_at() == at && (timed_.next() != at || line_.front_key() < timed_.front_key());
  const std::size_t place = in_line ? next_in_line() : 0;
  const std::size_t index = in_line ? line_[place] : timed_.front();
  PendingLoad& load = pending_[index];
  const auto leave = [&] {
    if (in_line) {
      line_.leave(place);
    } else {
      timed_.leave_front();
    }
  };
  if (load.op.translation != kTlbFirst) {
    leave();
    load.translated = at + translation_time(load.op.line, load.op.translation, at);
    timed_.add(index, load.slot, load.translated);
    load.op.translation = kTlbFirst;
    update_pending_key();
    return;
  }
  if (const Picoseconds translated = walk_end(load.op.line, at); translated > at) {
    leave();
    timed_.add(index, load.slot, translated);
    load.translated = translated;
    update_pending_key();
    return;
  }
  const std::uint8_t level = level_now(load.op.line, load.op.level, load.op.flags);
  if (const Picoseconds free = core_->fill_buffers.earliest(sibling_, at);
      needs_buffer(level, load.op.flags) && free > at) {
    postpone_to(free, at);
    update_pending_key();
    return;
  }
  leave();
  load.op.level = level;
  load.issued = at;
  load.buffer = core_->fill_buffers.earliest_held_for();
  const Picoseconds done = fetch_load(load.op.line, level, at, index);
  if (done == kNever) {
    take_waiting_buffer(at);
    load.producer = kAtModule;
    issue_prefetches_of(static_cast<int>(index), at);
  } else {
    const Cause cause = cause_of(load.op.line, level, at, done);
    if (needs_buffer(level, load.op.flags)) {
      take_buffer(at, done, cause);
    }
    complete_pending(index, at, done, cause);
  }
  if (line_.asks_at() == at && !interrupted_) {
    // The next one in line would be the thread's next action, and put them all off.
    if (const Picoseconds free = core_->fill_buffers.earliest(sibling_, at); free > at) {
      postpone_to(free, at);
    }
  }
  update_pending_key();
}

void VirtualThread::complete_pending(std::size_t index, Picoseconds at, Picoseconds done, Cause cause) {
  PendingLoad& load = pending_[index];
  if (load.op.kind == code(OpKind::kLoad)) {
    slot_at(load.slot).done = done;
    waits_[load.slot & window_mask_] = Wait{cause, true, load.buffer};
    before_[load.slot & window_mask_] = Before{load.translated, load.issued};
    loads_done_ = std::max(loads_done_, done);
  } else {
    core_->note_fill(load.op.line, done, load.op.level);
  }
  const std::uint64_t bit = std::uint64_t{1} << index;
  unresolved_ &= ~bit;
  issue_prefetches_of(static_cast<int>(index), at);
  if (last_pending_ == static_cast<int>(index)) {
    last_pending_ = -1;
    last_load_done_ = done;
  }
  for (std::uint64_t left = chained_; left != 0; left &= left - 1) {
    PendingLoad& other = pending_[static_cast<std::size_t>(std::countr_zero(left))];
    if (other.producer == static_cast<int>(index)) {
      other.producer = -1;
      // A load of the line that another one, or a prefetch, brings waits in the same fill buffer; a dependent
      // one needs the value.
      const bool same_line = load.op.kind == code(OpKind::kPrefetch) || is_hit_of_a_run(other.op);
      const Picoseconds ready = same_line ? at : done;
      chained_ &= ~(left & (0 - left));
      timed_.add(static_cast<std::size_t>(std::countr_zero(left)), other.slot, ready);
      pending_key_ = std::min(pending_key_, ready);
    }
  }
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
  if (front_waits_for_pending_) {
    front_waits_for_pending_ = false;
    go_on(at, cause);
  } else {
    wake_front();
  }
}

}  // namespace pmsim::machine
