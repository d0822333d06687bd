#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/hierarchy.hpp"

namespace pmsim::machine {
namespace {

using memory::LatchMode;
using memory::OpKind;

constexpr Picoseconds kTransfer = 55 * kNs;

PlatformParams two_caches() {
  PlatformParams params = plain_machine();
  params.llc.transfer_latency = kTransfer;
  params.core.atomic_latency = 6 * kNs;
  return params;
}

/// A hierarchy of coherent caches, asked for one access after the other.
class Caches {
 public:
  explicit Caches(const PlatformParams& params, std::uint32_t threads = 4, bool coherent = true)
      : hierarchy_(params, threads, coherent) {}

  /// What the access came to, the last of what it did.
  TimedOp access(std::uint32_t thread, const memory::MicroOp& op) {
    stream_.clear();
    stream_.push(op.kind, op.address, op.bytes, op.flags, op.site);
    out_.clear();
    hierarchy_.classify(thread, stream_, out_);
    return out_.back();
  }
  Level level(std::uint32_t thread, const memory::MicroOp& op) {
    const TimedOp timed = access(thread, op);
    return timed.kind == static_cast<std::uint8_t>(OpKind::kCompute) ? kL1 : static_cast<Level>(timed.level);
  }
  [[nodiscard]] Hierarchy& hierarchy() { return hierarchy_; }

 private:
  Hierarchy hierarchy_;
  memory::Stream stream_;
  std::vector<TimedOp> out_;
};

TEST(Coherence, AModifiedLineComesFromTheCoreThatHasIt) {
  Caches caches(two_caches());
  EXPECT_EQ(caches.level(0, store(kPmemBase)), kFromMemory);
  EXPECT_EQ(caches.level(1, load(kPmemBase)), kFromCore);
  EXPECT_EQ(caches.level(1, load(kPmemBase)), kL1);
  EXPECT_EQ(caches.level(0, load(kPmemBase)), kL1);
}

TEST(Coherence, WhatIsSharedHasACopyInTheLastLevel) {
  Caches caches(two_caches());
  EXPECT_EQ(caches.level(0, load(kPmemBase)), kFromMemory);
  EXPECT_EQ(caches.level(1, load(kPmemBase)), kFromCore);
  EXPECT_EQ(caches.level(2, load(kPmemBase)), kLlc);
  EXPECT_EQ(caches.level(3, load(kPmemBase)), kLlc);
}

TEST(Coherence, AStoreTakesTheLineAwayFromTheOthers) {
  Caches caches(two_caches());
  for (std::uint32_t core = 0; core < 3; ++core)
    caches.level(core, load(kPmemBase));
  EXPECT_EQ(caches.level(0, store(kPmemBase)), kFromCore);
  EXPECT_EQ(caches.level(0, store(kPmemBase)), kL1);
  EXPECT_EQ(caches.level(1, load(kPmemBase)), kFromCore);
  EXPECT_EQ(caches.level(2, store(kPmemBase)), kFromCore);
  EXPECT_EQ(caches.level(0, load(kPmemBase)), kFromCore);
}

TEST(Coherence, AFlushFindsWhatAnotherCoreHasWritten) {
  Caches caches(two_caches());
  caches.level(0, store(kPmemBase));
  EXPECT_NE(caches.access(1, clwb(kPmemBase)).flags & kTimedDirty, 0);
  EXPECT_EQ(caches.access(1, clwb(kPmemBase)).flags & kTimedDirty, 0);
  EXPECT_EQ(caches.level(0, load(kPmemBase)), kFromMemory) << "it has invalidated the line";
}

TEST(Coherence, AFlushThatKeepsTheLineCleansItEverywhere) {
  PlatformParams params = two_caches();
  params.core.flush_keeps_line = 1;
  Caches caches(params);
  caches.level(0, store(kPmemBase));
  EXPECT_NE(caches.access(1, clwb(kPmemBase)).flags & kTimedDirty, 0);
  EXPECT_EQ(caches.level(0, load(kPmemBase)), kL1);
  EXPECT_EQ(caches.access(0, clwb(kPmemBase)).flags & kTimedDirty, 0);
}

TEST(Coherence, AStreamingStoreDropsTheCopiesOfOthers) {
  Caches caches(two_caches());
  caches.level(0, load(kPmemBase));
  caches.access(1, stream_store(kPmemBase));
  EXPECT_EQ(caches.level(0, load(kPmemBase)), kFromMemory);
}

TEST(Coherence, WithoutItEachCoreHasALineOfItsOwn) {
  Caches caches(two_caches(), 4, false);
  for (std::uint32_t core = 0; core < 4; ++core)
    EXPECT_EQ(caches.level(core, store(kPmemBase)), kFromMemory);
  EXPECT_EQ(caches.hierarchy().counters().core_transfers, 0);
}

/// Lines that all caches have room for, by sets of holders.
class Reference {
 public:
  Level access(std::uint32_t core, std::uint64_t line, bool write) {
    Line& state = lines_[line];
    const bool own = state.holders.count(core) != 0;
    const bool others = state.holders.size() > (own ? 1U : 0U);
    Level level = kL1;
    if (write ? others : !own && others && !state.in_llc) {
      level = kFromCore;
    } else if (!own && state.in_llc) {
      level = kLlc;
    } else if (!own) {
      level = kFromMemory;
    }
    if (write) {
      state = Line{{core}, true, false};
    } else if (!own) {
      state.in_llc = others;
      state.holders.insert(core);
    }
    return level;
  }
  /// Whether there was something to write back.
  bool flush(std::uint64_t line) { return std::exchange(lines_[line], Line{}).dirty; }

