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

      std::vector<Picoseconds> others = keys;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(expected));
      const Picoseconds second = others.empty() ? kNever : *std::min_element(others.begin(), others.end());
      ASSERT_EQ(tournament.runner_up(expected), second) << agents << " agents, step " << step;
    }
  }
}

}  // namespace
}  // namespace pmsim::machine
