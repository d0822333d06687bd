// Objects that are allocated and freed in transactions.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "pmsim/blocks/undo/heap.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::undo {
namespace {

using memory::Medium;
using memory::SimMemory;

class HeapTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  SimMemory memory{{.persistence = memory::Persistence::kAdr}};
  Place log_place{memory.allocate(Medium::kPmem, UndoLog::place_bytes(4096)), UndoLog::place_bytes(4096)};
  Place place{memory.allocate(Medium::kPmem, 1 << 20), 1 << 20};
  UndoLog log = UndoLog::create(memory, log_place);

  Heap heap_of(std::uint64_t object_bytes, std::uint64_t run_bytes = HeapLayout::kRunBytes) {
    return Heap::create(memory, place, object_bytes, run_bytes);
  }
  static std::set<Address> objects(SimMemory& memory, const Heap& heap) {
    std::set<Address> all;
    heap.for_each(memory, [&](Address object) { all.insert(object); });
    return all;
  }
};

TEST_P(HeapTest, ObjectsBeginLinesDoNotOverlapAndFillTheHeap) {
  const std::uint64_t bytes = GetParam();
  constexpr std::uint64_t kRun = 64 << 10;
  Heap heap = heap_of(bytes, kRun);
  EXPECT_GE(heap.usable_bytes(), bytes);
  Address behind = place.base;
  for (std::uint64_t object = 0; object < heap.slots(); ++object) {
    log.begin(memory);
    const Address at = heap.allocate(memory, log);
    heap.commit(memory, log);
    EXPECT_EQ(at % memory::kLineBytes, 0U);
    ASSERT_GE(at - HeapLayout::kHeaderBytes, behind);
    behind = at + heap.usable_bytes();
  }
  EXPECT_LE(behind, place.base + place.bytes);
  // Bits of an object lie in one word, so up to object_units - 1 of 64 are lost; so are bitmap and gap.
  const std::uint64_t units = (bytes + HeapLayout::kHeaderBytes + 255) / 256;
  EXPECT_GE(heap.slots(), (place.bytes / kRun - 1) * (kRun / 256 / 64 - 1) * (64 / units));
  log.begin(memory);
  EXPECT_THROW(static_cast<void>(heap.allocate(memory, log)), HeapFull);
  heap.abort(memory, log);
  EXPECT_EQ(Heap::place_bytes(heap.slots(), bytes, kRun),
            memory::kLineBytes + place.bytes / kRun * kRun - kRun);
}
INSTANTIATE_TEST_SUITE_P(Sizes, HeapTest, ::testing::Values(1, 240, 241, 496, 512, 1000, 4096, 16368));

TEST_F(HeapTest, RandomTransactionsAreAsAModelAndReopeningFindsTheSame) {
  Heap heap = heap_of(512, 8192);
  Random random(11);
  std::set<Address> model;
  for (int round = 0; round < 2000; ++round) {
    std::set<Address> changed = model;
    log.begin(memory);
    for (std::uint64_t left = 1 + random.below(6); left > 0; --left) {
      if (changed.empty() || (random.below(2) == 0 && changed.size() + 8 < heap.slots())) {
        const Address object = heap.allocate(memory, log);
        ASSERT_TRUE(changed.insert(object).second);
        // What this transaction frees is not used again before it commits.
        ASSERT_FALSE(model.contains(object));
      } else {
        auto object = changed.begin();
        std::advance(object, random.below(changed.size()));
        heap.free(memory, log, *object);
        changed.erase(object);
      }
    }
    if (random.below(3) != 0) {
      heap.commit(memory, log);
      model = changed;
    } else {
      heap.abort(memory, log);
    }
    ASSERT_EQ(objects(memory, heap), model);
    if (round % 50 == 0) {
      heap = Heap::open(memory, place, 512, 8192).value();
      ASSERT_EQ(objects(memory, heap), model);
    }
  }
}