 private:
  struct Line {
    std::set<std::uint32_t> holders;
    bool dirty = false;
    bool in_llc = false;
  };
  std::map<std::uint64_t, Line> lines_;
};

TEST(Coherence, RandomAccessesAgreeWithSetsOfHolders) {
  constexpr std::uint32_t kCores = 4;
  Caches caches(two_caches(), kCores);
  Reference reference;
  Random random(7);
  for (int access = 0; access < 200'000; ++access) {
    const auto core = static_cast<std::uint32_t>(random.below(kCores));
    const std::uint64_t line = random.below(24);
    const std::uint64_t address = kDramBase + line * memory::kLineBytes;
    switch (random.below(8)) {
      case 0:
        ASSERT_EQ((caches.access(core, clwb(address)).flags & kTimedDirty) != 0, reference.flush(line))
            << access;
        break;
      case 1:
      case 2:
      case 3:
        ASSERT_EQ(caches.level(core, store(address)), reference.access(core, line, true)) << access;
        break;
      default:
        ASSERT_EQ(caches.level(core, load(address)), reference.access(core, line, false)) << access;
    }
  }
}

// Caches that hold a few lines only, so that these are evicted all the time, and more cores than bits in a set.
TEST(Coherence, HoldsWhereLinesAreEvicted) {
  for (const std::uint32_t cores : {3U, 70U}) {
    PlatformParams params = two_caches();
    params.core.cores = cores;
    params.l1 = {.size = 1 << 10, .ways = 2, .latency = kNs};
    params.l2 = {.size = 2 << 10, .ways = 4, .latency = kNs};
    params.llc = {.size = 8 << 10, .ways = 4, .latency = kNs, .slices = 2};
    params.prefetcher = {.enabled = 1, .trigger = 2, .distance = 4, .degree = 2, .queue = 8};
    Caches caches(params, cores);
    Random random(cores);
    for (int access = 0; access < 100'000; ++access) {
      const auto core = static_cast<std::uint32_t>(random.below(cores));
      const std::uint64_t line = kDramBase / memory::kLineBytes + random.below(300);
      const std::uint64_t address = line * memory::kLineBytes;
      const auto kind = random.below(10);
      caches.access(core, kind == 0   ? clwb(address)
                          : kind == 1 ? stream_store(address)
                          : kind < 5  ? store(address)
                                      : load(address));
      ASSERT_EQ(caches.hierarchy().incoherence(line), "") << access;
    }
  }
}

/// Batches of work for each thread.
class Turns final : public memory::Source {
 public:
  explicit Turns(std::vector<std::deque<Script::Ops>> batches) : batches_(std::move(batches)) {}
  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (batches_[thread].empty())
      return;
    for (const memory::MicroOp& op : batches_[thread].front())
      stream.push(op.kind, op.address, op.bytes, op.flags, op.site);
    batches_[thread].pop_front();
  }
  [[nodiscard]] bool shares_lines() const noexcept override { return true; }
  LaneResult run(const PlatformParams& params) {
    SimulateOptions options;
    options.length.measured_operations = std::int64_t{1} << 40;
    return simulate(*this, static_cast<std::uint32_t>(batches_.size()), std::span(&params, 1), options).front();
  }

