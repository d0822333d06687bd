#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "machine_harness.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/machine/memory_mode.hpp"
#include "pmsim/machine/page_table.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::machine {
namespace {

using Ops = Script::Ops;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kPiece = 4 * kMiB / 64;  // lines

PlatformParams memory_mode_machine(std::uint64_t dram, std::uint64_t pmem) {
  PlatformParams params = plain_machine();
  params.controller.memory_mode = 1;
  params.controller.memory_mode_tag_latency = 11 * kNs;
  params.dram.capacity = static_cast<std::int64_t>(dram);
  params.pmem.capacity = static_cast<std::int64_t>(pmem);
  return params;
}

TEST(MemoryMode, HitsCostDramAndTheTagMissesPmemAsWell) {
  const PlatformParams params = memory_mode_machine(kMiB, 4 * kMiB);  // one piece: a mebibyte has no conflicts
  const Picoseconds hit =
      params.core.shared_read_latency + params.dram.row_hit_latency + params.controller.memory_mode_tag_latency;
  const Picoseconds miss = hit + params.pmem.media_read_latency + params.pmem.buffer_latency;
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, {load(kPmemBase + 64)}, kMiB), hit);
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, {load(kPmemBase + kMiB + 64)}, kMiB), miss);
  const Ops conflict = {load(kPmemBase), dependent_load(kPmemBase + 64), dependent_load(kPmemBase + kMiB)};
  const LaneResult result = run(params, conflict, kMiB);
  EXPECT_EQ(result.counters.memory_mode_hits, 2);
  EXPECT_EQ(result.counters.memory_mode_misses, 1);
}

TEST(MemoryMode, WhatIsCalledDramIsMainMemoryButForPageTables) {
  const PlatformParams params = memory_mode_machine(kMiB, 4 * kMiB);
  const Ops ops = {load(kDramBase + 64), dependent_load(kDramBase + kMiB + 64), stream_store(kDramBase),
                   mfence(), load(kDramBase + kMiB)};
  const LaneResult result = run(params, ops, kMiB);
  EXPECT_EQ(result.counters.memory_mode_hits, 1);  // of the mebibyte in use the cache has all
  EXPECT_EQ(result.counters.memory_mode_misses, 2);
  EXPECT_EQ(result.counters.pmem_read_lines, 2);
  EXPECT_EQ(result.counters.pmem_write_lines, 1);
  EXPECT_EQ(
      run(params, {load(kPageTables), dependent_load(kPageTables + kMiB)}, kMiB).counters.memory_mode_misses,
      0);
}

TEST(MemoryMode, LinesAtTheSamePlaceOfTwoWindowsAreTwoLines) {
  // As in a trace of a machine that is not in memory mode.
  const PlatformParams params = memory_mode_machine(kMiB, 64 * kMiB);
  const Ops ops = {load(kDramBase), dependent_load(kPmemBase), dependent_load(kPmemBase + 64)};
  const LaneResult result = run(params, ops, 0);
  EXPECT_EQ(result.counters.memory_mode_hits, 0);
  EXPECT_EQ(result.counters.memory_mode_misses, 3);
  EXPECT_EQ(result.counters.pmem_media_read_blocks, 2);  // and so are their blocks
}

TEST(MemoryMode, RegionsOfMainMemoryHaveEachAPlaceOfTheirOwn) {
  memory::Capacities capacities = memory::Capacities::of(4 * kMiB, 4 * kMiB, 0);
  capacities.one_main_memory = true;
  memory::RegionTable table(capacities);
  using memory::Medium;
  const auto place = [&](Medium medium) {
    return table.allocate(medium, kMiB, {}).base - memory::medium_base(medium);
  };
  EXPECT_EQ(place(Medium::kDram), 0);
  EXPECT_EQ(place(Medium::kPmem), kMiB);
  EXPECT_EQ(place(Medium::kDram), 2 * kMiB);
  EXPECT_EQ(table.pmem_footprint(), 3 * kMiB);
  EXPECT_THROW(static_cast<void>(table.allocate(Medium::kDram, 2 * kMiB, {})), CapacityError);
}

