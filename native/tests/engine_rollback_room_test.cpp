#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine_model.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/rollback_room.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// A transaction can be taken back in the pages that there are, by abort() and by a restart: what it has merged
/// is split again, into more pages than before.

namespace pmsim::engines {
namespace {

using memory::SimMemory;
using model::MapSource;
using model::Payload;
using model::Rows;

constexpr std::uint32_t kPage = 4096;
constexpr std::uint32_t kPayload = 500;

Rows rows(std::uint64_t count) {
  Rows all;
  for (std::uint64_t row = 0; row < count; ++row)
    all[10 * row] = Payload(kPayload, std::byte{static_cast<std::uint8_t>(row)});
  return all;
}
EngineOptions options_of(const std::string& engine, std::uint64_t pages) {
  EngineOptions options;
  options.engine = engine;
  options.page_bytes = kPage;
  options.log_bytes = 16 << 20;
  options.log_buffer_bytes = 64 << 10;
  options.dram_bytes = options.pmem_bytes = options.ssd_bytes = 16 << 20;
  (engine == "main-memory"    ? options.dram_bytes
   : engine == "basic-nvm-bm" ? options.pmem_bytes
                              : options.ssd_bytes) = pages * kPage;
  if (engine == "main-memory")
    options.ssd_bytes = 0;
  return options;
}

class Engaged {
 public:
  Engaged(EngineOptions options, Rows loaded) : rows(std::move(loaded)), options_(std::move(options)) {
    engine = kind().create(*memory, options_);
    MapSource source(rows);
    table = engine->load(*memory, {"t", 8, kPayload}, source, 1.0);
  }
  void crash() {
    auto after = std::make_unique<SimMemory>(memory->crash(memory->durability().sample(random_)));
    const EnginePlace place = engine->place();
    engine.reset();
    memory = std::move(after);
    engine = kind().restart(*memory, options_, place);
  }
  void expect_rows() {
    ASSERT_EQ(engine->check(*memory), "");
    ASSERT_TRUE(model::all_rows(*memory, *engine, table, kPayload) == rows);
  }
  [[nodiscard]] double counted(const std::string& name) const { return engine->counters().at(name); }

  Rows rows;
  std::unique_ptr<SimMemory> memory =
      std::make_unique<SimMemory>(memory::SimOptions{.persistence = memory::Persistence::kAdr});
  std::unique_ptr<Engine<SimMemory>> engine;
  TableId table = 0;

