#include "pmsim/memory/host_memory.hpp"
#include "config_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::memory {
namespace {

static_assert(Memory<HostMemory>);
static_assert(!Memory<HostMapping>);

/// A file of one test, removed at its end.
struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() /
       ("pmsim-host-memory-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
        ::testing::UnitTest::GetInstance()->current_test_info()->name()))
          .string();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

HostOptions small() {
  HostOptions options;
  options.capacities = Capacities::of(1 << 20, 1 << 20, 0);
  return options;
}

std::vector<std::byte> bytes_from(std::size_t count, std::uint64_t seed) {
  std::vector<std::byte> data(count);
  Random random(seed);
  for (std::byte& byte : data)
    byte = static_cast<std::byte>(random.next());
  return data;
}

/// A small persistent algorithm with every kind of call: an append-only log with a checksum and a chained
/// index.
template <Memory M>
std::uint64_t append_and_chain(M& memory, Address log, Address index, FlushKind kind) {
  std::uint64_t sum = 0;
  Address tail = log;
  Address previous = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    memory.operation_begin();
    const auto payload = bytes_from(8 * (1 + i % 23), i);
    memory.stream(tail, payload);
    memory.sfence(1);
    const Address node = index + 48 * i;
    memory.template store<std::uint64_t>(node, previous);
    memory.template store<std::uint32_t>(node + 8, static_cast<std::uint32_t>(payload.size()));
    memory.write(node + 13, std::span(payload).first(7));
    memory.flush(node, 48, kind, 2);
    memory.sfence(3);
    memory.compute(100, 10);
    memory.prefetch(node);
    previous = node;
    tail += payload.size();
    memory.operation_end();
  }
  for (Address node = previous; node != 0; node = memory.template load_dependent<std::uint64_t>(node)) {
    sum += memory.template load<std::uint32_t>(node + 8) + memory.template load<std::uint8_t>(node + 13);
  }
  memory.mfence(4);
  return sum;
}

/// Runs it on fresh regions and returns every byte it left behind.
template <Memory M>
std::pair<std::uint64_t, std::vector<std::byte>> run_on(M& memory, FlushKind kind) {
  const Address log = memory.allocate(Medium::kPmem, 8192, {"log"});
  const Address index = memory.allocate(Medium::kPmem, 4096, {"index"});
  const std::uint64_t sum = append_and_chain(memory, log, index, kind);
  std::vector<std::byte> left(8192 + 4096);
  memory.read(log, std::span(left).first(8192));
  memory.read(index, std::span(left).subspan(8192));
  return {sum, left};
}

TEST(HostMemory, TheSameAlgorithmLeavesTheSameBytesOnBothMemories) {
  for (const FlushKind kind : {FlushKind::kClwb, FlushKind::kClflushOpt, FlushKind::kClflush}) {
    if (!cpu_features().has(kind))
      continue;
    SimMemory simulated;
    HostMemory host(small());
    EXPECT_EQ(run_on(simulated, kind), run_on(host, kind)) << name_of(kind);
  }
}

TEST(HostMemory, EveryStreamWidthOfThisMachineWritesTheSameBytes) {
  std::vector<CpuFeatures> choices;
  CpuFeatures features = cpu_features();
  choices.push_back(features);
  features.avx512f = false;
  choices.push_back(features);
  features.avx = false;
  choices.push_back(features);
  for (const CpuFeatures& choice : choices) {
    HostOptions options = small();
    options.features = choice;
    HostMemory memory(options);
    const Address base = memory.allocate(Medium::kDram, 8192);
    for (const std::size_t start : {0U, 8U, 56U, 64U, 72U}) {
      for (const std::size_t count : {8U, 64U, 72U, 136U, 1024U}) {
        const auto data = bytes_from(count, start * 4096 + count);
        memory.stream(base + start, data);
        memory.sfence();
        std::vector<std::byte> read(count);
        memory.read(base + start, read);
        EXPECT_EQ(read, data) << start << " " << count;
      }
    }
  }
}

