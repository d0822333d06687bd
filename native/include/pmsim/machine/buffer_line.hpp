#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// Loads of one thread, by number, that stand in line for a fill buffer, in program order: they all ask for one
/// at the same time. A time of kNever: when somebody says that one is free.
///
/// Invariant: the keys of the loads (their places in program order) ascend from the front; an empty line has no
/// time (kNever).
class BufferLine {
 public:
  static constexpr std::size_t kLoads = 16;

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] Picoseconds asks_at() const noexcept { return asks_at_; }
  [[nodiscard]] std::size_t front() const noexcept { return at(0).load; }
  [[nodiscard]] std::uint64_t front_key() const noexcept { return at(0).key; }
  /// The load that is number `place` in line.
  [[nodiscard]] std::size_t operator[](std::size_t place) const noexcept { return at(place).load; }

  /// When all in line, and there is somebody, ask.
  void ask_at(Picoseconds time) noexcept { asks_at_ = time; }

  /// Nearly always behind all others: loads come in program order, but wait for page walks before.
  void join(std::size_t load, std::uint64_t key) noexcept {
    std::size_t place = count_++;
    for (; place > 0 && at(place - 1).key > key; --place) {
      at(place) = at(place - 1);
    }
    at(place) = Place{key, static_cast<std::uint32_t>(load)};
  }
  void leave_front() noexcept {
    ++head_;
    asks_at_ = --count_ == 0 ? kNever : asks_at_;
  }
  /// The one that is number `place` leaves.
  void leave(std::size_t place) noexcept {
    // Nobody can predict the place, so the first ones are moved without a branch on it.
    for (; place > 3; --place) {
      at(place) = at(place - 1);
    }
    for (std::size_t moved = 3; moved > 0; --moved) {
      at(moved) = at(moved - (moved <= place ? 1 : 0));
    }
    leave_front();
  }

 private:
  struct Place {
    std::uint64_t key;
    std::uint32_t load;
  };
  [[nodiscard]] Place& at(std::size_t place) noexcept { return places_[(head_ + place) % kLoads]; }
  [[nodiscard]] const Place& at(std::size_t place) const noexcept { return places_[(head_ + place) % kLoads]; }

  Picoseconds asks_at_ = kNever;
  std::size_t head_ = 0;  ///< counts up for ever
  std::size_t count_ = 0;
  std::array<Place, kLoads> places_{};  ///< ring
};

}  // namespace pmsim::machine
