#include <gtest/gtest.h>

#include <algorithm>

#include "machine_harness.hpp"
#include "pmsim/core/error.hpp"

namespace pmsim::machine {
namespace {

using Ops = Script::Ops;

TEST(Fence, WaitsUntilTheFlushHasBeenAccepted) {
  PlatformParams params = plain_machine();
  params.core.fence_latency = 9 * kNs;
  // The store commits in its cycle, the flush leaves after it; the fence waits for its acknowledgement.
  const Ops persist = {store(kPmemBase), clwb(kPmemBase), sfence()};
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, persist),
            params.l1.latency + kInstruction + params.core.shared_write_latency + params.core.fence_latency);
}

/// Emulated memory delays writes as it delays reads; what the queue itself does stays as it is.
TEST(Fence, WaitsForTheWriteLatencyOfTheSecondTierAlone) {
  PlatformParams params = plain_machine();
  const Ops persist = {store(kPmemBase), clwb(kPmemBase), sfence()};
  const Ops in_dram = {store(kDramBase), clwb(kDramBase), sfence()};
  const Ops before = {load(kPmemBase), load(kDramBase)};
  const Picoseconds pmem = time_of(params, before, persist);
  const Picoseconds dram = time_of(params, before, in_dram);
  params.pmem.write_latency = 415 * kNs;
  EXPECT_EQ(time_of(params, before, persist), pmem + 415 * kNs);
  EXPECT_EQ(time_of(params, before, in_dram), dram);
}

/// Lines that have waited for a place in the queue are acknowledged as late as those that found one. Their
/// latencies overlap.
TEST(Fence, WaitsOnceForTheWriteLatencyOfLinesThatWaited) {
  PlatformParams params = plain_machine();
  params.controller.pmem_write_queue = 1;
  Ops streams;
  for (std::uint64_t line = 0; line < 8; ++line) {
    streams.push_back(stream_store(kPmemBase + line * 64));
  }
  streams.push_back(sfence());
  const Picoseconds before = time_of(params, {}, streams);
  params.pmem.write_latency = 415 * kNs;
  EXPECT_EQ(time_of(params, {}, streams), before + 415 * kNs);
}

TEST(Fence, WaitsForAStreamingStore) {
  PlatformParams params = plain_machine();
  params.core.fence_latency = 9 * kNs;
  params.core.stream_delay = 4 * kNs;
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, {stream_store(kPmemBase + 64), sfence()}),
            params.core.stream_delay + params.core.shared_write_latency + params.core.fence_latency);
}

/// On some processors a persist takes longer by a flush than by a streaming store; its fill buffer is free as
/// early.
TEST(Fence, HearsOfAFlushLater) {
  PlatformParams params = plain_machine();
  const auto gain = [&](const Ops& ops) {
    params.core.flush_delay = 70 * kNs;
    const Picoseconds late = time_of(params, {load(kPmemBase)}, ops);
    params.core.flush_delay = 0;
    return late - time_of(params, {load(kPmemBase)}, ops);
  };
  EXPECT_EQ(gain({store(kPmemBase), clwb(kPmemBase), sfence()}), 70 * kNs);
  EXPECT_EQ(gain({stream_store(kPmemBase + 64), sfence()}), 0);
  // Several overlap; with one place in the queue, too, where they wait for each other.
  for (const std::int64_t places : {64, 1}) {
    params.controller.pmem_write_queue = places;
    Ops flushes;
    for (std::uint64_t line = 0; line < 8; ++line) {
      flushes.push_back(store(kPmemBase + line * 64));
      flushes.push_back(clwb(kPmemBase + line * 64));
    }
    flushes.push_back(sfence());
    EXPECT_EQ(gain(flushes), 70 * kNs);
  }
}

/// A line that the core has cached leaves its caches, as by a flush, and not through a write-combining buffer.
TEST(StreamStore, OfACachedLineLeavesLikeAFlush) {
  PlatformParams params = plain_machine();
  params.core.stream_delay = 4 * kNs;
  params.core.stream_hold = 500 * kNs;
  const Ops before = {load(kPmemBase), load(kPmemBase + 64)};
  const Ops two = {stream_store(kPmemBase), sfence(), stream_store(kPmemBase + 64), sfence()};
  EXPECT_EQ(time_of(params, before, {stream_store(kPmemBase), sfence()}), params.core.shared_write_latency);
  EXPECT_EQ(time_of(params, before, two), 2 * params.core.shared_write_latency);
  // The second one finds no copy: the first has removed it.
  const Ops again = {stream_store(kPmemBase), sfence(), stream_store(kPmemBase), sfence()};
  EXPECT_EQ(time_of(params, before, again), 2 * params.core.shared_write_latency + params.core.stream_delay);
}