template <Memory M>
void copy_lines_and_compare(M& memory) {
  const Address source = memory.allocate(Medium::kPmem, 4096);
  const Address target = memory.allocate(Medium::kDram, 4096);
  for (std::uint32_t lines = 0; lines <= 21; ++lines) {
    const auto content = bytes_from(4096, lines);
    const auto before = bytes_from(4096, 100 + lines);
    memory.write(source, content);
    memory.write(target, before);
    memory.copy_lines(source + 64, target + 128, lines);
    std::vector<std::byte> found(4096);
    memory.read(target, found);
    std::vector<std::byte> wanted = before;
    std::copy_n(content.begin() + 64, lines * 64, wanted.begin() + 128);
    EXPECT_EQ(found, wanted) << lines << " lines";
  }
  EXPECT_THROW(memory.copy_lines(source + 8, target, 1), SimulationError);
  EXPECT_THROW(memory.copy_lines(target, source, 1), SimulationError);  // not failure-atomic: dram alone
}

TEST(HostMemory, LinesAreCopiedAsOnSimMemory) {
  HostMemory host(small());
  copy_lines_and_compare(host);
  SimMemory simulated({.capacities = small().capacities});
  copy_lines_and_compare(simulated);
}

TEST(HostMemory, WritesOfAnyAlignmentTouchExactlyTheirBytes) {
  HostMemory memory(small());
  const Address base = memory.allocate(Medium::kDram, 256);
  std::vector<std::byte> expected(64);
  for (std::size_t start = 0; start < 16; ++start) {
    for (std::size_t count = 0; count < 40; ++count) {
      const auto data = bytes_from(count, start * 64 + count);
      memory.write(base + start, data);
      std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(start));
      std::vector<std::byte> read(64);
      memory.read(base, read);
      ASSERT_EQ(read, expected) << start << " " << count;
    }
  }
}

TEST(HostMemory, AFileKeepsItsContentsForTheNextMapping) {
  const TemporaryFile file;
  HostOptions options = small();
  options.pmem_path = file.path;
  const auto data = bytes_from(1000, 1);
  {
    HostMemory memory(options);
    const Address base = memory.allocate(Medium::kPmem, 4096);
    memory.write(base + 24, data);
    memory.flush(base + 24, data.size(), FlushKind::kClflush);
    memory.sfence();
  }
  HostMemory memory(options);
  const Address base = memory.allocate(Medium::kPmem, 4096);
  std::vector<std::byte> read(1000);
  memory.read(base + 24, read);
  EXPECT_EQ(read, data);
  EXPECT_FALSE(HostMemory(small()).pmem_is_dax());  // anonymous memory never is
}

TEST(HostMemory, AFileIsMappedByOneAtATime) {
  const TemporaryFile file;
  HostOptions options = small();
  options.pmem_path = file.path;
  {
    HostMemory first(options);
    EXPECT_EQ(
        config_error([&] { HostMemory{options}; }),
        file.path + ": is in use, by this or another process; name another file, or wait until it is free");
    const HostMemory moved(std::move(first));
    EXPECT_NE(config_error([&] { HostMemory{options}; }), "");
  }
  EXPECT_NO_THROW(HostMemory{options});
}

TEST(HostMemory, BlocksGoThroughTheFile) {
  const TemporaryFile file;
  HostOptions options = small();
  options.capacities = Capacities::of(1 << 20, 0, 1 << 20);
  options.block_path = file.path;
  HostMemory memory(options);
  const Address frame = memory.allocate(Medium::kDram, 8192);
  const Address device = memory.allocate(Medium::kBlock, 1 << 20);
  const auto data = bytes_from(4096, 3);
  memory.write(frame, data);
  memory.block_write(device + 4096, frame, 4096);
  memory.block_flush();
  memory.block_read(device + 4096, frame + 4096, 4096);
  std::vector<std::byte> read(4096);
  memory.read(frame + 4096, read);
  EXPECT_EQ(read, data);
  EXPECT_EQ(std::filesystem::file_size(file.path), 1U << 20);
  std::filesystem::resize_file(file.path, 4096);
  EXPECT_NE(
      config_error([&] { memory.block_read(device + 4096, frame, 512); }).find(file.path + ": ends before"),
      std::string::npos);
  EXPECT_NE(config_error([&] { memory.block_read(device + 4, frame, 512); }).find("multiples of 512"),
            std::string::npos);
}

