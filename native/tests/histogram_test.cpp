#include "pmsim/machine/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::machine {
namespace {

TEST(Histogram, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.percentile(0.5), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (Picoseconds value = 1; value <= 10; ++value) {
    histogram.record(value);
  }
  EXPECT_EQ(histogram.percentile(0.5), 5);
  EXPECT_EQ(histogram.percentile(0.51), 6);
  EXPECT_EQ(histogram.percentile(1.0), 10);
  EXPECT_EQ(histogram.mean(), 5.5);
}

/// The promise of the class comment, against sorted values over fourteen powers of ten.
TEST(Histogram, PercentilesAreNeverTooLowAndAtMostASixtyFourthTooHigh) {
  Histogram histogram;
  std::vector<Picoseconds> values;
  Random random(5);
  for (int draw = 0; draw < 20'000; ++draw) {
    const auto value = static_cast<Picoseconds>(random.next() >> (17 + random.below(46)));
    values.push_back(value);
    histogram.record(value);
  }
  std::sort(values.begin(), values.end());
  for (const double quantile : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    const auto rank = static_cast<std::size_t>(quantile * 20'000);
    const Picoseconds exact = values[rank - 1];
    EXPECT_GE(histogram.percentile(quantile), exact) << quantile;
    EXPECT_LE(histogram.percentile(quantile), exact + exact / 64 + 1) << quantile;
  }
  EXPECT_EQ(histogram.percentile(1.0), values.back());
  EXPECT_EQ(histogram.maximum(), values.back());
}

TEST(Histogram, MergedIsTheSameAsRecordedTogether) {
  Histogram left;
  Histogram right;
  Histogram together;
  Random random(6);
  for (int draw = 0; draw < 1000; ++draw) {
    const auto value = static_cast<Picoseconds>(random.below(1'000'000));
    (draw % 3 == 0 ? left : right).record(value);
    together.record(value);
  }
  left.merge(right);
  EXPECT_EQ(left.count(), together.count());
  EXPECT_EQ(left.mean(), together.mean());
  EXPECT_EQ(left.maximum(), together.maximum());
  for (const double quantile : {0.1, 0.5, 0.99}) {
    EXPECT_EQ(left.percentile(quantile), together.percentile(quantile));
  }
}

}  // namespace
}  // namespace pmsim::machine
