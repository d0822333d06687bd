#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <tuple>
#include <utility>

#include "machine_harness.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/block_device.hpp"
#include "pmsim/machine/block_index.hpp"
#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/tlb.hpp"

namespace pmsim::machine {
namespace {

/// One set, so that the reference needs to know nothing of the set index: the most recently used line is in
/// front.
TEST(Cache, OfOneSetIsALeastRecentlyUsedList) {
  constexpr std::size_t kWays = 8;
  Cache cache(kWays * 64, kWays);
  std::list<std::uint64_t> reference;
  Random random(7);
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t line = random.below(14);
    const auto known = std::find(reference.begin(), reference.end(), line);
    if (random.below(8) == 0) {
      ASSERT_EQ(cache.remove(line), known == reference.end() ? Cache::kEmpty : line);
      reference.remove(line);
      continue;
    }
    ASSERT_EQ(cache.touch(line) != nullptr, known != reference.end()) << step;
    std::uint64_t expected_victim = Cache::kEmpty;
    if (known == reference.end()) {
      if (reference.size() == kWays) {
        expected_victim = reference.back();
        reference.pop_back();
      }
      ASSERT_EQ(cache.insert(line), expected_victim) << step;
    } else {
      reference.erase(known);
    }
    reference.push_front(line);
  }
}

TEST(Cache, FlagsTravelWithTheLine) {
  Cache cache(2 * 64, 2);
  cache.insert(5 | Cache::kDirty);
  ASSERT_NE(cache.touch(5), nullptr);
  cache.insert(6);
  EXPECT_EQ(cache.insert(7), 5 | Cache::kDirty);
}

/// Of 64 sets with 8 ways, as most L1s: nine lines that are 4 KiB apart do not fit, 512 neighbours do.
TEST(Cache, LinesThatAreAllSetsApartCompeteForTheWaysOfOne) {
  for (const auto& [apart, lines, misses] :
       {std::tuple{1U, 512U, 0}, std::tuple{64U, 8U, 0}, std::tuple{64U, 9U, 9}, std::tuple{32U, 16U, 0},
        std::tuple{32U, 17U, 9}}) {
    Cache cache(64 * 8 * 64, 8);
    const auto missed_of_a_round = [&] {
      int missed = 0;
      for (std::uint64_t line = 0; line < lines; ++line) {
        if (cache.touch(line * apart) == nullptr) {
          cache.insert(line * apart);
          ++missed;
        }
      }
      return missed;
    };
    missed_of_a_round();
    EXPECT_EQ(missed_of_a_round(), misses) << lines << " lines " << apart << " apart";
  }
}

/// 24 slices of 2048 sets with 11 ways: lines that are 2048 apart have one set of each slice.
TEST(Cache, AHashSpreadsLinesOverSlices) {
  constexpr std::uint64_t kSets = 2048;
  constexpr std::uint64_t kSlices = 24;
  constexpr std::uint64_t kWays = 11;
  const auto kept = [](std::uint64_t apart, std::uint64_t lines) {
    Cache cache(kSlices * kSets * kWays * 64, kWays, 64, kSlices);
    for (std::uint64_t line = 0; line < lines; ++line) {
      cache.insert(line * apart);
    }
    std::uint64_t found = 0;
    for (std::uint64_t line = 0; line < lines; ++line) {
      found += cache.touch(line * apart) != nullptr ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(kept(kSets, 100'000), kSlices * kWays);
  EXPECT_EQ(kept(kSets / 2, 100'000), 2 * kSlices * kWays);
  EXPECT_EQ(kept(1, 3 * kSlices * kSets * kWays), kSlices * kSets * kWays);
  EXPECT_GT(kept(kSets, kSlices * kWays / 2), kSlices * kWays * 2 / 5)
      << "no slice has much more than its part";
}

/// Sizes that are not whole powers of two lose no set: 20 MiB with 16 ways in 8 slices, 48 KiB with 12 ways.
TEST(Cache, UsesAllSetsWhateverItsSize) {
  for (const auto& [bytes, ways, slices] : {std::tuple{20 << 20, 16, 8}, std::tuple{48 << 10, 12, 1},
                                            std::tuple{3 * 64 * 5, 5, 1}, std::tuple{7 * 64 * 4, 4, 3}}) {
    Cache cache(bytes, ways, 64, slices);
    for (std::uint64_t line = 0; line < 20 * cache.lines(); ++line) {
      cache.insert(line);
    }
    std::uint64_t found = 0;
    for (std::uint64_t line = 0; line < 20 * cache.lines(); ++line) {
      found += cache.remove(line) != Cache::kEmpty ? 1 : 0;
    }
    EXPECT_EQ(found, cache.lines()) << bytes;
  }
}

TEST(BlockIndex, AgreesWithAMap) {
  constexpr std::size_t kCapacity = 16;
  BlockIndex index(kCapacity);
  std::map<std::uint64_t, std::size_t> reference;
  Random random(11);
  for (int step = 0; step < 50'000; ++step) {
    const std::uint64_t block = random.below(40) * 4096;
    const auto known = reference.find(block);
    ASSERT_EQ(index.find(block), known == reference.end() ? BlockIndex::kNotFound : known->second) << step;
    if (known != reference.end()) {
      index.erase(block);
      reference.erase(known);
    } else if (reference.size() < kCapacity) {
      index.insert(block, static_cast<std::size_t>(step));
      reference[block] = static_cast<std::size_t>(step);
    }
  }
}

TEST(Tlb, FindsAPageInTheFirstLevelThenInTheSecondThenNowhere) {
  Tlb tlb(TlbParams{.page_size = 4096, .first_level_entries = 1, .second_level_entries = 2});
  EXPECT_EQ(tlb.page_of(3 * 4096 + 17), 3U);
  EXPECT_EQ(tlb.translate(1), Tlb::Found::kNowhere);
  EXPECT_EQ(tlb.translate(1), Tlb::Found::kFirst);
  Tlb large(TlbParams{.page_size = 4096, .first_level_entries = 1, .second_level_entries = 1024});
  EXPECT_EQ(large.translate(1), Tlb::Found::kNowhere);
  EXPECT_EQ(large.translate(2), Tlb::Found::kNowhere);
  EXPECT_EQ(large.translate(1), Tlb::Found::kSecond);
}

TEST(Tlb, KeepsPagesOfTwoSizesInFirstLevelsOfTheirOwn) {
  TlbParams params{
      .page_size = 4096, .dram_page_size = 2 << 20, .first_level_entries = 1, .second_level_entries = 1024};
  Tlb two(params);
  EXPECT_EQ(two.page_of(kDramBase), two.page_of(kDramBase + (2 << 20) - 1));
  EXPECT_NE(two.page_of(kPmemBase), two.page_of(kPmemBase + 4096));
  for (const Tlb::Found again : {Tlb::Found::kNowhere, Tlb::Found::kFirst}) {
    EXPECT_EQ(two.translate(two.page_of(kDramBase)), again);
    EXPECT_EQ(two.translate(two.page_of(kPmemBase)), again);
  }
  params.dram_page_size = 4096;
  Tlb one(params);
  for (const Tlb::Found again : {Tlb::Found::kNowhere, Tlb::Found::kSecond}) {
    EXPECT_EQ(one.translate(one.page_of(kDramBase)), again);
    EXPECT_EQ(one.translate(one.page_of(kPmemBase)), again);
  }
}

BlockDeviceParams plain_device() {
  BlockDeviceParams params;
  params.capacity = std::int64_t{1} << 40;
  params.read_latency = 70 * kNs;
  params.write_latency = 10 * kNs;
  params.program_latency = 500 * kNs;
  params.units = 1;
  params.queue_depth = 1;
  params.read_bandwidth = 1'000'000'000'000;
  params.write_bandwidth = 1'000'000'000'000;
  params.copy_bandwidth = 1'000'000'000'000;
  params.software_latency = 3 * kNs;
  return params;
}

constexpr Picoseconds kTransfer = 4096;  // ps, at 1 TB/s

TEST(BlockDevice, RefusesWhatTakesLongerThanVirtualTime) {
  BlockDeviceParams params = plain_device();
  params.read_bandwidth = params.write_bandwidth = 1;
  Counters counters;
  BlockDevice device(params, counters);
  Picoseconds now = device.read(0, 4096, 0);  // more than an hour
  EXPECT_GT(now, 4096 * kSecond);
  const auto go_on = [&] {
    for (int request = 0; request < 10'000; ++request) {
      const Picoseconds before =
          std::exchange(now, request % 2 == 0 ? device.write(0, 4096, now) : device.read(0, 4096, now));
      ASSERT_GT(now, before);
    }
  };
  EXPECT_THROW(go_on(), ConfigError);
  EXPECT_THROW(BlockDevice(params, counters).write(0, std::uint64_t{1} << 32, 0), ConfigError);
}

TEST(BlockDevice, ReadIsSoftwareThenDeviceThenTransferThenCopy) {
  BlockDeviceParams params = plain_device();
  params.read_bandwidth = 500'000'000'000;
  Counters counters;
  BlockDevice device(params, counters);
  EXPECT_EQ(device.read(0, 4096, 0), 3 * kNs + 70 * kNs + 2 * kTransfer + kTransfer);
}

TEST(BlockDevice, BlocksOfARequestAreSentWhileOthersAreRead) {
  BlockDeviceParams params = plain_device();
  params.read_bandwidth = 100'000'000'000;
  Counters counters;
  BlockDevice device(params, counters);  // one unit: it reads eight blocks one after the other
  const Picoseconds read = 3 * kNs + 8 * 70 * kNs;
  EXPECT_EQ(device.read(0, 8 * 4096, 0), read + 10 * kTransfer + 8 * kTransfer);
}

TEST(BlockDevice, HeadMovesUnlessTheRequestIsAdjacent) {
  BlockDeviceParams params = plain_device();
  params.seek_latency = 800 * kNs;
  params.rotation_latency = 400 * kNs;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds adjacent = params.software_latency + params.read_latency + 2 * kTransfer;
  const Picoseconds first = device.read(1 << 20, 4096, 0);
  EXPECT_EQ(first, adjacent + params.seek_latency + params.rotation_latency);
  EXPECT_EQ(device.read((1 << 20) + 4096, 4096, first) - first, adjacent);
}

TEST(BlockDevice, BlocksPassUnderAHeadWithoutACommandEach) {
  BlockDeviceParams params = plain_device();
  params.seek_latency = 800 * kNs;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds first = device.read(0, 4096, 0);
  const Picoseconds read = params.read_latency + 8 * kTransfer;  // nothing is sent before the head is there
  EXPECT_EQ(device.read(4096, 8 * 4096, first) - first, params.software_latency + read + 8 * kTransfer);
}

TEST(BlockDevice, WritesWaitForTheMediumOrForTheCacheAndAFlushForBoth) {
  BlockDeviceParams params = plain_device();
  params.flush_latency = 20 * kNs;
  Counters counters;
  BlockDevice uncached(params, counters);
  const Picoseconds sent = kTransfer + params.software_latency + kTransfer;
  EXPECT_EQ(uncached.write(0, 4096, 0), sent + params.program_latency);
  params.write_cache = 8192;
  BlockDevice cached(params, counters);
  const Picoseconds written = cached.write(0, 4096, 0);
  EXPECT_EQ(written, sent + params.write_latency);
  EXPECT_EQ(cached.flush(written), sent + params.program_latency + params.flush_latency);
}

TEST(BlockDevice, AFlushOfADurableCacheDoesNotWaitForTheMedium) {
  BlockDeviceParams params = plain_device();
  params.flush_latency = 20 * kNs;
  params.write_cache = 8192;
  params.write_cache_durable = 1;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds written = device.write(0, 4096, 0);
  EXPECT_EQ(device.flush(written), written + params.software_latency + params.flush_latency);
}

TEST(BlockDevice, AFlushWaitsForWhatAnotherFlushIsStillWritingOut) {
  BlockDeviceParams params = plain_device();
  params.queue_depth = 8;
  params.write_cache = 8192;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds written = device.write(0, 4096, 0);
  const Picoseconds durable = device.flush(written);
  ASSERT_EQ(durable, written - params.write_latency + params.program_latency);
  // Of another thread, while the first one is under way: the data are no sooner on the medium for it.
  EXPECT_EQ(device.flush(written + 1), durable);
}

TEST(BlockDevice, AFlushThatIsUnderWayLeavesNoRoomInTheCacheYet) {
  BlockDeviceParams params = plain_device();
  params.queue_depth = 8;
  params.write_cache = 4096;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds written = device.write(0, 4096, 0);
  const Picoseconds durable = device.flush(written);
  EXPECT_EQ(device.write(1 << 20, 4096, written), durable + kTransfer + params.write_latency);
  EXPECT_EQ(device.flush(written + 1), durable);  // that write waits for room: it is not in the cache
}

TEST(BlockDevice, APauseHoldsUpWhatTheCacheStillHolds) {
  BlockDeviceParams params = plain_device();
  params.write_cache = 8192;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds written = device.write(0, 4096, 0);
  const Picoseconds on_medium = written - params.write_latency + params.program_latency;
  constexpr Picoseconds kPause = 1'000'000 * kNs;
  device.stall(written, kPause);
  const Picoseconds durable = device.flush(written);
  EXPECT_EQ(durable, on_medium + kPause);
  // What has reached the medium before the pause stays there, and with nothing to write a flush waits, too.
  device.stall(durable, kPause);
  EXPECT_EQ(device.flush(durable + 1), durable + kPause);
}

/// Eight sectors of a log, one after the other: the first is being written when the second comes, which waits,
/// and takes the others with it.
TEST(BlockDevice, SectorsOfABlockThatWaitsInTheCacheAreOneWrite) {
  BlockDeviceParams params = plain_device();
  params.queue_depth = 8;
  params.write_cache = 8192;
  Counters counters;
  BlockDevice device(params, counters);
  Picoseconds now = 0;
  for (std::uint64_t sector = 0; sector < 8; ++sector) {
    now = device.write(sector * 512, 512, now);
  }
  const Picoseconds first_arrives = 512 + params.software_latency + kTransfer;
  ASSERT_LT(now, first_arrives + params.program_latency);
  EXPECT_EQ(device.flush(now), first_arrives + 2 * params.program_latency);
}

TEST(BlockDevice, WithoutACacheEachWriteOfABlockIsOneOfTheMedium) {
  Counters counters;
  BlockDevice device(plain_device(), counters);
  const Picoseconds first = device.write(0, 512, 0);
  EXPECT_EQ(device.write(512, 512, first) - first, first);
}

/// Room for two blocks, which two logs write in turn: no write waits for the medium, as none needs more room.
TEST(BlockDevice, WhatTheCacheHoldsAlreadyNeedsNoRoomInIt) {
  BlockDeviceParams params = plain_device();
  params.queue_depth = 8;
  params.write_cache = 3 * 4096;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds write = 512 + params.software_latency + kTransfer + params.write_latency;
  device.write(1 << 20, 4096, 0);  // keeps the one unit busy, so that all others wait
  Picoseconds now = write + kTransfer;
  for (std::uint64_t sector = 0; sector < 16; ++sector) {
    const Picoseconds written = device.write(sector % 2 * (1 << 16) + sector / 2 * 512, 512, now);
    EXPECT_EQ(written - now, write) << sector;
    now = written;
  }
  EXPECT_GT(device.write(1 << 21, 4096, now) - now, write + kTransfer);
}

TEST(BlockDevice, WhatTheCacheHoldsIsReadFromThere) {
  BlockDeviceParams params = plain_device();
  params.queue_depth = 8;
  params.write_cache = 8192;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds written = device.write(0, 4096, 0);
  const Picoseconds from_cache = params.software_latency + params.write_latency + 2 * kTransfer;
  EXPECT_EQ(device.read(0, 4096, written) - written, from_cache);
  // Two blocks, of which the cache has one: the other comes from the medium, behind the program under way.
  const Picoseconds on_medium = written - params.write_latency + params.program_latency;
  EXPECT_EQ(device.read(0, 8192, written), on_medium + params.read_latency + kTransfer + 2 * kTransfer);
  // And when the medium has it, from there.
  EXPECT_EQ(device.read(0, 4096, 2 * on_medium) - 2 * on_medium,
            params.software_latency + params.read_latency + 2 * kTransfer);
}

/// One unit, a program under way and seven that wait: a read waits for that one, and the medium has the last of
/// them later for it. Where a flush waits for them, who comes later does, too.
TEST(BlockDevice, ReadsPassProgramsUnlessAFlushWaitsForThem) {
  BlockDeviceParams params = plain_device();
  params.queue_depth = 64;
  params.write_cache = 64 << 10;
  constexpr std::uint64_t kElsewhere = 1 << 20;
  for (const bool flushes : {false, true}) {
    Counters counters;
    BlockDevice device(params, counters);
    const Picoseconds written = device.write(0, 8 * 4096, 0);
    const Picoseconds arrived = written - params.write_latency;
    const Picoseconds all = arrived + 8 * params.program_latency;
    const Picoseconds read_and_sent = params.read_latency + 2 * kTransfer;
    if (flushes) {
      EXPECT_EQ(device.flush(written), all);
      EXPECT_EQ(device.read(kElsewhere, 4096, written), all + read_and_sent);
    } else {
      EXPECT_EQ(device.read(kElsewhere, 4096, written), arrived + params.program_latency + read_and_sent);
      EXPECT_EQ(device.flush(written + 1), all + params.read_latency);
    }
  }
}

TEST(BlockDevice, QueueDepthBoundsTheCommandsUnderWay) {
  BlockDeviceParams params = plain_device();
  params.units = 64;
  params.queue_depth = 1;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds first = device.read(0, 4096, 0) - kTransfer;  // without the copy, which needs no place
  EXPECT_EQ(device.read(1 << 20, 4096, 0), first + params.read_latency + 2 * kTransfer);
}

}  // namespace
}  // namespace pmsim::machine
