#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "pmsim/blocks/node/balance.hpp"
#include "pmsim/blocks/node/driver.hpp"
#include "pmsim/blocks/node/erase.hpp"
#include "pmsim/blocks/node/insert.hpp"
#include "pmsim/blocks/node/iterate.hpp"
#include "pmsim/blocks/node/merge.hpp"
#include "pmsim/blocks/node/pairs.hpp"
#include "pmsim/blocks/node/search.hpp"
#include "pmsim/blocks/node/split.hpp"
#include "pmsim/blocks/node/traverse.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::node {
namespace {

using memory::SimMemory;
using Model = std::map<std::uint64_t, Value>;

constexpr std::array kLayouts{Layout::kSorted, Layout::kUnsorted, Layout::kIndirection, Layout::kHashing,
                              Layout::kBitmap};

/// Nodes of one layout side by side, changed through one Persistence.
struct Nodes {
  explicit Nodes(Layout layout, std::uint32_t bytes = 1024)
      : places(*geometry(layout, bytes)),
        base(memory.allocate(memory::Medium::kPmem, 4 * 8192, {.name = "nodes"})),
        persistence(memory, Persist::kOnce) {}

  Node<SimMemory> node(std::uint32_t index) {
    return Node<SimMemory>(memory, places, base + index * 8192, persistence.changes());
  }
  void put(std::uint32_t index, std::uint64_t key, const Value& value) {
    auto target = node(index);
    std::uint32_t position = 0;
    if (has_bitmap(places.layout) && places.layout != Layout::kIndirection) {
      position = free_place(target);
    } else if (places.layout != Layout::kUnsorted) {
      const auto pairs = pairs_of(target);
      position =
          static_cast<std::uint32_t>(std::ranges::lower_bound(pairs, key, {}, &Pair::key) - pairs.begin());
      position += places.layout == Layout::kIndirection ? 1 : 0;
    }
    insert(persistence, target, position, {key, value});
    persistence.end();
  }
  Model model(std::uint32_t index) {
    Model found;
    for (const Pair& pair : pairs_of(node(index)))
      found[pair.key] = pair.value;
    return found;
  }
  /// Every pair can be found, and what is not there cannot.
  void expect_searches(std::uint32_t index, const Model& model, Branches branches = Branches::kUnknown) {
    const bool slots = places.layout == Layout::kIndirection;
    for (std::uint64_t key = 0; key < 300; ++key) {
      const std::uint32_t found = search(node(index), key, branches);
      const auto wanted = model.find(key);
      if (wanted == model.end()) {
        EXPECT_EQ(found, places.entries + (slots ? 1 : 0)) << key;
      } else {
        EXPECT_EQ(node(index).pair(slots ? node(index).slot(found) : found), (Pair{key, wanted->second}))
            << key;
      }
    }
  }

