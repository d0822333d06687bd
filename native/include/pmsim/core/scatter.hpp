#pragma once

#include <bit>
#include <cstdint>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim {

/// A pseudo-random bijection of [0, n), and its inverse: where popular keys lie in a table, or the pages of a
/// region in physical memory.
///
/// A Feistel network over the next power of four, walked along its cycles until the value is below n (Black and
/// Rogaway, CT-RSA 2002): four rounds on average at most four times. A linear congruence would be a bijection,
/// too, but would spread neighbours *evenly*, so that no two of them ever met in one place by chance.
class Scatter {
 public:
  explicit Scatter(std::uint64_t n, std::uint64_t seed = 0)
      : n_(n),
        seed_(mix64(seed)),
        half_bits_((static_cast<std::uint32_t>(std::bit_width(n <= 1 ? 1 : n - 1)) + 1) / 2) {
    ensure(n > 0 && n <= std::uint64_t{1} << 62, "what is scattered has 1 to 2^62 places");
    mask_ = (std::uint64_t{1} << half_bits_) - 1;
  }

  [[nodiscard]] std::uint64_t operator()(std::uint64_t rank) const noexcept {
    do {
      std::uint64_t left = rank >> half_bits_;
      std::uint64_t right = rank & mask_;
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        const std::uint64_t next = left ^ scrambled(right, round);
        left = right;
        right = next;
      }
      rank = left << half_bits_ | right;
    } while (rank >= n_);
    return rank;
  }

  /// The rank whose place this is.
  [[nodiscard]] std::uint64_t inverse(std::uint64_t place) const noexcept {
    do {
      std::uint64_t left = place >> half_bits_;
      std::uint64_t right = place & mask_;
      for (std::uint64_t round = kRounds; round-- > 0;) {
        const std::uint64_t before = right ^ scrambled(left, round);
        right = left;
        left = before;
      }
      place = left << half_bits_ | right;
    } while (place >= n_);
    return place;
  }

 private:
  static constexpr std::uint64_t kRounds = 4;

  [[nodiscard]] std::uint64_t scrambled(std::uint64_t half, std::uint64_t round) const noexcept {
    return mix64(half ^ seed_ ^ (round << 60)) & mask_;
  }

  std::uint64_t n_;
  std::uint64_t seed_;
  std::uint32_t half_bits_;
  std::uint64_t mask_ = 0;
};

}  // namespace pmsim
