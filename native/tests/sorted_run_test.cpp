// Sorted runs: buffers, sorting, moves and merges against std::map, and what they write.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "pmsim/blocks/run/buffers.hpp"
#include "pmsim/blocks/run/merge.hpp"
#include "pmsim/blocks/run/move.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::run {
namespace {

using memory::Medium;
using memory::OpKind;
using memory::SimMemory;
using undo::UndoLog;
using Pairs = std::vector<Pair>;

/// Keys below `keys`, none twice, in random order.
Pairs pairs_of(Random& random, std::uint64_t count, std::uint64_t keys) {
  std::map<std::uint64_t, bool> used;
  Pairs pairs;
  while (pairs.size() < count) {
    const Pair pair{random.below(keys), {random.next(), random.next()}};
    if (used.emplace(pair.key, true).second)
      pairs.push_back(pair);
  }
  return pairs;
}

class SortedRunTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPairs = 100;

  SimMemory memory{{}};
  Random random{5};
  Address base = memory.allocate(Medium::kPmem, Levels::bytes(kPairs, 3));
  Levels levels{base, kPairs, 3};
  Address buffer = memory.allocate(Medium::kDram, 1 << 20);
  Address scratch = memory.allocate(Medium::kDram, Merger::scratch_bytes(16 * kPairs));
  undo::Place place{memory.allocate(Medium::kPmem, UndoLog::place_bytes(1 << 20)),
                    UndoLog::place_bytes(1 << 20)};
  UndoLog log = UndoLog::create(memory, place);

  Pairs content(std::uint32_t level, std::uint32_t index) {
    const Address run = levels.run(level, index);
    Pairs pairs(levels.size(memory, run));
    memory.read(Levels::pairs_of(run), std::as_writable_bytes(std::span(pairs)));
    return pairs;
  }
  std::uint32_t valid(std::uint32_t level) { return Levels::valid(levels.word(memory), level); }
  bool move_in(Publisher& publisher, const Pairs& pairs) {
    SortedBuffer sorted(buffer, kPairs);
    sorted.fill(memory, pairs);
    return move(memory, levels, publisher, sorted, pairs.size());
  }
  static Pairs by_key(Pairs pairs) {
    std::ranges::sort(pairs, {}, &Pair::key);
    return pairs;
  }
  template <typename Work>
  std::map<OpKind, std::uint64_t> count(Work&& work) {
    memory::Stream stream;
    memory.attach(stream);
    work();
    memory.detach();
    std::map<OpKind, std::uint64_t> counts;
    for (std::size_t at = 0; at < stream.size(); ++at)
      ++counts[stream[at].kind];
    return counts;
  }
};

TEST_F(SortedRunTest, PairsOfAnyOrderAreSorted) {
  for (const std::uint64_t count : {0U, 1U, 2U, 15U, 16U, 17U, 100U, 3000U}) {
    for (const std::uint64_t keys : {std::uint64_t{1}, std::uint64_t{50}, ~std::uint64_t{0}}) {
      Pairs pairs(count);
      for (Pair& pair : pairs)
        pair = {random.below(keys), {random.next(), 0}};
      memory.write(buffer, std::as_bytes(std::span(pairs)));
      PairSort<SimMemory>(memory, buffer)(count);
      Pairs sorted(count);
      memory.read(buffer, std::as_writable_bytes(std::span(sorted)));
      EXPECT_TRUE(std::ranges::is_sorted(sorted, {}, &Pair::key));
      std::ranges::sort(pairs);
      std::ranges::sort(sorted);
      EXPECT_EQ(sorted, pairs);
    }
  }
}

TEST_F(SortedRunTest, AMoveBringsTheBuffersPairsInOrderWhicheverBufferItIs) {
  Publisher publisher(FailureAtomicity::kNone);
  const Pairs first = pairs_of(random, kPairs, 1000);
  const Pairs second = pairs_of(random, 1, 1000);
  EXPECT_TRUE(move_in(publisher, first));
  UnsortedBuffer unsorted(buffer, kPairs);
  for (const Pairs& pairs : {second, first, first}) {
    unsorted.fill(memory, pairs);
    EXPECT_TRUE(move(memory, levels, publisher, unsorted, pairs.size()));
  }
  EXPECT_EQ(content(0, 0), by_key(first));
  EXPECT_EQ(content(0, 1), second);
  EXPECT_EQ(content(0, 3), by_key(first));
  const std::uint64_t full = levels.word(memory);
  EXPECT_FALSE(move(memory, levels, publisher, unsorted, first.size()));
  EXPECT_EQ(levels.word(memory), full);
}

TEST_F(SortedRunTest, AMoveWritesItsLinesAndWaitsTwice) {
  Publisher publisher(FailureAtomicity::kNone);
  const Pairs pairs = pairs_of(random, kPairs, 1000);
  SortedBuffer sorted(buffer, kPairs);
  sorted.fill(memory, pairs);
  auto counts = count([&] { EXPECT_TRUE(move(memory, levels, publisher, sorted, kPairs)); });
  // 2400 bytes in 38 lines, the line with their number, Run_Ptr.
  EXPECT_EQ(counts[OpKind::kClwb], 38U + 1U + 1U);
  EXPECT_EQ(counts[OpKind::kSfence], 2U);
  EXPECT_EQ(counts[OpKind::kStreamStore], 0U);
}