TEST(HostMemory, ThreadsExchangeWhatTheyExpect) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kTurns = 1000;
  HostMemory memory(small());
  const Address word = memory.allocate(Medium::kDram, 64);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
        std::uint64_t expected = memory.load<std::uint64_t>(word);
        for (std::uint64_t found = 0;
             (found = memory.compare_exchange(word, expected, expected + 1)) != expected;)
          expected = found;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(memory.load<std::uint64_t>(word), kThreads * kTurns);
  EXPECT_EQ(memory.compare_exchange(word, 0, 1), kThreads * kTurns);
  EXPECT_EQ(memory.load<std::uint64_t>(word), kThreads * kTurns);
}

/// Threads of the host append to one log by groups: every piece is in the file when its commit returns, and
/// there are never more flushes than pieces.
TEST(HostMemory, ThreadsCommitInGroups) {
  constexpr std::uint64_t kThreads = 4, kTurns = 50;
  const TemporaryFile file;
  HostOptions options = small();
  options.capacities = Capacities::of(1 << 20, 0, 1 << 20);
  options.block_path = file.path;
  HostMemory memory(options);
  const Address staging = memory.allocate(Medium::kDram, kThreads * 512);
  const Address latch = memory.allocate(Medium::kDram, kLineBytes);
  const Address device = memory.allocate(Medium::kBlock, 1 << 20);
  std::atomic<std::uint64_t> tail = 0;
  std::atomic<int> lost = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::ifstream written(file.path, std::ios::binary);
      std::vector<char> found(512);
      for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
        const std::vector<std::byte> piece = bytes_from(512, 1 + thread * kTurns + turn);
        memory.write(staging + 512 * thread, piece);
        const std::uint64_t version = memory.acquire(latch, LatchMode::kExclusive);
        const std::uint64_t place = tail.fetch_add(512);
        const std::uint64_t gathered = memory.block_gather(device + place, staging + 512 * thread, 512);
        memory.release(latch, LatchMode::kExclusive, version);
        memory.block_commit(gathered);
        written.seekg(static_cast<std::streamoff>(place));
        written.read(found.data(), 512);
        lost += std::memcmp(found.data(), piece.data(), 512) == 0 ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(lost, 0);
  EXPECT_GE(memory.block_groups(), kTurns);
  EXPECT_LE(memory.block_groups(), kThreads * kTurns);
}

TEST(HostMemory, AGroupThatCannotBeWrittenIsAnErrorForAllInIt) {
  HostOptions options = small();
  options.capacities = Capacities::of(1 << 20, 0, 1 << 20);
  options.block_path = "/dev/full";
  HostMemory memory(options);
  const Address staging = memory.allocate(Medium::kDram, 512);
  const Address device = memory.allocate(Medium::kBlock, 1 << 20);
  const std::uint64_t first = memory.block_gather(device, staging, 512);
  const std::uint64_t second = memory.block_gather(device + 512, staging, 512);
  EXPECT_NE(config_error([&] { memory.block_commit(second); }).find("/dev/full: write failed"),
            std::string::npos);
  EXPECT_NE(config_error([&] { memory.block_commit(first); }).find("/dev/full: write failed"),
            std::string::npos);
}