TEST(Fence, OfACleanLineHasNothingToWaitFor) {
  const PlatformParams params = plain_machine();
  const Picoseconds clean = time_of(params, {load(kPmemBase)}, {clwb(kPmemBase), sfence()});
  EXPECT_LT(clean, params.core.shared_write_latency / 2);
}

/// The lines of the second and the third persist are fetched while the first fence waits; that of the fourth is
/// not asked for, since its store is behind three fences that have not completed. Whoever has to walk for its
/// page waits behind two.
TEST(Fence, BehindTwoOthersKeepsStoresFromAskingForTheirLines) {
  PlatformParams params = plain_machine();
  const auto persists = [](int count, std::uint64_t stride) {
    Ops ops;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t line = kDramBase + static_cast<std::uint64_t>(i) * stride;
      ops.insert(ops.end(), {store(line), clwb(line), sfence()});
    }
    return ops;
  };
  const auto time = [&](int count, std::uint64_t stride) {
    return time_of(params, {load(kDramBase + (1 << 20))}, persists(count, stride));
  };
  params.core.shared_read_latency = 1000 * kNs;
  const Picoseconds fetch = params.core.shared_read_latency + params.dram.row_hit_latency;
  EXPECT_LT(time(3, 64) - time(1, 64), fetch / 2);
  EXPECT_GE(time(4, 64) - time(1, 64), fetch);  // the first fence, then the line
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  EXPECT_LT(time(2, 4096) - time(1, 4096), fetch / 2);
  EXPECT_GE(time(3, 4096) - time(1, 4096), fetch);
}

TEST(Fence, LeavesNoBufferToStreamingStoresUntilThoseItDrainedAreFree) {
  PlatformParams params = plain_machine();
  params.core.stream_hold = 500 * kNs;
  const Ops one = {stream_store(kPmemBase), sfence()};
  const Ops two = {stream_store(kPmemBase), sfence(), stream_store(kPmemBase + 128), sfence()};
  const Ops flush = {stream_store(kPmemBase), sfence(), store(kPmemBase + 64), clwb(kPmemBase + 64), sfence()};
  const Ops before = {load(kPmemBase + 64)};
  EXPECT_EQ(time_of(params, before, one), params.core.shared_write_latency);
  EXPECT_EQ(time_of(params, before, two), params.core.stream_hold + params.core.shared_write_latency);
  EXPECT_LT(time_of(params, before, flush), params.core.stream_hold);
}

/// One buffer for everybody and one more for streaming stores: two lines are streamed side by side, and a load
/// behind one streamed line waits until both buffers are free.
TEST(StreamStore, MayTakeBuffersThatAreKeptBackFromLoads) {
  const auto times = [](std::int64_t kept_back) {
    PlatformParams params = plain_machine();
    params.core.line_fill_buffers = 1;
    params.core.stream_fill_buffers = kept_back;
    params.core.stream_hold = 500 * kNs;
    const Ops before = {load(kPmemBase), mfence()};
    const auto streamed = [](int lines) {
      Ops ops;
      for (int i = 1; i <= lines; ++i) {
        ops.push_back(stream_store(kPmemBase + static_cast<std::uint64_t>(i) * 64));
      }
      return ops;
    };
    Ops drained = streamed(2);
    drained.push_back(sfence());
    Ops loaded = streamed(1);
    loaded.push_back(mfence());
    loaded.push_back(load(kPmemBase + 1024));
    return std::pair(time_of(params, before, drained), time_of(params, before, loaded));
  };
  const PlatformParams params = plain_machine();
  const auto [alone, load_alone] = times(0);
  const auto [beside, load_beside] = times(1);
  EXPECT_GE(alone, 500 * kNs + params.core.shared_write_latency);
  EXPECT_LT(beside, 100 * kNs);
  EXPECT_GE(load_alone, 500 * kNs);
  EXPECT_EQ(load_beside, load_alone);
}

