#pragma once

#include <cmath>
#include <cstdint>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim::workloads::oltp {

/// Uniform in [0, 1), with 53 bits.
[[nodiscard]] constexpr double unit_interval(Random& random) noexcept {
  return static_cast<double>(random.next() >> 11) * 0x1.0p-53;
}

/// The sum of i^-z for i from 1 to n: exact up to 2^20 terms, the rest by Euler and Maclaurin (the first term
/// left out is below 1e-12 of it). Takes milliseconds the first time that a process asks for it, so that all
/// points of a sweep over the same rows pay once.
[[nodiscard]] double zeta(std::uint64_t n, double z);

/// Ranks 0 .. n-1 with frequencies near (rank + 1)^-z: the generator of Gray, Sundaresan, Englert, Baclawski
/// and Weinberger, "Quickly generating billion-record synthetic databases", SIGMOD 1994, figure 3, which the
/// paper used. z = 0 is uniform.
///
/// The two most popular ranks have exactly their Zipf probabilities; the others come from one inverse power
/// function that joins them to rank n. It gives the most popular k ranks more than Zipf's law does, by 1.2
/// percentage points at most for z = 1 (of 400,000 ranks, at k = 26), by 2.3 for any z (1.3, k = 9). The
/// published formula has 1 / (1 - z) in an exponent; at z = 1 its limit is taken, an exponential function.
class Zipf {
 public:
  Zipf(std::uint64_t n, double z) : n_(n), z_(z), count_(static_cast<double>(n)) {
    ensure(n > 0 && z >= 0, "Zipf needs at least one rank and an exponent from 0 on");
    if (n < 3)
      return;
    zeta_n_ = zeta(n, z);
    second_ = 1 + std::pow(0.5, z);
    const double share = 1 - second_ / zeta_n_;  // of all ranks but the first two
    if (z == 1) {
      slope_ = std::log(count_ / 2) / share;
    } else {
      alpha_ = 1 / (1 - z);
      eta_ = (1 - std::pow(2 / count_, 1 - z)) / share;
    }
  }

  [[nodiscard]] std::uint64_t operator()(Random& random) const noexcept { return at(unit_interval(random)); }

  /// The rank below which the fraction `u` of all draws lies: the generator as a function of its random number.
  [[nodiscard]] std::uint64_t at(double u) const noexcept {
    if (n_ < 3)
      return n_ == 1 || u * (1 + std::pow(0.5, z_)) < 1 ? 0 : 1;
    const double uz = u * zeta_n_;
    if (uz < 1)
      return 0;
    if (uz < second_)
      return 1;
    const double part = z_ == 1 ? std::exp((u - 1) * slope_) : std::pow(eta_ * (u - 1) + 1, alpha_);
    const auto rank = static_cast<std::uint64_t>(count_ * part);
    return rank < n_ ? rank : n_ - 1;
  }

  [[nodiscard]] std::uint64_t ranks() const noexcept { return n_; }

 private:
  std::uint64_t n_;
  double z_;
  double count_;
  double zeta_n_ = 0;
  double second_ = 0;
  double slope_ = 0;
  double alpha_ = 0;
  double eta_ = 0;
};

}  // namespace pmsim::workloads::oltp
