#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pmsim/core/crc32c.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/trace/sources.hpp"

namespace pmsim::trace {
namespace {

using memory::Medium;
using memory::OpKind;
using memory::Stream;
using Ops = std::vector<MicroOp>;

bool same(const MicroOp& a, const MicroOp& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Streams given as lists, served in batches of a size that fits no chunk.
class ListSource final : public memory::Source {
 public:
  explicit ListSource(std::vector<Ops> threads) : threads_(std::move(threads)), at_(threads_.size(), 0) {}
  void refill(std::uint32_t thread, Stream& stream) override {
    for (int i = 0; i < 1000 + static_cast<int>(thread) && at_[thread] < threads_[thread].size(); ++i) {
      const MicroOp& op = threads_[thread][at_[thread]++];
      stream.push(op.kind, op.address, op.bytes, op.flags, op.site);
    }
  }

 private:
  std::vector<Ops> threads_;
  std::vector<std::size_t> at_;
};

Ops drain(memory::Source& source, std::uint32_t thread) {
  Ops ops;
  Stream stream;
  do {
    stream.clear();
    source.refill(thread, stream);
    ops.insert(ops.end(), stream.data(), stream.data() + stream.size());
  } while (!stream.empty());
  return ops;
}

class Trace : public ::testing::Test {
 protected:
  std::string path =
      (std::filesystem::temp_directory_path() /
       (std::string("pmsim-trace-") + ::testing::UnitTest::GetInstance()->current_test_info()->name()))
          .string();
  ~Trace() override { std::filesystem::remove(path); }

  TraceInfo record(const std::vector<Ops>& threads, const std::string& provenance = "{}") {
    ListSource list(threads);
    TraceWriter writer(path, static_cast<std::uint32_t>(threads.size()), provenance);
    RecordingSource source(list, writer);
    for (std::uint32_t thread = 0; thread < threads.size(); ++thread)
      drain(source, thread);
    return writer.finish();
  }
  void expect_round_trip(const std::vector<Ops>& threads) {
    record(threads);
    ReplaySource replay(path);
    ASSERT_EQ(replay.info().threads(), threads.size());
    for (std::uint32_t thread = 0; thread < threads.size(); ++thread) {
      const Ops read = drain(replay, thread);
      ASSERT_EQ(read.size(), threads[thread].size());
      for (std::size_t i = 0; i < read.size(); ++i)
        ASSERT_TRUE(same(read[i], threads[thread][i])) << i;
    }
    replay.check_served();
  }
  std::string content() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
  std::string verify_error() const {
    try {
      verify(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no ConfigError";
  }
};

/// Every field drawn from its whole range.
Ops wild(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Ops ops(count);
  for (MicroOp& op : ops) {
    op.kind = static_cast<OpKind>(random.below(memory::kOpKinds));
    op.address = random.next() >> random.below(64);
    op.bytes = static_cast<std::uint32_t>(random.next() >> (32 + random.below(32)));
    op.flags = static_cast<std::uint8_t>(random.next());
    op.site = static_cast<std::uint16_t>(random.next());
  }
  return ops;
}

/// What engines do: looking up records, and now and then a log record and a field written in place.
Ops transactions(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Ops ops;
  const std::uint64_t table = memory::medium_base(Medium::kPmem);
  std::uint64_t log = table + (std::uint64_t{64} << 30);
  for (std::size_t i = 0; i < count; ++i) {
    ops.push_back({0, 0, OpKind::kOperationBegin, 0, 0});
    ops.push_back({300, 120, OpKind::kCompute, 0, 0});
    const std::uint64_t record = table + 256 * random.below(1 << 28);
    for (std::uint64_t line = 0; line < 4; ++line)
      ops.push_back({record + 64 * line, 64, OpKind::kLoad, 0, 0});
    if (random.below(4) == 0) {
      ops.push_back({log, 64, OpKind::kStreamStore, 0, 0});
      ops.push_back({0, 0, OpKind::kSfence, 0, 1});
      log += 64;
      ops.push_back({record + 8, 8, OpKind::kStore, 0, 0});
      ops.push_back({record, 64, OpKind::kClwb, 0, 2});
      ops.push_back({0, 0, OpKind::kSfence, 0, 3});
    }
    ops.push_back({0, 0, OpKind::kOperationEnd, 0, 0});
  }
  return ops;
}

Ops loads(std::size_t count, std::uint64_t bytes, const std::function<std::uint64_t(std::uint64_t)>& address) {
  Ops ops;
  for (std::uint64_t i = 0; ops.size() < count; ++i) {
    const std::uint64_t start = memory::medium_base(Medium::kPmem) + address(i);
    for (std::uint64_t line = start; line < start + bytes; line += 64)
      ops.push_back({line, 64, OpKind::kLoad, 0, 0});
  }
  return ops;
}

TEST_F(Trace, Crc32cIsThatOfTheStandard) {
  const std::string digits = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(digits))), 0xe3069283U);  // RFC 3720's check value
  const std::array<std::byte, 32> zeros{};
  EXPECT_EQ(crc32c(zeros), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::span(zeros).subspan(5), crc32c(std::span(zeros).first(5))), 0x8a9136aaU);
}

TEST_F(Trace, ArbitraryStreamsComeBackAsTheyWere) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    expect_round_trip({wild(seed * 37, seed), wild(kChunkOps + seed, seed + 100), {}, wild(1, seed + 200)});
  }
}