TEST_F(SortedRunTest, ATransactionSnapshotsTheRunAndIndividuallyOnlyRunPtr) {
  const auto streamed = [&](FailureAtomicity atomicity) {
    Publisher publisher(atomicity, &log);
    SortedBuffer sorted(buffer, kPairs);
    sorted.fill(memory, pairs_of(random, kPairs, 1000));
    return count([&] { EXPECT_TRUE(move(memory, levels, publisher, sorted, kPairs)); })[OpKind::kStreamStore];
  };
  EXPECT_EQ(streamed(FailureAtomicity::kIndividual), 2U);
  // 64 + 2400 bytes in two entries, since the first ulog ends: 2048 - 64 bytes, then the rest; and a zeroed
  // header for each of three.
  EXPECT_EQ(streamed(FailureAtomicity::kTransaction), (1U + 31U + 9U) + 3U);
}

using MergeCase = std::tuple<MergeAlgorithm, MergeTarget, FailureAtomicity>;
class MergeTest : public SortedRunTest, public ::testing::WithParamInterface<MergeCase> {};

TEST_P(MergeTest, AMergeIsAsAMapIntoWhichTheRunsCameOneAfterTheOther) {
  const auto [algorithm, target, atomicity] = GetParam();
  Publisher publisher(atomicity, &log);
  Merger merger(algorithm, target, scratch);
  for (const std::uint64_t keys : {std::uint64_t{101}, std::uint64_t{300}, ~std::uint64_t{0} >> 1}) {
    const std::uint32_t before = valid(1);
    EXPECT_FALSE(merger.merge(memory, levels, publisher, 0));
    std::map<std::uint64_t, Pair> model;
    for (std::uint32_t run = 0; run < kRunsPerLevel; ++run) {
      const Pairs pairs = pairs_of(random, run == 2 ? 7 : kPairs, keys);
      for (const Pair& pair : pairs)
        model[pair.key] = pair;
      ASSERT_TRUE(move_in(publisher, pairs));
    }
    ASSERT_TRUE(merger.merge(memory, levels, publisher, 0));
    Pairs expected;
    for (const auto& [key, pair] : model)
      expected.push_back(pair);
    EXPECT_EQ(content(1, before), expected);
    EXPECT_EQ(valid(0), 0U);
    EXPECT_EQ(valid(1), before + 1);
  }
}
INSTANTIATE_TEST_SUITE_P(All, MergeTest,
                         ::testing::Combine(::testing::Values(MergeAlgorithm::kTwoWay, MergeAlgorithm::kKWay),
                                            ::testing::Values(MergeTarget::kDirect, MergeTarget::kBuffer),
                                            ::testing::Values(FailureAtomicity::kNone,
                                                              FailureAtomicity::kIndividual,
                                                              FailureAtomicity::kTransaction)));

TEST_F(SortedRunTest, ADirectKWayMergeSnapshotsTheWholeRunAndATwoWayMergeWhatMayCome) {
  // All runs have the same keys.
  const Pairs pairs = pairs_of(random, kPairs, 1000);
  const auto streamed = [&](MergeAlgorithm algorithm, MergeTarget target) {
    Publisher publisher(FailureAtomicity::kTransaction, &log);
    for (std::uint32_t run = 0; run < kRunsPerLevel; ++run)
      EXPECT_TRUE(move_in(publisher, pairs));
    Merger merger(algorithm, target, scratch);
    const auto counts = count([&] { EXPECT_TRUE(merger.merge(memory, levels, publisher, 0)); });
    return static_cast<double>(counts.at(OpKind::kStreamStore));
  };
  const double lines = kPairs * 24 / 64;
  EXPECT_NEAR(streamed(MergeAlgorithm::kKWay, MergeTarget::kDirect), 4 * lines, 8);
  EXPECT_NEAR(streamed(MergeAlgorithm::kTwoWay, MergeTarget::kDirect), 2 * lines, 8);
  EXPECT_NEAR(streamed(MergeAlgorithm::kKWay, MergeTarget::kBuffer), lines, 8);
  EXPECT_NEAR(streamed(MergeAlgorithm::kTwoWay, MergeTarget::kBuffer), lines, 8);
}

TEST_F(SortedRunTest, AMergeThatItsLogCannotHoldLeavesAllRunsAndTheNextOperationGoesOn) {
  const undo::Place small{memory.allocate(Medium::kPmem, UndoLog::place_bytes(8)), UndoLog::place_bytes(8)};
  UndoLog short_log = UndoLog::create(memory, small);
  Publisher publisher(FailureAtomicity::kTransaction, &short_log);
  const Pairs pairs = pairs_of(random, 10, 1000);
  for (std::uint32_t run = 0; run < kRunsPerLevel; ++run)
    ASSERT_TRUE(move_in(publisher, pairs));
  Merger merger(MergeAlgorithm::kKWay, MergeTarget::kDirect, scratch);
  EXPECT_THROW(static_cast<void>(merger.merge(memory, levels, publisher, 0)), undo::UndoLogFull);
  EXPECT_EQ(valid(0), kRunsPerLevel);
  Merger through_buffer(MergeAlgorithm::kKWay, MergeTarget::kBuffer, scratch);
  EXPECT_TRUE(through_buffer.merge(memory, levels, publisher, 0));
  EXPECT_EQ(content(1, 0), by_key(pairs));
}

TEST(Branch, FollowsWhatCameOutTwice) {
  SimMemory memory{{}};
  memory::Stream stream;
  memory.attach(stream);
  Branch branch;
  for (int round = 0; round < 100; ++round)
    EXPECT_TRUE(branch(memory, true));
  EXPECT_EQ(stream.size(), 1U);
  EXPECT_FALSE(branch(memory, false));
  EXPECT_TRUE(branch(memory, true));
  EXPECT_EQ(stream.size(), 2U);
}

}  // namespace
}  // namespace pmsim::blocks::run
