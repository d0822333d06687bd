#pragma once

#include <cstdint>

namespace pmsim::machine {

/// Division by a number that is known only at run time, by multiplication: exact for dividends up to 2^40
/// (lines of the whole simulated address space) and divisors up to 2^24.
class Divider {
 public:
  explicit constexpr Divider(std::uint64_t divisor) noexcept
      : divisor_(divisor),
        reciprocal_(divisor == 1 ? 0 : ~std::uint64_t{0} / divisor + 1),
        if_one_(divisor == 1 ? ~std::uint64_t{0} : 0) {}

  [[nodiscard]] constexpr std::uint64_t quotient(std::uint64_t dividend) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(dividend) * reciprocal_) >> 64) + (dividend & if_one_);
  }
  [[nodiscard]] constexpr std::uint64_t divisor() const noexcept { return divisor_; }

 private:
  std::uint64_t divisor_;
  std::uint64_t
      reciprocal_;  ///< 2^64 / divisor, rounded up: the error stays below 1 while dividend * divisor < 2^64
  std::uint64_t if_one_;
};

/// The remainder of any 64 bits by a number that is known only at run time, by multiplication. The quotient in
/// between is at most one too small.
class Modulus {
 public:
  explicit constexpr Modulus(std::uint64_t divisor) noexcept
      : divisor_(divisor), reciprocal_(~std::uint64_t{0} / divisor) {}

  [[nodiscard]] constexpr std::uint64_t remainder(std::uint64_t dividend) const noexcept {
    __extension__ using Wide = unsigned __int128;
    const auto quotient = static_cast<std::uint64_t>((static_cast<Wide>(dividend) * reciprocal_) >> 64);
    const std::uint64_t rest = dividend - quotient * divisor_;
    return rest >= divisor_ ? rest - divisor_ : rest;
  }

 private:
  std::uint64_t divisor_;
  std::uint64_t reciprocal_;  ///< (2^64 - 1) / divisor, rounded down: dividend * (2^64 / divisor - it) <= 2^64
};

}  // namespace pmsim::machine