 private:
  [[nodiscard]] const EngineKind<SimMemory>& kind() const { return engine_named<SimMemory>(options_.engine); }
  EngineOptions options_;
  Random random_{5};
};

/// Of the fewest pages that hold the rows.
std::uint64_t pages_for(const std::string& engine, const Rows& loaded) {
  for (std::uint64_t pages = loaded.size() / 8;; ++pages) {
    try {
      static_cast<void>(Engaged(options_of(engine, pages), loaded));
      return pages;
    } catch (const CapacityError&) {
    }
  }
}

const std::vector<std::string> kEngines{"main-memory", "basic-nvm-bm", "ssd-bm", "three-tier", "spitfire"};

// A restart had said that the data do not fit, and every one after it.
TEST(EngineRollbackRoom, IsThereHoweverManyPagesAreMerged) {
  const Rows loaded = rows(2000);
  for (const std::string& engine : kEngines) {
    const std::uint64_t least = pages_for(engine, loaded);
    for (const std::uint64_t more : {0U, 1U, 40U, 2500U}) {
      for (const bool upwards : {true, false}) {
        for (const bool crash : {true, false}) {
          SCOPED_TRACE(engine + ", " + std::to_string(least) + " + " + std::to_string(more) + " pages" +
                       (upwards ? ", upwards" : "") + (crash ? ", crash" : ""));
          Engaged engaged(options_of(engine, least + more), loaded);
          engaged.engine->begin(*engaged.memory);
          for (std::uint64_t row = 0; row < 2000; ++row) {
            if (row % 70 != 0) {
              ASSERT_NO_THROW(
                  engaged.engine->erase(*engaged.memory, engaged.table, 10 * (upwards ? row : 2000 - row)));
            }
          }
          EXPECT_GT(engaged.counted("log_early_appends"), 3);
          if (more == 2500) {
            EXPECT_GT(engaged.counted("merges"), 100);
          }
          if (more == 0) {
            EXPECT_EQ(engaged.counted("merges"), 0);
          }
          if (crash) {
            ASSERT_NO_THROW(engaged.crash());
          } else {
            ASSERT_NO_THROW(engaged.engine->abort(*engaged.memory));
          }
          ASSERT_NO_FATAL_FAILURE(engaged.expect_rows());
        }
      }
    }
  }
}

// What one transaction has not merged, later ones do not lose.
TEST(EngineRollbackRoom, EmptyLeavesStayAndAreFilledAgain) {
  const Rows loaded = rows(2000);
  for (const std::string& engine : kEngines) {
    SCOPED_TRACE(engine);
    Engaged engaged(options_of(engine, pages_for(engine, loaded)), loaded);
    for (int time = 0; time < 3; ++time) {
      engaged.engine->begin(*engaged.memory);
      for (const auto& [key, payload] : loaded)
        ASSERT_TRUE(engaged.engine->erase(*engaged.memory, engaged.table, key));
      engaged.engine->commit(*engaged.memory);
      engaged.rows.clear();
      if (time == 1) {
        engaged.crash();
      }
      ASSERT_NO_FATAL_FAILURE(engaged.expect_rows());
      engaged.engine->begin(*engaged.memory);
      for (const auto& [key, payload] : loaded)
        ASSERT_TRUE(engaged.engine->insert(*engaged.memory, engaged.table, key, payload));
      engaged.engine->commit(*engaged.memory);
      engaged.rows = loaded;
      ASSERT_NO_FATAL_FAILURE(engaged.expect_rows());
    }
  }
}

// Anything in a transaction, with few pages at home and few frames in DRAM.
TEST(EngineRollbackRoom, IsThereWhateverATransactionDoes) {
  const Rows loaded = rows(700);
  int merged = 0;
  int refused = 0;
  for (const std::string& engine : kEngines) {
    const std::uint64_t least = pages_for(engine, loaded);
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      SCOPED_TRACE(engine + ", " + std::to_string(seed));
      Random random(seed);
      EngineOptions options = options_of(engine, least + random.below(150));
      if (engine != "main-memory")
        options.dram_bytes = (20 + random.below(200)) * 4300;
      Engaged engaged(options, loaded);
      for (int transaction = 0; transaction < 6; ++transaction) {
        Rows after = engaged.rows;
        const double merges = engaged.counted("merges");
        engaged.engine->begin(*engaged.memory);
        bool is_refused = false;
        try {
          for (std::uint64_t run = 1 + random.below(12); run-- > 0;) {
            const std::uint64_t from = random.below(7000);
            const std::uint64_t what = random.below(4);
            const std::uint64_t step = 1 + random.below(12);
            for (std::uint64_t change = random.below(200), key = from; change-- > 0; key += step) {
              const Payload payload(kPayload, std::byte{static_cast<std::uint8_t>(random.next())});
              if (what == 0) {
                if (engaged.engine->insert(*engaged.memory, engaged.table, key, payload))
                  after[key] = payload;
              } else if (what == 1) {
                if (engaged.engine->update(*engaged.memory, engaged.table, key, 0, payload))
                  after[key] = payload;
              } else {
                EXPECT_EQ(engaged.engine->erase(*engaged.memory, engaged.table, key), after.erase(key) == 1);
              }
            }
          }
        } catch (const ConfigError&) {
          is_refused = true;
          ++refused;
        }
        merged += engaged.counted("merges") > merges ? 1 : 0;
        const std::uint64_t end = random.below(3);
        if (end == 0) {
          ASSERT_NO_THROW(engaged.crash());
        } else if (end == 1 && !is_refused) {
          engaged.engine->commit(*engaged.memory);
          engaged.rows = after;
        } else {
          bool half = false;
          try {
            engaged.engine->abort(*engaged.memory);
          } catch (const ConfigError& error) {
            half = true;
            EXPECT_NE(std::string(error.what()).find("in the middle of an operation"), std::string::npos)
                << error.what();
          }
          if (half) {
            ASSERT_NO_THROW(engaged.crash());
          }
        }
        ASSERT_NO_FATAL_FAILURE(engaged.expect_rows());
      }
    }
  }
  EXPECT_GT(merged, 30);
  EXPECT_GT(refused, 20);
}

TEST(EngineRollbackRoom, GrowsWithMergesOnly) {
  const TreeShape tree{.leaf_capacity = 8, .inner_capacity = 250, .root_level = 1};
  EXPECT_EQ(pages_to_roll_back(tree, 0, 1000), 0);
  EXPECT_EQ(pages_to_roll_back(tree, 1, 0), 8 + 3 + 3);
  EXPECT_EQ(pages_to_roll_back(tree, 1, 4), 9 + 3 + 3);
  EXPECT_LT(pages_to_roll_back(tree, 100, 0), 1100);
}

}  // namespace
}  // namespace pmsim::engines