/// The front end is at the end of the thread long before the words of the last line have left the store queue.
TEST(StreamStore, OfALineInWordsIsOneWriteAtTheEndOfAThreadToo) {
  PlatformParams params = plain_machine();
  params.core.dispatch_width = 8;
  Ops ops = {load(kPmemBase + 8192), mfence()};
  for (std::uint64_t word = 0; word < 4 * 8; ++word) {
    ops.push_back({kPmemBase + 8 * word, 8, memory::OpKind::kStreamStore, 0, 0});
  }
  const Counters whole = run(params, ops).counters;
  EXPECT_EQ(whole.pmem_write_lines, 4);
  EXPECT_EQ(whole.out_of_range_count, 0);
  ops.pop_back();
  const Counters part = run(params, ops).counters;
  EXPECT_EQ(part.pmem_write_lines, 4);
  EXPECT_EQ(part.out_of_range_count, 1);
}

TEST(OperationEnd, WaitsForFencesUnlessItIsDependent) {
  const PlatformParams params = plain_machine();
  const auto latency = [&](std::uint8_t flags) {
    memory::MicroOp ends = end();
    ends.flags = flags;
    // The page has been walked: the streaming store leaves the queue at once, and the fence retires.
    return run(params,
               {load(kPmemBase + 64), mfence(), begin(), stream_store(kPmemBase), sfence(), ends, begin()})
        .groups[0]
        .latency.maximum();
  };
  EXPECT_GE(latency(0), params.core.shared_write_latency);
  EXPECT_LT(latency(memory::kDependent), params.core.shared_write_latency / 2);
}

/// However many fences there have been: of those that it does not wait for, none counts.
TEST(OperationEnd, ThatIsDependentTakesNoOlderFenceForItsOwn) {
  const auto longest = [](std::uint64_t rounds) {
    Ops ops;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      memory::MicroOp begins = begin();
      memory::MicroOp ends = end();
      begins.flags = ends.flags = memory::kDependent;
      ops.insert(ops.end(), {stream_store(kPmemBase + round * 64), sfence(), begins, ends});
    }
    ops.push_back(begin());
    return run(plain_machine(), ops).groups[0].latency.maximum();
  };
  EXPECT_EQ(longest(2000), longest(200));
}

TEST(StoreQueue, IsBusyWithAStoreThatMissedUnlessItsNeighbourDidBefore) {
  PlatformParams params = plain_machine();
  const auto slower = [&](const Ops& ops) {
    params.core.store_miss_interval = 0;
    const Picoseconds without = time_of(params, {load(kDramBase + (1 << 20))}, ops);
    params.core.store_miss_interval = 1000 * kNs;
    return time_of(params, {load(kDramBase + (1 << 20))}, ops) - without;
  };
  const Ops far = {store(kDramBase), store(kDramBase + 4096), store(kDramBase + 8192), clwb(kDramBase + 8192),
                   sfence()};
  const Ops near = {store(kDramBase), store(kDramBase + 64), store(kDramBase + 128), clwb(kDramBase + 128),
                    sfence()};
  EXPECT_GT(slower(far), 2900 * kNs - 300 * kNs);
  EXPECT_LT(slower(near), 1100 * kNs);
}

TEST(StoreQueue, AsksForTheNextLineWhileAFenceWaits) {
  PlatformParams params = plain_machine();
  const Ops persists = {store(kDramBase),        clwb(kDramBase),        sfence(),
                        store(kDramBase + 4096), clwb(kDramBase + 4096), sfence()};
  const Ops before = {load(kDramBase + (1 << 20))};
  const Picoseconds without = time_of(params, before, persists);
  params.core.store_miss_interval =
      30 * kNs;  // of the first store alone: the second asks during the first fence
  EXPECT_LT(time_of(params, before, persists) - without, 35 * kNs);
}

