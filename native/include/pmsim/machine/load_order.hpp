#pragma once

#include <cstddef>
#include <cstdint>

namespace pmsim::machine {

/// Up to 16 loads of one thread, by number, in some order: four bits each in one word, the first one lowest.
/// Whoever enters or leaves moves all behind it in a few instructions and without a branch.
///
/// Invariant: the word is zero behind the last load.
class LoadOrder {
 public:
  static constexpr std::size_t kLoads = 16;

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t front() const noexcept { return word_ % kLoads; }
  [[nodiscard]] std::size_t operator[](std::size_t place) const noexcept {
    return (word_ >> kBits * place) % kLoads;
  }

  /// Enters before the one that is number `place`.
  void insert(std::size_t place, std::size_t load) noexcept {
    const std::uint64_t before = mask(place);
    word_ = (word_ & before) | std::uint64_t{load} << kBits * place | (word_ & ~before) << kBits;
    ++count_;
  }
  void pop_front() noexcept {
    word_ >>= kBits;
    --count_;
  }
  void erase(std::size_t place) noexcept {
    const std::uint64_t before = mask(place);
    word_ = (word_ & before) | (word_ >> kBits & ~before);
    --count_;
  }

 private:
  static constexpr std::size_t kBits = 4;
  /// Of what is before a place below 16.
  [[nodiscard]] static std::uint64_t mask(std::size_t place) noexcept {
    return (std::uint64_t{1} << kBits * place) - 1;
  }

  std::uint64_t word_ = 0;
  std::size_t count_ = 0;
};

}  // namespace pmsim::machine
