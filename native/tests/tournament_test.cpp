#include "pmsim/machine/tournament.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::machine {
namespace {

/// Against a linear search, over sizes on both sides of a power of two; few distinct keys, so ties are common.
TEST(Tournament, NamesTheEarliestAgentAndTheSmallerIndexOnATie) {
  for (const std::size_t agents : {1U, 2U, 3U, 7U, 8U, 9U, 48U}) {
    Tournament tournament(agents);
    std::vector<Picoseconds> keys(agents, kNever);
    Random random(agents);
    for (int step = 0; step < 2000; ++step) {
      const std::size_t agent = random.below(agents);
      keys[agent] = random.below(8) == 0 ? kNever : static_cast<Picoseconds>(random.below(20));
      tournament.set(agent, keys[agent]);
      const auto expected = static_cast<std::size_t>(std::min_element(keys.begin(), keys.end()) - keys.begin());
      if (keys[expected] == kNever) {
        continue;  // nobody is next
      }
      ASSERT_EQ(tournament.earliest(), expected) << agents << " agents, step " << step;

      // It stays the earliest up to the key of the next one, and at that key only if its index is smaller. So
      // would any other agent.
      for (const std::size_t acting : {expected, agent}) {
        const auto at = keys.begin() + static_cast<std::ptrdiff_t>(acting);
        const Picoseconds before = acting == 0 ? kNever : *std::min_element(keys.begin(), at) - 1;
        const Picoseconds after = acting + 1 == agents ? kNever : *std::min_element(at + 1, keys.end());
        const Picoseconds horizon = std::min(before, after);
        const bool unbounded = horizon >= kNever - 1;  // nobody else is ever going to act
        ASSERT_EQ(std::min(tournament.horizon(acting), unbounded ? horizon : kNever), horizon)
            << agents << " agents, step " << step << ", agent " << acting;
      }
    }
  }
}

/// As a lane uses it: the earliest agent acts up to its horizon and comes back later; at times others change.
TEST(Tournament, ReplacesTheEarliestByTheRunnerUp) {
  for (const std::size_t agents : {1U, 2U, 3U, 8U, 30U}) {
    Tournament tournament(agents);
    std::vector<Picoseconds> keys(agents, 0);
    Random random(agents);
    for (std::size_t agent = 0; agent < agents; ++agent) {
      tournament.set(agent, 0);
    }
    for (int step = 0; step < 3000; ++step) {
      const auto earliest = static_cast<std::size_t>(std::min_element(keys.begin(), keys.end()) - keys.begin());
      ASSERT_EQ(tournament.earliest(), earliest) << agents << " agents, step " << step;
      keys[earliest] += static_cast<Picoseconds>(random.below(4));
      static_cast<void>(tournament.horizon(earliest));
      tournament.set_after_horizon(earliest, keys[earliest]);
      if (random.below(3) == 0) {
        const std::size_t other = random.below(agents);
        keys[other] = std::max(keys[earliest], keys[other] + static_cast<Picoseconds>(random.below(3)) - 1);
        tournament.set(other, keys[other]);
      }
    }
  }
}

/// Over months of virtual time, forth and, as no lane does, back: what a key says does not depend on how many
/// agents there are.
TEST(Tournament, RefusesTimesFurtherApartThanKeysCanSay) {
  Tournament tournament(1000);
  tournament.set(0, 0);
  EXPECT_THROW(tournament.set(1, 3 * 3600 * kSecond), ConfigError);  // 2^53 ps are two hours and a half
}

TEST(Tournament, KnowsTimesFarFromTheOnesBefore) {
  for (const std::size_t agents : {2U, 30U, 1000U}) {
    Tournament tournament(agents);
    std::vector<Picoseconds> keys(agents, kNever);
    Random random(agents);
    for (const Picoseconds start : {Picoseconds{0}, kNever / 2, kNever - 2000, Picoseconds{5}, kNever / 3}) {
      std::fill(keys.begin(), keys.end(), kNever);
      for (std::size_t agent = 0; agent < agents; ++agent) {
        tournament.set(agent, kNever);
      }
      EXPECT_EQ(tournament.earliest_key(), kNever);
      for (int step = 0; step < 1000; ++step) {
        const std::size_t agent = random.below(agents);
        keys[agent] = random.below(8) == 0 ? kNever : start + static_cast<Picoseconds>(random.below(20));
        if (step % 2 == 0) {
          tournament.set(agent, keys[agent]);
        } else {
          static_cast<void>(tournament.horizon(agent));
          tournament.set_after_horizon(agent, keys[agent]);
        }
        const auto first = std::min_element(keys.begin(), keys.end());
        ASSERT_EQ(tournament.earliest_key(), *first) << agents << " agents, step " << step;
        ASSERT_TRUE(*first == kNever || keys[tournament.earliest()] == *first);
      }
    }
  }
}

}  // namespace
}  // namespace pmsim::machine