TEST(StoreQueue, IsBusyForAShorterTimeWithTheNextLine) {
  PlatformParams params = plain_machine();
  const Ops near = {store(kDramBase), store(kDramBase + 64), store(kDramBase + 128), clwb(kDramBase + 128),
                    sfence()};
  const Ops before = {load(kDramBase + (1 << 20))};
  const Picoseconds without = time_of(params, before, near);
  params.core.store_next_interval = 500 * kNs;
  EXPECT_NEAR(static_cast<double>(time_of(params, before, near) - without), 1000.0 * kNs, 300.0 * kNs);
}

TEST(StoreQueue, IsBusyForAShorterTimeWithALineThatThePrefetcherBrings) {
  PlatformParams params = plain_machine();
  params.prefetcher.enabled = 1;
  params.prefetcher.trigger = 2;
  params.prefetcher.degree = 4;
  Ops lines;
  for (std::uint64_t line = 0; line < 6; ++line) {
    lines.push_back(store(kDramBase + line * 64));
  }
  lines.push_back(clwb(kDramBase + 5 * 64));
  lines.push_back(sfence());
  const Ops before = {load(kDramBase + (1 << 20))};
  params.core.store_next_interval = 500 * kNs;  // of the second line alone: it starts the stream
  const Picoseconds without = time_of(params, before, lines);
  params.core.line_interval = 100 * kNs;
  EXPECT_NEAR(static_cast<double>(time_of(params, before, lines) - without), 400.0 * kNs, 20.0 * kNs);
}

TEST(StoreStreams, TranslateWhileEarlierOnesWait) {
  PlatformParams params = plain_machine();
  params.tlb.walk_latency = 1000 * kNs;
  params.tlb.page_size = 4096;
  Ops pages;
  for (std::uint64_t page = 0; page < 4; ++page) {
    pages.push_back(stream_store(kPmemBase + page * 4096));
  }
  pages.push_back(sfence());
  EXPECT_LT(time_of(params, {load(kDramBase)}, pages), 2000 * kNs);
}

TEST(StoreQueue, WalksForPlainStoresOneAtATime) {
  PlatformParams params = plain_machine();
  params.tlb.walk_latency = 1000 * kNs;
  params.tlb.page_size = 4096;
  const auto time = [&](std::uint64_t pages) {
    Ops ops;
    for (std::uint64_t page = 0; page < pages; ++page) {
      ops.push_back(store(kPmemBase + page * 4096));
    }
    ops.push_back(sfence());
    return time_of(params, {load(kDramBase)}, ops);
  };
  EXPECT_GE(time(4), 4 * params.tlb.walk_latency);
  // What a walk finds serves the lines behind it in the page.
  EXPECT_LT(time_of(params, {load(kDramBase)}, {store(kPmemBase), store(kPmemBase + 64), sfence()}),
            time(1) + params.tlb.walk_latency);
}

TEST(StoreQueue, SendsStreamedLinesOneAfterTheOther) {
  PlatformParams params = plain_machine();
  params.core.line_interval = 100 * kNs;
  const auto time = [&](std::uint64_t lines) {
    Ops ops;
    for (std::uint64_t line = 1; line <= lines; ++line) {
      ops.push_back(stream_store(kPmemBase + line * 64));
    }
    ops.push_back(sfence());
    return time_of(params, {load(kPmemBase)}, ops);
  };
  EXPECT_EQ(time(4) - time(1), 3 * params.core.line_interval);
}

TEST(StoreQueue, IsBusyWithAFlush) {
  PlatformParams params = plain_machine();
  params.core.flush_interval = 100 * kNs;
  const Ops cached = {load(kPmemBase), load(kPmemBase + 64)};
  const Ops ops = {store(kPmemBase), clwb(kPmemBase), store(kPmemBase + 64), clwb(kPmemBase + 64), sfence()};
  const Picoseconds one = time_of(params, cached, {store(kPmemBase), clwb(kPmemBase), sfence()});
  EXPECT_NEAR(static_cast<double>(time_of(params, cached, ops) - one), 100.0 * kNs, 3.0 * kNs);
}

TEST(Fence, IsABarrierOnlyWhereItHasSomethingToWaitFor) {
  const Ops ops = {store(kPmemBase), sfence(), store(kPmemBase), clwb(kPmemBase), sfence(), sfence(), end()};
  const Counters counters = run(plain_machine(), ops).counters;
  EXPECT_EQ(counters.fences, 3);
  EXPECT_EQ(counters.persist_barriers, 1);
}