  SimMemory memory;
  Geometry places;
  Address base;
  Persistence<SimMemory> persistence;
};

Value value_of(std::uint64_t key) { return {key + 1000, key * key}; }

class NodeOperations : public testing::TestWithParam<Layout> {};

TEST_P(NodeOperations, KeepsWhatAMapKeepsUnderRandomInsertsAndErases) {
  Nodes nodes(GetParam());
  Model model;
  Random random(7);
  for (int step = 0; step < 2000; ++step) {
    const std::uint64_t key = random.below(256);
    const auto found = model.find(key);
    if (found != model.end()) {
      auto node = nodes.node(0);
      erase(nodes.persistence, node, search(node, key, Branches::kLearnt));
      nodes.persistence.end();
      model.erase(found);
    } else if (model.size() < nodes.places.entries) {
      nodes.put(0, key, value_of(random.next()));
      model[key] = nodes.model(0)[key];
    }
    ASSERT_EQ(nodes.model(0), model) << "step " << step;
  }
  nodes.expect_searches(0, model);
}

TEST_P(NodeOperations, SplitsIntoTheSmallerAndTheLargerHalf) {
  for (const Split how : {Split::kMove, Split::kCopy}) {
    if (how == Split::kCopy && !has_bitmap(GetParam()))
      continue;
    Nodes nodes(GetParam(), 4096);
    std::vector<std::uint64_t> keys(nodes.places.entries);
    for (std::uint32_t at = 0; at < keys.size(); ++at)
      keys[at] = 2 * at;
    Random random(3);
    for (std::size_t at = keys.size(); at > 1; --at)
      std::swap(keys[at - 1], keys[random.below(at)]);
    for (const std::uint64_t key : keys)
      nodes.put(0, key, value_of(key));
    auto node = nodes.node(0);
    auto neighbour = nodes.node(2);
    node.set_next(neighbour.base());
    neighbour.set_prev(node.base());
    auto fresh = nodes.node(1);
    const std::uint64_t smallest = split(nodes.persistence, node, fresh, how);

    const std::uint64_t middle = (nodes.places.entries + 1) / 2;
    EXPECT_EQ(smallest, 2 * middle);
    Model lower;
    Model upper;
    for (const std::uint64_t key : keys)
      (key < smallest ? lower : upper)[key] = value_of(key);
    EXPECT_EQ(nodes.model(0), lower);
    EXPECT_EQ(nodes.model(1), upper);
    nodes.expect_searches(0, lower);
    nodes.expect_searches(1, upper);
    EXPECT_EQ(node.next(), fresh.base());
    EXPECT_EQ(fresh.next(), neighbour.base());
    EXPECT_EQ(fresh.prev(), node.base());
    EXPECT_EQ(neighbour.prev(), fresh.base());
  }
}

TEST_P(NodeOperations, BalancesTowardsEitherSideAndMerges) {
  for (const bool to_larger : {false, true}) {
    Nodes nodes(GetParam());
    const std::uint32_t entries = nodes.places.entries;
    const std::uint32_t few = (entries + 1) / 2 - 1;
    const std::uint32_t smaller = to_larger ? entries : few;
    Model all;
    for (std::uint64_t key = 0; key < entries + few; ++key) {
      nodes.put(key < smaller ? 0 : 1, key, value_of(key));
      all[key] = value_of(key);
    }
    auto left = nodes.node(0);
    auto right = nodes.node(1);
    left.set_next(right.base());
    to_larger ? balance(nodes.persistence, left, right, true) : balance(nodes.persistence, right, left, false);
    const auto stay = static_cast<std::size_t>((entries + few) / 2);
    const std::size_t on_left = to_larger ? stay : entries + few - stay;
    Model expected_left(all.begin(), std::next(all.begin(), static_cast<std::ptrdiff_t>(on_left)));
    Model expected_right(std::next(all.begin(), static_cast<std::ptrdiff_t>(on_left)), all.end());
    EXPECT_EQ(nodes.model(0), expected_left);
    EXPECT_EQ(nodes.model(1), expected_right);
    nodes.expect_searches(0, expected_left);
    nodes.expect_searches(1, expected_right);

    // Until both fit one node.
    while (size_of(left) + size_of(right) > entries) {
      const std::uint64_t key = expected_right.begin()->first;
      erase(nodes.persistence, right, search(right, key, Branches::kLearnt));
      expected_right.erase(key);
    }
    merge(nodes.persistence, left, right);
    expected_left.merge(expected_right);
    EXPECT_EQ(nodes.model(0), expected_left);
    nodes.expect_searches(0, expected_left);
    EXPECT_EQ(left.next(), 0U);
  }
}

TEST_P(NodeOperations, CountsTheBytesThatThePaperCounts) {
  Nodes nodes(GetParam(), 4096);
  const std::uint32_t entries = nodes.places.entries;
  for (std::uint64_t key = 2; key <= entries; ++key)
    nodes.put(0, key, value_of(key));
  const std::uint64_t before = nodes.persistence.bytes();
  nodes.put(0, 1, value_of(1));  // at the first position: everything sorted moves
  const std::uint64_t inserted = nodes.persistence.bytes() - before;
  auto node = nodes.node(0);
  erase(nodes.persistence, node, search(node, 1, Branches::kLearnt));
  nodes.persistence.end();
  const std::uint64_t erased = nodes.persistence.bytes() - before - inserted;
  switch (GetParam()) {
    case Layout::kSorted:  // section 5.3: all keys and values, and the count
      EXPECT_EQ(inserted, 24U * entries + 8);
      EXPECT_EQ(erased, 24U * (entries - 1) + 8);
      break;
    case Layout::kUnsorted:  // it came last, so nothing moves over it
      EXPECT_EQ(inserted, 24U + 8);
      EXPECT_EQ(erased, 8U);
      break;
    case Layout::kIndirection:  // all slots, the new one, their count, and a bit
      EXPECT_EQ(inserted, 24U + (entries - 1) + 2 + 1);
      EXPECT_EQ(erased, (entries - 1) + 1U + 1);
      break;
    case Layout::kHashing:
      EXPECT_EQ(inserted, 24U + 1 + 1);
      EXPECT_EQ(erased, 1U);  // one bit
      break;
    case Layout::kBitmap:
      EXPECT_EQ(inserted, 24U + 1);
      EXPECT_EQ(erased, 1U);
      break;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, NodeOperations, testing::ValuesIn(kLayouts), [](const auto& test) {
  return std::string(kLayoutNames[static_cast<std::size_t>(test.param)]);
});

constexpr std::array kOperations{Operation::kSearch, Operation::kIterate,  Operation::kInsert,
                                 Operation::kSplit,  Operation::kErase,    Operation::kBalance,
                                 Operation::kMerge,  Operation::kAllocate, Operation::kDeallocate};

/// Whatever this CPU flushes with.
template <typename M>
auto options_of() {
  if constexpr (std::is_same_v<M, memory::HostMemory>)
    return memory::HostOptions{.best_flush = true};
  else
    return memory::SimOptions{};
}

/// Runs every operation in every layout and with every way to persist that it has, on one memory or the other.
template <typename M>
void run_all() {
  for (const Layout layout : kLayouts) {
    for (const Operation operation : kOperations) {
      for (const Persist persist : {Persist::kOnce, Persist::kOrdered, Persist::kTransaction}) {
        const bool inserts = operation == Operation::kInsert;
        if (persist == Persist::kOrdered &&
            !((inserts || operation == Operation::kErase) && can_be_ordered(layout, inserts)))
          continue;
        for (const Position position : {Position::kFirst, Position::kRandom}) {
          M memory(options_of<M>());
          NodeDriver<M> driver(memory,
                               {.operation = operation,
                                .geometry = *geometry(layout, 512),
                                .position = position,
                                .shuffled = position == Position::kRandom,
                                .persist = persist,
                                .iterate_by = has_bitmap(layout) ? IterateBy::kBitmap : IterateBy::kCount,
                                .region_bytes = 512 << 10});
          driver.load(memory);
          for (int step = 0; step < 20; ++step) {
            driver.prepare(memory);
            driver.fetch(memory);
            driver.operation(memory);
            driver.restore(memory);
          }
          EXPECT_EQ(driver.done(), 20U)
              << kLayoutNames[static_cast<std::size_t>(layout)] << " " << static_cast<int>(operation);
        }
      }
    }
  }
}

TEST(NodeDriver, RunsEveryOperationOnSimulatedMemory) { run_all<SimMemory>(); }

TEST(NodeDriver, RunsTheSameOnRealMemory) { run_all<memory::HostMemory>(); }

TEST(NodeDriver, ASplitMakesTheNewNodeDurableWhoeverHasAllocatedIt) {
  for (const Persist persist : {Persist::kOnce, Persist::kTransaction}) {
    for (const bool allocates : {true, false}) {
      SimMemory memory({.persistence = memory::Persistence::kAdr});
      NodeOptions options;
      options.operation = Operation::kSplit;
      options.geometry = *geometry(Layout::kHashing, 512);
      options.persist = persist;
      options.allocates = allocates;
      options.region_bytes = 512 << 10;
      NodeDriver<SimMemory> driver(memory, options);
      driver.load(memory);
      driver.operation(memory);
      for (std::uint64_t word = 0; word < options.geometry.end(); word += kWordBytes)
        ASSERT_EQ(memory.word_state(driver.fresh() + word), memory::WordState::kDurable)
            << static_cast<int>(persist) << " " << allocates << " " << word;
    }
  }
}

TEST(NodeDriver, NeedsRoomForMoreThanOneNode) {
  SimMemory memory;
  EXPECT_THROW(
      NodeDriver<SimMemory>(memory, {.geometry = *geometry(Layout::kSorted, 512), .region_bytes = 4096}),
      ConfigError);
}

TEST(TraverseDriver, ArrivesAtALeafWhateverTheDepth) {
  for (std::uint32_t depth = 1; depth <= 4; ++depth) {
    SimMemory memory;
    TraverseDriver<SimMemory> driver(
        memory, {.depth = depth, .node_bytes = 256, .level_bytes = 64 << 10, .inner = memory::Medium::kDram});
    driver.load(memory);
    for (int step = 0; step < 100; ++step) {
      driver.prepare(memory);
      driver.operation(memory);
    }
    EXPECT_EQ(driver.done(), 100U);
  }
}

}  // namespace
}  // namespace pmsim::blocks::node
