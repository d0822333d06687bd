#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/workloads/oltp/requests.hpp"
#include "reference_engine.hpp"

namespace pmsim::workloads::oltp {
namespace {

using memory::SimMemory;
using reference::ReferenceEngine;
using enum RequestKind;

/// Requests on the reference engine, loaded and not yet run.
struct Loaded {
  SimMemory memory;
  ReferenceEngine<SimMemory> engine;
  Requests<SimMemory> requests;
  Random random{5};

  Loaded(std::vector<Request> sequence, std::uint64_t rows, Loading loading = Loading::kBulk)
      : requests({.requests = std::move(sequence), .rows = rows, .row_bytes = 24, .loading = loading}) {
    requests.load(memory, engine, 0.66, {});
  }
  auto& rows() { return engine.table(requests.tables().front()); }
  Outcome next() { return requests.transaction(memory, engine, random); }
};

TEST(Requests, KeysExistAtTheStartUnlessTheyAreInsertedFirst) {
  for (const Loading loading : {Loading::kBulk, Loading::kInserts}) {
    Loaded loaded({{0, 0, kRead}, {1, 0, kInsert}, {1, 0, kRead}, {2, 0, kInsert}, {3, 0, kDelete}}, 10,
                  loading);
    ASSERT_EQ(loaded.rows().size(), 10U);
    for (const std::uint64_t key : {0U, 1U, 2U, 3U}) {
      EXPECT_EQ(loaded.rows().contains(loaded.requests.slot_of(key)), key == 0 || key == 3) << key;
    }
    // Twelve places for four keys: every third.
    EXPECT_EQ(loaded.requests.slot_of(3), 9U);
    EXPECT_EQ(loaded.rows().rbegin()->first, 11U);
  }
}

TEST(Requests, DoWhatTheySay) {
  Loaded loaded({{0, 8, kUpdate},
                 {1, 0, kInsert},
                 {1, 0, kInsert},
                 {0, 0, kDelete},
                 {0, 0, kRead},
                 {0, 0, kUpdate},
                 {0, 0, kDelete},
                 {2, 16, kReadModifyWrite},
                 {1, 3, kScan},
                 {0, 0, kInsert}},
                5);
  const std::uint64_t first = loaded.requests.slot_of(0);
  const std::uint64_t second = loaded.requests.slot_of(1);
  const auto before = loaded.rows().at(first);
  EXPECT_EQ(loaded.next().user_bytes, 8U);
  const auto after = loaded.rows().at(first);
  EXPECT_FALSE(std::equal(before.begin(), before.begin() + 8, after.begin()));
  EXPECT_TRUE(std::equal(before.begin() + 8, before.end(), after.begin() + 8));
  EXPECT_EQ(loaded.next().user_bytes, 24U);
  const auto inserted = loaded.rows().at(second);
  EXPECT_EQ(loaded.next().user_bytes, 24U);
  EXPECT_NE(loaded.rows().at(second), inserted) << "an insert of a key that exists replaces its row";
  EXPECT_EQ(loaded.next().user_bytes, 24U);
  EXPECT_FALSE(loaded.rows().contains(first));
  for (int missing = 0; missing < 3; ++missing)
    EXPECT_EQ(loaded.next().user_bytes, 0U);
  EXPECT_EQ(loaded.next().user_bytes, 32U);
  EXPECT_EQ(loaded.next().user_bytes, 3U * 24);
  EXPECT_EQ(loaded.next().user_bytes, 24U);
  EXPECT_TRUE(loaded.rows().contains(first));
  EXPECT_EQ(loaded.requests.check(loaded.memory, loaded.engine), "");
  EXPECT_THROW(loaded.next(), SimulationError) << "there are no more";
}

TEST(Requests, ARowThatAnEngineLosesOrInventsIsFound) {
  Loaded lost({{0, 0, kRead}, {1, 0, kRead}}, 4);
  lost.rows().erase(lost.requests.slot_of(0));
  EXPECT_THROW(lost.next(), SimulationError);
  EXPECT_NE(lost.requests.check(lost.memory, lost.engine), "");

  Loaded invented({{0, 0, kDelete}, {0, 0, kRead}}, 4);
  const auto row = *invented.rows().find(invented.requests.slot_of(0));
  invented.next();
  EXPECT_EQ(invented.requests.check(invented.memory, invented.engine), "");
  invented.rows().insert(row);
  EXPECT_THROW(invented.next(), SimulationError);
  EXPECT_NE(invented.requests.check(invented.memory, invented.engine), "");
}

TEST(Requests, WhatCannotBeIsRefused) {
  const auto make = [](std::vector<Request> sequence, std::uint64_t rows) {
    Requests<SimMemory>({.requests = std::move(sequence), .rows = rows});
  };
  EXPECT_THROW(make({}, 4), ConfigError);
  EXPECT_THROW(make({{0, 0, kRead}, {1, 0, kRead}}, 1), ConfigError);
  EXPECT_NO_THROW(make({{0, 0, kRead}, {1, 0, kInsert}}, 1));
  EXPECT_THROW((void)unpack_requests(std::string(17, '\0')), ConfigError);
  EXPECT_THROW((void)unpack_requests(std::string(16, '\7')), ConfigError);
  EXPECT_EQ(unpack_requests(std::string(32, '\0')).size(), 2U);
}

}  // namespace
}  // namespace pmsim::workloads::oltp
