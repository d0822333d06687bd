#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/load_order.hpp"

namespace pmsim::machine {

/// Loads of one thread, by number, that each have a time of their own: who is due first, of those with the same
/// time the oldest.
///
/// Invariant: (time, key) ascend from the front, where keys are places in program order; with no load the next
/// time is kNever.
class TimedLoads {
 public:
  static constexpr std::size_t kLoads = LoadOrder::kLoads;

  [[nodiscard]] Picoseconds next() const noexcept { return next_; }
  [[nodiscard]] std::size_t front() const noexcept { return order_.front(); }
  [[nodiscard]] std::uint64_t front_key() const noexcept { return due_[front()].key; }

  /// Nearly always at the end: times come nearly in order.
  void add(std::size_t load, std::uint64_t key, Picoseconds time) noexcept {
    due_[load] = Due{time, key};
    std::size_t place = order_.size();
    while (place > 0 && later(due_[order_[place - 1]], time, key)) {
      --place;
    }
    order_.insert(place, load);
    next_ = place == 0 ? time : next_;
  }
  void leave_front() noexcept {
    order_.pop_front();
    next_ = order_.empty() ? kNever : due_[front()].time;
  }

 private:
  struct Due {
    Picoseconds time;
    std::uint64_t key;
  };
  [[nodiscard]] static bool later(const Due& due, Picoseconds time, std::uint64_t key) noexcept {
    return due.time > time || (due.time == time && due.key > key);
  }

  Picoseconds next_ = kNever;
  LoadOrder order_;
  std::array<Due, kLoads> due_{};  ///< by load
};

}  // namespace pmsim::machine