TEST(MemoryMode, ADirtyLineGoesToItsModuleWhenAnotherTakesItsSet) {
  const PlatformParams params = memory_mode_machine(kMiB, 4 * kMiB);
  Ops ops = {stream_store(kPmemBase), mfence()};
  EXPECT_EQ(run(params, ops, kMiB).counters.pmem_write_lines, 0);
  ops.push_back(load(kPmemBase + kMiB));
  EXPECT_EQ(run(params, ops, kMiB).counters.pmem_write_lines, 1);
}

TEST(MemoryModeCache, PiecesAreUsedInTheOrderOfTheirFirstTouch) {
  MemoryModeCache cache(memory_mode_machine(12 * kMiB, 64 * kMiB), 2 * kPiece, 3);
  const std::uint64_t dram = kDramBase / memory::kLineBytes;
  const std::uint64_t pmem = kPmemBase / memory::kLineBytes;
  EXPECT_EQ(cache.in_use(pmem + 9 * kPiece + 5), 5);
  EXPECT_EQ(cache.in_use(dram + 9 * kPiece), kPiece);
  EXPECT_EQ(cache.in_use(pmem + 9 * kPiece + 6), 6);
  EXPECT_EQ(cache.in_use(pmem + 7), 2 * kPiece + 7);
}

/// DRAM of whole pieces and not, behind PMem that is a few times and thousands of times as large.
TEST(MemoryModeCache, ASetHoldsALineInUseThatMapsToItWhereThereIsOne) {
  const std::uint64_t footprint = 10 * kPiece - 7;
  for (const std::uint64_t dram : {12 * kMiB, 13 * kMiB}) {
    for (const std::uint64_t pmem : {64 * kMiB, 64 * 1024 * kMiB}) {
      const MemoryModeCache cache(memory_mode_machine(dram, pmem), footprint, 3);
      std::set<std::uint64_t> used;
      for (std::uint64_t line = 0; line < footprint; ++line)
        used.insert(cache.set_of(line));
      for (std::uint64_t set = 0; set < dram / 64; ++set) {
        const MemoryModeCache::Held held = cache.held_in(set);
        EXPECT_FALSE(held.dirty);
        ASSERT_EQ(held.line != MemoryModeCache::kNone, used.contains(set));
        if (held.line == MemoryModeCache::kNone)
          continue;
        ASSERT_LT(held.line, footprint);
        ASSERT_EQ(cache.set_of(held.line), set);
      }
    }
  }
}

// A set is shared by Poisson-distributed many lines, so of the lines in use (1 - exp(-n)) / n are held, where n
// is the region over DRAM: 55 % of a region as large as DRAM would be found were it 1.5 times as large, and 98
// % of a 25th of it.
TEST(MemoryModeCache, HoldsWhatChancePlacementLeaves) {
  const std::uint64_t dram = 2048 * 4 * kMiB;
  for (const double n : {0.04, 1.0, 1.875}) {
    const auto footprint = static_cast<std::uint64_t>(n * 2048) * kPiece;
    const MemoryModeCache cache(memory_mode_machine(dram, 64 * dram), footprint, 5);
    std::uint64_t held = 0, asked = 0;
    for (std::uint64_t line = 0; line < footprint; line += kPiece / 8, ++asked) {
      held += cache.held_in(cache.set_of(line)).line == line ? 1U : 0U;
    }
    EXPECT_NEAR(static_cast<double>(held) / static_cast<double>(asked), (1 - std::exp(-n)) / n, 0.03) << n;
  }
}

TEST(MemoryModeCache, TinyDramIsLookedUpAsFast) {
  const MemoryModeCache cache(memory_mode_machine(64 << 10, std::uint64_t{64} << 40), 1024 * kPiece, 3);
  for (std::uint64_t set = 0; set < 1024; ++set) {
    const MemoryModeCache::Held held = cache.held_in(set);
    EXPECT_TRUE(held.line == MemoryModeCache::kNone || cache.set_of(held.line) == set);
  }
}

TEST(MemoryModeCache, LinesOfOnePieceDoNotConflict) {
  const MemoryModeCache cache(memory_mode_machine(12 * kMiB, 64 * kMiB), 16 * kPiece, 3);
  std::set<std::uint64_t> sets;
  for (std::uint64_t line = 0; line < kPiece; ++line) {
    sets.insert(cache.set_of(5 * kPiece + line));
  }
  EXPECT_EQ(sets.size(), kPiece);
}

}  // namespace
}  // namespace pmsim::machine
