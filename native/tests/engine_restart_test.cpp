#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine_model.hpp"

/// Random sequences with clean restarts and power failures, for the engines that are durable.

namespace pmsim::engines::model {
namespace {

struct Case {
  const char* name;
  EngineOptions options;
};

EngineOptions tiny(const char* engine, const char* log_device = "pmem") {
  EngineOptions options;
  options.engine = engine;
  options.page_bytes = 4096;
  options.dram_bytes = 64 * 4096;  // no-steal: what a transaction changes stays there
  options.pmem_bytes = 4 << 20;
  options.ssd_bytes = 0;
  options.log_bytes = 1 << 20;
  options.log_device = log_device;
  return options;
}

std::vector<Case> cases() {
  EngineOptions direct = tiny("nvm-direct");
  direct.log_bytes = 4 << 20;  // it logs the images of moved rows
  EngineOptions undo = direct;
  undo.engine = "nvm-undo";
  EngineOptions basic = tiny("basic-nvm-bm");
  EngineOptions file = tiny("file-bm");
  EngineOptions redirect = tiny("redirect-bm");
  EngineOptions tiers = tiny("three-tier");
  tiers.pmem_bytes = 12 * 4096;
  tiers.ssd_bytes = 4 << 20;
  EngineOptions spitfire = tiers;
  spitfire.engine = "spitfire";
  spitfire.migration = {0.3, 0.3, 0.5, 0.5};
  EngineOptions ssd = tiny("ssd-bm", "ssd");
  ssd.pmem_bytes = 0;
  ssd.ssd_bytes = 4 << 20;
  EngineOptions memory = tiny("main-memory");
  memory.dram_bytes = 4 << 20;
  memory.pmem_bytes = 0;
  EngineOptions memory_ssd = memory;
  memory_ssd.ssd_bytes = 4 << 20;
  memory_ssd.log_device = "ssd";
  return {
      {"nvm_direct", direct},    {"nvm_undo", undo},
      {"basic_nvm_bm", basic},   {"file_bm", file},
      {"redirect_bm", redirect}, {"three_tier", tiers},
      {"spitfire", spitfire},    {"ssd_bm", ssd},
      {"main_memory", memory},   {"main_memory_ssd", memory_ssd},
  };
}

class EngineRestart : public ::testing::TestWithParam<Case> {};

TEST_P(EngineRestart, KeepsWhatWasCommittedAndNothingElse) {
  const std::vector<Plan> plans{
      {.options = GetParam().options, .table = {"t", 8, 56}, .rows = 400, .keys = 900},
      {.options = GetParam().options, .table = {"t", 8, 1000}, .rows = 120, .keys = 250},
      {.options = GetParam().options, .table = {"t", 4, 37}, .rows = 0, .keys = 500},
  };
  for (const Plan& plan : plans) {
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      Sequence(plan, seed).run();
      if (HasFatalFailure())
        return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Durable, EngineRestart, ::testing::ValuesIn(cases()),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

/// Rows that are all loaded but the last ones, when the power fails.
class Interrupted final : public RowSource {
 public:
  Interrupted(const Rows& rows, SimMemory& memory, std::uint64_t seed)
      : source_(rows), left_(rows.size() * 9 / 10), memory_(memory), random_(seed) {}
  [[nodiscard]] std::uint64_t rows() const override { return source_.rows(); }
  std::uint64_t next(std::span<std::byte> payload) override {
    if (left_-- == 0)
      after = std::make_unique<SimMemory>(memory_.crash(memory_.durability().sample(random_)));
    return source_.next(payload);
  }

  std::unique_ptr<SimMemory> after;

 private:
  MapSource source_;
  std::uint64_t left_;
  SimMemory& memory_;
  Random random_;
};

/// Pages that had reached PMem as a cache were taken for pages of the engine, and one whose id had not, for
/// page 0.
TEST_P(EngineRestart, ACrashWhileATableIsLoadedLeavesNothingOfIt) {
  EngineOptions options = GetParam().options;
  if (options.engine == "three-tier" || options.engine == "spitfire")
    options.pmem_bytes = 80 * 4096;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto memory = std::make_unique<SimMemory>(memory::SimOptions{.persistence = memory::Persistence::kAdr});
    const auto& kind = engine_named<SimMemory>(options.engine);
    auto engine = kind.create(*memory, options);
    Rows rows;
    for (std::uint64_t key = 0; key < 100; ++key)
      rows[key] = Payload(1000, std::byte{static_cast<std::uint8_t>(key)});
    MapSource first(rows);
    const TableId table = engine->load(*memory, {"first", 8, 1000}, first, 1.0);
    Interrupted second(rows, *memory, seed);
    engine->load(*memory, {"second", 8, 1000}, second, 1.0);

    memory = std::move(second.after);
    EnginePlace place = engine->place();
    engine = kind.restart(*memory, options, place);
    EXPECT_EQ(engine->check(*memory), "");
    EXPECT_EQ(all_rows(*memory, *engine, table, 1000), rows);
    Random random(seed);
    for (std::uint64_t key = 100; key < 200; ++key) {
      rows[key] = Payload(1000, std::byte{static_cast<std::uint8_t>(random.next())});
      engine->begin(*memory);
      ASSERT_TRUE(engine->insert(*memory, table, key, rows[key]));
      engine->commit(*memory);
    }
    EXPECT_EQ(all_rows(*memory, *engine, table, 1000), rows);
    engine->shutdown(*memory);
    place = engine->place();
    engine = kind.restart(*memory, options, place);
    EXPECT_EQ(all_rows(*memory, *engine, table, 1000), rows);
    EXPECT_EQ(engine->check(*memory), "");
  }
}

/// A split that follows an update in the same transaction was forced into the log in the middle of itself,
/// where it changed pages on PMem.
TEST(EngineRestartOfSpitfire, OnlyAnUpdateIsMadeInPlaceOnPmem) {
  EngineOptions options = tiny("spitfire");
  options.pmem_bytes = 64 * 4096;
  options.ssd_bytes = 4 << 20;
  options.migration = {0, 0, 1, 1};  // never to DRAM for the sake of a hit
  auto memory = std::make_unique<SimMemory>();
  const auto engine = engine_named<SimMemory>("spitfire").create(*memory, options);
  Rows rows;
  for (std::uint64_t key = 0; key < 20; ++key)
    rows[10 * key] = Payload(1000, std::byte{1});
  MapSource source(rows);
  const TableId table = engine->load(*memory, {"t", 8, 1000}, source, 1.0);
  for (int round = 0; round < 2; ++round)
    ASSERT_EQ(all_rows(*memory, *engine, table, 1000).size(), rows.size());
  const auto before = engine->counters();
  engine->begin(*memory);
  ASSERT_TRUE(engine->update(*memory, table, 10, 100, Payload(8, std::byte{2})));
  ASSERT_TRUE(engine->insert(*memory, table, 15, Payload(1000, std::byte{3})));
  engine->commit(*memory);
  const auto after = engine->counters();
  EXPECT_EQ(after.at("splits") - before.at("splits"), 1);
  EXPECT_EQ(after.at("direct_writes") - before.at("direct_writes"), 1);
  EXPECT_EQ(after.at("log_early_appends") - before.at("log_early_appends"), 1);
}

}  // namespace
}  // namespace pmsim::engines::model
