#pragma once

#include <bit>
#include <cstdint>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim::workloads::oltp {

/// A pseudo-random bijection of [0, n): popular ranks must not be neighbours in the key space ("non clustered
/// popular keys", van Renen et al. 2018, section 5.2), and every key must stay reachable.
///
/// A Feistel network over the next power of four, walked along its cycles until the value is below n (Black and
/// Rogaway, CT-RSA 2002): four rounds on average at most four times. A linear congruence would be a bijection,
/// too, but would spread the popular keys *evenly*, so that no page ever held two of them by chance.
class Scatter {
 public:
  explicit Scatter(std::uint64_t n, std::uint64_t seed = 0)
      : n_(n),
        seed_(mix64(seed)),
        half_bits_((static_cast<std::uint32_t>(std::bit_width(n <= 1 ? 1 : n - 1)) + 1) / 2) {
    ensure(n > 0 && n <= std::uint64_t{1} << 62, "a scattered key space has 1 to 2^62 keys");
    mask_ = (std::uint64_t{1} << half_bits_) - 1;
  }

  [[nodiscard]] std::uint64_t operator()(std::uint64_t rank) const noexcept {
    do {
      std::uint64_t left = rank >> half_bits_;
      std::uint64_t right = rank & mask_;
      for (std::uint64_t round = 0; round < 4; ++round) {
        const std::uint64_t next = left ^ (mix64(right ^ seed_ ^ (round << 60)) & mask_);
        left = right;
        right = next;
      }
      rank = left << half_bits_ | right;
    } while (rank >= n_);
    return rank;
  }

 private:
  std::uint64_t n_;
  std::uint64_t seed_;
  std::uint32_t half_bits_;
  std::uint64_t mask_ = 0;
};

}  // namespace pmsim::workloads::oltp
