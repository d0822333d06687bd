#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <tuple>

#include "machine_harness.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/block_device.hpp"
#include "pmsim/machine/block_index.hpp"
#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/hierarchy.hpp"
#include "pmsim/machine/memory_system.hpp"
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

TEST(BlockDevice, ReadIsSoftwareThenDeviceThenCopy) {
  Counters counters;
  BlockDevice device(plain_device(), counters);
  EXPECT_EQ(device.read(0, 4096, 0), 3 * kNs + 70 * kNs + kTransfer);
}

TEST(BlockDevice, HeadMovesUnlessTheRequestIsAdjacent) {
  BlockDeviceParams params = plain_device();
  params.seek_latency = 800 * kNs;
  params.rotation_latency = 400 * kNs;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds adjacent = params.software_latency + params.read_latency + kTransfer;
  const Picoseconds first = device.read(1 << 20, 4096, 0);
  EXPECT_EQ(first, adjacent + params.seek_latency + params.rotation_latency);
  EXPECT_EQ(device.read((1 << 20) + 4096, 4096, first) - first, adjacent);
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

TEST(BlockDevice, QueueDepthBoundsTheCommandsUnderWay) {
  BlockDeviceParams params = plain_device();
  params.units = 64;
  params.queue_depth = 1;
  Counters counters;
  BlockDevice device(params, counters);
  const Picoseconds first = device.read(0, 4096, 0) - kTransfer;  // without the copy, which needs no place
  EXPECT_EQ(device.read(1 << 20, 4096, 0), first + params.read_latency + kTransfer);
}

/// Lines of PMem that belong to one of two slices of the last-level cache, `stripe` of 4 KiB and after `from`.
std::uint64_t line_of(std::uint64_t slice, std::uint64_t stripe, std::uint64_t from) {
  const std::uint64_t first = kPmemBase / memory::kLineBytes + stripe * 64;
  for (std::uint64_t line = first + from;; ++line) {
    if (mix64(line) % 2 == slice) {
      return line;
    }
  }
}

struct TwoSlices {
  TwoSlices(std::int64_t modules, std::int64_t credits) : params(plain_machine()) {
    params.llc.slices = 2;
    params.controller.channels = modules;
    params.controller.pmem_write_queue = 1;
    params.controller.pmem_credits = credits;
    params.pmem.dimms = modules;
    memory = std::make_unique<MemorySystem>(params, counters, 1, 1 << 20);
  }
  Picoseconds write(std::uint64_t line, std::uint32_t token) {
    return memory->write(line, 0, 0, WriteToken{.thread = token});
  }
  std::vector<std::uint32_t> drain(std::size_t module) {
    std::vector<Grant> grants;
    memory->drain(module, grants);
    std::vector<std::uint32_t> tokens;
    for (const Grant& grant : grants) {
      tokens.push_back(grant.token.thread);
    }
    return tokens;
  }
  PlatformParams params;
  Counters counters;
  std::unique_ptr<MemorySystem> memory;
};

TEST(PmemWrites, SlicesTakeTurnsAndALoneCreditKeepsTheOrderOfTheirLines) {
  TwoSlices two(1, 1);
  EXPECT_EQ(two.write(line_of(0, 0, 0), 0), 0);  // takes the only place
  EXPECT_EQ(two.write(line_of(0, 0, 16), 1), kNever);
  EXPECT_EQ(two.write(line_of(0, 0, 32), 2), kNever);
  EXPECT_EQ(two.write(line_of(1, 0, 0), 3), kNever);
  EXPECT_EQ(two.drain(0), std::vector<std::uint32_t>{1});
  EXPECT_EQ(two.drain(0), std::vector<std::uint32_t>{3});
  EXPECT_EQ(two.drain(0), std::vector<std::uint32_t>{2});
}

/// As many lines of a slice as it has credits compete, in no order; one more waits until one of them has gone.
TEST(PmemWrites, AnyLineWithACreditMayGoAndNoOther) {
  constexpr std::int64_t kCredits = 8;
  TwoSlices two(1, kCredits);
  EXPECT_EQ(two.write(line_of(0, 0, 0), 100), 0);
  for (std::uint32_t token = 0; token <= kCredits; ++token) {
    EXPECT_EQ(two.write(line_of(0, token + 1, 0), token), kNever);
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t drained = 0; drained <= kCredits; ++drained) {
    const std::vector<std::uint32_t> tokens = two.drain(0);
    ASSERT_EQ(tokens.size(), 1U);
    order.push_back(tokens.front());
  }
  EXPECT_NE(order.front(), static_cast<std::uint32_t>(kCredits));  // came last, had no credit
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint32_t token = 0; token <= kCredits; ++token) {
    EXPECT_EQ(order[token], token);  // each once
  }
}

