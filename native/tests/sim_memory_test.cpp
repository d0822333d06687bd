#include "pmsim/memory/sim_memory.hpp"
#include "config_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::memory {
namespace {

struct NoStream : SimMemory {
  void stream(Address, std::span<const std::byte>) = delete;
};
static_assert(Memory<SimMemory>);
static_assert(!Memory<NoStream> && !Memory<int> && !Memory<Stream>);

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed = 1) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(i * 7 + seed);
  return data;
}

void expect_op(const MicroOp& op, OpKind kind, Address address, std::uint32_t bytes, std::uint8_t flags = 0,
               Site site = 0) {
  EXPECT_EQ(op.kind, kind);
  EXPECT_EQ(op.address, address);
  EXPECT_EQ(op.bytes, bytes);
  EXPECT_EQ(op.flags, flags);
  EXPECT_EQ(op.site, site);
}

TEST(SimMemory, EveryCallLeavesOneMicroOperationPerLine) {
  SimMemory memory;
  Stream stream;
  const Address base = memory.allocate(Medium::kPmem, 4096);
  memory.attach(stream);
  memory.operation_begin();
  memory.store<std::uint64_t>(base + 8, 42);
  EXPECT_EQ(memory.load_dependent<std::uint64_t>(base + 8), 42U);
  memory.write(base + 60, pattern(72));
  memory.stream(base + 256, pattern(128));
  memory.flush(base + 60, 72, FlushKind::kClflushOpt, 7);
  memory.sfence(8);
  memory.mfence();
  memory.prefetch(base + 100);
  memory.compute(300, 20);
  memory.mispredict();
  memory.operation_end();

  std::size_t i = 0;
  ASSERT_EQ(stream.size(), 17U);
  expect_op(stream[i++], OpKind::kOperationBegin, 0, 0);
  expect_op(stream[i++], OpKind::kStore, base + 8, 8);
  expect_op(stream[i++], OpKind::kLoad, base + 8, 8, kDependent);
  expect_op(stream[i++], OpKind::kStore, base + 60, 4);
  expect_op(stream[i++], OpKind::kStore, base + 64, 64);
  expect_op(stream[i++], OpKind::kStore, base + 128, 4);
  expect_op(stream[i++], OpKind::kStreamStore, base + 256, 64);
  expect_op(stream[i++], OpKind::kStreamStore, base + 320, 64);
  expect_op(stream[i++], OpKind::kClflushOpt, base, 64, 0, 7);
  expect_op(stream[i++], OpKind::kClflushOpt, base + 64, 64, 0, 7);
  expect_op(stream[i++], OpKind::kClflushOpt, base + 128, 64, 0, 7);
  expect_op(stream[i++], OpKind::kSfence, 0, 0, 0, 8);
  expect_op(stream[i++], OpKind::kMfence, 0, 0);
  expect_op(stream[i++], OpKind::kPrefetch, base + 64, 64);
  expect_op(stream[i++], OpKind::kCompute, 300, 20);
  expect_op(stream[i++], OpKind::kCompute, 0, 1, kDependent);
  expect_op(stream[i++], OpKind::kOperationEnd, 0, 0);
}

TEST(SimMemory, CopiedLinesCostWhatTheCompiledLoopCosts) {
  SimMemory memory({.capacities = Capacities::of(4096, 4096, 0)});
  const Address source = memory.allocate(Medium::kPmem, 2048);
  const Address target = memory.allocate(Medium::kDram, 2048);
  // benchmarks/gather.cpp counts them: 38 instructions a turn of four lines, 12 for each line that is left.
  for (const auto& [lines, instructions] : {std::pair{1U, 20U}, {3U, 44U}, {4U, 44U}, {5U, 58U}, {16U, 158U}}) {
    Stream stream;
    memory.attach(stream);
    memory.copy_lines(source, target, lines);
    memory.detach();
    std::uint32_t sum = 0;
    std::uint32_t loads = 0;
    for (std::size_t op = 0; op < stream.size(); ++op) {
      sum += stream[op].kind == OpKind::kCompute ? stream[op].bytes : 1;
      loads += stream[op].kind == OpKind::kLoad ? 1 : 0;
    }
    EXPECT_EQ(sum, instructions) << lines << " lines";
    EXPECT_EQ(loads, lines);
  }
}

