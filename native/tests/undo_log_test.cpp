// Transactions with an undo log: what they write and wait for, and what is there afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pmsim/blocks/undo/undo_log.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::undo {
namespace {

using memory::Medium;
using memory::OpKind;
using memory::SimMemory;
using Bytes = std::vector<std::byte>;

Bytes random_bytes(Random& random, std::uint64_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random.next());
  return bytes;
}

struct Counts {
  std::uint64_t streamed = 0;  ///< lines
  std::uint64_t flushed = 0;
  std::uint64_t fences = 0;
  std::uint64_t cycles = 0;
  bool operator==(const Counts&) const = default;
};

class UndoLogTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kArrayBytes = 256 << 10;

  SimMemory memory{{.persistence = memory::Persistence::kAdr}};
  Place place{memory.allocate(Medium::kPmem, UndoLog::place_bytes(1 << 20)), UndoLog::place_bytes(1 << 20)};
  Address array = memory.allocate(Medium::kPmem, kArrayBytes);
  Random random{7};

  template <typename Work>
  Counts count(Work&& work) {
    memory::Stream stream;
    memory.attach(stream);
    work();
    memory.detach();
    Counts counts;
    for (std::size_t at = 0; at < stream.size(); ++at) {
      const memory::MicroOp& op = stream[at];
      counts.streamed += op.kind == OpKind::kStreamStore ? 1 : 0;
      counts.flushed += op.kind == OpKind::kClwb ? 1 : 0;
      counts.fences += op.kind == OpKind::kSfence ? 1 : 0;
      counts.cycles += op.kind == OpKind::kCompute ? op.address : 0;
    }
    return counts;
  }
  Bytes content(Address from, std::uint64_t size) {
    Bytes bytes(size);
    memory.read(from, bytes);
    return bytes;
  }
};

TEST_F(UndoLogTest, AShortRangeIsSnapshottedInOneLineAndItsCommitWaitsThreeTimes) {
  UndoLog log = UndoLog::create(memory, place);
  EXPECT_EQ(count([&] { log.begin(memory); }), Counts{});
  // The header behind the entry, and the entry: each with a fence.
  EXPECT_EQ(count([&] { log.add_range(memory, array, 40); }), (Counts{.streamed = 2, .fences = 2}));
  memory.store<std::uint64_t>(array, 1);
  // The range, both fences of PMDK; the generation, its fence.
  EXPECT_EQ(count([&] { log.commit(memory); }), (Counts{.flushed = 2, .fences = 3}));
}

TEST_F(UndoLogTest, ALongRangeTakesALineForEvery64BytesBehindTheFirst40) {
  UndoLog log = UndoLog::create(memory, place);
  log.begin(memory);
  EXPECT_EQ(count([&] { log.add_range(memory, array, 41); }).streamed, 1U + 2U);
  EXPECT_EQ(count([&] { log.add_range(memory, array + 1024, 40 + 4 * 64); }).streamed, 1U + 5U);
}

TEST_F(UndoLogTest, OnlyWhatNoRangeCoversIsSnapshotted) {
  UndoLog log = UndoLog::create(memory, place);
  log.begin(memory);
  log.add_range(memory, array + 100, 100);
  EXPECT_EQ(count([&] { log.add_range(memory, array + 120, 80); }), Counts{});
  // 30 bytes before it and 40 behind it: an entry of one line each.
  EXPECT_EQ(count([&] { log.add_range(memory, array + 70, 170); }), (Counts{.streamed = 4, .fences = 4}));
  log.add_fresh(array + 1024, 128);
  EXPECT_EQ(count([&] { log.add_range(memory, array + 1024, 128); }), Counts{});
  // Lines 1 to 3, 16 and 17, and the generation.
  EXPECT_EQ(count([&] { log.commit(memory); }).flushed, 3U + 2U + 1U);
}

TEST_F(UndoLogTest, ATransactionThatSnapshotsNothingWritesNothingOfItsOwn) {
  UndoLog log = UndoLog::create(memory, place);
  log.begin(memory);
  log.add_fresh(array, 64);
  EXPECT_EQ(count([&] { log.commit(memory); }), (Counts{.flushed = 1, .fences = 2}));
}

TEST_F(UndoLogTest, EveryCallCostsTheCyclesOfTheLibraryAndUlogsBeyondTheSecondTwoMore) {
  UndoLog log = UndoLog::create(memory, place, {.library_cycles = 100});
  EXPECT_EQ(count([&] { log.begin(memory); }).cycles, 100U);
  // 100 KiB: ulogs of 2, 32, 32, 32 and a bit of 32 KiB, of which three are allocated.
  EXPECT_EQ(count([&] { log.add_range(memory, array, 100 << 10); }).cycles, 400U);
  EXPECT_EQ(count([&] { log.commit(memory); }).cycles, 400U);
  log.begin(memory);
  EXPECT_EQ(count([&] { log.add_range(memory, array, 8); }).cycles, 100U);
  EXPECT_EQ(count([&] { log.abort(memory); }).cycles, 100U);
}