 private:
  std::vector<std::deque<Script::Ops>> batches_;
};

memory::MicroOp work(std::uint64_t cycles) { return {cycles, 1, OpKind::kCompute, 0, 0}; }
memory::MicroOp atomic(std::uint64_t address) { return {address, 8, OpKind::kAtomic, 0, 0}; }
memory::MicroOp acquire(std::uint64_t latch, LatchMode mode) {
  return {latch, 8, OpKind::kAcquire, static_cast<std::uint8_t>(mode), 0};
}
memory::MicroOp release(std::uint64_t latch, LatchMode mode) {
  return {latch, 8, OpKind::kRelease, static_cast<std::uint8_t>(mode), 0};
}
constexpr LatchMode kWrites = LatchMode::kExclusive, kReads = LatchMode::kShared,
                    kLooks = LatchMode::kOptimistic, kTries = LatchMode::kAttempt;

TEST(Coherence, ALineTakesTheTransferLatency) {
  const PlatformParams params = two_caches();
  const auto result =
      Turns({{{store(kDramBase)}, {work(10)}},
             {{load(kDramBase + 4096), work(1000)}, {begin(), load(kDramBase), end(), begin()}}})
          .run(params);
  EXPECT_EQ(result.groups[0].latency.maximum(), kTransfer);
  EXPECT_EQ(result.counters.core_transfers, 1);
}

TEST(Coherence, ACounterOfAllCoresGoesFromOneToTheNext) {
  const PlatformParams params = two_caches();
  constexpr int kAdds = 100;
  std::vector<std::deque<Script::Ops>> threads(4);
  for (auto& thread : threads)
    thread.assign(kAdds, {atomic(kDramBase)});
  const auto result = Turns(std::move(threads)).run(params);
  EXPECT_EQ(result.counters.atomics, 4 * kAdds);
  EXPECT_GT(result.counters.core_transfers, 4 * kAdds * 9 / 10);
  // From the line's home to the core that has it and on to the next: two of the three parts of its way.
  const Picoseconds busy = result.counters.core_transfers * (kTransfer - kTransfer / 3);
  EXPECT_GE(result.elapsed, busy);
  EXPECT_LE(result.elapsed, busy * 9 / 8);
}

TEST(Coherence, CountersOfTheirOwnDoNotWaitForEachOther) {
  const PlatformParams params = two_caches();
  constexpr int kAdds = 100;
  std::vector<std::deque<Script::Ops>> threads(4);
  for (std::size_t thread = 0; thread < threads.size(); ++thread)
    threads[thread].assign(kAdds, {atomic(kDramBase + thread * 4096)});
  const auto result = Turns(std::move(threads)).run(params);
  EXPECT_EQ(result.counters.core_transfers, 0);
  const Picoseconds each = params.l1.latency + params.core.atomic_latency + 2 * kSecond / params.core.frequency;
  EXPECT_LE(result.elapsed, 1000 * kNs + kAdds * each);
}

TEST(Atomic, TakesItsLineAndItsLatency) {
  const PlatformParams params = two_caches();
  const Picoseconds cycle = kSecond / params.core.frequency;
  EXPECT_EQ(time_of(params, {load(kDramBase)}, {atomic(kDramBase)}),
            params.l1.latency + params.core.atomic_latency);
  // A load behind it does not run ahead.
  const Picoseconds miss = time_of(params, {load(kDramBase)}, {load(kDramBase + (1 << 20))});
  EXPECT_GE(time_of(params, {load(kDramBase)}, {atomic(kDramBase), load(kDramBase + (1 << 20))}) + cycle,
            params.l1.latency + params.core.atomic_latency + miss);
}

// Intel SDM, volume 2, CLWB: ordered by "software can use an SFENCE, MFENCE, XCHG, or LOCK-prefixed
// instructions".
TEST(Atomic, WaitsForFlushesAsAnMfenceDoes) {
  PlatformParams params = two_caches();
  params.core.fence_latency = 0;
  params.core.atomic_latency = 0;
  const Script::Ops before{load(kDramBase), store(kDramBase)};
  const Script::Ops flushed{store(kPmemBase), clwb(kPmemBase)};
  Script::Ops fenced = flushed;
  fenced.push_back(mfence());
  Script::Ops locked = flushed;
  locked.push_back(atomic(kDramBase));
  const Picoseconds by_fence = time_of(params, before, fenced);
  const Picoseconds by_lock = time_of(params, before, locked);
  EXPECT_GE(by_lock, by_fence);
  EXPECT_LE(by_lock, by_fence + params.l1.latency + 2 * kSecond / params.core.frequency);
}

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

// They only look at the word: one fetches it from the writer's core, and the last level has a copy then.
TEST(Latch, OptimisticReadersBehindAWriterDoNotWaitForEachOther) {
  const PlatformParams params = two_caches();
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

TEST(Latch, AModeThatDoesNotExistIsOneClearLine) {
  Caches caches(two_caches());
  EXPECT_THROW(caches.access(0, {kDramBase, 8, OpKind::kAcquire, 7, 0}), ConfigError);
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