TEST(SimMemory, DetachedItEmitsNothingButStillWrites) {
  SimMemory memory;
  Stream stream;
  const Address base = memory.allocate(Medium::kDram, 64);
  memory.attach(stream);
  memory.detach();
  memory.store<std::uint32_t>(base, 5);
  EXPECT_TRUE(stream.empty());
  EXPECT_EQ(memory.load<std::uint32_t>(base), 5U);
}

TEST(SimMemory, ReadsReturnTheLastWrittenBytesAcrossPagesAndZerosElsewhere) {
  SimMemory memory;
  const Address base = memory.allocate(Medium::kDram, 1 << 20);
  const auto written = pattern(10'000);
  memory.write(base + 4'000, written);
  std::vector<std::byte> read(10'002);
  memory.read(base + 3'999, read);
  EXPECT_EQ(read.front(), std::byte{0});
  EXPECT_EQ(read.back(), std::byte{0});
  EXPECT_TRUE(std::equal(written.begin(), written.end(), read.begin() + 1));
  EXPECT_EQ(memory.touched_bytes(), 4 * kPageBytes);  // bytes 4000..13999 touch pages 0 to 3
}

TEST(SimMemory, ARegionWithoutContentsReadsZerosAndCostsNothing) {
  SimMemory memory;
  const Address base = memory.allocate(Medium::kPmem, std::uint64_t{360} << 30, {"big", 4096, Backing::kNone});
  memory.store<std::uint64_t>(base + (std::uint64_t{300} << 30), 7);
  EXPECT_EQ(memory.load<std::uint64_t>(base + (std::uint64_t{300} << 30)), 0U);
  EXPECT_EQ(memory.touched_bytes(), 0U);
}

TEST(SimMemory, MainMemoryIsInUseByThePieceThatHasBeenWrittenTo) {
  constexpr std::uint64_t kPiece = 4 * kPageBytes;
  SimOptions options;
  options.capacities.one_main_memory = true;
  SimMemory memory(options);
  const Address pages = memory.allocate(Medium::kDram, 8 * kPiece);
  memory.allocate(Medium::kBlock, kPiece);
  EXPECT_EQ(memory.main_memory_in_use(kPiece), 0U);
  memory.write(pages + 3 * kPiece - 1, pattern(2));
  EXPECT_EQ(memory.main_memory_in_use(kPiece), 2 * kPiece);
  memory.allocate(Medium::kPmem, kPiece / 2, {.backing = Backing::kNone});
  EXPECT_EQ(memory.main_memory_in_use(kPiece), 3 * kPiece);
  const Address more = memory.allocate(Medium::kDram, kPiece / 2);  // shares its piece with the one before
  memory.write(more, pattern(1));
  EXPECT_EQ(memory.main_memory_in_use(kPiece), 3 * kPiece);
}

TEST(SimMemory, AllocationIsAlignedBumpedAndBoundedByTheCapacity) {
  SimMemory memory({.capacities = Capacities::of(1 << 20, 10'000, 0)});
  EXPECT_EQ(memory.allocate(Medium::kPmem, 100), medium_base(Medium::kPmem));
  EXPECT_EQ(memory.allocate(Medium::kPmem, 100, {"b", 256}), medium_base(Medium::kPmem) + 256);
  EXPECT_EQ(memory.allocate(Medium::kPmem, 10'000 - 4'096, {"c", 4096}), medium_base(Medium::kPmem) + 4096);
  EXPECT_EQ(config_error([&] { memory.allocate(Medium::kPmem, 1, {"d", 64}); }),
            "region 'd' on pmem: 1 bytes do not fit: 10000 of 10000 bytes of pmem are in use; make the region "
            "smaller or "
            "the platform's capacity larger");
  EXPECT_NE(config_error([&] { memory.allocate(Medium::kDram, 0); }).find("size is 0 bytes"),
            std::string::npos);
  EXPECT_NE(config_error([&] { memory.allocate(Medium::kDram, 1, {"a", 96}); }).find("power of two"),
            std::string::npos);
  EXPECT_NE(
      config_error([] { SimMemory({.capacities = Capacities::of(kMediumBytes + 1, 0, 0)}); }).find("16 TiB"),
      std::string::npos);
}

TEST(SimMemory, AccessOutsideOfARegionNamesTheRegion) {
  SimMemory memory;
  const Address base = memory.allocate(Medium::kPmem, 100, {"table"});
  static_cast<void>(memory.load<std::uint32_t>(base + 96));
  EXPECT_EQ(config_error([&] { static_cast<void>(memory.load<std::uint64_t>(base + 96)); }),
            "access to 8 bytes at 0x200000000060: outside of region 'table' on pmem, which is 100 bytes at "
            "0x200000000000");
  EXPECT_NE(config_error([&] { memory.flush(base + 90, 20); }).find("'table'"), std::string::npos);
  EXPECT_NE(config_error([&] { memory.prefetch(base + 100); }).find("'table'"), std::string::npos);
  EXPECT_NE(config_error([&] { memory.prefetch(0); }).find("not an address"), std::string::npos);
  EXPECT_NE(config_error([&] { memory.store<int>(medium_base(Medium::kDram), 1); }).find("no region of dram"),
            std::string::npos);
  EXPECT_NE(config_error([&] { memory.store<int>(64, 1); }).find("not an address"), std::string::npos);
  EXPECT_THROW(static_cast<void>(memory.load<std::uint64_t>(base + 4)), SimulationError);
  EXPECT_THROW(memory.stream(base, pattern(12)), SimulationError);
}

TEST(SimMemory, ADisabledSiteLeavesNeitherMicroOperationsNorDurability) {
  SimMemory memory({.persistence = Persistence::kAdr});
  Stream stream;
  const Address base = memory.allocate(Medium::kPmem, 128);
  memory.attach(stream);
  memory.disable_site(3);
  memory.store<std::uint64_t>(base, 1);
  memory.flush(base, 8, FlushKind::kClwb, 3);
  memory.sfence(4);
  EXPECT_EQ(stream.size(), 2U);
  EXPECT_EQ(memory.word_state(base), WordState::kMaybe);
  memory.disable_site(kNoSite);
  memory.flush(base, 8, FlushKind::kClwb, 3);
  memory.sfence(4);
  EXPECT_EQ(memory.word_state(base), WordState::kDurable);
}

TEST(SimMemory, ADisabledBlockFlushLeavesSectorsUncertain) {
  SimMemory memory({.persistence = Persistence::kAdr});
  const Address frame = memory.allocate(Medium::kDram, 512);
  const Address device = memory.allocate(Medium::kBlock, 512);
  memory.store<std::uint64_t>(frame, 1);
  memory.block_write(device, frame, 512);
  memory.disable_site(9);
  memory.block_flush(9);
  EXPECT_EQ(memory.durability().count(10), 2U);
  memory.block_flush(8);
  EXPECT_EQ(memory.durability().count(10), 1U);
}

TEST(SimMemory, BlocksMoveBetweenTheDeviceAndMemory) {
  SimMemory memory;
  Stream stream;
  const Address frame = memory.allocate(Medium::kDram, 8192);
  const Address device = memory.allocate(Medium::kBlock, 1 << 20);
  memory.write(frame, pattern(4096));
  memory.attach(stream);
  memory.block_write(device + 8192, frame, 4096);
  memory.block_flush();
  memory.block_read(device + 8192, frame + 4096, 4096);
  ASSERT_EQ(stream.size(), 3U);
  expect_op(stream[0], OpKind::kBlockWrite, device + 8192, 4096);
  expect_op(stream[1], OpKind::kBlockFlush, medium_base(Medium::kBlock), 0);
  expect_op(stream[2], OpKind::kBlockRead, device + 8192, 4096);
  std::vector<std::byte> read(4096);
  memory.read(frame + 4096, read);
  EXPECT_EQ(read, pattern(4096));
  EXPECT_NE(config_error([&] { memory.block_read(device + 1, frame, 512); }).find("multiples of 512"),
            std::string::npos);
  EXPECT_NE(config_error([&] { static_cast<void>(memory.load<int>(device)); }).find("block_read()"),
            std::string::npos);
  EXPECT_NE(config_error([&] { memory.block_write(frame, frame, 512); }).find("not on block"),
            std::string::npos);
}

TEST(SimMemory, WearOfARegionIsListedLineByLineAndCountsFromZeroAfterAReset) {
  SimMemory memory({.wear = true});
  const Address one = memory.allocate(Medium::kPmem, 4096);
  const Address other = memory.allocate(Medium::kPmem, 4096);
  const auto persist = [&](Address address) {
    memory.store<std::uint64_t>(address, 1);
    memory.flush(address, 8);
  };
  persist(one);
  persist(one + 640);
  persist(one + 640);
  persist(other);
  EXPECT_EQ(memory.line_writes(one), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(memory.line_writes(other), (std::vector<std::uint32_t>{1}));
  memory.store<std::uint64_t>(one, 2);  // modified before the reset, written back after it
  memory.reset_wear();
  EXPECT_TRUE(memory.line_writes(one).empty());
  EXPECT_EQ(memory.wear().blocks.writes, 0U);
  memory.flush(one, 8);
  EXPECT_EQ(memory.line_writes(one), (std::vector<std::uint32_t>{1}));
  EXPECT_THROW(static_cast<void>(SimMemory().line_writes(one)), ConfigError);
}

TEST(SimMemory, WearOfABlockBeginsAnewAfterAReset) {
  SimMemory memory({.wear = true});
  const Address base = memory.allocate(Medium::kPmem, 4096);
  memory.stream(base, pattern(64));
  memory.reset_wear();
  memory.stream(base + 64, pattern(64));  // the block of the latest write before the reset
  EXPECT_EQ(memory.wear().lines.writes, 1U);
  EXPECT_EQ(memory.wear().blocks.writes, 1U);
}

TEST(SimMemory, WearOfALineThatIsStreamedAsAWholeLeavesNothingToWriteBack) {
  SimMemory memory({.wear = true});
  const Address base = memory.allocate(Medium::kPmem, 4096);
  memory.store<std::uint64_t>(base, 1);
  memory.stream(base, pattern(32));
  EXPECT_EQ(memory.wear().modified_lines, 1U) << "the other half may still hold a store";
  memory.stream(base, pattern(64));
  EXPECT_EQ(memory.wear().modified_lines, 0U);
  EXPECT_EQ(memory.wear().lines.writes, 2U);
  memory.flush(base, 64);
  EXPECT_EQ(memory.wear().lines.writes, 2U);
}

TEST(SimMemory, LosingDramKeepsPmemAndTheBlockDevice) {
  SimMemory memory;
  const Address dram = memory.allocate(Medium::kDram, 4096);
  const Address pmem = memory.allocate(Medium::kPmem, 4096);
  const Address block = memory.allocate(Medium::kBlock, 4096);
  memory.store<std::uint64_t>(dram, 7);
  memory.store<std::uint64_t>(pmem, 8);
  memory.block_write(block, dram, 512);
  memory.lose_dram();
  EXPECT_EQ(memory.load<std::uint64_t>(dram), 0U);
  EXPECT_EQ(memory.load<std::uint64_t>(pmem), 8U);
  memory.block_read(block, dram, 512);
  EXPECT_EQ(memory.load<std::uint64_t>(dram), 7U);
}

TEST(SimMemory, ABlockDeviceMayLiveInATemporaryFile) {
  SimMemory memory({.block_in_file = true});
  const Address dram = memory.allocate(Medium::kDram, 4096);
  const Address block = memory.allocate(Medium::kBlock, std::uint64_t{1} << 36);  // sparse: nothing is taken
  const Address far = block + (std::uint64_t{1} << 35);
  memory.store<std::uint64_t>(dram, 7);
  memory.block_write(far, dram, 512);
  memory.store<std::uint64_t>(dram, 0);
  memory.block_read(block, dram, 512);
  EXPECT_EQ(memory.load<std::uint64_t>(dram), 0U);
  memory.block_read(far, dram, 512);
  EXPECT_EQ(memory.load<std::uint64_t>(dram), 7U);
}

TEST(SimMemory, WearCountsWriteBacksOfModifiedLinesAndMergesRunsInABlock) {
  SimMemory memory({.wear = true});
  const Address base = memory.allocate(Medium::kPmem, 4096);
  memory.flush(base, 64);  // not modified: no write
  for (int round = 0; round < 3; ++round) {
    memory.store<std::uint64_t>(base, 1);
    memory.store<std::uint64_t>(base + 8, 1);
    memory.flush(base, 64);
    memory.flush(base, 64);
  }
  memory.stream(base + 256, pattern(256));
  memory.store<std::uint64_t>(base + 1024, 1);

  const WearSummary wear = memory.wear();
  EXPECT_EQ(wear.lines.writes, 3U + 4U);
  EXPECT_EQ(wear.lines.units, 5U);
  EXPECT_EQ(wear.lines.maximum, 3U);
  EXPECT_EQ(wear.lines.histogram[0], 4U);
  EXPECT_EQ(wear.lines.histogram[1], 1U);  // three times is in 2..3
  EXPECT_EQ(wear.blocks.writes, 2U);
  EXPECT_EQ(wear.blocks.maximum, 1U);
  EXPECT_EQ(wear.modified_lines, 1U);
}

std::uint64_t status_kib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":"))
      return std::stoull(line.substr(key.size() + 1));
  }
  return 0;
}

TEST(SimMemory, HostMemoryStaysWithinAQuarterAboveTheBytesTouched) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's shadow memory counts as ours";
#endif
  if (status_kib("VmRSS") == 0)
    GTEST_SKIP() << "needs /proc/self/status";
  // 4,096 pages spread over 1 GiB, with wear, the costliest of the constant-size extras.
  SimMemory memory({.wear = true});
  const std::uint64_t region = std::uint64_t{1} << 30;
  const Address base = memory.allocate(Medium::kPmem, region);
  const std::uint64_t before = status_kib("VmRSS") + status_kib("VmPTE");
  Random random(1);
  const auto chunk = pattern(64 * 1024);
  for (int i = 0; i < 1024; ++i)
    memory.write(base + random.below(region / chunk.size()) * chunk.size(), chunk);
  const std::uint64_t grown = (status_kib("VmRSS") + status_kib("VmPTE") - before) * 1024;
  RecordProperty("overhead_percent", static_cast<int>(grown * 100 / memory.touched_bytes()));
  EXPECT_LE(grown, memory.touched_bytes() * 5 / 4);
}

TEST(SimMemory, ABlockDeviceInAFileStaysOutOfTheProcess) {
  if (status_kib("RssShmem") + status_kib("RssFile") == 0)
    GTEST_SKIP() << "needs /proc/self/status";
  SimMemory memory({.block_in_file = true});
  const std::uint64_t chunk = std::uint64_t{1} << 20;
  const std::uint64_t chunks = 160;
  const Address dram = memory.allocate(Medium::kDram, chunk);
  const Address block = memory.allocate(Medium::kBlock, chunks * chunk);
  const auto held = [] { return status_kib("RssShmem") + status_kib("RssFile"); };
  const std::uint64_t before = held();
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < chunks; ++i) {
    memory.store<std::uint64_t>(dram, i);
    memory.block_write(block + i * chunk, dram, chunk);
    most = std::max(most, held() - before);
  }
  EXPECT_LE(most, 72 * 1024U);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    memory.block_read(block + i * chunk, dram, chunk);
    ASSERT_EQ(memory.load<std::uint64_t>(dram), i);
  }
}

TEST(SimMemory, PollsAfterSoManyFencesAndBlockTransfersWithoutAStreamToo) {
  SimMemory memory;
  const Address page = memory.allocate(Medium::kDram, 4096);
  const Address device = memory.allocate(Medium::kBlock, 4096);
  int calls = 0;
  memory.on_poll([&calls] { ++calls; });
  const auto work = [&](std::uint32_t count) {
    for (std::uint32_t number = 0; number < count; ++number) {
      memory.sfence();
      memory.block_write(device, page, 4096);
      memory.block_read(device, page, 4096);
      memory.mfence();
    }
  };
  work(SimMemory::kPollEvery);
  EXPECT_EQ(calls, 4);
  Stream stream;
  int from_stream = 0;
  stream.on_poll([&from_stream] { ++from_stream; });
  memory.on_poll({});
  memory.attach(stream);
  work(SimMemory::kPollEvery);
  EXPECT_EQ(from_stream, 4);
  memory.detach();
  memory.on_poll([] { throw std::runtime_error("Ctrl-C"); });
  EXPECT_THROW(work(SimMemory::kPollEvery), std::runtime_error);
}

}  // namespace
TEST(SimMemory, WhoWaitsForALatchLetsOthersGoOn) {
  SimMemory memory;
  const Address latch = memory.allocate(Medium::kDram, 64);
  const std::uint64_t held = memory.acquire(latch, LatchMode::kExclusive);
  EXPECT_THROW(memory.acquire(latch, LatchMode::kShared), SimulationError) << "there is nobody else";
  int waits = 0;
  memory.on_latch_wait([&] {
    if (++waits == 3)
      memory.release(latch, LatchMode::kExclusive, held);
  });
  EXPECT_EQ(memory.acquire(latch, LatchMode::kAttempt), LatchWord::kNotAcquired) << "an attempt does not wait";
  EXPECT_EQ(memory.acquire(latch, LatchMode::kExclusive), held + 1);
  EXPECT_EQ(waits, 3);
}

