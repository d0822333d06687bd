#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pmsim::machine {

/// Up to 64 loads of one thread, by number, in some order: a ring. Most enter at its end and leave at its
/// front, the others near them.
class LoadOrder {
 public:
  static constexpr std::size_t kLoads = 64;

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t front() const noexcept { return loads_[first_]; }
  [[nodiscard]] std::size_t operator[](std::size_t place) const noexcept { return at(place); }

  /// Enters before the one that is number `place`.
  void insert(std::size_t place, std::size_t load) noexcept {
    for (std::size_t moved = count_; moved > place; --moved) {
      at(moved) = at(moved - 1);
    }
    at(place) = static_cast<std::uint8_t>(load);
    ++count_;
  }
  void pop_front() noexcept {
    first_ = (first_ + 1) % kLoads;
    --count_;
  }
  void erase(std::size_t place) noexcept {
    for (std::size_t moved = place; moved > 0; --moved) {
      at(moved) = at(moved - 1);
    }
    pop_front();
  }

 private:
  [[nodiscard]] std::uint8_t& at(std::size_t place) noexcept { return loads_[(first_ + place) % kLoads]; }
  [[nodiscard]] std::uint8_t at(std::size_t place) const noexcept { return loads_[(first_ + place) % kLoads]; }

  std::array<std::uint8_t, kLoads> loads_{};
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace pmsim::machine
