#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/time_ledger.hpp"

namespace pmsim::machine {

/// Buffers that are alike: when the next one is free, and what it is held for, but nothing about which one it
/// is. A buffer is free at a time that is known when it is taken, or waits for somebody to release it. Some may
/// be kept back: whoever asks for no more than the common ones finds one free only while more than those are.
///
/// Invariant: the times in the ring ascend from `head_`; `known_` + waiting buffers = all of them.
class BufferPool {
 public:
  explicit BufferPool(std::size_t common, std::size_t kept_back = 0)
      : times_(std::bit_ceil(common + kept_back), 0),
        held_for_(times_.size(), Cause::kCore),
        mask_(times_.size() - 1),
        kept_back_(kept_back),
        known_(common + kept_back) {}

  /// When a common buffer is free; kNever where all of them wait to be released.
  [[nodiscard]] Picoseconds earliest() const noexcept {
    const Picoseconds first =
        times_[(head_ + kept_back_) & mask_];  // in any case: nobody can predict the choice
    return known_ <= kept_back_ ? kNever : first;
  }
  /// What the common buffer that is free first has been held for last, or is.
  [[nodiscard]] Cause earliest_held_for() const noexcept { return held_for_[(head_ + kept_back_) & mask_]; }
  /// The same for those who may take any buffer.
  [[nodiscard]] Picoseconds earliest_of_all() const noexcept {
    const Picoseconds first = times_[head_ & mask_];
    return known_ == 0 ? kNever : first;
  }
  [[nodiscard]] bool all_wait() const noexcept { return known_ == 0; }
  /// How often a buffer has been taken or released: while it stays, the answers above do.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

  /// Takes the earliest buffer until `until`. One must not be waiting.
  void take(Picoseconds until, Cause what = Cause::kCore) noexcept {
    ++changes_;
    ++head_;
    insert(known_ - 1, until, what);
  }
  /// Takes the earliest buffer until somebody releases it.
  void take_waiting() noexcept {
    ++changes_;
    ++head_;
    --known_;
  }
  /// One that waited is free at `at`.
  void release(Picoseconds at, Cause what = Cause::kCore) noexcept {
    ++changes_;
    insert(known_++, at, what);
  }

 protected:
  /// The answers change for another reason.
  void touch() noexcept { ++changes_; }

 private:
  /// Behind all that are not later. Times come nearly in order, so few have to move.
  void insert(std::size_t count, Picoseconds time, Cause what) noexcept {
    Picoseconds* const times = times_.data();
    const std::size_t mask = mask_;
    std::size_t place = head_ + count;
    for (; count > 0; --count, --place) {
      const Picoseconds before = times[(place - 1) & mask];
      if (before <= time) {
        break;
      }
      times[place & mask] = before;
      held_for_[place & mask] = held_for_[(place - 1) & mask];
    }
    times[place & mask] = time;
    held_for_[place & mask] = what;
  }

  std::vector<Picoseconds> times_;  ///< ring
  std::vector<Cause> held_for_;     ///< ring, beside it
  std::size_t mask_;
  std::size_t kept_back_;
  std::size_t head_ = 0;  ///< counts up for ever
  std::size_t known_;
  std::uint64_t changes_ = 0;
};

}  // namespace pmsim::machine
