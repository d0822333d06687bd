#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace pmsim::workloads::oltp {

/// When a warm-up is over. Its transactions are cut into windows of equal length, and each window reports how
/// often every kind of transfer between tiers has happened. Steady: for each kind, the last two windows
/// together differ from the two before by at most 1 %, or by no more than two standard deviations of counts of
/// that size.
///
/// More than 1 % would take the slow decay of first touches for steady: it goes with the inverse of time, so
/// that twenty windows change by ten per cent from one pair to the next.
///
/// Transfers and not times are looked at: they are what caches of pages converge by, and are known without a
/// machine.
template <std::size_t kRates>
class SteadyState {
 public:
  using Counts = std::array<double, kRates>;

  /// Adds a window's counts; says whether they have become steady.
  bool add(const Counts& window) {
    windows_.push_back(window);
    if (windows_.size() > 4)
      windows_.pop_front();
    if (windows_.size() < 4)
      return false;
    for (std::size_t kind = 0; kind < kRates; ++kind) {
      const double before = windows_[0][kind] + windows_[1][kind];
      const double after = windows_[2][kind] + windows_[3][kind];
      const double chance = 2 * std::sqrt(before + after);
      if (std::abs(after - before) > std::fmax(0.01 * before, chance))
        return false;
    }
    return true;
  }

 private:
  std::deque<Counts> windows_;
};

}  // namespace pmsim::workloads::oltp
