#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine_model.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// A rollback needs no leaf: where all are full, a transaction can be taken back, by abort() and by each
/// restart.

namespace pmsim::engines {
namespace {

using memory::SimMemory;
using model::MapSource;
using model::Payload;
using model::Rows;

constexpr std::uint64_t kSlots = 56;
constexpr std::uint64_t kLeafBytes = 968;  ///< with its link

Payload payload(std::uint64_t value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}
/// Keys 0, 10, 20, ...
Rows tens(std::uint64_t count) {
  Rows rows;
  for (std::uint64_t row = 0; row < count; ++row)
    rows[10 * row] = payload(row);
  return rows;
}
std::unique_ptr<SimMemory> adr() {
  return std::make_unique<SimMemory>(memory::SimOptions{.persistence = memory::Persistence::kAdr});
}

/// An engine whose loaded rows fill all of its leaves.
class Full {
 public:
  Full(std::uint64_t leaves, Rows loaded) : rows(std::move(loaded)) {
    options_.engine = "fptree";
    options_.dram_bytes = 1 << 20;
    options_.pmem_bytes = leaves * kLeafBytes;
    options_.log_bytes = 1 << 16;
    engine = kind().create(*memory, options_);
    MapSource source(rows);
    table = engine->load(*memory, {"t", 8, 8}, source, 1.0);
    EXPECT_EQ(engine->counters().at("leaves"), static_cast<double>(leaves));
  }

  /// Whether the rows are there after abort(), and after a restart of what a crash would leave now.
  void expect_rolled_back() {
    for (int time = 0; time < 5; ++time)
      expect_restart(*image(*memory), {rows}, 2);
    ASSERT_NO_THROW(engine->abort(*memory));
    expect(*engine, *memory, {rows});
  }
  /// What a crash leaves, with one of these contents, restarts to it; and where power fails during the restart,
  /// and during the one after that.
  void expect_restart(SimMemory& after, const std::vector<Rows>& allowed, int failures) {
    std::vector<std::unique_ptr<SimMemory>> cut;
    if (failures > 0) {
      after.on_persistence_step([&] {
        if (random_.below(8) != 0)
          return;
        if (cut.size() == 3)
          cut.erase(cut.begin() + static_cast<std::ptrdiff_t>(random_.below(3)));  // late ones, rather
        cut.push_back(image(after));
      });
    }
    std::unique_ptr<Engine<SimMemory>> again;
    ASSERT_NO_THROW(again = kind().restart(after, options_, engine->place()));
    after.on_persistence_step({});
    ASSERT_NO_FATAL_FAILURE(expect(*again, after, allowed));
    for (const auto& each : cut)
      ASSERT_NO_FATAL_FAILURE(expect_restart(*each, allowed, failures - 1));
  }
  [[nodiscard]] std::unique_ptr<SimMemory> image(SimMemory& of) {
    return std::make_unique<SimMemory>(of.crash(of.durability().sample(random_)));
  }
  void expect(Engine<SimMemory>& of, SimMemory& its, const std::vector<Rows>& allowed) {
    ASSERT_EQ(of.check(its), "");
    Rows found;
    of.begin(its);
    of.scan(its, table, 0, ~std::uint64_t{0}, 0, 8, ScanMode::kGrained,
            [&](std::uint64_t key, std::span<const std::byte> bytes) {
              found[key] = {bytes.begin(), bytes.end()};
              return true;
            });
    of.commit(its);
    bool as_allowed = false;
    for (const Rows& each : allowed)
      as_allowed = as_allowed || each == found;
    ASSERT_TRUE(as_allowed) << found.size() << " rows";
  }
  void insert(std::uint64_t key) { engine->insert(*memory, table, key, payload(key)); }
  void erase(std::uint64_t key) { EXPECT_TRUE(engine->erase(*memory, table, key)); }
  /// Makes the change that is held back.
  void settle() {
    std::array<std::byte, 8> into{};
    engine->read(*memory, table, 0, 0, into);
  }

  Rows rows;
  std::unique_ptr<SimMemory> memory = adr();
  std::unique_ptr<Engine<SimMemory>> engine;
  TableId table = 0;

