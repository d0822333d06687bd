#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/device_time.hpp"

namespace pmsim::machine {

/// A part of a block device that does one thing at a time: a die, or the head of a disk.
///
/// What somebody waits for is done in the order in which it comes. Programs, which write what the device's
/// cache holds, are done while there is nothing else, in order too. One that has begun is not interrupted.
///
/// Of work that comes later than it is told of, as a write whose data are still on the link, the end is told at
/// once. What comes before it is done meanwhile where that does not put it off; otherwise behind it.
///
/// Invariants: programs have ascending numbers and arrivals; the first `begun_` of them have an end. Gaps
/// ascend and end before `free_`.
class BlockUnit {
 public:
  /// When something is done that takes `duration`, and that somebody waits for from `start` on. Told at `now`,
  /// which never goes back.
  Picoseconds serve(Picoseconds now, Picoseconds start, Picoseconds duration) {
    while (!gaps_.empty() && gaps_.front().ends <= now) {
      gaps_.pop_front();
    }
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      const Picoseconds begins = std::max(gap->begins, start);
      if (duration <= gap->ends - begins) {
        return fill(gap, begins, duration);
      }
    }
    advance(start);
    if (free_ < start && now < start) {
      gaps_.push_back({std::max(free_, now), start});
    }
    return occupy(start, duration);
  }

  void program(std::uint64_t number, Picoseconds arrival, Picoseconds duration) {
    programs_.push_back({number, arrival, duration, kNever});
  }

  /// Begins the programs that nothing keeps from it before `now`.
  void advance(Picoseconds now) {
    while (begun_ < programs_.size() && std::max(free_, programs_[begun_].arrival) < now) {
      begin_next();
    }
  }

  /// Somebody waits for the programs up to this number: from now on they give way to nothing that comes later.
  /// Returns when they are done.
  Picoseconds finish(std::uint64_t number) {
    while (begun_ < programs_.size() && programs_[begun_].number <= number) {
      begin_next();
    }
    return done(number);
  }

  /// The same of the programs that have arrived by then. Returns when they are done: 0 where there is none.
  Picoseconds finish_arrived(Picoseconds by) {
    while (begun_ < programs_.size() && programs_[begun_].arrival <= by) {
      begin_next();
    }
    const auto next = std::ranges::upper_bound(programs_, by, {}, &Program::arrival);
    return next == programs_.begin() ? 0 : std::prev(next)->ends;
  }

  /// When the programs up to this number are done: kNever where one of them has not begun, 0 where there is
  /// none.
  [[nodiscard]] Picoseconds done(std::uint64_t number) const noexcept {
    const auto next = std::ranges::upper_bound(programs_, number, {}, &Program::number);
    return next == programs_.begin() ? 0 : std::prev(next)->ends;
  }

  /// Nobody will ask for those up to this number that are done by now.
  void forget(std::uint64_t number, Picoseconds now) noexcept {
    while (begun_ > 0 && programs_.front().number <= number && programs_.front().ends <= now) {
      programs_.pop_front();
      --begun_;
    }
  }

  /// Nothing goes on from `now` on for `duration`.
  void stall(Picoseconds now, Picoseconds duration) {
    advance(now);
    gaps_.clear();
    free_ = std::max(free_, now) + duration;
    for (std::size_t index = 0; index < begun_; ++index) {
      programs_[index].ends += programs_[index].ends > now ? duration : 0;
    }
  }

 private:
  struct Program {
    std::uint64_t number;
    Picoseconds arrival;
    Picoseconds duration;
    Picoseconds ends;  ///< kNever: has not begun
  };

  struct Gap {
    Picoseconds begins;
    Picoseconds ends;
  };

  /// Takes a part of a gap, and leaves what is before it and behind it. Returns the end of the part.
  Picoseconds fill(std::deque<Gap>::iterator gap, Picoseconds begins, Picoseconds duration) {
    const Picoseconds ends = begins + duration;
    const Gap before{gap->begins, begins};
    gap->begins = ends;
    if (gap->begins == gap->ends) {
      gap = gaps_.erase(gap);
    }
    if (before.begins < before.ends) {
      gaps_.insert(gap, before);
    }
    return ends;
  }
  Picoseconds occupy(Picoseconds now, Picoseconds duration) {
    free_ = checked_device_time(static_cast<WidePicoseconds>(std::max(free_, now)) +
                                static_cast<WidePicoseconds>(duration));
    return free_;
  }
  void begin_next() {
    Program& next = programs_[begun_++];
    next.ends = occupy(next.arrival, next.duration);
  }

  std::deque<Program> programs_;
  std::size_t begun_ = 0;
  std::deque<Gap> gaps_;  ///< before work that has been told of and has not come yet
  Picoseconds free_ = 0;
};

}  // namespace pmsim::machine
