#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine_counted.hpp"

/// What a transaction of nvm-direct costs in barriers and log, counted (van Renen et al. 2018, section 2.1).

namespace pmsim::engines::model {
namespace {

constexpr double kEntry = 32, kLine = 64;

double lines(double bytes) { return std::ceil(bytes / kLine) * kLine; }

class NvmDirect : public CountedEngine {
 protected:
  NvmDirect() : CountedEngine("nvm-direct") {}
};

TEST_F(NvmDirect, AnUpdateLogsBothImagesAndWaitsTwiceAndOnceForItsEnd) {
  const auto update = [this] { engine_->update(memory_, table_, 10, 0, Payload(16, std::byte{3})); };
  EXPECT_EQ(cost("barriers", update), 3);
  EXPECT_EQ(cost("log_bytes", update), lines(kEntry + 2 * 16));
}

TEST_F(NvmDirect, AReadLogsAndWaitsForNothing) {
  Payload into(kPayload);
  EXPECT_EQ(cost("barriers", [&] { engine_->read(memory_, table_, 10, 0, into); }), 0);
}

TEST_F(NvmDirect, AnInsertIsOneChangeHoweverManyRowsItMoves) {
  EXPECT_EQ(cost("barriers", [this] { insert(1); }), 3) << "29 rows move";
  EXPECT_EQ(cost("barriers", [this] { insert(1001); }), 3) << "no row moves";
  EXPECT_EQ(cost("barriers", [this] { insert(3), insert(5); }), 5);
}

TEST_F(NvmDirect, AnInsertLogsTheBeforeImagesOfWhatItMovesAndOfNothingElse) {
  // Behind key 1 of 30 rows lie 29; their new places and that of the row are 30 keys and payloads.
  EXPECT_EQ(cost("log_bytes", [this] { insert(1); }),
            lines(kEntry + 4) + lines(kEntry + 30 * kKey) + lines(kEntry + 30 * kPayload));
}

TEST_F(NvmDirect, CountsTheFencesOfAnInsertThatSplitsALeafToo) {
  std::size_t most = 0;
  for (std::uint64_t key = 1; key < 100; key += 2) {
    const double before = engine_->counters().at("barriers");
    const std::size_t waited = fences([&] { EXPECT_TRUE(insert(key)); });
    EXPECT_EQ(engine_->counters().at("barriers") - before, static_cast<double>(waited)) << "key " << key;
    most = std::max(most, waited);
  }
  EXPECT_GT(most, 3U) << "no leaf was split";
}

TEST_F(NvmDirect, AnErasedRowIsOneChange) {
  const auto erase = [this] { engine_->erase(memory_, table_, 0); };
  EXPECT_EQ(cost("barriers", erase), 3);
}

class NvmDirectHashLeaves : public CountedEngine {
 protected:
  NvmDirectHashLeaves() : CountedEngine("nvm-direct", "hash") {}
};

/// Also where rows behind the erased one move, and where their run goes on at the first slot.
TEST_F(NvmDirectHashLeaves, AnErasedRowIsOneChangeHoweverManyRowsMove) {
  std::uint64_t next = 1001;
  engine_->begin(memory_);
  while (rows_.size() < 54) {  // of 62
    ASSERT_TRUE(insert(next));
    rows_[next++] = Payload(kPayload, std::byte{2});
  }
  engine_->commit(memory_);
  double most = 0;
  while (!rows_.empty()) {
    const std::uint64_t key = std::next(rows_.begin(), static_cast<std::ptrdiff_t>(rows_.size() / 2))->first;
    const auto logged = [this] { return engine_->counters().at("log_bytes"); };
    const double before = logged();
    EXPECT_EQ(cost("barriers", [&] { EXPECT_TRUE(engine_->erase(memory_, table_, key)); }), 3);
    most = std::max(most, logged() - before);
    rows_.erase(key);
    expect_as_loaded();
  }
  EXPECT_GT(most, 10 * kPayload) << "no long run has moved";
}

TEST_F(NvmDirectHashLeaves, AnAbortedErasurePutsTheMovedRowsBack) {
  engine_->begin(memory_);
  for (const std::uint64_t key : {std::uint64_t{2}, std::uint64_t{30}, std::uint64_t{58}})
    EXPECT_TRUE(engine_->erase(memory_, table_, key));
  engine_->abort(memory_);
  expect_as_loaded();
}

TEST_F(NvmDirect, AnAbortedInsertPutsTheMovedRowsBack) {
  engine_->begin(memory_);
  insert(1);
  insert(3);
  engine_->abort(memory_);
  expect_as_loaded();
}

/// Of the entries of one step a crash may lose the first and keep the others, which then lie in the log of a
/// thread whose transaction never was. They must be dead when that thread's next one has logged an entry in the
/// place of the first, although other threads have changed pages in between.
TEST(NvmDirectThreads, EntriesBehindALostOneStayDead) {
  EngineOptions options;
  options.engine = "nvm-direct";
  options.page_bytes = 4096;
  options.pmem_bytes = 1 << 20;
  options.log_bytes = 64 << 10;
  options.threads = 2;
  constexpr std::uint32_t kPayload = 56;
  const auto& kind = engine_named<SimMemory>("nvm-direct");
  SimMemory memory({.persistence = memory::Persistence::kAdr});
  memory::Stream stream;
  Rows rows;
  for (std::uint64_t key = 0; key < 30; ++key)
    rows[key * 2] = Payload(kPayload, std::byte{1});
  auto engine = kind.create(memory, options);
  MapSource source(rows);
  const TableId table = engine->load(memory, {"t", 8, kPayload}, source, 1.0);
  const EnginePlace place = engine->place();
  const memory::Address log = place.log + options.log_bytes;  // of thread 1

  std::optional<SimMemory> after;
  Random random(1);
  memory.on_persistence_step([&] {
    const auto lost = [&] { return memory.word_state(log) == memory::WordState::kMaybe; };
    for (int tries = lost() && !after ? 50 : 0; tries > 0 && !after; --tries) {
      SimMemory crashed = memory.crash(memory.durability().sample(random));
      std::array<std::uint64_t, 16> words{};
      crashed.peek(log, std::as_writable_bytes(std::span(words)));
      const std::uint64_t entry = 1;  // of the first transaction of the thread
      if (words[0] == 0 && words[8] == entry && words[9] != 0 && words[11] != 0)
        after = std::move(crashed);
    }
  });
  memory.attach(stream, 1);
  engine->work_as(1);
  engine->begin(memory);
  engine->insert(memory, table, 57, Payload(kPayload, std::byte{2}));  // three entries: count, keys, payloads
  memory.on_persistence_step({});
  ASSERT_TRUE(after) << "no crash has left what this test is about";

  engine = kind.restart(*after, options, place);
  EXPECT_TRUE(all_rows(*after, *engine, table, kPayload) == rows);
  engine->work_as(0);
  engine->begin(*after);
  engine->insert(*after, table, 59, Payload(kPayload, std::byte{3}));
  engine->commit(*after);
  rows[59] = Payload(kPayload, std::byte{3});
  engine->work_as(1);
  engine->begin(*after);
  engine->update(*after, table, 10, 0, Payload(16, std::byte{4}));  // an entry of one line
  engine.reset();
  after->lose_dram();
  engine = kind.restart(*after, options, place);
  EXPECT_TRUE(all_rows(*after, *engine, table, kPayload) == rows);
  EXPECT_EQ(engine->check(*after), "");
}

}  // namespace
}  // namespace pmsim::engines::model