TEST(SimMemory, ALockedInstructionIsOneStep) {
  SimMemory memory({.persistence = Persistence::kAdr});
  const Address latch = memory.allocate(Medium::kDram, 64);
  std::vector<std::uint64_t> seen;
  memory.on_persistence_step([&] {
    std::uint64_t word = 0;
    memory.peek(latch, std::as_writable_bytes(std::span(&word, 1)));
    seen.push_back(word);
  });
  static_cast<void>(memory.acquire(latch, LatchMode::kExclusive));
  static_cast<void>(memory.fetch_add(latch + 8, 5));
  static_cast<void>(memory.compare_exchange(latch + 8, 5, 6));
  EXPECT_EQ(seen, std::vector<std::uint64_t>(3, LatchWord::kWriter)) << "nobody sees it half done";
}

TEST(SimMemory, CompareExchangeChangesWhatIsExpectedAndFencesEitherWay) {
  SimMemory memory({.persistence = Persistence::kAdr});
  Stream stream;
  memory.attach(stream);
  const Address words = memory.allocate(Medium::kPmem, 128);
  memory.store<std::uint64_t>(words + 64, 1);
  memory.flush(words + 64, 8);
  EXPECT_EQ(memory.compare_exchange(words, 7, 9), 0U);
  EXPECT_EQ(memory.load<std::uint64_t>(words), 0U);
  EXPECT_EQ(memory.word_state(words + 64), WordState::kDurable)
      << "one that fails is a locked instruction, too";
  EXPECT_EQ(memory.compare_exchange(words, 0, 9), 0U);
  EXPECT_EQ(memory.load<std::uint64_t>(words), 9U);
  EXPECT_NE(memory.word_state(words), WordState::kDurable);
  const std::span<const MicroOp> emitted(stream.data(), stream.size());
  EXPECT_EQ(std::ranges::count(emitted, OpKind::kAtomic, &MicroOp::kind), 2);
}

}  // namespace pmsim::memory
