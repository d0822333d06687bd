#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "machine_turns.hpp"

namespace pmsim::machine {
namespace {

constexpr std::uint64_t kBlockBase = memory::medium_base(memory::Medium::kBlock);
constexpr Picoseconds kUs = 1000 * kNs;
constexpr Picoseconds kWrite = 10 * kUs, kFlush = 20 * kUs;

/// A write and a flush take constant times.
PlatformParams with_device() {
  PlatformParams params = two_caches();
  params.core.cores = 8;
  params.block.software_latency = 0;
  params.block.copy_bandwidth = params.block.write_bandwidth = 1'000'000'000'000;
  params.block.write_cache = 1 << 30;
  params.block.write_cache_durable = 1;
  params.block.write_latency = kWrite;
  params.block.program_latency = 0;
  params.block.seek_latency = params.block.rotation_latency = 0;
  params.block.flush_latency = kFlush;
  return params;
}

Script::Ops gathers(std::uint64_t sector) {
  return {begin(),
          {kBlockBase + 512 * sector, 512, OpKind::kBlockGather, 0, 0},
          {kBlockBase, 0, OpKind::kBlockCommit, 0, 0},
          end(),
          begin()};
}
Script::Ops after(Picoseconds time, std::uint64_t sector) {
  Script::Ops ops = gathers(sector);
  ops.insert(ops.begin(),
             work(static_cast<std::uint64_t>(static_cast<double>(time) *
                                             static_cast<double>(two_caches().core.frequency) / 1e12)));
  return ops;
}

Picoseconds longest(const LaneResult& result) { return result.groups[0].latency.maximum(); }

TEST(Group, OneThreadWritesAndFlushes) {
  const auto result = Turns({{gathers(0), gathers(1)}}).run(with_device());
  EXPECT_EQ(result.counters.block_groups, 2);
  EXPECT_EQ(result.counters.block_writes, 2);
  EXPECT_EQ(result.counters.block_flushes, 2);
  EXPECT_EQ(result.counters.group_wait_ps, 0);
  EXPECT_NEAR(static_cast<double>(longest(result)), static_cast<double>(kWrite + kFlush), 1e6);
}

TEST(Group, WhoComesWhileOneIsUnderWayGoesWithTheNext) {
  // The first goes alone. The others come during its write and its flush, and go together.
  const auto result = Turns({{gathers(0)}, {after(5 * kUs, 1)}, {after(25 * kUs, 2)}}).run(with_device());
  EXPECT_EQ(result.counters.block_gathers, 3);
  EXPECT_EQ(result.counters.block_groups, 2);
  EXPECT_EQ(result.counters.block_writes, 2);
  // The second has waited for 25 us and then for its own group.
  EXPECT_NEAR(static_cast<double>(longest(result)), static_cast<double>(25 * kUs + kWrite + kFlush), 2e6);
  // And the third for 5 us and that group, which another led.
  EXPECT_NEAR(static_cast<double>(result.counters.group_wait_ps),
              static_cast<double>(25 * kUs + 5 * kUs + kWrite + kFlush), 2e6);
}

TEST(Group, WhatOthersHaveTakenAlongIsNotWrittenAgain) {
  // Thread 0 hands over, works for long, and only then asks: by then thread 1 has written it.
  const Script::Ops early{{kBlockBase, 512, OpKind::kBlockGather, 0, 0}, work(200'000)};
  const Script::Ops asks{begin(), {kBlockBase, 0, OpKind::kBlockCommit, 0, 0}, end(), begin()};
  const auto result = Turns({{early, asks}, {after(1 * kUs, 1)}}).run(with_device());
  EXPECT_EQ(result.counters.block_groups, 1);
  EXPECT_EQ(result.counters.group_wait_ps, 0);
}

TEST(Group, ManyThreadsShareEveryFlush) {
  std::vector<std::deque<Script::Ops>> threads;
  for (std::uint64_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back();
    for (std::uint64_t turn = 0; turn < 50; ++turn)
      threads.back().push_back(gathers(8 * turn + thread));
  }
  const auto result = Turns(threads).run(with_device());
  EXPECT_EQ(result.counters.block_gathers, 400);
  // Who goes on comes back when the next group is under way: two halves take turns, four at a time.
  EXPECT_LE(result.counters.block_groups, 105);
  EXPECT_GE(result.counters.block_groups, 95);
  EXPECT_LE(result.elapsed, result.counters.block_groups * (kWrite + kFlush + 1 * kUs));
}

TEST(Group, TheSameEveryTime) {
  const auto run = [] {
    return Turns({{gathers(0), gathers(3)}, {gathers(1)}, {gathers(2), gathers(4)}}).run(with_device()).elapsed;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace pmsim::machine