TEST(PmemWrites, ALineWaitsBehindOneOfItsSliceThoughItsOwnModuleIsIdle) {
  TwoSlices two(2, 1);
  EXPECT_EQ(two.write(line_of(0, 0, 0), 0), 0);
  EXPECT_EQ(two.write(line_of(0, 0, 16), 1), kNever);
  EXPECT_EQ(two.write(line_of(0, 1, 0), 2), kNever);  // the other module has room
  EXPECT_EQ(two.write(line_of(1, 1, 0), 3), 0);       // as the other slice finds
  EXPECT_EQ(two.drain(0), std::vector<std::uint32_t>{1});
  EXPECT_EQ(two.drain(1), std::vector<std::uint32_t>{2});
}

/// The block that has been in the read buffer longest makes room, whether it has just been read or not.
TEST(PmemReads, TheOldestBlockMakesRoom) {
  PlatformParams params = plain_machine();
  params.pmem.dimms = 1;
  params.pmem.read_buffer_blocks = 2;
  Counters counters;
  MemorySystem memory(params, counters, 1, 1 << 20);
  Picoseconds now = 0;
  const auto fetches = [&](std::uint64_t block, std::uint64_t line) {
    const std::int64_t before = counters.pmem_media_read_blocks;
    now = memory.read(kPmemBase / memory::kLineBytes + block * 4 + line, now, now);
    return counters.pmem_media_read_blocks - before;
  };
  EXPECT_EQ(fetches(0, 0), 1);
  EXPECT_EQ(fetches(1, 0), 1);
  EXPECT_EQ(fetches(0, 1), 0);
  EXPECT_EQ(fetches(2, 0), 1);  // in the place of block 0
  EXPECT_EQ(fetches(1, 1), 0);
  EXPECT_EQ(fetches(0, 2), 1);  // in the place of block 1
  EXPECT_EQ(fetches(2, 1), 0);
  EXPECT_EQ(fetches(1, 2), 1);
}

/// A block write keeps its bank from reading for bank_write_busy; a read waits for the write under way and for
/// no other.
TEST(PmemReads, WaitForTheWriteOfTheirBankThatIsUnderWay) {
  PlatformParams params = plain_machine();
  params.pmem.write_buffer_blocks = 1;
  params.pmem.banks = 1;
  const Picoseconds busy = params.pmem.bank_write_busy = 500 * kNs;
  Counters counters;
  MemorySystem memory(params, counters, 1, 1 << 20);
  const auto line_of_block = [](std::uint64_t block) { return kPmemBase / memory::kLineBytes + block * 4; };
  // The first line opens a block, each of the next two makes the one before it leave: two writes, back to back.
  memory.write(line_of_block(0), 0, 0, WriteToken{});
  memory.write(line_of_block(1), 0, 0, WriteToken{});
  memory.write(line_of_block(2), 0, 0, WriteToken{});
  const Picoseconds begins = params.pmem.bus_write;  // when the second line has left the queue
  memory.catch_up_all(busy);
  EXPECT_EQ(counters.pmem_media_write_blocks, 2);
  const auto waited = [&](std::uint64_t block, Picoseconds at) {
    const Picoseconds idle = at + params.pmem.buffer_latency + params.pmem.media_read_latency;
    return memory.read(line_of_block(block), at, at) - idle;
  };
  EXPECT_EQ(waited(8, begins + busy + 400 * kNs), 100 * kNs);
  EXPECT_EQ(waited(9, begins + 2 * busy + 100 * kNs), 0);
}

