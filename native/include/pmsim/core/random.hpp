#pragma once

#include <cstdint>

namespace pmsim {

/// SplitMix64 finaliser (Steele, Lea, Flood, OOPSLA 2014): a bijective mix of 64 bits.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// Deterministic generator: SplitMix64 in counter mode; every simulated thread and device owns one. The next
/// number is mixed as soon as one has been drawn, so that nobody waits for it.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(mix64(seed)) { mix(); }

  [[nodiscard]] constexpr std::uint64_t next() noexcept {
    const std::uint64_t drawn = next_;
    mix();
    return drawn;
  }

  /// Uniform in [0, bound) by multiply-shift; the bias is below bound / 2^64. bound must be positive.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

 private:
  constexpr void mix() noexcept {
    state_ += 0x9e3779b97f4a7c15ULL;
    next_ = mix64(state_);
  }

  std::uint64_t state_;
  std::uint64_t next_ = 0;
};

}  // namespace pmsim
