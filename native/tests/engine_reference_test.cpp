#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine_model.hpp"

namespace pmsim::engines::model {
namespace {

bool has_buffer(std::string_view engine) {
  return engine.ends_with("-bm") || engine == "three-tier" || engine == "spitfire";
}

/// Under the write-ahead log.
bool has_log(std::string_view engine) { return has_buffer(engine) || engine == "main-memory"; }

/// Room for all pages in the engine's home tier alone, so that pages come and go all the time.
EngineOptions tiny(std::string_view engine) {
  const memory::Medium home = engine_named<SimMemory>(engine).home;
  EngineOptions options;
  options.engine = engine;
  options.page_bytes = 4096;
  options.debug_pages = true;
  options.dram_bytes = home == memory::Medium::kDram ? 4 << 20 : 40 * 4096;
  options.pmem_bytes = home == memory::Medium::kPmem ? 4 << 20 : 60 * 4096;
  options.ssd_bytes = 4 << 20;
  // A quarter of the log, free when a transaction begins, holds it and its rollback: 120 operations on rows of
  // 1,000 bytes, here; some engines log the images of moved rows too. One with a buffer gets 10.
  options.log_bytes = has_buffer(engine) ? 1 << 20 : 4 << 20;
  if (engine == "fptree") {
    options.dram_bytes = 1 << 20;
    options.pmem_bytes = 256 << 10;
  }
  return options;
}

/// Whether the engine takes such a table.
bool takes(std::string_view engine, const TableSpec& table, std::string_view leaf_layout) {
  return engine != "fptree" || (table.key_bytes == 8 && table.payload_bytes == 8 && leaf_layout == "sorted");
}

struct Shape {
  const char* name;
  TableSpec table;
  std::uint64_t rows;
  std::uint64_t keys;
};
const std::vector<Shape> kShapes{
    {"many rows per leaf", {"t", 8, 56}, 700, 1500},
    {"few", {"t", 4, 300}, 150, 400},
    {"four rows per leaf: three levels", {"t", 8, 1000}, 800, 1200},
    {"odd sizes, empty at first", {"t", 4, 37}, 0, 900},
    {"pairs", {"t", 8, 8}, 700, 1500},
};

std::vector<std::string> engines() {
  std::vector<std::string> names;
  for (const auto& kind : engine_kinds<SimMemory>())
    names.emplace_back(kind.name);
  return names;
}

class EngineReference : public ::testing::TestWithParam<std::string> {};

/// Over all shapes of tables and layouts of leaves that the engine takes.
void run_sequences(const std::string& engine, std::uint64_t seeds, bool restarts, const char* latches = "none",
                   const char* logs = "shared", const char* fixes = "counted") {
  std::uint64_t awaited = 0;
  for (const Shape& shape : kShapes) {
    for (const char* leaves : {"sorted", "hash"}) {
      if (!takes(engine, shape.table, leaves))
        continue;
      SCOPED_TRACE(shape.name);
      Plan plan{.options = tiny(engine), .table = shape.table, .rows = shape.rows, .keys = shape.keys};
      plan.options.leaf_layout = leaves;
      plan.restarts = restarts;
      plan.options.latches = latches;
      plan.options.threads = plan.options.latches == "none" ? 1 : 3;
      plan.options.logs = logs;
      plan.options.fixes = fixes;
      if (plan.options.logs == "per-thread")
        plan.options.log_bytes *= plan.options.threads;
      plan.operations = has_buffer(engine) ? 10 : 120;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        plan.fill = seed % 3 == 0 ? 1.0 : 0.66;
        Sequence sequence(plan, seed);
        sequence.run();
        ASSERT_EQ(sequence.acquired() == 0, plan.options.threads == 1);
        awaited += sequence.awaited();
        if (::testing::Test::HasFatalFailure())
          return;
      }
    }
  }
  EXPECT_EQ(awaited > 0, std::string_view(logs) == "per-thread" && has_log(engine));
}

TEST_P(EngineReference, BehavesAsAMapUnderRandomTransactions) { run_sequences(GetParam(), 12, false); }

TEST_P(EngineReference, BehavesAsAMapOverCrashesAndRestarts) { run_sequences(GetParam(), 6, true); }

TEST_P(EngineReference, BehavesAsAMapWhereThreadsTakeTurns) {
  run_sequences(GetParam(), 4, false, "optimistic");
  run_sequences(GetParam(), 4, false, "shared");
}

TEST_P(EngineReference, BehavesAsAMapOverCrashesOfSeveralThreads) {
  run_sequences(GetParam(), 3, true, "optimistic");
}

TEST_P(EngineReference, BehavesAsAMapWhereThreadsHaveLogsOfTheirOwn) {
  run_sequences(GetParam(), 3, false, "optimistic", "per-thread");
  run_sequences(GetParam(), 3, true, "optimistic", "per-thread");
}

TEST_P(EngineReference, BehavesAsAMapWhereFramesDoNotCountTheirUsers) {
  run_sequences(GetParam(), 3, true, "none", "shared", "optimistic");
  run_sequences(GetParam(), 3, false, "optimistic", "shared", "optimistic");
  run_sequences(GetParam(), 3, true, "optimistic", "per-thread", "optimistic");
}

/// The sequences above would prove little if they went around the hard parts.
TEST(EngineModel, SequencesSplitAndMerge) {
  for (const Shape& shape : std::span(kShapes).first(4)) {
    Plan plan{.options = tiny("main-memory"), .table = shape.table, .rows = shape.rows, .keys = shape.keys};
    plan.restarts = false;
    plan.transactions = 400;
    Sequence sequence(plan, 1);
    sequence.run();
    EXPECT_GE(sequence.counters()["splits"], 2) << shape.name;
    EXPECT_GE(sequence.counters()["merges"], 2) << shape.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineReference, ::testing::ValuesIn(engines()), [](const auto& parameter) {
  std::string name = parameter.param;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace pmsim::engines::model
