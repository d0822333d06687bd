#include "pmsim/system/arrivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::system {
namespace {

Arrivals bursty(double interval, double on, double off, std::uint64_t seed) {
  return {"bursty", {{"interval", interval}, {"on", on}, {"off", off}}, {}, seed};
}

/// Phase after phase, as the process is defined.
class PhaseByPhase {
 public:
  PhaseByPhase(double interval, double on, double off, std::uint64_t seed)
      : interval_(interval), on_(on), off_(off), random_(seed), left_on_(draw(on)) {}

  double next() {
    double waited = 0;
    for (;;) {
      const double gap = draw(interval_);
      if (gap <= left_on_) {
        left_on_ -= gap;
        return waited + gap;
      }
      waited += left_on_ + draw(off_);
      left_on_ = draw(on_);
    }
  }

 private:
  double draw(double mean) { return -std::log1p(-unit(random_)) * mean; }

  double interval_;
  double on_;
  double off_;
  Random random_;
  double left_on_;
};

/// The largest distance between the distributions of two samples (Kolmogorov and Smirnov).
double distance(std::vector<double> first, std::vector<double> second) {
  std::ranges::sort(first);
  std::ranges::sort(second);
  double largest = 0;
  std::size_t below = 0;
  for (std::size_t index = 0; index < first.size(); ++index) {
    while (below < second.size() && second[below] < first[index])
      ++below;
    largest = std::max(largest, std::abs(static_cast<double>(index) / static_cast<double>(first.size()) -
                                         static_cast<double>(below) / static_cast<double>(second.size())));
  }
  return largest;
}

TEST(Arrivals, GapsThatNoTimeHoldsAreTheEndOfTheRequests) {
  for (const std::map<std::string, double>& numbers :
       {std::map<std::string, double>{{"interval", 1e18}, {"on", 1e18}, {"off", 1e18}},
        {{"interval", 1e12}, {"on", 1e9}, {"off", 3.6e15}},
        {{"interval", 1e18}, {"on", 1}, {"off", 1e18}}}) {
    Arrivals arrivals("bursty", numbers, {}, 1);
    for (int drawn = 0; drawn < 2000; ++drawn) {
      const Picoseconds gap = arrivals.next();
      ASSERT_TRUE(gap == Arrivals::kNoMore || (gap >= 0 && gap < kFarthest)) << gap;
    }
  }
  Arrivals poisson("poisson", {{"interval", 1e18}}, {}, 1);
  int none = 0;
  for (int drawn = 0; drawn < 100'000; ++drawn) {
    const Picoseconds gap = poisson.next();
    ASSERT_TRUE(gap == Arrivals::kNoMore || (gap >= 0 && gap < kFarthest)) << gap;
    none += gap == Arrivals::kNoMore ? 1 : 0;
  }
  EXPECT_NEAR(none / 1e5, std::exp(-static_cast<double>(kFarthest) / 1e18), 0.005);
}

TEST(Arrivals, ManyPhasesWithoutARequestAreDrawnAtOnce) {
  // A thousandth of a request per second in phases of 1 us: a billion of them are empty, one after the other.
  Arrivals arrivals = bursty(1e15, 1e6, 1e6, 1);
  double sum = 0;
  for (int drawn = 0; drawn < 2000; ++drawn)
    sum += static_cast<double>(arrivals.next());
  EXPECT_NEAR(sum / 2000, 2e15, 2e15 * 0.08);
}

TEST(Arrivals, ManyPhasesDrawnAtOnceAreDistributedAsOneByOne) {
  constexpr std::size_t kGaps = 4000;
  // Off phases that outlast the on phases, and such that hardly count; about every third gap is below 1000
  // phases.
  for (const double off : {5e6, 1e4}) {
    Arrivals arrivals = bursty(2.5e9, 1e6, off, 3);
    PhaseByPhase reference(2.5e9, 1e6, off, 4);
    std::vector<double> drawn;
    std::vector<double> expected;
    for (std::size_t gap = 0; gap < kGaps; ++gap) {
      drawn.push_back(static_cast<double>(arrivals.next()));
      expected.push_back(reference.next());
    }
    EXPECT_LT(distance(drawn, expected), 1.63 * std::sqrt(2.0 / kGaps));  // by chance more in 1 of 100 samples
  }
}

TEST(Arrivals, BurstsGoOnAfterPhasesThatWereDrawnAtOnce) {
  // Few phases have a request, but one that has one has many: the share of short gaps says how long it went on.
  Arrivals arrivals = bursty(1e6, 1e6 / 3000, 1e9, 5);
  PhaseByPhase reference(1e6, 1e6 / 3000, 1e9, 6);
  std::vector<double> drawn;
  std::vector<double> expected;
  for (int gap = 0; gap < 4000; ++gap) {
    drawn.push_back(static_cast<double>(arrivals.next()));
    expected.push_back(reference.next());
  }
  EXPECT_LT(distance(drawn, expected), 1.63 * std::sqrt(2.0 / 4000));
}

TEST(Arrivals, UsualBurstsAreTheNumbersThatTheyWere) {
  Arrivals arrivals = bursty(1e6, 1e8, 1e8, 7);
  Random random(7);
  Picoseconds left = exponential(random, 1e8);
  for (int drawn = 0; drawn < 10'000; ++drawn) {
    Picoseconds waited = 0;
    Picoseconds gap = 0;
    while ((gap = exponential(random, 1e6)) > left) {
      waited += left + exponential(random, 1e8);
      left = exponential(random, 1e8);
    }
    left -= gap;
    ASSERT_EQ(arrivals.next(), waited + gap);
  }
}

}  // namespace
}  // namespace pmsim::system