TEST_F(Trace, RealisticStreamsComeBackAsTheyWere) {
  expect_round_trip({transactions(5000, 1), transactions(20, 2), wild(3 * kChunkOps, 3)});
  expect_round_trip({wild(kChunkOps, 4)});  // exactly one chunk
}

TEST_F(Trace, TheFileSaysWhatItHolds) {
  const auto ops = transactions(100, 1);
  record({ops, {ops[0]}}, R"({"scenario": "x"})");
  const TraceInfo info = read_info(path);
  EXPECT_EQ(info.provenance, R"({"scenario": "x"})");
  EXPECT_EQ(info.threads(), 2U);
  EXPECT_EQ(info.operations(), ops.size() + 1);
  EXPECT_EQ(info.operations_by_thread[1], 1U);
  EXPECT_EQ(info.operations_by_kind[static_cast<std::size_t>(OpKind::kOperationBegin)], 101U);
  EXPECT_EQ(info.operations_by_kind[static_cast<std::size_t>(OpKind::kLoad)], 400U);
  EXPECT_EQ(info.file_bytes, std::filesystem::file_size(path));
  EXPECT_STREQ(name_of(OpKind::kStreamStore), "stream_store");
}

TEST_F(Trace, BatchesComeBackAsTheyWereServed) {
  const std::vector<std::size_t> sizes{1, 1, 1, 700, 3 * kChunkOps, kChunkOps, 2, kMostChunkOps - 2};
  TraceWriter writer(path, 1, "{}");
  for (const std::size_t size : sizes) {
    writer.append(0, wild(size, size));
    writer.append(0, {});
  }
  writer.finish();
  ReplaySource replay(path);
  for (const std::size_t size : sizes) {
    Stream stream;
    replay.refill(0, stream);
    EXPECT_EQ(stream.size(), size);
  }
  replay.check_served();
}

TEST_F(Trace, ThePlanOfTheRunIsKept) {
  TraceWriter writer(path, 2, "{}",
                     {.seed = 1ULL << 63,
                      .warmup_operations = 2,
                      .untimed_operations = 1,
                      .measured_operations = 3,
                      .pmem_footprint = 4,
                      .group_of_thread = {1, 0}});
  writer.finish();
  const RunPlan plan = read_info(path).plan;
  EXPECT_EQ(plan.seed, 1ULL << 63);
  EXPECT_EQ(plan.warmup_operations, 2U);
  EXPECT_EQ(plan.untimed_operations, 1U);
  EXPECT_EQ(plan.measured_operations, 3U);
  EXPECT_EQ(plan.pmem_footprint, 4U);
  EXPECT_EQ(plan.group_of_thread, (std::vector<std::uint32_t>{1, 0}));
}