TEST(Fence, OfOneThreadDoesNotCountWhatAnotherHasFlushed) {
  const Counters counters =
      run(plain_machine(), {Ops{stream_store(kPmemBase), end()}, Ops{sfence(), end()}}).counters;
  EXPECT_EQ(counters.persist_barriers, 0);
}

TEST(PersistedLines, CountALineOncePerRun) {
  memory::MicroOp half = stream_store(kPmemBase);
  half.bytes = 32;
  memory::MicroOp other_half = half;
  other_half.address += 32;
  const Ops ops = {half, other_half, stream_store(kPmemBase + 64), clwb(kPmemBase), sfence(), end()};
  EXPECT_EQ(run(plain_machine(), ops).counters.lines_persisted, 3);
}

TEST(Fence, LetsLaterLoadsRunAheadUnlessItIsAnMfence) {
  PlatformParams params = plain_machine();
  params.pmem.buffer_latency = 0;
  const Picoseconds load_time = params.core.shared_read_latency + params.dram.row_hit_latency;
  const auto elapsed = [&](const memory::MicroOp& fence) {
    return time_of(params, {load(kPmemBase), load(kDramBase)},
                   {stream_store(kPmemBase), fence, load(kDramBase + 64)});
  };
  // The load is done while the fence still waits, or starts when it has waited.
  EXPECT_EQ(elapsed(sfence()), params.core.shared_write_latency);
  EXPECT_EQ(elapsed(mfence()), params.core.shared_write_latency + load_time);
}

/// A fence holds its window slot until what is older has left the store queue: where the loads behind it do not
/// fit, they wait. A single one behind a streaming store holds nothing up, a second one waits for the first.
TEST(Fence, LetsLoadsRunAheadOfASecondOneOnlyInsideTheWindow) {
  PlatformParams params = plain_machine();
  params.dram.row_hit_latency = 100 * kNs;
  const Picoseconds load_time = params.core.shared_read_latency + params.dram.row_hit_latency;
  const memory::MicroOp three = {0, 3, memory::OpKind::kCompute, 0, 0};
  const Ops before = {load(kPmemBase), load(kDramBase)};
  const Ops one = {stream_store(kPmemBase + 64), sfence(), three, load(kDramBase + 64)};
  const Ops two = {stream_store(kPmemBase + 64), sfence(), stream_store(kPmemBase + 128), sfence(), three,
                   load(kDramBase + 64)};
  params.core.window = 4;
  EXPECT_EQ(time_of(params, before, one), 5 * kInstruction + load_time);
  // When the first has completed, the second streaming store takes a cycle to leave the queue.
  EXPECT_EQ(time_of(params, before, two), params.core.shared_write_latency + kInstruction + load_time);
  params.core.window = 5;
  EXPECT_EQ(time_of(params, before, two), 7 * kInstruction + load_time);
}

/// The store before it has to be given its line first, which takes a load's time; then the flush leaves.
TEST(Fence, HoldsItsWindowSlotUntilTheStoresBeforeItHaveTheirLines) {
  PlatformParams params = plain_machine();
  params.dram.row_hit_latency = 100 * kNs;
  const Picoseconds load_time = params.core.shared_read_latency + params.dram.row_hit_latency;
  const memory::MicroOp three = {0, 3, memory::OpKind::kCompute, 0, 0};
  const Ops before = {load(kDramBase)};
  const Ops ops = {store(kDramBase + 64), clwb(kDramBase + 64), sfence(), three, load(kDramBase + 128)};
  params.core.window = 4;
  EXPECT_GE(time_of(params, before, ops), 2 * load_time);
  params.core.window = 5;
  EXPECT_LT(time_of(params, before, ops), load_time + params.core.shared_write_latency + 10 * kNs);
}