TEST(HostMemory, AnAlgorithmsClwbIsTheBestFlushOfTheCpuWhereThatIsWanted) {
  HostOptions options = small();
  options.best_flush = true;
  options.features.clwb = false;
  for (const bool opt : {true, false}) {
    options.features.clflushopt = opt && cpu_features().clflushopt;
    HostMemory memory(options);
    const Address base = memory.allocate(Medium::kPmem, 4096);
    memory.store<std::uint64_t>(base + 100 * 8, 7);
    memory.flush(base, 4096);
    memory.sfence();
    EXPECT_EQ(memory.load<std::uint64_t>(base + 100 * 8), 7U);
    if (!options.features.clflushopt) {  // who names one of the others means it
      EXPECT_THROW(memory.flush(base, 64, FlushKind::kClflushOpt), ConfigError);
    }
  }
  options.features.clflush = false;
  HostMemory memory(options);
  const Address base = memory.allocate(Medium::kPmem, 4096);
  EXPECT_THROW(memory.flush(base, 64), ConfigError);
}

TEST(HostMemory, AMissingInstructionIsNamedWithARemedy) {
  HostOptions options = small();
  options.features.clwb = false;
  options.features.clflushopt = false;
  HostMemory memory(options);
  const Address base = memory.allocate(Medium::kPmem, 64);
  memory.flush(base, 64, FlushKind::kClflush);
  EXPECT_EQ(config_error([&] { memory.flush(base, 64, FlushKind::kClwb); }),
            "this CPU has no clwb instruction; use clflush, which every x86-64 CPU has, or run the algorithm "
            "on SimMemory");
  EXPECT_NE(config_error([&] { memory.flush(base, 64, FlushKind::kClflushOpt); }).find("clflushopt"),
            std::string::npos);
  options.features = CpuFeatures{};
  EXPECT_NE(config_error([&] { HostMemory{options}; }).find("non-temporal stores"), std::string::npos);
}

TEST(HostMemory, BadFilesAndAccessesAreClearErrors) {
  HostOptions options = small();
  options.pmem_path = "/nonexistent/directory/file";
  EXPECT_EQ(config_error([&] { HostMemory{options}; }),
            "/nonexistent/directory/file: cannot be opened: No such file or directory; name a writable file in "
            "an existing "
            "directory");
  options.pmem_path = std::filesystem::temp_directory_path().string();
  EXPECT_NE(config_error([&] { HostMemory{options}; }).find("cannot be opened"), std::string::npos);
  // A store to a page for which the disk has no room would kill the process.
  const TemporaryFile file;
  const std::uint64_t left = std::filesystem::space(std::filesystem::temp_directory_path()).available;
  options.pmem_path = file.path;
  options.capacities = Capacities::of(1 << 20, left + (std::uint64_t{1} << 30), 0);
  EXPECT_NE(config_error([&] { HostMemory{options}; }).find("free some space or lower the capacity"),
            std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(file.path), 0U);
  options = small();
  options.capacities = Capacities::of(1 << 20, 0, 4096);
  EXPECT_NE(config_error([&] { HostMemory{options}; }).find("block_path is empty"), std::string::npos);

  HostMemory memory(small());
  const Address base = memory.allocate(Medium::kDram, 1 << 20, {"all"});
  EXPECT_NE(config_error([&] { static_cast<void>(memory.load<int>(base + (1 << 20))); }).find("'all'"),
            std::string::npos);
  EXPECT_NE(config_error([&] { memory.allocate(Medium::kDram, 1); }).find("do not fit"), std::string::npos);
  EXPECT_THROW(static_cast<void>(memory.load<std::uint64_t>(base + 4)), SimulationError);
  // In no window, in one without memory, and in none that there are.
  for (const Address address : {Address{0}, medium_base(Medium::kBlock), base + 4 * kMediumBytes, ~Address{7}})
    EXPECT_NE(config_error([&] { static_cast<void>(memory.load<std::uint64_t>(address)); }), "");
  EXPECT_NE(config_error([&] { static_cast<void>(memory.view(base, ~std::size_t{0})); }), "");
}

}  // namespace
}  // namespace pmsim::memory
