#include "pmsim/core/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace pmsim {
namespace {

constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15ULL;

/// The published sequence of SplitMix64 for seed 1234567: an oracle that shares no line with the code.
TEST(Random, MixIsSplitMix64) {
  EXPECT_EQ(mix64(1234567), 6457827717110365317ULL);
  EXPECT_EQ(mix64(1234567 + kGamma), 3203168211198807973ULL);
  EXPECT_EQ(mix64(1234567 + 2 * kGamma), 9817491932198370423ULL);
}

TEST(Random, SameSeedSameSequenceAndAnotherSeedAnother) {
  Random first(1);
  Random again(1);
  Random other(2);
  int equal = 0;
  for (int draw = 0; draw < 1000; ++draw) {
    const std::uint64_t value = first.next();
    ASSERT_EQ(value, again.next());
    equal += value == other.next() ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

/// 70,000 draws of 7 outcomes: each 10,000 times, with a standard deviation of 93; five of them are allowed.
TEST(Random, BelowReachesEveryOutcomeEquallyOften) {
  Random random(3);
  std::array<int, 7> seen{};
  for (int draw = 0; draw < 70'000; ++draw) {
    ++seen.at(random.below(7));
  }
  for (const int count : seen) {
    EXPECT_NEAR(count, 10'000, 5 * 93);
  }
}

}  // namespace
}  // namespace pmsim
