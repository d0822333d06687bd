#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/memory_system.hpp"

namespace pmsim::machine {
namespace {

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

/// When the medium has begun the last of eight blocks that are written at once, with `reads` that arrive at
/// `arrival`.
Picoseconds last_written(int reads, Picoseconds arrival) {
  PlatformParams params = plain_machine();
  params.pmem.block_size = 64;
  params.pmem.own_path = 1;
  params.pmem.write_buffer_blocks = 1;
  params.pmem.reads_per_write = 4;
  params.controller.pmem_write_queue = 16;
  Counters counters;
  DramChannel channel(params.dram, params.controller, counters);
  PmemModule module(params, channel, counters, 1);
  for (int read = 0; read < reads; ++read)
    static_cast<void>(module.read(1'000'000 + static_cast<std::uint64_t>(read), arrival));
  for (std::uint64_t block = 0; block < 9; ++block)
    module.accept(block, 0);
  Picoseconds begun = 0;
  for (int block = 0; block < 9; ++block) {
    begun = module.drain();
    module.schedule_drain();
  }
  return begun;
}

TEST(PmemWrites, WaitForReadsThatHaveComeAndForNoneThatIsOnItsWay) {
  const Picoseconds alone = last_written(0, 0);
  EXPECT_EQ(last_written(20, 100 * alone), alone);
  const Picoseconds read = plain_machine().pmem.media_read_service;
  ASSERT_GT(read, 0);
  EXPECT_EQ(last_written(2, 0), alone + 2 * read) << "all there are";
  EXPECT_GT(last_written(20, 0), alone + 16 * read) << "four before each write";
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
/// A medium that always has something to write takes none of the complete blocks because it is idle.
TEST(PmemWrites, OfAMediumThatIsNeverIdleTakeNoMoreOfTheHost) {
  const auto resident_pages = [] {
    std::ifstream statm("/proc/self/statm");
    std::int64_t size = 0, resident = 0;
    statm >> size >> resident;
    return resident;
  };
  PlatformParams params = plain_machine();
  Counters counters;
  DramChannel channel(params.dram, params.controller, counters);
  PmemModule module(params, channel, counters, 1);
  const auto write = [&](std::uint64_t lines) {
    static std::uint64_t line = 0;
    for (const std::uint64_t end = line + lines; line < end; ++line) {
      if (!module.has_room()) {
        module.drain();
        module.schedule_drain();
      }
      module.accept(line, 0);
    }
  };
  write(1 << 22);
  const std::int64_t before = resident_pages();
  if (before == 0)
    GTEST_SKIP() << "the system does not tell";
  write(1 << 24);
  EXPECT_GT(counters.pmem_media_write_blocks, 1 << 22);
  EXPECT_EQ(counters.pmem_partial_writes, 0);
  EXPECT_LT(resident_pages() - before, (8 << 20) / 4096);
}

TEST(PmemWear, CountsNoMoreRegionsThanAModuleHasOrSaysThatTheHostCannot) {
  PlatformParams params = plain_machine();
  params.pmem.wear_stall_writes = 1;
  params.pmem.wear_stall = 1000 * kNs;
  params.pmem.wear_region = 256;
  params.pmem.capacity = std::int64_t{16} << 40;
  Counters counters;
  try {
    MemorySystem memory(params, counters, 1, 0);
  } catch (const HostMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("pmem.wear_region"), std::string::npos) << error.what();
  }
}

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
