#include <gtest/gtest.h>

#include <cmath>

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

TEST_F(NvmDirect, AnErasedRowIsOneChange) {
  const auto erase = [this] { engine_->erase(memory_, table_, 0); };
  EXPECT_EQ(cost("barriers", erase), 3);
}

TEST_F(NvmDirect, AnAbortedInsertPutsTheMovedRowsBack) {
  engine_->begin(memory_);
  insert(1);
  insert(3);
  engine_->abort(memory_);
  expect_as_loaded();
}

}  // namespace
}  // namespace pmsim::engines::model