TEST_F(UndoLogTest, AFullLogSaysSoBeforeItWritesAndTheTransactionGoesOn) {
  const Place small{place.base, UndoLog::kHeaderBytes + 256};  // four lines
  UndoLog log = UndoLog::create(memory, small);
  const Bytes before = random_bytes(random, 512);
  memory.write(array, before);
  log.begin(memory);
  log.add_range(memory, array, 40);
  memory.store<std::uint64_t>(array, 1);
  EXPECT_EQ(count([&] { EXPECT_THROW(log.add_range(memory, array + 64, 3 * 64 - 23), UndoLogFull); }),
            Counts{});
  log.add_range(memory, array + 64, 3 * 64 - 24);  // to the last byte
  memory.store<std::uint64_t>(array + 64, 1);
  log.abort(memory);
  EXPECT_EQ(content(array, 512), before);
}

TEST_F(UndoLogTest, RandomTransactionsAreAsAModelWhetherTheyCommitAbortOrAreCutShort) {
  UndoLog log = UndoLog::create(memory, place);
  Bytes model(kArrayBytes);
  for (int round = 0; round < 300; ++round) {
    Bytes changed = model;
    log.begin(memory);
    for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
      // Long ones go over the ends of ulogs.
      const std::uint64_t size = 1 + random.below(round % 20 == 0 ? kArrayBytes / 4 : 600);
      const std::uint64_t at = random.below(kArrayBytes - size);
      const Bytes bytes = random_bytes(random, size);
      log.add_range(memory, array + at, size);
      memory.write(array + at, bytes);
      std::ranges::copy(bytes, changed.begin() + static_cast<std::ptrdiff_t>(at));
    }
    switch (random.below(3)) {
      case 0:
        log.commit(memory);
        model = changed;
        break;
      case 1:
        log.abort(memory);
        break;
      default:  // what is in the caches counts as durable: recovery undoes it
        log = UndoLog::open(memory, place).value();
        EXPECT_GT(log.recover(memory), 0U);
        EXPECT_EQ(log.recover(memory), 0U);
    }
    ASSERT_EQ(content(array, kArrayBytes) == model, true) << round;
  }
}

// With the sums of PMDK the second snapshot was whole without the words that differ: by 1, -2 and 1.
TEST_F(UndoLogTest, ATornSnapshotOverAnOlderOneOfTheSameRangeDoesNotCount) {
  using Words = std::array<std::uint32_t, 4>;
  const auto put = [&](const Words& words) { memory.write(array, std::as_bytes(std::span(words))); };
  UndoLog log = UndoLog::create(memory, place);
  put({5, 2, 5, 0});
  log.begin(memory);
  log.add_range(memory, array, sizeof(Words));
  put({4, 4, 4, 0});
  log.commit(memory);
  std::size_t images = 0;
  memory.on_persistence_step([&] {
    const auto legal = memory.durability().enumerate(1 << 10).value();
    for (const memory::DurableImage& image : legal) {
      SimMemory after = memory.crash(image);
      static_cast<void>(UndoLog::open(after, place).value().recover(after));
      Words found;
      after.read(array, std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, (Words{4, 4, 4, 0}));
      ++images;
    }
  });
  log.begin(memory);
  log.add_range(memory, array, sizeof(Words));
  EXPECT_GE(images, 8U);  // generation, and two words of the snapshot
  memory.on_persistence_step({});
}

TEST_F(UndoLogTest, APlaceThatHoldsSomethingElseOrAnotherSizeIsRefused) {
  EXPECT_FALSE(UndoLog::open(memory, place).has_value());
  static_cast<void>(UndoLog::create(memory, place));
  EXPECT_THROW(static_cast<void>(UndoLog::open(memory, {place.base, place.bytes - 64})), ConfigError);
  memory.store<std::uint64_t>(place.base, 1);
  EXPECT_THROW(static_cast<void>(UndoLog::open(memory, place)), ConfigError);
  EXPECT_THROW(static_cast<void>(UndoLog::create(memory, {place.base, UndoLog::kHeaderBytes})), ConfigError);
}

TEST(RangeSet, CoversAndLeavesOutWhatASetOfBytesSays) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    RangeSet ranges;
    std::vector<bool> covered(64);
    for (int add = 0; add < 8; ++add) {
      const std::uint64_t begin = random.below(60);
      const std::uint64_t bytes = 1 + random.below(64 - begin);
      std::vector<bool> gaps(64);
      for (const Range& gap : ranges.gaps(begin, bytes)) {
        for (std::uint64_t at = gap.begin; at < gap.begin + gap.bytes; ++at)
          gaps[at] = true;
      }
      for (std::uint64_t at = 0; at < 64; ++at)
        ASSERT_EQ(gaps[at], at >= begin && at < begin + bytes && !covered[at]);
      ranges.add(begin, bytes);
      std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(begin), bytes, true);
    }
    std::vector<bool> of_ranges(64);
    std::uint64_t behind = 0;
    ranges.for_each([&](Address begin, std::uint64_t bytes) {
      EXPECT_TRUE(behind == 0 || begin > behind);  // neither overlap nor touch
      behind = begin + bytes;
      std::fill_n(of_ranges.begin() + static_cast<std::ptrdiff_t>(begin), bytes, true);
    });
    ASSERT_EQ(of_ranges, covered);
  }
}

}  // namespace
}  // namespace pmsim::blocks::undo
