#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "machine_harness.hpp"
#include "machine_turns.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/hierarchy.hpp"
#include "pmsim/machine/sharers.hpp"

namespace pmsim::machine {
namespace {

using memory::OpKind;

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

TEST(Sharers, TakeRoomForTheLinesOfHugeCachesWhenTheyCome) {
  Sharers sharers(std::size_t{1} << 36, 24);  // 24 cores of 160 GB
  for (std::uint64_t line = 0; line < 1000; ++line)
    sharers.add(line, static_cast<std::uint32_t>(line % 24));
  EXPECT_EQ(sharers.of(999), Sharers::bit_of(999 % 24));
  EXPECT_EQ(sharers.of(1000), 0U);
}

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

TEST(Latch, AModeThatDoesNotExistIsOneClearLine) {
  Caches caches(two_caches());
  EXPECT_THROW(caches.access(0, {kDramBase, 8, OpKind::kAcquire, 7, 0}), ConfigError);
}

}  // namespace
}  // namespace pmsim::machine