TEST_F(Trace, TheFileSaysWhatAPlatformMustHold) {
  const std::uint64_t dram = memory::medium_base(Medium::kDram);
  const std::uint64_t block = memory::medium_base(Medium::kBlock);
  const TraceInfo info = record({{{dram + 1024, 8, OpKind::kLoad, 0, 0},
                                  {dram, 64, OpKind::kLoad, 0, 0},
                                  {block + 8192, 4096, OpKind::kBlockRead, 0, 0},
                                  {1000, 10, OpKind::kCompute, 0, 0},
                                  {0, 0, OpKind::kSfence, 0, 0}}});
  EXPECT_EQ(info.extent_bytes, (std::array<std::uint64_t, 3>{1032, 0, 12288}));
  EXPECT_EQ(info.irregular_operations, 0U);
  EXPECT_EQ(record({{{64, 8, OpKind::kLoad, 0, 0}, {dram + 60, 8, OpKind::kStore, 0, 0}}}).irregular_operations,
            2U);
  EXPECT_EQ(record({{{block, 0, OpKind::kBlockGather, 0, 0},
                     {block + 8, 512, OpKind::kBlockWrite, 0, 0},
                     {block, 100, OpKind::kBlockRead, 0, 0},
                     {dram, 512, OpKind::kBlockRead, 0, 0},
                     {block, 8, OpKind::kLoad, 0, 0},
                     {kMostCycles + 1, 1, OpKind::kCompute, 0, 0}}})
                .irregular_operations,
            6U);
  EXPECT_EQ(record({{{block, 512, OpKind::kBlockGather, 0, 0},
                     {block, 0, OpKind::kBlockCommit, 0, 0},
                     {block, 0, OpKind::kBlockFlush, 0, 0},
                     {kMostCycles, 1, OpKind::kCompute, 0, 0}}})
                .irregular_operations,
            0U);
}

TEST_F(Trace, TheSameStreamsGiveTheSameBytes) {
  record({transactions(3000, 1), wild(100, 2)});
  const std::string first = content();
  record({transactions(3000, 1), wild(100, 2)});
  EXPECT_EQ(content(), first);
}

TEST_F(Trace, FilesStayWithinTheDocumentedBytesPerOperation) {
  constexpr std::size_t kCount = 200'000;
  const auto bytes_per_op = [&](const Ops& ops) {
    const double bytes = static_cast<double>(record({ops}).file_bytes);
    return bytes / static_cast<double>(ops.size());
  };
  Random random(1);
  const auto anywhere = [&](std::uint64_t size) {
    return size * random.below((std::uint64_t{8} << 30) / size);
  };
  const double sequential = bytes_per_op(loads(kCount, 64, [](std::uint64_t i) { return 64 * i; }));
  const double random_64 = bytes_per_op(loads(kCount, 64, [&](std::uint64_t) { return anywhere(64); }));
  const double random_256 = bytes_per_op(loads(kCount, 256, [&](std::uint64_t) { return anywhere(256); }));
  const double engine = bytes_per_op(transactions(20'000, 1));
  RecordProperty("sequential_thousandths", static_cast<int>(sequential * 1000));
  RecordProperty("random_64_thousandths", static_cast<int>(random_64 * 1000));
  RecordProperty("random_256_thousandths", static_cast<int>(random_256 * 1000));
  RecordProperty("engine_thousandths", static_cast<int>(engine * 1000));
  EXPECT_LE(sequential, 0.02);
  EXPECT_LE(random_64, 4.1);
  EXPECT_LE(random_256, 1.2);
  EXPECT_LE(engine, 1.2);
}

TEST_F(Trace, ACorruptByteAnywhereIsDetected) {
  record({transactions(10, 1), transactions(5, 2)}, R"({"seed": 1})");
  const std::string intact = content();
  ASSERT_LT(intact.size(), 2000U);
  for (std::size_t at = 0; at < intact.size(); ++at) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string damaged = intact;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      replace(damaged);
      const std::string message = verify_error();
      ASSERT_NE(message.find(path), std::string::npos) << at << ": " << message;
      ASSERT_NE(message.find("record"), std::string::npos) << at << ": " << message;  // the remedy
    }
  }
  replace(intact);
  EXPECT_EQ(verify_error(), "no ConfigError");
}

