#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// Loads of one thread, by number, that each have a time of their own: who is due first, of those with the same
/// time the oldest.
///
/// Invariant: (time, key) ascend from the front, where keys are places in program order; with no load the next
/// time is kNever.
class TimedLoads {
 public:
  static constexpr std::size_t kLoads = 16;

  [[nodiscard]] Picoseconds next() const noexcept { return next_; }
  [[nodiscard]] std::size_t front() const noexcept { return at(0).load; }
  [[nodiscard]] std::uint64_t front_key() const noexcept { return at(0).key; }

  /// Nearly always at the end: times come nearly in order.
  void add(std::size_t load, std::uint64_t key, Picoseconds time) noexcept {
    std::size_t place = count_++;
    for (; place > 0 && later(at(place - 1), time, key); --place) {
      at(place) = at(place - 1);
    }
    at(place) = Entry{time, key, load};
    next_ = at(0).time;
  }
  void leave_front() noexcept {
    ++head_;
    next_ = --count_ == 0 ? kNever : at(0).time;
  }

 private:
  struct Entry {
    Picoseconds time;
    std::uint64_t key;
    std::size_t load;
  };
  [[nodiscard]] static bool later(const Entry& entry, Picoseconds time, std::uint64_t key) noexcept {
    return entry.time > time || (entry.time == time && entry.key > key);
  }
  [[nodiscard]] Entry& at(std::size_t place) noexcept { return entries_[(head_ + place) % kLoads]; }
  [[nodiscard]] const Entry& at(std::size_t place) const noexcept { return entries_[(head_ + place) % kLoads]; }

  Picoseconds next_ = kNever;
  std::size_t head_ = 0;  ///< counts up for ever
  std::size_t count_ = 0;
  std::array<Entry, kLoads> entries_{};  ///< ring
};

}  // namespace pmsim::machine
