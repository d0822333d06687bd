#include "pmsim/machine/virtual_thread.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "pmsim/core/error.hpp"
#include "pmsim/machine/page_table.hpp"
#include "pmsim/memory/section.hpp"

/// What the three agents share: whose turn it is, the window, and the way to a line.
namespace pmsim::machine {

using memory::OpKind;

VirtualThread::VirtualThread(std::uint32_t id, const PlatformParams& params, std::int64_t threads_on_core,
                             const CoreTimes& times, CoreTiming& core, MemorySystem& memory,
                             CoreTraffic& traffic, Counters& counters, Progress& progress, Feed& feed,
                             std::uint64_t seed)
    : id_(id),
      sibling_(core.fill_buffers.join()),
      times_(&times),
      core_(&core),
      memory_(&memory),
      counters_(&counters),
      progress_(&progress),
      feed_(&feed),
      instruction_time_(kSecond * threads_on_core / (params.core.frequency * params.core.dispatch_width)),
      compute_cycle_(times.cycle * threads_on_core),
      window_limit_(
          static_cast<std::uint64_t>(std::max<std::int64_t>(1, params.core.window / threads_on_core))),
      window_(std::bit_ceil(2 * window_limit_ + 16)),
      window_mask_(window_.size() - 1),
      waits_(window_.size()),
      before_(window_.size()),
      ledger_(counters),
      marks_(window_.size()),
      fence_times_(window_.size()),
      fill_buffer_credits_(static_cast<std::size_t>(params.core.fill_buffer_credits)),
      random_(seed),
      queue_(std::bit_ceil(static_cast<std::uint64_t>(params.core.store_buffer))),
      queue_mask_(queue_.size() - 1),
      queue_capacity_(
          static_cast<std::uint64_t>(std::max<std::int64_t>(1, params.core.store_buffer / threads_on_core))),
      group_seen_(params.llc.transfer_latency),
      traffic_(&traffic) {}

Picoseconds VirtualThread::next_action() const noexcept {
  return std::min(std::min(front_key_, store_key_), pending_key_);
}

Picoseconds VirtualThread::advance(Picoseconds limit) {
  for (;;) {
    const Picoseconds next = next_action();
    if (next > limit || next == kNever) {
      return next;
    }
    progress_->clock = std::max(progress_->clock, next);
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

void VirtualThread::mark_retires(Picoseconds retired) {
  const Mark& mark = marks_.front();
  if (mark.begin == Mark::kSectionBegins) {
    enter_section(mark.fences, retired);
  } else if (mark.begin == Mark::kOperationBegins) {
    begun_ = retired;
  } else {
    const Picoseconds begin = mark.begin == Mark::kBegunThere ? std::max(begun_, ended_) : mark.begin;
    if (mark.fences > fences_completed_) {
      awaiting_.push_back({begin, std::max(retired, begin), mark.fences});
    } else {
      const Picoseconds fenced = mark.fences == 0 ? 0 : fence_times_[mark.fences & window_mask_];
      record_latency(begin, std::max({retired, begin, fenced}));
    }
  }
  marks_.pop();
}

void VirtualThread::enter_section(std::uint64_t section, Picoseconds retired) {
  static constexpr std::array<std::int64_t Counters::*, memory::kSections> kTimes{
      &Counters::work_ps, &Counters::pages_ps, &Counters::log_ps, &Counters::locks_ps};
  counters_->*kTimes.at(section_) += retired - section_began_;
  section_began_ = retired;
  section_ = section;
}

void VirtualThread::end_awaiting() {
  auto end = awaiting_.begin();
  for (; end != awaiting_.end() && end->fences <= fences_completed_; ++end) {
    // Those that await their fences end in order.
    record_latency(std::max(end->begin, ended_),
                   std::max(end->retired, fence_times_[end->fences & window_mask_]));
  }
  awaiting_.erase(awaiting_.begin(), end);
}

void VirtualThread::record_latency(Picoseconds begin, Picoseconds end) {
  if (sleeping_) {
    ledger_.charge(Cause::kPersist, end);  // all has retired before: it has waited for its fences
  }
  latency_.record(end - begin);
  ended_ = end;
  if (progress_->reports) {
    progress_->retired.push_back(Retired{id_, begin, end});
    interrupted_ = true;
  }
}

void VirtualThread::retire_finished() {
  if (sleeping_) {  // until its operation has ended, its front end is not idle
    ledger_.charge(Cause::kCore, now_);
    for (std::uint64_t index = window_head_; index != window_tail_ && slot_at(index).done != kNever; ++index) {
      charge_slot(index, kNever);
    }
  }
  static_cast<void>(retire_until([](const Slot&, std::uint64_t, Picoseconds, bool) { return false; }));
}

void VirtualThread::charge_slots(std::uint64_t first, std::uint64_t last, Picoseconds until) noexcept {
  ledger_.charge(Cause::kCore, now_);
  for (std::uint64_t index = first; index != last; ++index) {
    const Picoseconds done = slot_at(index).done;
    if (done > ledger_.charged() && done <= until) {
      charge_slot(index, until);
    }
  }
}

void VirtualThread::charge_slot(std::uint64_t index, Picoseconds until) noexcept {
  const Wait& wait = waits_[index & window_mask_];
  const Picoseconds done = std::min(slot_at(index).done, until);
  if (wait.pended) {
    ledger_.charge(Cause::kTranslation, std::min(before_[index & window_mask_].translated, done));
    ledger_.charge(wait.buffer, std::min(before_[index & window_mask_].issued, done));
  }
  ledger_.charge(wait.cause, done);
}

void VirtualThread::settle_time(Picoseconds time) noexcept {
  ledger_.charge(Cause::kCore, now_);
  if (sleeping_ && window_head_ != window_tail_) {
    ledger_.charge(waits_[window_head_ & window_mask_].cause, time);
  } else if (sleeping_) {
    ledger_.charge(awaiting_.empty() ? Cause::kIdle : Cause::kPersist, time);
  } else if (front_key_ == kNever && !finished_) {
    settle_standing(time);
  }
}

void VirtualThread::settle_standing(Picoseconds time) noexcept {
  ledger_.charge(Cause::kCore, now_);
  if (stands_for_window()) {
    if (!settle_slots(window_tail_, time)) {
      ledger_.charge(Cause::kPersist, time);
    }
  } else if (!blocked_by_queue() || !settle_slots(queue_at(queue_tail_ - 1).slot, time)) {
    ledger_.charge(stands_because(), time);
  }
}

bool VirtualThread::stands_for_window() const noexcept {
  return !blocked_ && !front_waits_for_buffer_ && !front_waits_for_slot_ && queued() != queue_capacity_;
}

/// As retire_for_room() will, when it is known how long the first that has not finished takes.
bool VirtualThread::settle_slots(std::uint64_t end, Picoseconds time) noexcept {
  ledger_.charge(Cause::kCore, now_);
  std::uint64_t index = window_head_;
  for (; index != end && slot_at(index).done != kNever; ++index) {
    charge_slot(index, time);
  }
  if (index == end) {
    return false;
  }
  for (std::uint64_t left = unresolved_; left != 0; left &= left - 1) {
    const PendingLoad& load = pending_[static_cast<std::size_t>(std::countr_zero(left))];
    if (load.slot == index && load.op.kind == code(OpKind::kLoad)) {
      settle_pending(load, time);
      return true;
    }
  }
  ledger_.charge(waits_[index & window_mask_].cause, time);
  return true;
}

void VirtualThread::settle_pending(const PendingLoad& load, Picoseconds time) noexcept {
  ledger_.charge(Cause::kTranslation, std::min(load.translated, time));
  if (load.producer == kAtModule) {
    ledger_.charge(load.buffer, std::min(load.issued, time));
    ledger_.charge(cause_of(load.op.line, kFromMemory), time);
    return;
  }
  for (std::size_t place = 0; place < line_.size(); ++place) {
    if (&pending_[line_[place]] == &load) {
      ledger_.charge(core_->fill_buffers.earliest_held_for(), time);
      return;
    }
  }
  // What it waits for is on its way, or still has to be asked for by another one.
  const TimedOp& op = load.producer >= 0 ? pending_[static_cast<std::size_t>(load.producer)].op : load.op;
  const bool coming = (op.flags & kTimedInFlight) != 0 && core_->fills().arrival(op.line) > time;
  const std::uint8_t level = coming ? core_->fills().source(op.line) : level_now(op.line, op.level, op.flags);
  ledger_.charge(cause_of(op.line, level), time);
}

Cause VirtualThread::cause_of(const QueuedStore& head) noexcept {
  switch (head.kind) {
    case code(OpKind::kStore):
    case kLatchRelease:
      return Cause::kStore;
    case code(OpKind::kAtomic):
      return Cause::kLatch;
    default:
      return Cause::kPersist;
  }
}

Cause VirtualThread::stands_because() noexcept {
  if (blocked_) {
    return blocked_by_queue() ? cause_of(queue_at(queue_head_)) : blocked_by_;
  }
  if (front_waits_for_buffer_) {
    return core_->fill_buffers.earliest_held_for();
  }
  if (front_waits_for_slot_) {
    return Cause::kStore;
  }
  if (queued() == queue_capacity_) {
    return cause_of(queue_at(queue_head_));
  }
  for (std::uint64_t index = window_head_; index != window_tail_; ++index) {
    if (slot_at(index).done == kNever) {
      return waits_[index & window_mask_].cause;
    }
  }
  return Cause::kPersist;  // nothing is left to retire: it waits for fences that have
}

Cause VirtualThread::cause_of(std::uint64_t line, std::uint8_t level, Picoseconds at,
                              Picoseconds done) const noexcept {
  static constexpr std::array<Cause, 5> kCauses{Cause::kCore, Cause::kL2, Cause::kLlc, Cause::kDram,
                                                Cause::kOtherCore};
  if (level <= kL2 && done - at > times_->l2 && core_->fills().arrival(line) == done) {
    level = core_->fills().source(line);  // by a prefetch
  }
  const bool from_pmem =
      level == kFromMemory && memory::medium_of(line * memory::kLineBytes) == memory::Medium::kPmem;
  return from_pmem ? Cause::kPmem : kCauses[level];
}

void VirtualThread::wake(Picoseconds at) {
  ensure(sleeping_, "a thread that does not sleep cannot be woken");
  sleeping_ = false;
  stand(at, Cause::kIdle);
  front_key_ = now_;
}

Picoseconds VirtualThread::translation_time(std::uint64_t line, std::uint8_t translation, Picoseconds at) {
  if (translation <= kTlbSecond) {
    return translation == kTlbFirst ? 0 : times_->tlb_second;
  }
  const std::uint64_t page = times_->pages.of(line * memory::kLineBytes);
  Picoseconds ends = at + times_->walk;
  if (const Level upper = upper_level(translation); upper != kL1) {
    ends = page_table_entry(upper_table_line(page), upper, ends, at);
  }
  ends = page_table_entry(page_table_line(page), last_level(translation), ends, at);
  core_->note_walk(page, ends);
  return ends - at;
}

Picoseconds VirtualThread::page_table_entry(std::uint64_t line, Level level, Picoseconds begins,
                                            Picoseconds at) {
  switch (level) {
    case kL2:
      return begins + times_->l2;
    case kLlc:
      return begins + times_->llc;
    case kFromCore:
      return traffic_->transfers.move(line, begins);
    default:
      return memory_->read(line, begins + times_->half_read, at, id_, begins - at) + times_->half_read;
  }
}

Picoseconds VirtualThread::fetch(std::uint64_t line, std::uint8_t level, Picoseconds at) {
  switch (level) {
    case kL1:
      return std::max(at + times_->l1, core_->fills().arrival(line));
    case kL2:
      return std::max(core_->read_l2(at) + times_->l2, core_->fills().arrival(line));
    case kLlc:
      return std::max(at + times_->llc, traffic_->fills.arrival(line));
    case kFromCore:
      return traffic_->transfers.move(line, at, traffic_->fills.arrival(line));
    default: {
      const Picoseconds arrives = memory_->read(line, at + times_->half_read, at, id_) + times_->half_read;
      interrupted_ = interrupted_ || memory_->has_changed();  // what it has displaced may wait
      core_->note_fill(line, arrives);
      return arrives;
    }
  }
}

Picoseconds VirtualThread::fetch_load(std::uint64_t line, std::uint8_t level, Picoseconds at,
                                      std::size_t index) {
  if (level != kFromMemory) {
    return fetch(line, level, at);
  }
  const ReadToken token{id_, index < kPendingLoads ? static_cast<std::uint32_t>(index) : ReadToken::kNobody};
  const Picoseconds left = memory_->load(line, at + times_->half_read, at, token);
  interrupted_ = interrupted_ || memory_->has_changed();  // it waits, or in memory mode what it has displaced
  if (left == kNever) {
    return kNever;
  }
  core_->note_fill(line, left + times_->half_read);
  return left + times_->half_read;
}

std::uint8_t VirtualThread::level_now(std::uint64_t line, std::uint8_t level,
                                      std::uint8_t flags) const noexcept {
  if (level == kFromCore) {
    return traffic_->fills.level_of(line, level);
  }
  return (flags & kTimedInFlight) != 0 ? core_->fills().level_of(line, level) : level;
}

void VirtualThread::granted(const Grant& grant) {
  const Picoseconds done = grant.acknowledged + times_->half_write;
  if (grant.token.writeback) {
    core_->writeback_slots.release(grant.acknowledged);
  } else {
    const Picoseconds free = std::max(done, grant.token.issued + grant.token.hold);
    core_->fill_buffers.release(free, Cause::kPersist);
    combining_free_ = grant.token.hold > 0 ? std::max(combining_free_, free) : combining_free_;
    --outstanding_writes_;
    writes_done_ = std::max(writes_done_, done + grant.token.known);
  }
}

void VirtualThread::buffers_changed() {
  const Picoseconds free = core_->fill_buffers.earliest(sibling_, progress_->clock);
  if (free == kNever) {
    update_store_key();  // one of those that are kept back for its streaming stores
    return;
  }
  waits_for_buffer_ = false;
  if (!line_.empty() && line_.asks_at() == kNever) {
    line_.ask_at(free);
    update_pending_key();
  }
  update_store_key();
  if (front_waits_for_buffer_) {
    front_waits_for_buffer_ = false;
    go_on(progress_->clock, core_->fill_buffers.earliest_held_for());
  }
}

void VirtualThread::latched(const LatchTable::Grant& grant) {
  // It has been looking at the word in its own cache, and fetches it again to see that the latch is free.
  LineTransfers& transfers = traffic_->transfers;
  if (!grant.looks)
    transfers.take(grant.line);
  stand(grant.looks ? transfers.look_again(grant.line, grant.at, times_->llc)
                    : transfers.move(grant.line, grant.at),
        Cause::kLatch);
  counters_->latch_wait_ps += now_ - latch_asked_;
  idle_ += now_ - latch_asked_;
  // An optimistic reader begins when the writer has gone.
  Reading& reading = reading_[grant.line % reading_.size()];
  if (reading.line == grant.line) {
    reading.began = now_;
    reading.idle = idle_;
  }
  stand(now_ + std::exchange(reads_again_, 0), Cause::kLatch);
  blocked_ = false;
  front_key_ = now_;
}

void VirtualThread::slots_changed() {
  if (front_waits_for_slot_) {
    front_waits_for_slot_ = false;
    wake_front();
  }
}

}  // namespace pmsim::machine