/// Emulated memory and a CXL expander have a path of their own, and share no channel with DRAM: neither waits
/// for the other. Their writes had cost reads of DRAM a turn of the bus each.
TEST(PmemPath, OfItsOwnDisturbsNobodyAndIsDisturbedByNobody) {
  PlatformParams params = plain_machine();
  params.dram.turnaround = 7 * kNs;
  const auto read_after = [&](std::uint64_t first, std::uint64_t then, bool write) {
    Counters counters;
    MemorySystem memory(params, counters, 1, 1 << 20);
    for (std::uint64_t line = 0; line < 16; ++line) {
      if (write) {
        memory.write(first + line, 0, 0, WriteToken{});
      } else {
        memory.read(first + line, 0, 0);
      }
    }
    memory.catch_up_all(1);
    return memory.read(then, 1, 1);
  };
  constexpr std::uint64_t kDram = kDramBase / memory::kLineBytes;
  constexpr std::uint64_t kPmem = kPmemBase / memory::kLineBytes;
  const auto alone = [&](std::uint64_t line) {
    Counters counters;
    MemorySystem memory(params, counters, 1, 1 << 20);
    return memory.read(line, 1, 1);
  };
  for (const std::int64_t own : {0, 1}) {
    params.pmem.own_path = own;
    EXPECT_EQ(read_after(kPmem, kDram + 4096, true) == alone(kDram + 4096), own == 1);
    EXPECT_EQ(read_after(kDram, kPmem + 4096, false) == alone(kPmem + 4096), own == 1);
  }
}

/// Its reads take turns, and so do its writes, but the one do not wait for the other.
TEST(PmemPath, OfItsOwnHasTwoDirections) {
  PlatformParams params = plain_machine();
  params.pmem.own_path = 1;
  params.pmem.media_read_service = params.pmem.media_write_service = 0;
  params.pmem.bus_read = 10 * kNs;
  params.pmem.bus_write = 30 * kNs;
  Counters counters;
  MemorySystem memory(params, counters, 1, 1 << 20);
  constexpr std::uint64_t kLine = kPmemBase / memory::kLineBytes;
  for (std::uint64_t line = 0; line < 4; ++line) {
    memory.write(kLine + line, 0, 0, WriteToken{});
  }
  memory.catch_up_all(3 * params.pmem.bus_write);
  EXPECT_EQ(counters.pmem_write_lines, 3);
  const Picoseconds first = memory.read(kLine + 4096, 0, 0);
  EXPECT_EQ(first, params.pmem.media_read_latency + params.pmem.buffer_latency);
  EXPECT_EQ(memory.read(kLine + 8192, 0, 0), first + params.pmem.bus_read);
}

/// A bank of the medium reads one block at a time; another bank does not care.
TEST(PmemReads, WaitForTheReadOfTheirBank) {
  PlatformParams params = plain_machine();
  const Picoseconds busy = params.pmem.bank_read_busy = 200 * kNs;
  const Picoseconds medium = params.pmem.media_read_latency + params.pmem.buffer_latency;
  const auto second_block = [&] {
    Counters counters;
    MemorySystem memory(params, counters, 1, 1 << 20);
    EXPECT_EQ(memory.read(kPmemBase / memory::kLineBytes, 0, 0), medium);
    return memory.read(kPmemBase / memory::kLineBytes + 4, 0, 0);
  };
  params.pmem.banks = 1;
  EXPECT_EQ(second_block(), busy + medium);
  params.pmem.banks = 1024;
  EXPECT_EQ(second_block(), params.pmem.media_read_service + medium);
}

