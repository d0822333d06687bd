#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine_counted.hpp"

/// What a transaction of nvm-undo snapshots, counted (Imamura et al. 2017, section 4.2: ranges are named before
/// they change).

namespace pmsim::engines::model {
namespace {

class NvmUndo : public CountedEngine {
 protected:
  NvmUndo() : CountedEngine("nvm-undo") {}
};

TEST_F(NvmUndo, AnUpdateSnapshotsWhatItOverwrites) {
  const auto update = [this] { engine_->update(memory_, table_, 10, 0, Payload(16, std::byte{3})); };
  EXPECT_EQ(cost("log_batches", update), 1);
  EXPECT_EQ(cost("log_bytes", update), 16);
}

TEST_F(NvmUndo, AReadSnapshotsNothingAndWaitsForNothing) {
  Payload into(kPayload);
  const auto read = [&] { engine_->read(memory_, table_, 10, 0, into); };
  EXPECT_EQ(cost("log_batches", read), 0);
  EXPECT_EQ(fences(read), 0);
}

TEST_F(NvmUndo, ASnapshotWaitsTwiceAndACommitThreeTimes) {
  EXPECT_EQ(fences([this] { engine_->update(memory_, table_, 10, 0, Payload(16, std::byte{3})); }), 2 + 3);
  // Count, keys, and payloads, whose snapshot ends one ulog of 2 KiB and begins the next.
  EXPECT_EQ(fences([this] { insert(1); }), 4 * 2 + 3);
}

TEST_F(NvmUndo, AnInsertSnapshotsWhatItMovesAndNothingElse) {
  // Behind key 1 of 30 rows lie 29; their new places and that of the row are 30 keys and payloads.
  EXPECT_EQ(cost("log_batches", [this] { insert(1); }), 3);
  // Of 31 rows 28 lie behind key 3.
  EXPECT_EQ(cost("log_bytes", [this] { insert(3); }), 4 + 29 * (kKey + kPayload));
}

TEST_F(NvmUndo, ANewPageIsNotSnapshotted) {
  const double pages = engine_->counters().at("pages");
  for (std::uint64_t key = 1001; engine_->counters().at("pages") == pages; ++key) {
    const double bytes = cost("log_bytes", [&] { insert(key); });
    // The old leaf's count, the new root's entry and the catalog; never half a page of rows.
    EXPECT_LT(bytes, 600) << key;
  }
  EXPECT_GT(engine_->counters().at("splits"), 0);
}

TEST_F(NvmUndo, AnAbortedTransactionPutsEverythingBack) {
  const double pages = engine_->counters().at("pages");
  engine_->begin(memory_);
  for (std::uint64_t key = 1001; key < 1041; ++key)
    insert(key);
  insert(1);
  EXPECT_GT(engine_->counters().at("pages"), pages);
  engine_->abort(memory_);
  EXPECT_EQ(engine_->counters().at("pages"), pages);
  expect_as_loaded();
}

TEST_F(NvmUndo, ATransactionThatDoesNotFitTheLogSaysSo) {
  options_.log_bytes = 20 << 10;  // each snapshot takes a line
  SimMemory memory;
  const auto engine = engine_named<SimMemory>("nvm-undo").create(memory, options_);
  for (std::uint64_t key = 0; key < 400; ++key)
    rows_[key] = Payload(kPayload, std::byte{1});
  MapSource source(rows_);
  const TableId table = engine->load(memory, {"t", kKey, kPayload}, source, 1.0);
  engine->begin(memory);
  std::string message;
  try {
    for (std::uint64_t key = 0; key < 400; ++key)
      engine->update(memory, table, key, 0, Payload(8, std::byte{5}));
  } catch (const ConfigError& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "engine nvm-undo: a transaction changes more than fits into log_bytes = 20480; raise it");
}

/// Without a log: "unwritten" makes its records, "none" only what a rollback needs.
class NothingDurable : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::uint32_t kPayload = 56, kKey = 8;

  NothingDurable() {
    options_.engine = "main-memory";
    options_.page_bytes = 4096;
    options_.dram_bytes = 1 << 20;
    options_.log_device = GetParam();
    engine_ = engine_named<SimMemory>("main-memory").create(memory_, options_);
    rows_[2] = Payload(kPayload, std::byte{1});
    MapSource source(rows_);
    table_ = engine_->load(memory_, {"t", kKey, kPayload}, source, 1.0);
  }

  SimMemory memory_;
  EngineOptions options_;
  Rows rows_;
  std::unique_ptr<Engine<SimMemory>> engine_;
  TableId table_ = 0;
};

TEST_P(NothingDurable, ATransactionFlushesAndWaitsForNothing) {
  memory::Stream stream;
  memory_.attach(stream);
  engine_->begin(memory_);
  engine_->update(memory_, table_, 2, 0, Payload(16, std::byte{3}));
  engine_->commit(memory_);
  std::uint32_t bytes = 0;
  for (std::size_t op = 0; op < stream.size(); ++op) {
    EXPECT_LE(stream[op].kind, memory::OpKind::kCompute);
    EXPECT_NE(stream[op].kind, memory::OpKind::kSfence);
    EXPECT_NE(stream[op].kind, memory::OpKind::kClwb);
    bytes += stream[op].kind == memory::OpKind::kStore ? stream[op].bytes : 0;
  }
  // Row, page header and the note that the page is dirty; the undo record (head and before image) and its
  // batch. The redo record, head and after image, where it is made.
  const std::uint32_t none = 16 + 2 * 8 + 16 + (16 + 16) + 8;
  EXPECT_EQ(bytes, GetParam() == "none" ? none : none + 16 + 16);
}

TEST_P(NothingDurable, ARollbackWorksAndARestartIsRefused) {
  engine_->begin(memory_);
  engine_->update(memory_, table_, 2, 0, Payload(16, std::byte{3}));
  engine_->insert(memory_, table_, 3, Payload(kPayload, std::byte{4}));
  engine_->abort(memory_);
  engine_->begin(memory_);
  Payload into(kPayload);
  EXPECT_TRUE(engine_->read(memory_, table_, 2, 0, into));
  EXPECT_EQ(into, rows_[2]);
  EXPECT_FALSE(engine_->read(memory_, table_, 3, 0, into));
  engine_->commit(memory_);
  EXPECT_EQ(engine_->check(memory_), "");
  engine_->shutdown(memory_);
  EXPECT_THROW(engine_named<SimMemory>("main-memory").restart(memory_, options_, engine_->place()),
               ConfigError);
}

INSTANTIATE_TEST_SUITE_P(Devices, NothingDurable, ::testing::Values("unwritten", "none"));

}  // namespace
}  // namespace pmsim::engines::model
