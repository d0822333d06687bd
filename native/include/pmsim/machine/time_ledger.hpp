#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/counters.hpp"

namespace pmsim::machine {

/// What the front end of a thread spends its time on: it gets on, or stands because of one of the others.
enum class Cause : std::uint8_t {
  kCore,         ///< instructions, and hits in L1
  kBranch,       ///< mispredicted branches
  kL2,           ///< loads that L2 serves
  kLlc,          ///< ... the last-level cache
  kOtherCore,    ///< ... the cache of another core
  kDram,         ///< ... DRAM
  kPmem,         ///< ... PMem
  kTranslation,  ///< translations that the first TLB does not have
  kStore,        ///< a full store queue whose oldest store waits for its line, and evictions
  kPersist,      ///< fences, and a full store queue whose oldest entry is one, a flush or a streaming store
  kLatch,        ///< locked instructions and latches
  kDevice,       ///< the block device, and the groups of commits
  kIdle,         ///< no work
};

/// Keeps the books of one thread's time: every picosecond that has passed for its front end has one cause, so
/// what is charged adds up to the time of all threads (a CPI stack: Eyerman et al., A Performance Counter
/// Architecture for Computing Accurate CPI Components, ASPLOS 2006, taken where the front end stands).
class TimeLedger {
 public:
  explicit TimeLedger(Counters& counters) : counters_(&counters) {}

  /// Time up to `until` that has not been charged yet is that of `cause`.
  void charge(Cause cause, Picoseconds until) noexcept {
    if (until > charged_) {
      counters_->*kCounters[static_cast<std::size_t>(cause)] += until - charged_;
      if (latest().cause != cause)
        recent_[++charges_ % recent_.size()] = {charged_, cause};
      charged_ = until;
    }
  }
  [[nodiscard]] Picoseconds charged() const noexcept { return charged_; }

  /// Takes out of `counters` what has been charged beyond `time`: who waits is charged when it is known how
  /// long. Of more than a dozen waits in a row beyond it, the first are taken for one.
  void take_back(Picoseconds time, Counters& counters) const noexcept {
    Picoseconds end = charged_;
    for (std::size_t age = 0; end > time; ++age) {
      const Charge& charge = recent_[(charges_ - age) % recent_.size()];
      const bool oldest = age + 1 == recent_.size();
      const Picoseconds begin = oldest ? time : std::max(charge.from, time);
      counters.*kCounters[static_cast<std::size_t>(charge.cause)] -= end - begin;
      end = begin;
    }
  }

  /// What has been charged to all causes together.
  [[nodiscard]] static Picoseconds total(const Counters& counters) noexcept {
    Picoseconds sum = 0;
    for (const auto cause : kCounters)
      sum += counters.*cause;
    return sum;
  }

 private:
  /// Of neighbours with one cause there is one.
  struct Charge {
    Picoseconds from = 0;
    Cause cause = Cause::kCore;
  };
  [[nodiscard]] const Charge& latest() const noexcept { return recent_[charges_ % recent_.size()]; }

  static constexpr std::array<std::int64_t Counters::*, 13> kCounters{
      &Counters::time_core_ps,    &Counters::time_branch_ps,   &Counters::time_l2_ps,
      &Counters::time_llc_ps,     &Counters::time_transfer_ps, &Counters::time_dram_ps,
      &Counters::time_pmem_ps,    &Counters::time_walk_ps,     &Counters::time_store_ps,
      &Counters::time_persist_ps, &Counters::time_latch_ps,    &Counters::time_device_ps,
      &Counters::time_idle_ps};

  Counters* counters_;
  Picoseconds charged_ = 0;
  std::array<Charge, 16> recent_{};
  std::size_t charges_ = 0;
};

}  // namespace pmsim::machine
