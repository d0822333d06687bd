#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/scatter.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/workloads/oltp/ycsb.hpp"
#include "pmsim/workloads/oltp/zipf.hpp"
#include "reference_engine.hpp"

namespace pmsim::workloads::oltp {
namespace {

using memory::SimMemory;
using reference::ReferenceEngine;

constexpr std::uint64_t kRows = 1'000;
constexpr std::uint64_t kRuns = 20'000;

/// A mix on the reference engine, after `kRuns` transactions.
struct Ran {
  SimMemory memory;
  ReferenceEngine<SimMemory> engine;
  Ycsb<SimMemory> ycsb;

  explicit Ran(YcsbOptions options) : ycsb(options) {
    ycsb.load(memory, engine, 0.66, {});
    Random random(5);
    for (std::uint64_t run = 0; run < kRuns; ++run)
      ycsb.transaction(memory, engine, random);
  }
  /// Within five standard deviations of a share of all transactions.
  static void expect_share(std::uint64_t count, double share) {
    const double runs = static_cast<double>(kRuns);
    EXPECT_NEAR(static_cast<double>(count) / runs, share, 5 * std::sqrt(share * (1 - share) / runs));
  }
  [[nodiscard]] std::uint64_t reads() const {
    std::uint64_t sum = 0;
    for (const auto& [key, count] : engine.reads)
      sum += count;
    return sum;
  }
};

TEST(Ycsb, MixesHaveTheSharesOfTheBenchmark) {
  const Ran a({.rows = kRows, .mix = ycsb_mix("a")});
  Ran::expect_share(a.engine.updates, 0.5);
  EXPECT_EQ(a.reads(), kRuns - a.engine.updates);
  const Ran b({.rows = kRows, .mix = ycsb_mix("b")});
  Ran::expect_share(b.engine.updates, 0.05);
  const Ran c({.rows = kRows, .mix = ycsb_mix("c")});
  EXPECT_EQ(c.reads(), kRuns);
  Ran d({.rows = kRows, .mix = ycsb_mix("d")});
  Ran::expect_share(d.ycsb.rows() - kRows, 0.05);
  const Ran e({.rows = kRows, .mix = ycsb_mix("e")});
  Ran::expect_share(e.engine.scans.size(), 0.95);
  EXPECT_EQ(e.ycsb.rows() - kRows, kRuns - e.engine.scans.size());
  const Ran f({.rows = kRows, .mix = ycsb_mix("f")});
  Ran::expect_share(f.engine.updates, 0.5);
  EXPECT_EQ(f.reads(), kRuns);
  EXPECT_THROW(static_cast<void>(ycsb_mix("g")), ConfigError);
}

TEST(Ycsb, RowsInsertedInRandomOrderAreTheSameTable) {
  SimMemory memory;
  ReferenceEngine<SimMemory> bulk, grown;
  Ycsb<SimMemory> first({.rows = kRows, .mix = {}});
  first.load(memory, bulk, 0.66, {});
  Ycsb<SimMemory> second({.rows = kRows, .mix = {}, .loading = Loading::kInserts});
  second.load(memory, grown, 0.66, {});
  EXPECT_EQ(bulk.commits, 0U);
  EXPECT_EQ(grown.commits, kRows);
  EXPECT_EQ(second.check(memory, grown), "");
  std::array<std::byte, kYcsbRowBytes> of_bulk{}, of_grown{};
  for (std::uint64_t key = 0; key < kRows; ++key) {
    ASSERT_TRUE(bulk.read(memory, first.table(), key, 0, of_bulk));
    ASSERT_TRUE(grown.read(memory, second.table(), key, 0, of_grown));
    ASSERT_EQ(of_bulk, of_grown) << key;
  }
}

TEST(Ycsb, PopularKeysAreScatteredAndFollowZipfsLaw) {
  const Ran ran({.rows = kRows, .mix = {}});
  std::vector<std::uint64_t> counts;
  std::uint64_t hottest = 0, most = 0;
  for (const auto& [key, count] : ran.engine.reads) {
    counts.push_back(count);
    if (count > most)
      most = count, hottest = key;
  }
  std::ranges::sort(counts, std::greater{});
  const double first = 1 / zeta(kRows, 1);
  EXPECT_NEAR(static_cast<double>(counts[0]) / kRuns, first, 5 * std::sqrt(first / kRuns));
  EXPECT_EQ(hottest, Scatter(kRows, 1)(0));
}

TEST(Ycsb, TheLatestRowsArePopularInD) {
  Ran ran({.rows = kRows, .mix = ycsb_mix("d")});
  const Scatter places(std::uint64_t{1} << 32, 1);
  std::uint64_t recent = 0;
  for (const auto& [key, count] : ran.engine.reads) {
    ASSERT_LT(places.inverse(key), ran.ycsb.rows());
    recent += places.inverse(key) >= kRows ? count : 0;  // inserted during the run
  }
  EXPECT_GT(static_cast<double>(recent) / static_cast<double>(ran.reads()), 0.8);
}

TEST(Ycsb, NewRowsLieAnywhereAndScansMeetThem) {
  for (const char* mix : {"d", "e"}) {
    for (const Loading loading : {Loading::kBulk, Loading::kInserts}) {
      SimMemory memory;
      ReferenceEngine<SimMemory> engine;
      Ycsb<SimMemory> ycsb({.rows = kRows, .mix = ycsb_mix(mix), .loading = loading});
      ycsb.load(memory, engine, 0.66, {});
      const auto loaded = engine.table(ycsb.table());
      ASSERT_EQ(loaded.size(), kRows);
      Random random(5);
      for (std::uint64_t run = 0; run < kRuns; ++run)
        ycsb.transaction(memory, engine, random);
      auto& table = engine.table(ycsb.table());
      EXPECT_EQ(table.size(), ycsb.rows());
      EXPECT_EQ(ycsb.check(memory, engine), "");
      // By the rows that were loaded: each quarter of these has a quarter of the new ones between them.
      std::array<std::uint64_t, 4> quarters{};
      std::uint64_t below = 0;
      for (const auto& [key, row] : table) {
        if (loaded.contains(key))
          ++below;
        else
          ++quarters.at(std::min<std::uint64_t>(3, below * 4 / kRows));
      }
      const auto all = static_cast<double>(ycsb.rows() - kRows);
      for (const std::uint64_t quarter : quarters)
        EXPECT_NEAR(static_cast<double>(quarter) / all, 0.25, 0.1) << mix;
      table.erase(std::prev(table.end()));
      EXPECT_NE(ycsb.check(memory, engine), "") << "the last one is missing";
    }
  }
}

TEST(Ycsb, ScanLengthsAreUniformAndFullScansReadTheTable) {
  const Ran ran({.rows = 10'000, .mix = {.scans = 100}, .zipf = 0});
  const double mean =
      static_cast<double>(std::accumulate(ran.engine.scans.begin(), ran.engine.scans.end(), std::uint64_t{0})) /
      static_cast<double>(kRuns);
  EXPECT_NEAR(mean, 50.5, 1.5);  // less than half a row is cut off at the end of the table
  EXPECT_EQ(std::ranges::max(ran.engine.scans), 100U);
  EXPECT_EQ(std::ranges::min(ran.engine.scans), 1U);

  SimMemory memory;
  ReferenceEngine<SimMemory> engine;
  Ycsb<SimMemory> full({.rows = kRows, .mix = {.scans = 100}, .full_scan = true});
  full.load(memory, engine, 1, {});
  Random random(1);
  EXPECT_EQ(full.transaction(memory, engine, random).user_bytes, kRows * kYcsbFieldBytes);
  EXPECT_EQ(engine.scans.back(), kRows);
}

TEST(Ycsb, RowsHoldRealBytesAndUpdatesChangeOneFieldOnly) {
  Ran ran({.rows = 10, .mix = {}});
  ReferenceEngine<SimMemory>::Payload before(kYcsbRowBytes);
  Ycsb<SimMemory>::new_row(7, before);
  auto& table = ran.engine.table(ran.ycsb.table());
  EXPECT_EQ(table[7], before);
  EXPECT_NE(table[7], table[8]);

  Ycsb<SimMemory> writer({.rows = 10, .mix = {.updates = 100}});
  ReferenceEngine<SimMemory> engine;
  writer.load(ran.memory, engine, 1, {});
  Random random(2);
  writer.transaction(ran.memory, engine, random);
  std::size_t changed_fields = 0;
  for (std::uint64_t key = 0; key < 10; ++key) {
    Ycsb<SimMemory>::new_row(key, before);
    for (std::size_t at = 0; at < kYcsbRowBytes; at += kYcsbFieldBytes)
      changed_fields += std::equal(before.begin() + static_cast<std::ptrdiff_t>(at),
                                   before.begin() + static_cast<std::ptrdiff_t>(at + kYcsbFieldBytes),
                                   engine.table(writer.table())[key].begin() + static_cast<std::ptrdiff_t>(at))
                            ? 0U
                            : 1U;
  }
  EXPECT_EQ(changed_fields, 1U);
}

TEST(Ycsb, ItsCheckMissesAMissingRow) {
  Ran ran({.rows = kRows, .mix = {}});
  EXPECT_EQ(ran.ycsb.check(ran.memory, ran.engine), "");
  ran.engine.table(ran.ycsb.table()).erase(500);
  EXPECT_NE(ran.ycsb.check(ran.memory, ran.engine), "");
}

}  // namespace
}  // namespace pmsim::workloads::oltp