 private:
  [[nodiscard]] static const EngineKind<SimMemory>& kind() { return engine_named<SimMemory>("fptree"); }
  EngineOptions options_;
  Random random_{11};
};

// The leaf that the erased row was alone in had been split into.
TEST(FpTreeRollback, DoesNotNeedTheLeafThatTheTransactionHasEmptied) {
  Full full(3, tens(2 * kSlots + 1));
  full.engine->begin(*full.memory);
  full.erase(10 * 2 * kSlots);
  full.insert(5);
  try {
    full.settle();
  } catch (const CapacityError&) {  // there is no leaf for it
  }
  full.expect_rolled_back();
}

// A restart had taken the lowest key that a leaf holds for the lowest that belongs to it.
TEST(FpTreeRollback, PutsTheLowestRowOfALeafBackIntoThatLeaf) {
  Full full(2, tens(2 * kSlots));
  full.engine->begin(*full.memory);
  full.erase(10 * kSlots);
  full.erase(10 * (kSlots + 1));
  full.settle();
  full.expect_rolled_back();
}

// Rows that return to what has become one leaf would split it again and again.
TEST(FpTreeRollback, FillsEveryLeafThatTheTransactionHasEmptied) {
  for (const bool upwards : {false, true}) {
    Full full(4, tens(4 * kSlots));
    full.engine->begin(*full.memory);
    for (std::uint64_t row = 0; row < 4 * kSlots; ++row)
      full.erase(10 * (upwards ? row : 4 * kSlots - 1 - row));
    full.settle();
    full.expect_rolled_back();
  }
}

// Rows that the transaction has inserted and erased are not put back on the way, for which there is no room.
TEST(FpTreeRollback, OfARestartThatWasCutShortNeedsNoMore) {
  Full full(2, tens(2 * kSlots));
  full.engine->begin(*full.memory);
  for (std::uint64_t row = 0; row < 20; ++row) {
    full.erase(10 * row);
    full.insert(10 * row + 1);
    full.erase(10 * row + 1);
  }
  full.settle();
  full.expect_rolled_back();
}

// What the transaction has emptied is free when it has ended.
TEST(FpTreeRollback, EmptiedLeavesAreUsedAgainBehindTheTransaction) {
  Full full(3, tens(3 * kSlots));
  full.engine->begin(*full.memory);
  for (std::uint64_t row = kSlots; row < 3 * kSlots; ++row)
    full.erase(10 * row);
  full.engine->commit(*full.memory);
  EXPECT_EQ(full.engine->counters().at("leaves"), 1);
  full.rows.erase(full.rows.lower_bound(10 * kSlots), full.rows.end());
  full.expect_restart(*full.image(*full.memory), {full.rows}, 2);
  full.engine->begin(*full.memory);
  for (std::uint64_t row = kSlots; row < 2 * kSlots; ++row) {
    full.insert(10 * row);
    full.rows[10 * row] = payload(10 * row);
  }
  full.engine->commit(*full.memory);
  EXPECT_EQ(full.engine->counters().at("leaves"), 3);
  full.expect(*full.engine, *full.memory, {full.rows});
  full.expect_restart(*full.image(*full.memory), {full.rows}, 2);
}

// Power fails anywhere, in transactions that fill and empty leaves where there is no other.
TEST(FpTreeRollback, SucceedsWhereverPowerFails) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::uint64_t leaves = 2 + seed % 3;
    Full full(leaves, tens(leaves * kSlots));
    for (int transaction = 0; transaction < 12; ++transaction) {
      Rows after = full.rows;
      std::vector<std::unique_ptr<SimMemory>> images;
      full.memory->on_persistence_step([&] {
        if (random.below(100) == 0)
          images.push_back(full.image(*full.memory));
      });
      const std::uint64_t changes = 1 + random.below(150);
      const std::uint64_t erases = random.below(100);  // per cent
      const bool at_once = random.below(2) == 0;       // neighbours rather than any
      std::uint64_t place = random.below(leaves * kSlots);
      bool refused = false;
      full.engine->begin(*full.memory);
      try {
        for (std::uint64_t change = 0; change < changes; ++change) {
          place = at_once ? (place + 1) % (leaves * kSlots) : random.below(leaves * kSlots);
          const std::uint64_t key = 10 * place + random.below(2);
          const Payload value = payload(random.next());
          if (random.below(100) < erases) {
            EXPECT_EQ(full.engine->erase(*full.memory, full.table, key), after.erase(key) == 1);
          } else if (full.engine->insert(*full.memory, full.table, key, value)) {
            after[key] = value;
          } else if (full.engine->update(*full.memory, full.table, key, 0, value)) {
            after[key] = value;
          }
        }
        if (random.below(3) == 0) {
          refused = true;
        } else {
          full.engine->commit(*full.memory);
        }
      } catch (const CapacityError&) {
        refused = true;
      }
      if (refused) {
        ASSERT_NO_THROW(full.engine->abort(*full.memory));
      }
      full.memory->on_persistence_step({});
      const std::vector<Rows> allowed =
          refused ? std::vector<Rows>{full.rows} : std::vector<Rows>{full.rows, after};
      for (const auto& image : images)
        ASSERT_NO_FATAL_FAILURE(full.expect_restart(*image, allowed, 2));
      if (!refused)
        full.rows = after;
      ASSERT_NO_FATAL_FAILURE(full.expect(*full.engine, *full.memory, {full.rows}));
    }
  }
}

}  // namespace
}  // namespace pmsim::engines
