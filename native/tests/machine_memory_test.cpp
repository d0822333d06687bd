#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::machine {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Bytes of this process that are in the host's memory now; 0 where the system does not say.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  statm >> size >> resident;
  return statm ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

/// Each thread writes its part of a region of PMem once, in blocks of 256 bytes, by turns past the caches and
/// through them.
class Fill final : public memory::Source {
 public:
  Fill(std::uint32_t threads, std::uint64_t bytes)
      : memory_({.capacities = memory::Capacities::of(0, bytes, 0)}),
        part_(bytes / threads),
        base_(memory_.allocate(memory::Medium::kPmem, bytes, {.name = "region"})),
        done_(threads, 0) {}

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    memory_.attach(stream, thread);
    constexpr std::array<std::byte, 256> kBlock{std::byte{1}};
    for (int block = 0; block < 16 && done_[thread] < part_; ++block) {
      const memory::Address address = base_ + thread * part_ + done_[thread];
      if (block % 2 == 0) {
        memory_.stream(address, kBlock);
      } else {
        memory_.write(address, kBlock);
      }
      done_[thread] += kBlock.size();
      stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(kBlock.size()));
    }
  }

 private:
  memory::SimMemory memory_;
  std::uint64_t part_;
  memory::Address base_;
  std::vector<std::uint64_t> done_;
};

/// Bytes of the host that a run takes, over those that it touches.
double bytes_per_byte() {
  constexpr std::uint32_t kThreads = 24;
  constexpr std::uint64_t kBytes = kThreads * (std::uint64_t{8} << 20);
  PlatformParams params = plain_machine();
  params.core.cores = kThreads;
  params.llc = {.size = 33 << 20, .ways = 11, .latency = 20 * kNs};
  params.llc.slices = 24;
  params.controller.channels = 6;
  params.pmem.dimms = 6;
  params.pmem.wear_stall_writes = 14'000;
  params.pmem.wear_stall = 30'000 * kNs;
  const std::uint64_t before = resident_bytes();
  Fill fill(kThreads, kBytes);
  SimulateOptions options;
  options.length.measured_operations = std::int64_t{1} << 40;
  const LaneResult result = simulate(fill, kThreads, std::span(&params, 1), options).front();
  const std::uint64_t after = resident_bytes();
  ensure(result.groups[0].user_bytes == static_cast<std::int64_t>(kBytes), "not everything was touched");
  return static_cast<double>(after - before) / kBytes;
}

/// What a run needs beside the bytes that it simulates (tags, queues, streams, tables) is at most a quarter of
/// them.
TEST(MemoryOfARunDeathTest, IsLittleMoreThanTheBytesThatItTouches) {
  if (kSanitized || resident_bytes() == 0) {
    GTEST_SKIP() << "the sanitizer has memory of its own, or the system does not tell";
  }
  // A process of its own: of a heap that other tests have left it had once been 1.29, alone it is 1.01.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto measure = [] {
    const double found = bytes_per_byte();
    std::cerr << found << " bytes per byte\n";
    // At least 1: the bytes are there, the bound means something.
    std::exit(found >= 1 && found <= 1.25 ? 0 : 1);
  };
  EXPECT_EXIT(measure(), testing::ExitedWithCode(0), "bytes per byte");
}

}  // namespace
}  // namespace pmsim::machine