/// A fault that slows the medium slows its banks.
TEST(PmemReads, WaitLongerForABankOfASlowedMedium) {
  PlatformParams params = plain_machine();
  params.pmem.banks = 1;
  params.pmem.bank_read_busy = 200 * kNs;
  Counters counters;
  MemorySystem memory(params, counters, 1, 1 << 20);
  const auto second_read = [&](std::uint64_t block, Picoseconds at) {
    const std::uint64_t line = kPmemBase / memory::kLineBytes + block * 4;
    memory.read(line, at, at);
    return memory.read(line + 4, at, at) - at;
  };
  const Picoseconds first = second_read(0, 0);
  memory.slow(memory::Medium::kPmem, 10'000 * kNs, 300);
  EXPECT_EQ(second_read(8, 10'000 * kNs),
            first + 2 * (params.pmem.bank_read_busy + params.pmem.media_read_latency));
}

/// One module whose read pending queue has `places`. Each load is of a block of its own.
struct ReadingModule {
  ReadingModule(std::int64_t places, std::int64_t slices, std::int64_t credits) : params(plain_machine()) {
    params.controller.pmem_read_queue = places;
    params.controller.pmem_read_credits = credits;
    params.llc.slices = slices;
    memory = std::make_unique<MemorySystem>(params, counters, 1, 1 << 20);
  }
  Picoseconds load(std::uint32_t token, Picoseconds now = 0) {
    const std::uint64_t line = kPmemBase / memory::kLineBytes + 4 * blocks++;
    return memory->load(line, now, now, ReadToken{.thread = 0, .load = token});
  }
  PlatformParams params;
  Counters counters;
  std::unique_ptr<MemorySystem> memory;
  std::uint64_t blocks = 0;
};

TEST(PmemReads, LoadsHaveAPlaceOfTheReadQueueUntilTheirDataLeaveTheController) {
  ReadingModule module(2, 1, 1);
  const Picoseconds medium = module.params.pmem.media_read_latency + module.params.pmem.buffer_latency;
  const Picoseconds service = module.params.pmem.media_read_service;
  EXPECT_EQ(module.load(0), medium);
  EXPECT_EQ(module.load(1), service + medium);
  EXPECT_EQ(module.memory->next_admission(0), kNever);
  EXPECT_EQ(module.load(2), kNever);
  EXPECT_EQ(module.memory->next_admission(0), medium);
  EXPECT_EQ(module.load(3, medium), kNever);  // nobody overtakes what waits
  const Admission first = module.memory->admit(0);
  EXPECT_EQ(first.token.load, 2U);
  EXPECT_EQ(first.entered, medium);
  EXPECT_EQ(first.done, 2 * medium);
  EXPECT_EQ(module.memory->admit(0).entered, service + medium);
  EXPECT_EQ(module.memory->next_admission(0), kNever);
  // Both of them, and load 1 for the medium.
  EXPECT_EQ(module.counters.read_queue_wait_ps, medium + service + service - module.params.pmem.bus_read);
}

TEST(PmemReads, NobodyWaitsWithoutRoomToWaitNorWhereTheQueueHasNoBound) {
  ReadingModule bounded(1, 1, 1);
  EXPECT_NE(bounded.load(0), kNever);
  EXPECT_EQ(bounded.load(ReadToken::kNobody), kNever);
  EXPECT_EQ(bounded.memory->next_admission(0), kNever);
  // Ownership, hardware prefetches, page walks: they have no place and wait for none.
  EXPECT_NE(bounded.memory->read(kPmemBase / memory::kLineBytes + 400, 0, 0), kNever);
  ReadingModule unbounded(0, 1, 1);
  for (std::uint32_t token = 0; token < 100; ++token) {
    EXPECT_NE(unbounded.load(token), kNever);
  }
}

/// The oldest `credits` loads of a slice compete, in no order; a slice with more loads has more turns.
TEST(PmemReads, AnyOfTheOldestLoadsOfASliceMayEnter) {
  constexpr std::uint32_t kLoads = 24;
  const auto order_with = [](std::int64_t credits) {
    ReadingModule module(1, 1, credits);
    EXPECT_NE(module.load(1000), kNever);
    for (std::uint32_t token = 0; token < kLoads; ++token) {
      EXPECT_EQ(module.load(token), kNever);
    }
    std::vector<std::uint32_t> order;
    for (std::uint32_t entered = 0; entered < kLoads; ++entered) {
      order.push_back(module.memory->admit(0).token.load);
    }
    return order;
  };
  const std::vector<std::uint32_t> alone = order_with(1);
  EXPECT_TRUE(std::is_sorted(alone.begin(), alone.end()));
  constexpr std::uint32_t kCredits = 4;
  std::vector<std::uint32_t> order = order_with(kCredits);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  for (std::uint32_t entered = 0; entered < kLoads; ++entered) {
    EXPECT_LT(order[entered], entered + kCredits);  // not before all but credits - 1 of the older ones
  }
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, alone);  // each once
}

/// Four lines of a block in order are one block write; a line alone is one too, with a read-modify-write.
TEST(PmemWrites, CombineIntoBlocks) {
  PlatformParams params = plain_machine();
  params.pmem.write_buffer_blocks = 1;
  Script::Ops complete;
  Script::Ops partial;
  for (std::uint64_t block = 0; block < 9; ++block) {
    for (std::uint64_t line = 0; line < 4; ++line) {
      complete.push_back(stream_store(kPmemBase + block * 256 + line * 64));
    }
    partial.push_back(stream_store(kPmemBase + block * 256));
  }
  for (Script::Ops* ops : {&complete, &partial}) {
    ops->push_back(mfence());
    ops->push_back({0, 1, memory::OpKind::kCompute, 0, 0});
  }
  const LaneResult whole = run(params, complete);
  EXPECT_EQ(whole.counters.pmem_partial_writes, 0);
  const LaneResult pieces = run(params, partial);
  EXPECT_EQ(pieces.counters.pmem_media_write_blocks, pieces.counters.pmem_partial_writes);
  EXPECT_GE(pieces.counters.pmem_partial_writes, 1);
}

}  // namespace
}  // namespace pmsim::machine
