#include "pmsim/machine/lane.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "pmsim/core/error.hpp"
#include "pmsim/machine/latch_errors.hpp"

namespace pmsim::machine {

namespace {

/// Far beyond what operations take: one or two actions of threads and modules (benchmarks/README.md), where
/// queues are tiny some more.
constexpr std::int64_t kMostActionsPerOp = 256;

constexpr std::int64_t kServedBeforePoll = 1 << 18;  ///< timed operations, some 50 ms
constexpr std::uint64_t kThreadStreams =
    0x7468726561647321ULL;                       ///< random numbers of threads are not those of modules
constexpr std::int64_t kServedBefore = 1 << 12;  ///< a server's first calls have few: nobody has work at first

}  // namespace

Lane::Lane(const PlatformParams& params, std::uint32_t threads, Feed& feed, std::uint64_t seed,
           std::uint64_t pmem_footprint, bool coherent)
    : params_(params),
      counters_(std::make_unique<Counters>()),
      progress_(std::make_unique<Progress>()),
      times_(std::make_unique<CoreTimes>(params)),
      traffic_(std::make_unique<CoreTraffic>(params, threads)),
      memory_(params, *counters_, seed, pmem_footprint),
      core_count_(std::min(threads, static_cast<std::uint32_t>(params.core.cores))),
      thread_count_(threads),
      agents_(threads + static_cast<std::size_t>(params.pmem.dimms)) {
  cores_.reserve(core_count_);
  for (std::uint32_t core = 0; core < core_count_; ++core) {
    cores_.emplace_back(params, coherent && core_count_ > 1 ? &traffic_->fills : nullptr);
  }
  threads_.reserve(threads);
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    const std::uint32_t core = thread % core_count_;
    const std::int64_t sharing = (threads - core + core_count_ - 1) / core_count_;
    threads_.emplace_back(thread, params, sharing, *times_, cores_[core], memory_, *traffic_, *counters_,
                          *progress_, feed, mix64(seed ^ kThreadStreams) + thread);
    agents_.set(thread, threads_.back().next_action());
  }
}

bool Lane::finished() const noexcept {
  return std::all_of(threads_.begin(), threads_.end(),
                     [](const VirtualThread& thread) { return thread.finished(); });
}

void Lane::settle_thread(std::size_t thread) { agents_.set(thread, threads_[thread].next_action()); }

void Lane::settle_modules() {
  for (std::uint32_t changed = memory_.take_changed(); changed != 0; changed &= changed - 1) {
    const auto module = static_cast<std::size_t>(std::countr_zero(changed));
    agents_.set(thread_count_ + module, std::min(memory_.next_drain(module), memory_.next_admission(module)));
  }
}

void Lane::settle_latches() {
  traffic_->latches.take_grants(latched_);
  for (const LatchTable::Grant& grant : latched_) {
    threads_[grant.thread].latched(grant);
    settle_thread(grant.thread);
  }
}

void Lane::settle_groups() {
  traffic_->group.take_woken(woken_);
  for (const GroupCommit::Woken& woken : woken_) {
    threads_[woken.thread].group_ended(woken);
    settle_thread(woken.thread);
  }
}

void Lane::step(Picoseconds at, Picoseconds until) {
  const std::size_t agent = agents_.earliest();
  now_ = std::max(now_, at);
  progress_->clock = std::max(progress_->clock, at);
  if (agent >= thread_count_) {
    step_module(agent - thread_count_);
  } else {
    step_thread(agent, until);
  }
}

void Lane::step_thread(std::size_t thread, Picoseconds until) {
  agents_.set_after_horizon(thread, threads_[thread].advance(std::min(until, agents_.horizon(thread))));
  if (memory_.has_changed()) {
    settle_modules();
  }
  if (traffic_->latches.has_grants()) [[unlikely]] {
    settle_latches();
  }
  if (traffic_->group.has_woken()) [[unlikely]] {
    settle_groups();
  }
  if (core_count_ < thread_count_) {
    settle_siblings_of(thread);
  }
}

void Lane::settle_siblings_of(std::size_t thread) {
  // They share buffers: the thread may have freed what another one waits for.
  const std::size_t core = thread % core_count_;
  for (std::size_t sibling = core; sibling < thread_count_; sibling += core_count_) {
    if (sibling != thread && threads_[sibling].waits_for_buffer() && !cores_[core].fill_buffers.all_wait()) {
      threads_[sibling].buffers_changed();
      settle_thread(sibling);
    }
  }
}