TEST(Flush, DropsTheLineUnlessThePlatformKeepsIt) {
  PlatformParams params = plain_machine();
  params.core.flush_keeps_line = 0;
  params.pmem.reread_delay = 500 * kNs;
  const Ops again = {store(kPmemBase), clwb(kPmemBase), sfence()};
  Ops before = {load(kPmemBase)};
  before.insert(before.end(), again.begin(), again.end());
  const LaneResult dropped = run(params, [&] {
    Ops all = before;
    all.insert(all.end(), again.begin(), again.end());
    return all;
  }());
  EXPECT_EQ(dropped.counters.pmem_read_lines, 2);  // at first and for the second store
  const Picoseconds slow = time_of(params, before, again);
  params.core.flush_keeps_line = 1;
  const Picoseconds fast = time_of(params, before, again);
  // The re-read waits until the line can be read: reread_delay after its acceptance, which was half a write
  // before the first fence completed. The module serves it from its combining buffer.
  EXPECT_EQ(fast, params.l1.latency + kInstruction + params.core.shared_write_latency);
  EXPECT_EQ(slow - fast, params.pmem.reread_delay - params.core.shared_write_latency / 2 +
                             params.core.shared_read_latency / 2 + params.pmem.buffer_latency -
                             params.l1.latency);
}

TEST(Flush, IsAnInstructionWhereCachesArePersistent) {
  PlatformParams params = plain_machine();
  params.controller.eadr = 1;
  const Ops persist = {store(kPmemBase), clwb(kPmemBase), sfence()};
  EXPECT_LT(time_of(params, {load(kPmemBase)}, persist), params.core.shared_write_latency / 2);
  EXPECT_EQ(
      run(params, Ops{load(kPmemBase), store(kPmemBase), clwb(kPmemBase), sfence()}).counters.pmem_write_lines,
      0);
}

TEST(Simulate, RefusesMoreThreadsThanHardwareThreads) {
  PlatformParams params = plain_machine();
  params.core.cores = 1;
  params.core.threads_per_core = 2;
  const Ops ops = {load(kDramBase)};
  EXPECT_NO_THROW(run(params, {ops, ops}));
  try {
    run(params, {ops, ops, ops});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "threads = 3: the platform has 2 hardware threads (core.cores x core.threads_per_core)");
  }
}

TEST(Simulate, RefusesLanesWithDifferentCachesByName) {
  std::vector<PlatformParams> platforms(2, plain_machine());
  platforms[1].l2.size *= 2;
  Script script({{load(kDramBase)}});
  try {
    static_cast<void>(simulate(script, 1, platforms, {}));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "l2.size: lanes of one pass must agree on it; run these platforms one by one");
  }
}

TEST(Persist, LinesThatWereFlushedAndFencedAreFetchedAgainSideBySide) {
  PlatformParams params = plain_machine();
  params.dram.reread_delay = 0;
  const auto twice = [&](std::uint64_t lines) {
    Script::Ops ops;
    for (int round = 0; round < 2; ++round) {
      for (std::uint64_t line = 0; line < lines; ++line) {
        ops.push_back(store(kDramBase + line * memory::kLineBytes));
        ops.push_back(clwb(kDramBase + line * memory::kLineBytes));
      }
      ops.push_back(sfence());
    }
    return time_of(params, {load(kDramBase)}, ops);
  };
  // One after the other, each further line would take another read of memory in the second round.
  const Picoseconds read = params.core.shared_read_latency + params.dram.row_hit_latency;
  EXPECT_LT(twice(9) - twice(1), 8 * read);
}

/// The stream ends while the fence, or a load, of the last operation is still on its way: its latency counts
/// all the same.
TEST(Latency, OfTheLastOperationIsRecordedWhenItsStreamHasEnded) {
  const PlatformParams params = plain_machine();
  const LaneResult persist =
      run(params, {load(kPmemBase), begin(), stream_store(kPmemBase + 4096), sfence(), end()});
  EXPECT_EQ(persist.groups[0].latency.count(), 1);
  EXPECT_EQ(persist.groups[0].latency.maximum(),
            time_of(params, {load(kPmemBase)}, {stream_store(kPmemBase + 4096), sfence()}));
  const LaneResult chased = run(params, {load(kPmemBase), begin(), load(kPmemBase + (1 << 21)),
                                         dependent_load(kPmemBase + (1 << 22)), end()});
  EXPECT_EQ(chased.groups[0].latency.count(), 1);
  EXPECT_EQ(
      chased.groups[0].latency.maximum(),
      time_of(params, {load(kPmemBase)}, {load(kPmemBase + (1 << 21)), dependent_load(kPmemBase + (1 << 22))}));
}

}  // namespace
}  // namespace pmsim::machine