TEST_F(HeapTest, MoreObjectsThanTheRedoLogHasWordsAreRefusedBeforeAnythingIsWritten) {
  Heap heap = heap_of(HeapLayout::kUnitBytes * 64 - HeapLayout::kHeaderBytes);  // a word for each object
  log.begin(memory);
  for (std::uint64_t object = 0; object + 1 < RedoLog::kMostEntries; ++object)
    static_cast<void>(heap.allocate(memory, log));
  EXPECT_THROW(static_cast<void>(heap.allocate(memory, log)), UndoLogFull);
  heap.commit(memory, log);
  EXPECT_EQ(objects(memory, heap).size(), RedoLog::kMostEntries - 1);
}

TEST_F(HeapTest, WhatIsNotAllocatedCannotBeFreed) {
  Heap heap = heap_of(512);
  log.begin(memory);
  const Address object = heap.allocate(memory, log);
  heap.commit(memory, log);
  log.begin(memory);
  EXPECT_THROW(heap.free(memory, log, object + 64), ConfigError);
  heap.free(memory, log, object);
  EXPECT_THROW(heap.free(memory, log, object), ConfigError);
  heap.commit(memory, log);
  log.begin(memory);
  EXPECT_THROW(heap.free(memory, log, object), ConfigError);
}

TEST_F(HeapTest, ATransactionThatEndsWithoutItsHeapIsNoticed) {
  Heap heap = heap_of(512);
  log.begin(memory);
  static_cast<void>(heap.allocate(memory, log));
  log.commit(memory);
  log.begin(memory);
  EXPECT_THROW(static_cast<void>(heap.allocate(memory, log)), SimulationError);
}

// Two crashes: the second one brings the words that a first entry lacks. Meanwhile transactions without a
// snapshot, which leave the generation as it is, have given the entry's target to somebody else.
TEST_F(HeapTest, ATornSnapshotDoesNotComeBackOverANewObject) {
  const Place one_run{place.base, memory::kLineBytes + 2048};
  Heap heap = Heap::create(memory, one_run, 240, 2048);
  log.begin(memory);
  std::vector<Address> objects;
  while (objects.size() < heap.slots())
    objects.push_back(heap.allocate(memory, log));
  for (const Address object : objects)
    memory.store<std::uint64_t>(object, 1);
  heap.commit(memory, log);

  // Calls visit(memory after the crash) for each crash while `object` is snapshotted.
  const auto crash_in_snapshot = [](SimMemory& before, UndoLog& own, Address object, const auto& visit) {
    own.begin(before);
    before.on_persistence_step([&] {
      const auto legal = before.durability().enumerate(1 << 10).value();
      for (const memory::DurableImage& image : legal) {
        SimMemory after = before.crash(image);
        visit(after);
      }
    });
    own.add_range(before, object, sizeof(std::uint64_t));
    before.on_persistence_step({});
  };
  std::size_t crashes = 0;
  crash_in_snapshot(memory, log, objects.front(), [&](SimMemory& again) {
    UndoLog resumed = UndoLog::open(again, log_place).value();
    resumed.recover(again);
    Heap rest = Heap::open(again, one_run, 240, 2048).value();
    resumed.begin(again);
    rest.free(again, resumed, objects.front());
    rest.commit(again, resumed);
    resumed.begin(again);
    ASSERT_EQ(rest.allocate(again, resumed), objects.front());
    again.store<std::uint64_t>(objects.front(), 2);
    rest.commit(again, resumed);
    crash_in_snapshot(again, resumed, objects.back(), [&](SimMemory& last) {
      UndoLog::open(last, log_place).value().recover(last);
      EXPECT_EQ(last.load<std::uint64_t>(objects.front()), 2U);
      ++crashes;
    });
  });
  EXPECT_GT(crashes, 200U);  // subsets of target, checksum, size and data, twice, but for those that are whole
}

TEST_F(HeapTest, AnotherHeapIsRefused) {
  EXPECT_FALSE(Heap::open(memory, place, 512).has_value());
  static_cast<void>(heap_of(512));
  EXPECT_THROW(static_cast<void>(Heap::open(memory, place, 1024)), ConfigError);
  EXPECT_THROW(static_cast<void>(Heap::create(memory, place, 0)), ConfigError);
  EXPECT_THROW(static_cast<void>(Heap::create(memory, place, 1 << 20)), ConfigError);
}

}  // namespace
}  // namespace pmsim::blocks::undo
