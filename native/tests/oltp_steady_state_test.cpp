#include <gtest/gtest.h>

#include "pmsim/workloads/oltp/steady_state.hpp"

namespace pmsim::workloads::oltp {
namespace {

int windows_until_steady(auto&& counts_of, int limit = 1'000) {
  SteadyState<2> steady;
  for (int window = 1; window <= limit; ++window) {
    if (steady.add(counts_of(window)))
      return window;
  }
  return -1;
}

using Counts = SteadyState<2>::Counts;

TEST(SteadyState, NothingThatMovesIsSteadyAfterFourWindows) {
  EXPECT_EQ(windows_until_steady([](int) { return Counts{0, 0}; }), 4);
}

TEST(SteadyState, AConstantRateIsSteadyAndAGrowingOneIsNot) {
  EXPECT_EQ(windows_until_steady([](int) { return Counts{1e6, 1e6}; }), 4);
  EXPECT_EQ(windows_until_steady([](int window) { return Counts{1e6, 1e6 * window}; }, 40), -1);
}

// 1e6 first touches that decay with the inverse of time: from one pair of windows to the next by 2 / window.
TEST(SteadyState, ASlowDecayIsNotTakenForSteady) {
  const int found = windows_until_steady([](int window) { return Counts{1e6, 1e8 / window}; });
  EXPECT_GT(found, 190);
  EXPECT_LT(found, 220);
}

TEST(SteadyState, FewEventsMayDifferAsChanceHasIt) {
  // 100 and 120: within two standard deviations of their difference, 2 x sqrt(440).
  EXPECT_EQ(windows_until_steady([](int window) { return Counts{window < 3 ? 100.0 : 120.0, 0}; }), 4);
  EXPECT_EQ(windows_until_steady([](int window) { return Counts{window < 3 ? 100.0 : 150.0, 0}; }, 4), -1);
}

}  // namespace
}  // namespace pmsim::workloads::oltp
