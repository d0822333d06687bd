#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "pmsim/blocks/sync/driver.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::sync {
namespace {

constexpr std::uint32_t kThreads = 4, kLines = 3, kTimes = 20'000;

memory::HostOptions small() {
  memory::HostOptions options;
  options.capacities = memory::Capacities::of(std::uint64_t{1} << 20, 0, 0);
  return options;
}

/// All threads at once, with real instructions.
template <typename Operation>
void run_threads(Operation&& operation) {
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&operation, thread] {
      for (std::uint32_t time = 0; time < kTimes; ++time)
        operation(thread);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

TEST(SyncOnSilicon, NoAdditionIsLost) {
  memory::HostMemory memory(small());
  SyncDriver<memory::HostMemory> driver(memory, {.threads = kThreads});
  run_threads([&](std::uint32_t thread) { driver.operation(memory, thread); });
  EXPECT_EQ(memory.load<std::uint64_t>(driver.object(0)), kThreads * kTimes);
}

TEST(SyncOnSilicon, WritersExcludeEachOtherAndReaders) {
  for (const LatchMode readers : {LatchMode::kShared, LatchMode::kOptimistic}) {
    memory::HostMemory memory(small());
    SyncDriver<memory::HostMemory> driver(memory, {.meeting = Meeting::kLatch, .lines = kLines});
    const memory::Address latch = driver.object(0);
    const auto word = [&](std::uint32_t line) {
      return memory.load<std::uint64_t>(latch + (2 + line) * memory::kLineBytes);
    };
    std::atomic<std::uint64_t> torn = 0;
    run_threads([&](std::uint32_t thread) {
      if (thread % 2 == 0)
        return driver.operation(memory, 0);  // the driver's state of thread 0 is its random numbers: not used
      std::uint64_t version, first, last;
      do {
        version = memory.acquire(latch, readers);
        first = word(0);
        last = word(kLines - 1);
      } while (!memory.release(latch, readers, version));
      torn += first != last ? 1 : 0;
    });
    EXPECT_EQ(torn, 0U);
    for (std::uint32_t line = 0; line < kLines; ++line)
      EXPECT_EQ(word(line), kThreads / 2 * kTimes);
    const auto left = memory.load<std::uint64_t>(latch);
    EXPECT_TRUE(memory::LatchWord::admits(left, LatchMode::kExclusive));
    EXPECT_EQ(memory::LatchWord::version(left), kThreads / 2 * kTimes);
  }
}

TEST(SyncOnSilicon, AnAttemptHoldsTheLatchOrLeavesItAlone) {
  memory::HostMemory memory(small());
  const memory::Address latch = memory.allocate(memory::Medium::kDram, 64);
  const std::uint64_t read = memory.acquire(latch, LatchMode::kOptimistic);
  for (const LatchMode held : {LatchMode::kShared, LatchMode::kExclusive, LatchMode::kAttempt}) {
    const std::uint64_t version = memory.acquire(latch, held);
    EXPECT_EQ(memory.acquire(latch, LatchMode::kAttempt), memory::LatchWord::kNotAcquired);
    EXPECT_TRUE(memory.release(latch, held, version));
  }
  EXPECT_FALSE(memory.release(latch, LatchMode::kOptimistic, read));
  EXPECT_EQ(memory::LatchWord::version(memory.load<std::uint64_t>(latch)), 2U);
}

TEST(LatchWord, HoldersExcludeEachOther) {
  using memory::LatchWord;
  std::uint64_t word = 0;
  word = LatchWord::held(word, LatchMode::kShared);
  word = LatchWord::held(word, LatchMode::kShared);
  EXPECT_TRUE(LatchWord::admits(word, LatchMode::kShared));
  EXPECT_TRUE(LatchWord::admits(word, LatchMode::kOptimistic));
  EXPECT_FALSE(LatchWord::admits(word, LatchMode::kExclusive));
  word = LatchWord::released(LatchWord::released(word, LatchMode::kShared), LatchMode::kShared);
  EXPECT_EQ(word, 0U);
  word = LatchWord::held(word, LatchMode::kExclusive);
  for (const LatchMode mode : {LatchMode::kShared, LatchMode::kExclusive, LatchMode::kOptimistic})
    EXPECT_FALSE(LatchWord::admits(word, mode));
  word = LatchWord::released(word, LatchMode::kExclusive);
  EXPECT_EQ(LatchWord::version(word), 1U);
  EXPECT_TRUE(LatchWord::admits(word, LatchMode::kExclusive));
}

TEST(SimMemoryLatches, AreFreeOrReportABug) {
  memory::SimMemory memory;
  const memory::Address latch = memory.allocate(memory::Medium::kDram, 64);
  const std::uint64_t version = memory.acquire(latch, LatchMode::kExclusive);
  EXPECT_THROW(static_cast<void>(memory.acquire(latch, LatchMode::kShared)), SimulationError);
  EXPECT_THROW(static_cast<void>(memory.release(latch, LatchMode::kShared, version)), SimulationError);
  EXPECT_TRUE(memory.release(latch, LatchMode::kExclusive, version));
  EXPECT_EQ(memory.acquire(latch, LatchMode::kOptimistic), version + 1);
  const std::uint64_t attempt = memory.acquire(latch, LatchMode::kAttempt);
  EXPECT_EQ(memory.acquire(latch, LatchMode::kAttempt), memory::LatchWord::kNotAcquired);
  EXPECT_TRUE(memory.release(latch, LatchMode::kAttempt, attempt));
  EXPECT_TRUE(memory.release(latch, LatchMode::kOptimistic, version + 1)) << "its own attempt";
  EXPECT_EQ(memory.fetch_add(latch + 8, 5), 0U);
  EXPECT_EQ(memory.fetch_add(latch + 8, 5), 5U);
}

// What was flushed before a locked access is durable after it; a writer's release is a store and waits for
// nothing.
TEST(SimMemoryLatches, LockedAccessesOrderFlushes) {
  memory::SimMemory memory({.persistence = memory::Persistence::kAdr});
  const memory::Address latch = memory.allocate(memory::Medium::kDram, 64);
  const memory::Address data = memory.allocate(memory::Medium::kPmem, 4096);
  const auto flushed = [&](memory::Address at) {
    memory.store<std::uint64_t>(at, 1);
    memory.flush(at, 8);
    return memory.word_state(at);
  };
  EXPECT_EQ(flushed(data), memory::WordState::kMaybe);
  const std::uint64_t version = memory.acquire(latch, LatchMode::kExclusive);
  EXPECT_EQ(memory.word_state(data), memory::WordState::kDurable);
  flushed(data + 64);
  memory.release(latch, LatchMode::kExclusive, version);
  EXPECT_EQ(memory.word_state(data + 64), memory::WordState::kMaybe);
  static_cast<void>(memory.acquire(latch, LatchMode::kOptimistic));
  EXPECT_EQ(memory.word_state(data + 64), memory::WordState::kMaybe);
  memory.fetch_add(latch + 8, 1);
  EXPECT_EQ(memory.word_state(data + 64), memory::WordState::kDurable);
}

}  // namespace
}  // namespace pmsim::blocks::sync
