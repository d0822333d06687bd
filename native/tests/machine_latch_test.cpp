#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "machine_turns.hpp"

namespace pmsim::machine {
namespace {

TEST(Latch, WritersExcludeEachOther) {
  const PlatformParams params = two_caches();
  const Script::Ops critical{acquire(kDramBase, kWrites), work(1000), release(kDramBase, kWrites)};
  const auto one = Turns({{critical}}).run(params);
  const auto four = Turns({{critical}, {critical}, {critical}, {critical}}).run(params);
  const Picoseconds section = 1000 * kSecond / params.core.frequency;
  EXPECT_EQ(one.counters.latch_waits, 0);
  EXPECT_EQ(four.counters.latches, 4);
  EXPECT_EQ(four.counters.latch_waits, 3);
  EXPECT_GE(four.elapsed, 4 * section);
  EXPECT_LE(four.elapsed, one.elapsed + 3 * (section + 5 * kTransfer));
  EXPECT_GE(four.counters.latch_wait_ps, (1 + 2 + 3) * section);
}

TEST(Latch, ReadersDoNot) {
  const PlatformParams params = two_caches();
  const Script::Ops reads{acquire(kDramBase, kReads), work(1000), release(kDramBase, kReads)};
  const auto four = Turns({{reads}, {reads}, {reads}, {reads}}).run(params);
  EXPECT_EQ(four.counters.latch_waits, 0);
  EXPECT_LE(four.elapsed, 1000 * kSecond / params.core.frequency + 20 * kTransfer);
}

TEST(Latch, AReaderBehindAWriterWaitsForIt) {
  const PlatformParams params = two_caches();
  const auto wait = [](std::uint64_t cycles) { return Script::Ops{load(kDramBase + 4096), work(cycles)}; };
  // Thread 0 reads until 2000; 1 wants to write from 500 on; 2 wants to read from 1000 on, and must not pass
  // it.
  const auto result =
      Turns({{{acquire(kDramBase, kReads), work(2000), release(kDramBase, kReads)}},
             {wait(500), {acquire(kDramBase, kWrites), work(1000), release(kDramBase, kWrites)}},
             {wait(1000), {begin(), acquire(kDramBase, kReads), release(kDramBase, kReads), end(), begin()}}})
          .run(params);
  EXPECT_EQ(result.counters.latch_waits, 2);
  EXPECT_GE(result.groups[0].latency.maximum(), 1900 * kSecond / params.core.frequency);
}

TEST(Latch, IsGivenUpWhenTheStoresBeforeHaveCommitted) {
  const PlatformParams params = two_caches();
  // The store misses: 300 ns on PMem. The front end has long gone on.
  const Script::Ops writer{acquire(kDramBase, kWrites), store(kPmemBase + (1 << 20)),
                           release(kDramBase, kWrites)};
  const auto result =
      Turns({{writer},
             {{load(kDramBase + 4096), work(100)},
              {begin(), acquire(kDramBase, kWrites), release(kDramBase, kWrites), end(), begin()}}})
          .run(params);
  EXPECT_EQ(result.counters.latch_waits, 1);
  EXPECT_GE(result.counters.latch_wait_ps, 100 * kNs);
}

TEST(Latch, OptimisticReadersWriteNothing) {
  const PlatformParams params = two_caches();
  const Script::Ops reads{acquire(kDramBase, kLooks), load(kDramBase + 4096), release(kDramBase, kLooks)};
  std::vector<std::deque<Script::Ops>> threads(4);
  for (auto& thread : threads)
    thread.assign(100, reads);
  const auto result = Turns(std::move(threads)).run(params);
  EXPECT_EQ(result.counters.atomics, 0);
  EXPECT_LE(result.counters.core_transfers, 2);  // the first time
  EXPECT_EQ(result.counters.latch_restarts, 0);
}

TEST(Latch, OptimisticReadersReadAgainWhereAWriterHasBeen) {
  const PlatformParams params = two_caches();
  const Picoseconds cycle = kSecond / params.core.frequency;
  const auto reads_in_turn = [&](std::uint64_t writer_at) {
    return Turns({{{load(kDramBase + 8192), work(writer_at)},
                   {acquire(kDramBase, kWrites), work(300), release(kDramBase, kWrites)}},
                  {{load(kDramBase + 4096), work(1000)},
                   {begin(), acquire(kDramBase, kLooks), work(1000), release(kDramBase, kLooks), end(),
                    begin()}}})
        .run(params);
  };
  const auto before = reads_in_turn(100);
  EXPECT_EQ(before.counters.latch_restarts + before.counters.latch_waits, 0);
  const auto amid = reads_in_turn(1300);
  EXPECT_EQ(amid.counters.latch_restarts, 1);
  EXPECT_EQ(amid.counters.latch_waits, 0);
  EXPECT_GE(amid.groups[0].latency.maximum(), 2000 * cycle);
  const auto held = reads_in_turn(900);  // when the reader comes
  EXPECT_EQ(held.counters.latch_waits, 1);
  EXPECT_EQ(held.counters.latch_restarts, 0);
  EXPECT_GE(held.groups[0].latency.maximum(), 1100 * cycle);
  EXPECT_LE(held.groups[0].latency.maximum(), 1700 * cycle);
  const auto after = reads_in_turn(2500);
  EXPECT_EQ(after.counters.latch_restarts + after.counters.latch_waits, 0);
}

TEST(Latch, OptimisticReadersReadAgainAsOftenAsWritersCome) {
  const PlatformParams params = two_caches();
  const Picoseconds cycle = kSecond / params.core.frequency;
  const Script::Ops write{acquire(kDramBase, kWrites), work(100), release(kDramBase, kWrites)};
  const auto reads_among = [&](std::deque<Script::Ops> writer) {
    return Turns({std::move(writer),
                  {{load(kDramBase + 4096), work(1000)},
                   {begin(), acquire(kDramBase, kLooks), work(1000), release(kDramBase, kLooks), end(),
                    begin()}}})
        .run(params);
  };
  const Script::Ops first{load(kDramBase + 8192), work(1300)};
  // One in each of the first two readings, none in the third.
  const auto twice = reads_among({first, write, {work(900)}, write});
  EXPECT_EQ(twice.counters.latch_restarts, 2);
  EXPECT_EQ(twice.counters.latch_waits, 0);
  EXPECT_GE(twice.groups[0].latency.maximum(), 3000 * cycle);
  EXPECT_LE(twice.groups[0].latency.maximum(), 3000 * cycle + 20 * kTransfer);
  // At the end of the first reading there is one who stays: it begins again when that one has gone.
  const auto held =
      reads_among({first, {acquire(kDramBase, kWrites), work(1500), release(kDramBase, kWrites)}});
  EXPECT_EQ(held.counters.latch_restarts, 1);
  EXPECT_EQ(held.counters.latch_waits, 1);
  EXPECT_GE(held.groups[0].latency.maximum(), (300 + 1500 + 1000) * cycle);
  EXPECT_LE(held.groups[0].latency.maximum(), (300 + 1500 + 1000) * cycle + 20 * kTransfer);
}

// The writer's operations have been executed one behind the other, on a line that nobody takes away. In time
// the reader takes a copy whenever it begins again, for which the writer has to come back.
TEST(Latch, AReaderThatBeginsAgainTakesTheWordFromItsWriter) {
  const PlatformParams params = two_caches();
  Script::Ops writes;
  for (int write = 0; write < 200; ++write) {
    for (const memory::MicroOp& op : {acquire(kDramBase, kWrites), work(100), release(kDramBase, kWrites)})
      writes.push_back(op);
  }
  const auto alone = Turns({{writes}, {{load(kDramBase + 4096)}}}).run(params);
  const auto read = Turns({{writes},
                           {{load(kDramBase + 4096), work(2000)},
                            {acquire(kDramBase, kLooks), work(1000), release(kDramBase, kLooks)}}})
                        .run(params);
  const std::int64_t restarts = read.counters.latch_restarts;
  EXPECT_GE(restarts, 5);
  EXPECT_GE(read.elapsed, alone.elapsed + restarts * kTransfer);
}

TEST(LineTransfers, TheFirstWhoLooksAgainFetchesTheLineAndItsOwnerTakesItBack) {
  constexpr std::uint64_t kLine = 7;
  constexpr Picoseconds kLastLevel = 20 * kNs, kAt = 1000 * kNs;
  LineTransfers transfers(kTransfer);
  EXPECT_FALSE(transfers.take(kLine));
  EXPECT_EQ(transfers.look_again(kLine, kAt, kLastLevel), kAt + kTransfer);
  EXPECT_EQ(transfers.look_again(kLine, kAt, kLastLevel), kAt + kTransfer) << "that is when there is a copy";
  EXPECT_EQ(transfers.look_again(kLine, 2 * kAt, kLastLevel), 2 * kAt + kLastLevel);
  EXPECT_TRUE(transfers.take(kLine));
  EXPECT_FALSE(transfers.take(kLine)) << "it has it for itself now";
  EXPECT_EQ(transfers.look_again(kLine, 3 * kAt, kLastLevel), 3 * kAt + kTransfer);
}

TEST(Latch, NobodyWaitsBecauseOfAnAttemptButReadersReadAgain) {
  const PlatformParams params = two_caches();
  const auto among = [&](LatchMode others, std::uint64_t tried_at) {
    return Turns({{{load(kDramBase + 8192), work(tried_at)},
                   {acquire(kDramBase, kTries), work(300), release(kDramBase, kTries)}},
                  {{load(kDramBase + 4096), work(1000)},
                   {acquire(kDramBase, others), work(1000), release(kDramBase, others)}}})
        .run(params);
  };
  for (const LatchMode others : {kWrites, kReads, kLooks}) {
    for (const std::uint64_t tried_at : {900U, 1300U}) {  // it comes before them, and after
      const auto result = among(others, tried_at);
      EXPECT_EQ(result.counters.latch_waits, 0);
      EXPECT_EQ(result.counters.latch_restarts, others == kLooks ? 1 : 0);
    }
  }
}

TEST(Latch, AnAttemptOfWhatAnotherHasWrittenMeanwhileReadsAgainFirst) {
  const PlatformParams params = two_caches();
  const Picoseconds cycle = kSecond / params.core.frequency;
  const auto upgrades = [&](std::uint64_t written_at) {
    return Turns({{{load(kDramBase + 8192), work(written_at)},
                   {acquire(kDramBase, kWrites), work(100), release(kDramBase, kWrites)}},
                  {{load(kDramBase + 4096), work(1000)},
                   {begin(), acquire(kDramBase, kLooks), work(1000), acquire(kDramBase, kTries), work(1000),
                    release(kDramBase, kTries), release(kDramBase, kLooks), end(), begin()}}})
        .run(params);
  };
  const auto before = upgrades(1300);
  EXPECT_EQ(before.counters.latch_restarts, 1);
  EXPECT_GE(before.groups[0].latency.maximum(), 3000 * cycle);
  EXPECT_LE(before.groups[0].latency.maximum(), 3000 * cycle + 20 * kTransfer);
  EXPECT_EQ(upgrades(5000).counters.latch_restarts, 0);
}

// Each has waited for the leaf, and finds then that the parent has changed. What it reads again, with the leaf
// in hand, is the parent, and not its wait: otherwise each would keep the next one waiting for twice as long.
TEST(Latch, AWaitIsNotRepeatedBecauseOfWhatWasReadBefore) {
  const PlatformParams params = two_caches();
  const std::uint64_t parent = kDramBase, leaf = kDramBase + 64;
  const Script::Ops descends{acquire(parent, kLooks), work(100),  acquire(leaf, kWrites),
                             release(parent, kLooks), work(1000), release(leaf, kWrites)};
  std::vector<std::deque<Script::Ops>> threads(3);
  for (auto& thread : threads)
    thread.assign(20, descends);
  std::deque<Script::Ops> changes(200, {work(400), acquire(parent, kTries), release(parent, kTries)});
  threads.push_back(std::move(changes));
  const auto result = Turns(std::move(threads)).run(params);
  EXPECT_GT(result.counters.latch_restarts, 20) << "the parent has changed";
  EXPECT_LE(result.elapsed, 60 * 1600 * kSecond / params.core.frequency);
}

TEST(Latch, WhatADeviceHasBroughtIsNotBroughtAgain) {
  PlatformParams params = two_caches();
  params.block.read_latency = 100'000 * kNs;
  params.block.read_bandwidth = params.block.copy_bandwidth = 1'000'000'000;
  const memory::MicroOp bring{kBlockBase, 512, memory::OpKind::kBlockRead, 0, 0};
  const auto longest = [&](std::deque<Script::Ops> writer) {
    const auto result = Turns({std::move(writer),
                               {{begin(), acquire(kDramBase, kLooks), work(1000), bring,
                                 release(kDramBase, kLooks), end(), begin()}}})
                            .run(params);
    return std::pair(result.groups[0].latency.maximum(), result.counters.latch_restarts);
  };
  const auto [alone, none] = longest({{work(1)}});
  EXPECT_GE(alone, 100'000 * kNs);
  EXPECT_LT(alone, 200'000 * kNs);  // one, not two
  EXPECT_EQ(none, 0);
  const auto [again, once] = longest({{load(kDramBase + 8192), work(20'000)},
                                      {acquire(kDramBase, kWrites), work(100), release(kDramBase, kWrites)}});
  EXPECT_EQ(once, 1);
  const Picoseconds cycle = kSecond / params.core.frequency;
  EXPECT_GE(again, alone + 1000 * cycle);
  EXPECT_LE(again, alone + 1000 * cycle + 20 * kTransfer);
}

// One has the leaf when it finds that a split has latched the parent, which waits for the leaf.
TEST(Latch, WhoHasALeafInHandDoesNotWaitForItsParent) {
  const std::uint64_t parent = kDramBase, leaf = kDramBase + 64;
  const auto result = Turns({{{acquire(leaf, kWrites), work(3000), release(leaf, kWrites)}},
                             {{load(kDramBase + 4096), work(500)},
                              {acquire(parent, kLooks), work(100), acquire(leaf, kWrites),
                               release(parent, kLooks), work(100), release(leaf, kWrites)}},
                             {{load(kDramBase + 8192), work(1500)},
                              {acquire(parent, kWrites), work(100), acquire(leaf, kWrites), work(100),
                               release(leaf, kWrites), release(parent, kWrites)}}})
                          .run(two_caches());
  EXPECT_EQ(result.counters.latch_restarts, 1);
  EXPECT_EQ(result.counters.latch_waits, 2);
}

TEST(Latch, AnAttemptOfItsOwnTellsAReaderNothing) {
  const auto result = Turns({{{acquire(kDramBase, kLooks), acquire(kDramBase, kTries), store(kDramBase + 4096),
                               release(kDramBase, kTries), work(1000), release(kDramBase, kLooks)}},
                             {{load(kDramBase + 8192)}}})
                          .run(two_caches());
  EXPECT_EQ(result.counters.latches, 2);
  EXPECT_EQ(result.counters.latch_restarts, 0);
}

// Its release commits when the store before it has its line, from memory. Loads do not wait for that, and see
// the word as the thread has left it.
TEST(Latch, NoReaderWaitsForItsOwnRelease) {
  const auto result =
      Turns({{{acquire(kDramBase, kWrites), store(kPmemBase + (1 << 20)), release(kDramBase, kWrites),
               acquire(kDramBase, kLooks), load(kDramBase + 4096), release(kDramBase, kLooks)}},
             {{load(kDramBase + 8192)}}})
          .run(two_caches());
  EXPECT_EQ(result.counters.latches, 2);
  EXPECT_EQ(result.counters.latch_waits, 0);
  EXPECT_EQ(result.counters.latch_restarts, 0);
}

TEST(LatchTable, AWriterExcludesAllOptimisticReadersButItself) {
  constexpr std::uint64_t kLine = 7;
  LatchTable latches(3);
  ASSERT_TRUE(latches.acquire(kLine, kWrites, 1));
  EXPECT_TRUE(latches.acquire(kLine, kLooks, 1));
  EXPECT_FALSE(latches.is_written(kLine, 0, 1));
  EXPECT_TRUE(latches.is_written(kLine, 0, 0));
  EXPECT_FALSE(latches.acquire(kLine, kLooks, 0));
  EXPECT_FALSE(latches.acquire(kLine, kWrites, 2));
  latches.release(kLine, kWrites, 100, 1);
  EXPECT_TRUE(latches.is_written(kLine, 500, 0)) << "2 has waited for it, and has it now";
  EXPECT_FALSE(latches.is_written(kLine, 500, 2));
}

TEST(LatchTable, AReleaseTellsItsOwnThreadNothing) {
  constexpr std::uint64_t kLine = 7;
  LatchTable latches(2);
  ASSERT_TRUE(latches.acquire(kLine, kWrites, 1));
  latches.release(kLine, kWrites, 100, 1);
  EXPECT_FALSE(latches.is_written(kLine, 50, 1));
  EXPECT_TRUE(latches.is_written(kLine, 50, 0));
  ASSERT_TRUE(latches.acquire(kLine, kReads, 0));
  ASSERT_TRUE(latches.acquire(kLine, kReads, 1));
  EXPECT_TRUE(latches.acquire(kLine, kLooks, 0)) << "readers exclude nobody who only reads";
}

// They only look at the word: one fetches it from the writer's core, and the last level has a copy then.
TEST(Latch, OptimisticReadersBehindAWriterDoNotWaitForEachOther) {
  PlatformParams params = two_caches();
  params.dram.banks = 1024;  // nor do the rows that they begin with close each other
  const auto elapsed = [&](std::size_t readers) {
    std::vector<std::deque<Script::Ops>> threads{
        {{acquire(kDramBase, kWrites), work(2000), release(kDramBase, kWrites)}}};
    for (std::size_t reader = 0; reader < readers; ++reader)
      threads.push_back({{load(kDramBase + 4096 * (1 + reader)), work(1000)},
                         {acquire(kDramBase, kLooks), release(kDramBase, kLooks)}});
    const auto result = Turns(std::move(threads)).run(params);
    EXPECT_EQ(result.counters.latch_waits, static_cast<std::int64_t>(readers));
    return result.elapsed;
  };
  EXPECT_EQ(elapsed(3), elapsed(2));
  EXPECT_LE(elapsed(2), elapsed(1) + params.llc.latency);
}

TEST(Latch, LanesWaitEachInItsOwnTime) {
  const PlatformParams fast = two_caches();
  PlatformParams slow = fast;
  slow.llc.transfer_latency *= 10;
  std::vector<std::deque<Script::Ops>> threads(4);
  for (auto& thread : threads)
    thread.assign(50, {acquire(kDramBase, kWrites), work(20), release(kDramBase, kWrites)});
  Turns both(threads);
  SimulateOptions options;
  options.length.measured_operations = std::int64_t{1} << 40;
  const std::vector<PlatformParams> platforms{fast, slow};
  const auto lanes = simulate(both, 4, platforms, options);
  EXPECT_EQ(lanes[0].elapsed, Turns(threads).run(fast).elapsed);
  EXPECT_GT(lanes[1].elapsed, 4 * lanes[0].elapsed);
}

}  // namespace
}  // namespace pmsim::machine