/// Made by hand, with right checksums: a footer that says less than the chunks do. Replays choose by it whether
/// a platform has the memory that the trace needs.
TEST_F(Trace, AFooterThatHidesWhereOperationsAreIsDetected) {
  const auto put = [](std::string& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
    for (std::size_t byte = 0; byte < size; ++byte)
      bytes[at + byte] = static_cast<char>(value >> (8 * byte));
  };
  const std::uint64_t pmem = memory::medium_base(Medium::kPmem);
  constexpr std::size_t kExtents = 8 + 8 * memory::kOpKinds + 8;  // of one thread
  struct Case {
    MicroOp op;
    std::size_t field;
    std::uint64_t said;
  };
  for (const auto& [op, field, said] : {Case{{64, 8, OpKind::kLoad, 0, 0}, kExtents + 24, 0},
                                        Case{{pmem + 60, 8, OpKind::kStore, 0, 0}, kExtents + 24, 0},
                                        Case{{pmem + 4096, 8, OpKind::kLoad, 0, 0}, kExtents + 8, 4096}}) {
    record({{op}});
    EXPECT_EQ(verify_error(), "no ConfigError");
    std::string bytes = content();
    const std::size_t trailer = bytes.size() - kTrailerBytes;
    const TraceInfo info = read_info(path);
    const std::size_t footer = info.chunks.back().offset + info.chunks.back().bytes;
    put(bytes, footer + field, said, 8);
    const auto part = std::as_bytes(std::span(bytes)).subspan(footer, trailer - footer - 4);
    put(bytes, trailer - 4, crc32c(part), 4);
    replace(bytes);
    EXPECT_NE(verify_error().find("where the footer says that there are none"), std::string::npos)
        << verify_error();
  }
}

TEST_F(Trace, ATruncatedOrLengthenedFileIsDetected) {
  record({transactions(10, 1)});
  const std::string intact = content();
  for (std::size_t length = 0; length < intact.size(); ++length) {
    replace(intact.substr(0, length));
    ASSERT_NE(verify_error().find("damaged or cut short"), std::string::npos) << length;
  }
  replace(intact + "x");
  EXPECT_NE(verify_error().find("damaged or cut short"), std::string::npos);
}

TEST_F(Trace, WhatIsNotATraceIsSaidSo) {
  EXPECT_NE(verify_error().find("no such file"), std::string::npos);
  replace("kind = \"bandwidth\"\n");
  EXPECT_NE(verify_error().find("not a pmsim trace"), std::string::npos);
  record({transactions(1, 1)});
  std::string newer = content();
  newer[8] = 4;
  replace(newer);
  EXPECT_NE(verify_error().find("format version 4, this pmsim reads version 3"), std::string::npos);
  EXPECT_THROW(TraceReader(std::filesystem::temp_directory_path()), ConfigError);
  EXPECT_THROW(TraceWriter("/nonexistent/trace", 1, "{}"), ConfigError);
  EXPECT_THROW(TraceWriter(std::filesystem::temp_directory_path(), 1, "{}"), ConfigError);
  EXPECT_THROW(TraceWriter(path, 0, "{}"), ConfigError);
}

TEST_F(Trace, AnUnfinishedTraceLeavesNoFile) {
  {
    TraceWriter writer(path, 1, "{}");
    writer.append(0, transactions(3000, 1));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_F(Trace, AReplaySharesLinesWhereTheRecordedRunHas) {
  for (const bool shares : {false, true}) {
    RunPlan plan;
    plan.shares_lines = shares;
    TraceWriter writer(path, 1, "{}", plan);
    writer.append(0, transactions(1, 1));
    writer.finish();
    EXPECT_EQ(ReplaySource(path).shares_lines(), shares);
  }
}

TEST_F(Trace, AReplayThatStopsEarlyIsNoticed) {
  record({transactions(10, 1), transactions(10, 2)});
  ReplaySource replay(path);
  drain(replay, 0);
  EXPECT_THROW(replay.check_served(), ConfigError);
  Stream stream;
  EXPECT_THROW(replay.refill(2, stream), SimulationError);
  replay.drain();
  replay.check_served();
}

}  // namespace
}  // namespace pmsim::trace
