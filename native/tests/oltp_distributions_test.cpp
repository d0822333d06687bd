#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "pmsim/core/scatter.hpp"
#include "pmsim/workloads/oltp/zipf.hpp"

namespace pmsim::workloads::oltp {
namespace {

constexpr std::uint64_t kDraws = 1'000'000;

std::vector<double> shares(const Zipf& zipf) {
  Random random(3);
  std::vector<double> counts(zipf.ranks());
  for (std::uint64_t draw = 0; draw < kDraws; ++draw)
    counts[zipf(random)] += 1.0 / kDraws;
  return counts;
}

TEST(Zeta, TheTailIsIntegratedAsExactlyAsItIsSummed) {
  const std::uint64_t n = (std::uint64_t{1} << 20) + 3'000;
  for (const double z : {0.0, 0.5, 0.99, 1.0, 1.5}) {
    double sum = 0;
    for (std::uint64_t i = n; i > 0; --i)
      sum += std::pow(static_cast<double>(i), -z);
    EXPECT_NEAR(zeta(n, z) / sum, 1, 1e-10) << "z = " << z;
  }
}

TEST(Zipf, TheTwoMostPopularRanksHaveExactlyTheirShares) {
  for (const double z : {0.5, 0.99, 1.0, 1.2}) {
    const Zipf zipf(10'000, z);
    const std::vector<double> share = shares(zipf);
    const double first = 1 / zeta(10'000, z);
    const double second = first * std::pow(0.5, z);
    EXPECT_NEAR(share[0], first, 4 * std::sqrt(first / kDraws)) << "z = " << z;
    EXPECT_NEAR(share[1], second, 4 * std::sqrt(second / kDraws)) << "z = " << z;
  }
}

/// The part of all draws that the most popular `ranks` get: the published formula (Gray et al., figure 3)
/// solved for its random number.
double share_by_formula(std::uint64_t ranks, std::uint64_t n, double z) {
  const double second = 1 + std::pow(0.5, z);
  if (ranks <= 2)
    return (ranks == 1 ? 1 : second) / zeta(n, z);
  const double part = static_cast<double>(ranks) / static_cast<double>(n);
  const double rest = 1 - second / zeta(n, z);
  if (z == 1)  // the limit
    return 1 + std::log(part) * rest / std::log(static_cast<double>(n) / 2);
  const double eta = (1 - std::pow(2 / static_cast<double>(n), 1 - z)) / rest;
  return 1 + (std::pow(part, 1 - z) - 1) / eta;
}

// Without draws: the generator is a function of its random number.
TEST(Zipf, ThePopularPartGetsWhatTheFormulaGivesIt) {
  const std::uint64_t n = 400'000;
  double most = 0, most_at_one = 0;  // above Zipf's law
  for (const double z : {0.5, 0.99, 1.0, 1.3, 1.5, 2.0}) {
    const Zipf zipf(n, z);
    for (const std::uint64_t popular : {1, 2, 3, 9, 26, 100, 1'000, 10'000, 200'000, 400'000}) {
      double below = 0, above = 1;  // the random number from which on ranks are not among the popular ones
      for (int step = 0; step < 60; ++step) {
        const double middle = (below + above) / 2;
        (zipf.at(middle) < popular ? below : above) = middle;
      }
      const double published = share_by_formula(popular, n, z);
      EXPECT_NEAR(below, published, 1e-9) << popular << " ranks, z = " << z;
      const double beyond = published - zeta(popular, z) / zeta(n, z);
      EXPECT_GT(beyond, -1e-9) << popular << " ranks, z = " << z;
      most = std::max(most, beyond);
      if (z <= 1)
        most_at_one = std::max(most_at_one, beyond);
    }
  }
  // What zipf.hpp tells its users of the published formula: 1.2 percentage points up to z = 1, 2.3 for any.
  EXPECT_NEAR(most_at_one, 0.012, 0.0005);
  EXPECT_NEAR(most, 0.023, 0.001);
}

TEST(Zipf, ExponentOneIsTheLimitOfItsNeighbours) {
  const Zipf below(1'000'000, 1 - 1e-7), at(1'000'000, 1), above(1'000'000, 1 + 1e-7);
  for (double u = 0.0005; u < 1; u += 0.0137) {
    const auto rank = static_cast<double>(at.at(u));
    EXPECT_NEAR(static_cast<double>(below.at(u)), rank, 1 + rank * 1e-5) << "u = " << u;
    EXPECT_NEAR(static_cast<double>(above.at(u)), rank, 1 + rank * 1e-5) << "u = " << u;
  }
}

TEST(Zipf, ExponentZeroIsUniform) {
  const std::vector<double> share = shares(Zipf(100, 0));
  for (std::size_t rank = 0; rank < share.size(); ++rank)
    EXPECT_NEAR(share[rank], 0.01, 5 * std::sqrt(0.01 / kDraws)) << "rank " << rank;
}

TEST(Zipf, EveryRankIsInRangeAndTheLastOneIsReached) {
  for (const std::uint64_t n : {1, 2, 3, 10}) {
    for (const double z : {0.0, 1.0, 2.0}) {
      const std::vector<double> share = shares(Zipf(n, z));
      for (std::uint64_t rank = 0; rank < n; ++rank)
        EXPECT_GT(share[rank], 0) << "rank " << rank << " of " << n << ", z = " << z;
    }
  }
}

TEST(Scatter, IsABijection) {
  for (const std::uint64_t n : {1, 2, 3, 4, 5, 63, 64, 65, 1'000, 4'097}) {
    const Scatter scatter(n, 9);
    std::vector<bool> seen(n);
    for (std::uint64_t rank = 0; rank < n; ++rank) {
      const std::uint64_t key = scatter(rank);
      ASSERT_LT(key, n);
      EXPECT_FALSE(seen[key]) << "key " << key << " of " << n << " twice";
      EXPECT_EQ(scatter.inverse(key), rank) << "of " << n;
      seen[key] = true;
    }
  }
}

// As many pages as chance has it, not as few (clustered) and not as many (evenly spread) as possible.
TEST(Scatter, PopularRanksFallOnPagesLikeBallsIntoBins) {
  const std::uint64_t rows = 100'000, per_page = 10, popular = 10'000;
  const std::uint64_t pages = rows / per_page;
  const Scatter scatter(rows, 1);
  std::vector<bool> hit(pages);
  for (std::uint64_t rank = 0; rank < popular; ++rank)
    hit[scatter(rank) / per_page] = true;
  const auto touched = static_cast<double>(std::count(hit.begin(), hit.end(), true));
  const double expected = static_cast<double>(pages) * (1 - std::pow(0.9, 10));  // ten rows, none popular
  EXPECT_NEAR(touched / expected, 1, 0.02);
}

TEST(Scatter, DependsOnItsSeed) {
  const Scatter one(1'000, 1), other(1'000, 2);
  std::uint64_t same = 0;
  for (std::uint64_t rank = 0; rank < 1'000; ++rank)
    same += one(rank) == other(rank) ? 1U : 0U;
  EXPECT_LT(same, 10U);
}

}  // namespace
}  // namespace pmsim::workloads::oltp
