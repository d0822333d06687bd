#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine_model.hpp"

/// What a transaction of nvm-direct costs in barriers and log, counted (van Renen et al. 2018, section 2.1).

namespace pmsim::engines::model {
namespace {

constexpr std::uint32_t kPayload = 56, kKey = 8;
constexpr double kEntry = 32, kLine = 64;

double lines(double bytes) { return std::ceil(bytes / kLine) * kLine; }

class NvmDirect : public ::testing::Test {
 protected:
  NvmDirect() {
    EngineOptions options;
    options.engine = "nvm-direct";
    options.page_bytes = 4096;
    options.pmem_bytes = 1 << 20;
    options.log_bytes = 1 << 20;
    engine_ = engine_named<SimMemory>("nvm-direct").create(memory_, options);
    for (std::uint64_t key = 0; key < 30; ++key)
      rows_[key * 2] = Payload(kPayload, std::byte{1});
    MapSource source(rows_);
    table_ = engine_->load(memory_, {"t", kKey, kPayload}, source, 1.0);  // 30 of 62 rows of one leaf
  }

  /// What `operation` adds to a counter, its transaction included.
  template <typename Operation>
  double cost(const std::string& counter, Operation&& operation) {
    const double before = engine_->counters().at(counter);
    engine_->begin(memory_);
    operation();
    engine_->commit(memory_);
    EXPECT_EQ(engine_->check(memory_), "");
    return engine_->counters().at(counter) - before;
  }
  bool insert(std::uint64_t key) {
    return engine_->insert(memory_, table_, key, Payload(kPayload, std::byte{2}));
  }

  SimMemory memory_;
  Rows rows_;
  std::unique_ptr<Engine<SimMemory>> engine_;
  TableId table_ = 0;
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

TEST_F(NvmDirect, AnErasedRowIsOneChange) {
  const auto erase = [this] { engine_->erase(memory_, table_, 0); };
  EXPECT_EQ(cost("barriers", erase), 3);
}

TEST_F(NvmDirect, AnAbortedInsertPutsTheMovedRowsBack) {
  engine_->begin(memory_);
  insert(1);
  insert(3);
  engine_->abort(memory_);
  EXPECT_EQ(engine_->check(memory_), "");
  engine_->begin(memory_);
  Payload into(kPayload);
  for (const auto& [key, payload] : rows_) {
    EXPECT_TRUE(engine_->read(memory_, table_, key, 0, into));
    EXPECT_EQ(into, payload) << key;
  }
  EXPECT_FALSE(engine_->read(memory_, table_, 1, 0, into));
  engine_->commit(memory_);
}

}  // namespace
}  // namespace pmsim::engines::model