void Lane::step_module(std::size_t module) {
  if (memory_.next_admission(module) < memory_.next_drain(module)) {
    const Admission admission = memory_.admit(module);
    settle_modules();
    const std::size_t thread = admission.token.thread;
    threads_[thread].admitted(admission);
    settle_core_of(thread);
    return;
  }
  grants_.clear();
  memory_.drain(module, grants_);
  settle_modules();
  for (const Grant& grant : grants_) {
    if (grant.token.controller) {
      continue;
    }
    const std::size_t thread = grant.token.thread;
    threads_[thread].granted(grant);
    settle_core_of(thread);
  }
}

void Lane::settle_core_of(std::size_t thread) {
  // The thread itself and its siblings: those that are dealt to the same core.
  for (std::size_t sibling = thread % core_count_; sibling < thread_count_; sibling += core_count_) {
    threads_[sibling].buffers_changed();
    threads_[sibling].slots_changed();
    settle_thread(sibling);
  }
}

void Lane::execute_untimed(std::span<const TimedOp> ops) {
  using memory::OpKind;
  for (const TimedOp& op : ops) {
    switch (op.kind) {
      case code(OpKind::kLoad):
      case code(OpKind::kStore):
      case code(OpKind::kPrefetch):
      case code(OpKind::kAtomic):
      case kHwPrefetch:
        if (op.level == kFromMemory)
          memory_.access_untimed(op.line, false);
        break;
      case code(OpKind::kClwb):
      case code(OpKind::kClflushOpt):
      case code(OpKind::kClflush):
        if ((op.flags & kTimedDirty) != 0)
          memory_.access_untimed(op.line, true);
        break;
      case code(OpKind::kStreamStore):
      case kWriteback:
        memory_.access_untimed(op.line, true);
        break;
      default:
        ensure(!is_wait(op.kind), "an operation that is not timed uses a latch or a block device");
        break;
    }
  }
}

bool Lane::run(std::int64_t operations, std::int64_t timed_operations) {
  progress_->goal = operations;
  progress_->may_take = progress_->taken + timed_operations;
  // Threads that wake each other for nothing would never come back to where Ctrl-C is noticed.
  std::int64_t actions_left = kMostActionsPerOp * timed_operations;
  while (progress_->operations < operations) {
    const Picoseconds next = agents_.earliest_key();
    if (next == kNever) {
      if (!finished()) {
        throw StandstillError("pmsim bug: all threads wait and nobody can act");
      }
      now_ = std::max(now_, memory_.catch_up_all(kNever));
      settle(now_);
      return false;
    }
    if (progress_->taken >= progress_->may_take) {
      return true;
    }
    if (--actions_left < 0) {
      throw SimulationError("pmsim bug: threads act and nobody gets on");
    }
    step(next, kNever - 1);
  }
  now_ = std::max(now_, progress_->reached_at);
  settle(now_);
  return false;
}

void Lane::wake(std::uint32_t thread, Picoseconds at) {
  threads_[thread].wake(at);
  settle_thread(thread);
}

Picoseconds Lane::serve(Picoseconds before, const std::function<void()>& poll) {
  progress_->goal = std::numeric_limits<std::int64_t>::max();
  progress_->may_take = progress_->taken + kServedBeforePoll;
  progress_->reports = true;
  while (agents_.earliest_key() < before && progress_->retired.empty()) {
    if (progress_->taken >= progress_->may_take) {
      progress_->may_take = progress_->taken + kServedBeforePoll;
      if (poll)
        poll();
    }
    if (++served_actions_ > kMostActionsPerOp * (progress_->taken + kServedBefore)) {
      throw SimulationError("pmsim bug: threads act and nobody gets on");
    }
    step(agents_.earliest_key(), before - 1);
  }
  return agents_.earliest_key();
}

Picoseconds Lane::run_until(Picoseconds until) {
  progress_->goal = progress_->may_take = std::numeric_limits<std::int64_t>::max();
  while (agents_.earliest_key() <= until && agents_.earliest_key() != kNever) {
    step(agents_.earliest_key(), until);
  }
  memory_.catch_up_all(until == kNever ? kNever : until + 1);
  return agents_.earliest_key();
}

}  // namespace pmsim::machine
