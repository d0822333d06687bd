#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "machine_turns.hpp"
#include "pmsim/machine/time_ledger.hpp"

/// Where the front end's time goes, on a machine whose times are round numbers of their own.
namespace pmsim::machine {
namespace {

memory::MicroOp block_read(std::uint32_t bytes) {
  return {kBlockBase, bytes, memory::OpKind::kBlockRead, 0, 0};
}

constexpr Picoseconds kEnd = 1;  ///< instructions of the fence at the end of each program

/// Of operations in a row, all of which have ended.
Counters spent(const PlatformParams& params, Script::Ops ops) {
  ops.push_back(sfence());
  ops.push_back(begin());
  const LaneResult result = run(params, ops);
  EXPECT_EQ(TimeLedger::total(result.counters), result.elapsed) << "every picosecond has one cause";
  return result.counters;
}

TEST(TimeLedger, WhatIsChargedBeyondATimeIsTakenBack) {
  for (const int charges : {3, 15, 100}) {
    Counters counters;
    TimeLedger ledger(counters);
    ledger.charge(Cause::kCore, 10);
    for (int number = 1; number <= charges; ++number)
      ledger.charge(number % 2 == 0 ? Cause::kPmem : Cause::kStore, 10 + 2 * number);
    for (const Picoseconds time : {10, 11, 10 + charges, 10 + 2 * charges, 1'000}) {
      Counters then = counters;
      ledger.take_back(time, then);
      EXPECT_EQ(TimeLedger::total(then), std::min<Picoseconds>(time, ledger.charged()));
      if (charges < 16 || time > 10 + charges) {
        EXPECT_EQ(then.time_core_ps, 10);
        EXPECT_LE(std::abs(then.time_store_ps - then.time_pmem_ps), 2);
      }
    }
  }
}

TEST(TimeLedger, InstructionsAreTheCores) {
  const Counters counters = spent(plain_machine(), {work(1000)});
  EXPECT_EQ(counters.time_core_ps, (1000 + kEnd) * kNs);
}

TEST(TimeLedger, LoadsAreChargedToWhatServesThem) {
  const PlatformParams params = plain_machine();
  const Picoseconds dram = params.core.shared_read_latency + params.dram.row_hit_latency;
  const Picoseconds pmem =
      params.core.shared_read_latency + params.pmem.buffer_latency + params.pmem.media_read_latency;
  const Counters first = spent(params, {load(kPmemBase)});
  EXPECT_GE(first.time_pmem_ps, pmem - kNs);
  EXPECT_EQ(first.time_dram_ps, 0);
  const Counters second = spent(params, {load(kDramBase)});
  EXPECT_GE(second.time_dram_ps, dram - kNs);
  EXPECT_EQ(second.time_pmem_ps, 0);
  // A line that L1 has lost is served by L2: 9 lines of the same of 8 ways.
  Script::Ops ops;
  for (std::uint64_t way = 0; way <= 8; ++way)
    ops.push_back(load(kDramBase + way * params.l1.size / params.l1.ways));
  ops.push_back(begin());
  const Counters before = spent(params, ops);
  ops.push_back(load(kDramBase));
  // All but what passes while the front end goes on: the load itself and the fence.
  EXPECT_EQ(spent(params, ops).time_l2_ps - before.time_l2_ps, params.l2.latency - (1 + kEnd) * kNs);
}

// What two loads do at the same time is charged once, to the older one; what the younger one takes longer is
// its own.
TEST(TimeLedger, OverlappingLoadsShareTheirTime) {
  PlatformParams params = plain_machine();
  params.dram.banks = 1024;  // of the page table and of the data do not close each other's rows
  const Counters alone = spent(params, {load(kPmemBase)});
  const Counters both = spent(params, {load(kPmemBase), load(kDramBase)});
  EXPECT_NEAR(static_cast<double>(both.time_pmem_ps), static_cast<double>(alone.time_pmem_ps), 10 * kNs);
  EXPECT_EQ(both.time_dram_ps, 0);
  const Counters reverse = spent(params, {load(kDramBase), load(kPmemBase)});
  EXPECT_GT(reverse.time_dram_ps, 0);
  EXPECT_LT(reverse.time_pmem_ps, alone.time_pmem_ps);
}

// A branch that waits for the second of two loads waits for the first, too.
TEST(TimeLedger, ABranchStandsForTheLoadsThatDecideIt) {
  PlatformParams params = plain_machine();
  params.core.mispredict_latency = 6 * kNs;
  const Counters counters =
      spent(params, {load(kPmemBase), dependent_load(kDramBase), mispredicted_branch(), work(10)});
  EXPECT_EQ(counters.time_branch_ps, 6 * kNs);
  EXPECT_GT(counters.time_pmem_ps, params.pmem.media_read_latency);
  EXPECT_GT(counters.time_dram_ps, params.dram.row_hit_latency);
}

TEST(TimeLedger, AWalkIsApartFromTheLoadBehindIt) {
  PlatformParams params = plain_machine();
  const Counters counters = spent(params, {load(kDramBase)});
  EXPECT_GE(counters.time_walk_ps, params.tlb.walk_latency);
}

TEST(TimeLedger, PersistsAreThatOfFencesAndOfWhatTheyWaitFor) {
  const PlatformParams params = plain_machine();
  const Counters streamed = spent(params, {load(kPmemBase), begin(), stream_store(kPmemBase + 4096), sfence()});
  EXPECT_GE(streamed.time_persist_ps, params.core.shared_write_latency - 5 * kNs);
  EXPECT_EQ(streamed.time_store_ps, 0);
  const Counters blocking = spent(params, {load(kPmemBase), begin(), stream_store(kPmemBase + 4096), mfence()});
  EXPECT_GE(blocking.time_persist_ps, params.core.shared_write_latency - 5 * kNs);
  // A load before an mfence that waits for it is no persist.
  const Counters waiting = spent(params, {load(kPmemBase), mfence()});
  EXPECT_GT(waiting.time_pmem_ps, params.pmem.media_read_latency);
  EXPECT_LE(waiting.time_persist_ps, params.core.fence_latency);
}

TEST(TimeLedger, AFullStoreQueueIsChargedToItsOldest) {
  PlatformParams params = plain_machine();
  params.core.store_buffer = 2;
  Script::Ops stores;
  Script::Ops streams;
  for (std::uint64_t at = 0; at < 64; ++at) {
    stores.push_back(store(kPmemBase + at * 4096));
    streams.push_back(stream_store(kPmemBase + at * 4096));
  }
  const Counters stored = spent(params, stores);
  EXPECT_GT(stored.time_store_ps, 9 * stored.time_persist_ps);
  const Counters streamed = spent(params, streams);
  EXPECT_GT(streamed.time_persist_ps, 0);
  EXPECT_EQ(streamed.time_store_ps, 0);
}

TEST(TimeLedger, TheBlockDeviceKeepsItsThread) {
  PlatformParams params = plain_machine();
  params.block.read_latency = 80'000 * kNs;
  EXPECT_GE(spent(params, {block_read(4096)}).time_device_ps, params.block.read_latency);
}

// A locked instruction first waits for what is on its way, then for its line.
TEST(TimeLedger, ALockedInstructionIsApartFromWhatItWaitsFor) {
  const PlatformParams params = two_caches();
  const Counters alone = spent(params, {load(kDramBase), begin(), atomic(kDramBase)});
  EXPECT_GE(alone.time_latch_ps, params.core.atomic_latency);
  EXPECT_LT(alone.time_latch_ps, 2 * params.core.atomic_latency);
  EXPECT_EQ(alone.time_persist_ps, 0);
  const Counters behind = spent(
      params, {load(kDramBase), load(kPmemBase), begin(), stream_store(kPmemBase + 4096), atomic(kDramBase)});
  EXPECT_NEAR(static_cast<double>(behind.time_latch_ps), static_cast<double>(alone.time_latch_ps), kNs);
  EXPECT_GT(behind.time_persist_ps, params.core.shared_write_latency / 2);
}

TEST(TimeLedger, WhoWaitsForALatchSpendsItsTimeThere) {
  const PlatformParams params = two_caches();
  const Script::Ops critical{acquire(kDramBase, kWrites), work(1000), release(kDramBase, kWrites)};
  const Counters counters = Turns({{critical}, {critical}}).run(params).counters;
  EXPECT_GE(counters.time_latch_ps, counters.latch_wait_ps);
  EXPECT_GE(counters.time_core_ps, 2 * 1000 * kNs);
  EXPECT_LE(counters.time_core_ps, (2 * 1000 + 20) * kNs);
}

}  // namespace
}  // namespace pmsim::machine
