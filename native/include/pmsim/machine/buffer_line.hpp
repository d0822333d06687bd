#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/load_order.hpp"

namespace pmsim::machine {

/// Loads of one thread, by number, that stand in line for a fill buffer, in program order: they all ask for one
/// at the same time. A time of kNever: when somebody says that one is free.
///
/// Invariant: the keys of the loads (their places in program order) ascend from the front; an empty line has no
/// time (kNever).
class BufferLine {
 public:
  static constexpr std::size_t kLoads = LoadOrder::kLoads;

  [[nodiscard]] bool empty() const noexcept { return order_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }
  [[nodiscard]] Picoseconds asks_at() const noexcept { return asks_at_; }
  [[nodiscard]] std::size_t front() const noexcept { return order_.front(); }
  [[nodiscard]] std::uint64_t front_key() const noexcept { return keys_[front()]; }
  /// The load that is number `place` in line.
  [[nodiscard]] std::size_t operator[](std::size_t place) const noexcept { return order_[place]; }

  /// When all in line, and there is somebody, ask.
  void ask_at(Picoseconds time) noexcept { asks_at_ = time; }

  /// Nearly always behind all others: loads come in program order, but wait for page walks before.
  void join(std::size_t load, std::uint64_t key) noexcept {
    keys_[load] = key;
    std::size_t place = size();
    while (place > 0 && keys_[order_[place - 1]] > key) {
      --place;
    }
    order_.insert(place, load);
  }
  void leave_front() noexcept { leave(0); }
  /// The one that is number `place` leaves.
  void leave(std::size_t place) noexcept {
    order_.erase(place);
    asks_at_ = empty() ? kNever : asks_at_;
  }

 private:
  Picoseconds asks_at_ = kNever;
  LoadOrder order_;
  std::array<std::uint64_t, kLoads> keys_{};  ///< by load
};

}  // namespace pmsim::machine
