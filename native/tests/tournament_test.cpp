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

      // It stays the earliest up to the key of the next one, and at that key only if its index is smaller.
      const auto before = std::min_element(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(expected));
      const auto after = std::min_element(keys.begin() + static_cast<std::ptrdiff_t>(expected) + 1, keys.end());
      Picoseconds horizon = expected == 0 ? kNever : *before - 1;
      horizon = std::min(horizon, expected + 1 == agents ? kNever : *after);
      const bool unbounded = horizon >= kNever - 1;  // nobody else is ever going to act
      ASSERT_EQ(std::min(tournament.horizon(expected), unbounded ? horizon : kNever), horizon)
          << agents << " agents, step " << step;
    }
  }
}

}  // namespace
}  // namespace pmsim::machine
