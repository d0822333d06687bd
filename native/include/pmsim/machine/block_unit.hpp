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
/// Invariant: programs have ascending numbers and arrivals; the first `begun_` of them have an end.
class BlockUnit {
 public:
  /// When something is done that takes `duration`, and that somebody waits for from `now` on.
  Picoseconds serve(Picoseconds now, Picoseconds duration) {
    advance(now);
    return occupy(now, duration);
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
  Picoseconds free_ = 0;
};

}  // namespace pmsim::machine
