#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// Where log, buffer or pages are scarce: what an engine refuses, and that it can go on, or restart, behind it.

namespace pmsim::engines {
namespace {

using memory::SimMemory;

/// Keys 0, 1, 2, ..., and payloads that follow from them.
class Numbers final : public RowSource {
 public:
  explicit Numbers(std::uint64_t rows) : rows_(rows) {}
  [[nodiscard]] std::uint64_t rows() const override { return rows_; }
  std::uint64_t next(std::span<std::byte> payload) override {
    std::ranges::fill(payload, std::byte{static_cast<std::uint8_t>(next_)});
    return next_++;
  }

 private:
  std::uint64_t rows_;
  std::uint64_t next_ = 0;
};

EngineOptions small(const std::string& engine) {
  EngineOptions options;
  options.engine = engine;
  options.page_bytes = 4096;
  options.dram_bytes = options.pmem_bytes = options.ssd_bytes = std::uint64_t{16} << 20;
  options.log_buffer_bytes = 40 << 10;
  options.log_bytes = 1 << 20;
  return options;
}

/// An engine with one table on a memory of its own.
class Scarce {
 public:
  Scarce(EngineOptions options, TableSpec table, std::uint64_t rows)
      : options_(std::move(options)), spec_(std::move(table)), rows_(rows) {
    engine = engine_named<SimMemory>(options_.engine).create(*memory, options_);
    Numbers source(rows);
    id = engine->load(*memory, spec_, source, 1.0);
  }
  void crash() {
    std::unique_ptr<SimMemory> after = crashed();
    const EnginePlace place = engine->place();
    engine.reset();
    memory = std::move(after);
    engine = engine_named<SimMemory>(options_.engine).restart(*memory, options_, place);
  }
  /// Whether a restart now would find every row.
  void expect_restart(const char* when) {
    const std::unique_ptr<SimMemory> after = crashed();
    std::unique_ptr<Engine<SimMemory>> again;
    ASSERT_NO_THROW(again = engine_named<SimMemory>(options_.engine).restart(*after, options_, engine->place()))
        << when;
    ASSERT_EQ(again->check(*after), "") << when;
  }
  void expect_as_loaded() {
    ASSERT_EQ(engine->check(*memory), "");
    std::uint64_t next = 0;
    engine->begin(*memory);
    engine->scan(*memory, id, 0, ~std::uint64_t{0}, 0, 1, ScanMode::kFullPages,
                 [&](std::uint64_t key, std::span<const std::byte> bytes) {
                   EXPECT_EQ(key, next++);
                   EXPECT_EQ(bytes[0], std::byte{static_cast<std::uint8_t>(key)});
                   return key + 1 == next;
                 });
    engine->commit(*memory);
    EXPECT_EQ(next, rows_);
  }
  void update(std::uint64_t key, std::uint32_t bytes) {
    engine->update(*memory, id, key, 0, std::vector(bytes, std::byte{static_cast<std::uint8_t>(key)}));
  }

  std::unique_ptr<SimMemory> memory =
      std::make_unique<SimMemory>(memory::SimOptions{.persistence = memory::Persistence::kAdr});
  std::unique_ptr<Engine<SimMemory>> engine;
  TableId id = 0;

 private:
  [[nodiscard]] std::unique_ptr<SimMemory> crashed() {
    return std::make_unique<SimMemory>(memory->crash(memory->durability().sample(random_)));
  }
  EngineOptions options_;
  TableSpec spec_;
  std::uint64_t rows_;
  Random random_{7};
};

/// What is said of work that cannot go on; nothing where it could.
template <typename Error = ConfigError, typename Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// To take back an erased row logs more than to erase it.
TEST(EngineRollback, FitsIntoTheLogWhateverWasErased) {
  for (const char* engine : {"main-memory", "basic-nvm-bm"}) {
    for (const char* leaves : {"sorted", "hash"}) {
      for (const std::uint32_t payload : {8U, 100U, 1000U}) {
        for (const char* device : {"pmem", "ssd"}) {
          for (const bool crash : {false, true}) {
            EngineOptions options = small(engine);
            options.leaf_layout = leaves;
            options.log_device = device;
            SCOPED_TRACE(std::string(engine) + " " + leaves + " " + std::to_string(payload) + " " + device);
            const std::uint64_t rows = payload == 8 ? 8000 : payload == 100 ? 2500 : 500;
            Scarce scarce(options, {"t", 8, payload}, rows);
            scarce.engine->begin(*scarce.memory);
            const std::string said = refusal([&] {
              for (std::uint64_t key = rows; key-- > 0;)
                scarce.engine->erase(*scarce.memory, scarce.id, key);
            });
            EXPECT_NE(said.find("raise log_bytes"), std::string::npos) << said;
            EXPECT_GT(scarce.engine->counters().at("log_early_appends"), 4);
            crash ? scarce.crash() : scarce.engine->abort(*scarce.memory);
            ASSERT_NO_FATAL_FAILURE(scarce.expect_as_loaded());
          }
        }
      }
    }
  }
}

// However full the log is when a transaction begins: refused ones and their rollbacks fill it, too.
TEST(EngineRollback, FitsAgainAndAgainIntoASmallLog) {
  for (const char* leaves : {"sorted", "hash"}) {
    for (const std::uint64_t log : {170U, 204U, 300U, 420U}) {
      SCOPED_TRACE(std::string(leaves) + ", " + std::to_string(log) + " KiB");
      EngineOptions options = small("main-memory");
      options.leaf_layout = leaves;
      options.log_bytes = log << 10;
      Scarce scarce(options, {"t", 8, 1000}, 200);
      for (int time = 0; time < 130; ++time) {
        scarce.engine->begin(*scarce.memory);
        static_cast<void>(refusal([&] {
          for (std::uint64_t key = 200; key-- > 0;)
            scarce.engine->erase(*scarce.memory, scarce.id, key);
        }));
        ASSERT_NO_THROW(scarce.engine->abort(*scarce.memory)) << time;
      }
      scarce.crash();
      ASSERT_NO_FATAL_FAILURE(scarce.expect_as_loaded());
    }
  }
}

// What has once been accepted must not depend on how full the log is.
TEST(EngineRollback, LeavesRoomForEveryTransactionOfOneSize) {
  for (const char* engine : {"main-memory", "spitfire"}) {
    for (const std::uint64_t log : {400U, 560U, 1024U}) {
      SCOPED_TRACE(std::string(engine) + ", " + std::to_string(log) + " KiB");
      EngineOptions options = small(engine);
      options.log_bytes = log << 10;
      options.migration = {0.5, 0.01, 1, 1};
      Scarce scarce(options, {"t", 8, 1000}, 400);
      const int updates = std::string(engine) == "spitfire" ? 1 : 18;
      for (int transaction = 0; transaction < 1500; ++transaction) {
        scarce.engine->begin(*scarce.memory);
        ASSERT_NO_THROW(for (int row = 0; row < updates; ++row)
                            scarce.update((7 * transaction + row) % 400, 1000));
        scarce.engine->commit(*scarce.memory);
      }
      scarce.expect_as_loaded();
    }
  }
}

// Pages that are changed in place force the log in the middle of an operation, which must not be refused there.
TEST(EngineRollback, OfSpitfireIsAskedForBeforeAnOperation) {
  EngineOptions options = small("spitfire");
  options.migration = {0, 0, 1, 1};
  Scarce scarce(options, {"t", 8, 1000}, 400);
  scarce.engine->begin(*scarce.memory);
  const std::string said = refusal([&] {
    for (std::uint64_t key = 0;; key = (key + 1) % 400)
      scarce.update(key, 1000);
  });
  EXPECT_NE(said.find("raise log_bytes"), std::string::npos) << said;
  ASSERT_NO_THROW(scarce.engine->abort(*scarce.memory));
  scarce.expect_as_loaded();
}

// What a restart takes back stays in the log, or goes, as a whole.
TEST(EngineRollback, OfARestartIsNotCutInTwoByATruncation) {
  for (const char* engine : {"main-memory", "basic-nvm-bm", "ssd-bm", "three-tier", "spitfire"}) {
    for (const bool own : {false, true}) {
      SCOPED_TRACE(std::string(engine) + (own ? ", a log for each thread" : ""));
      EngineOptions options = small(engine);
      options.log_buffer_bytes = 24 << 10;
      options.log_bytes = 320 << 10;
      if (own) {
        options.threads = 2;
        options.logs = "per-thread";
        options.log_bytes *= 2;
      }
      Scarce scarce(options, {"t", 8, 1000}, 800);
      scarce.engine->begin(*scarce.memory);
      for (std::uint64_t key = 0; key < 30; ++key)
        scarce.update(4 * key, 1000);
      ASSERT_GT(scarce.engine->counters().at("log_early_appends"), 2);
      scarce.crash();
      Random random(5);
      for (int transaction = 0; transaction < 150; ++transaction) {
        scarce.engine->begin(*scarce.memory);
        for (int row = 0; row < 4; ++row)
          scarce.update(400 + random.below(400), 500);
        scarce.engine->commit(*scarce.memory);
        if (transaction % 3 == 0) {
          ASSERT_NO_FATAL_FAILURE(scarce.expect_restart(("after " + std::to_string(transaction)).c_str()));
        }
      }
      EXPECT_GT(scarce.engine->counters().at("log_truncations"), 5);
      scarce.expect_as_loaded();
    }
  }
}

// Three records for each row that goes to another leaf would not fit into the buffer of log records.
TEST(EngineRoom, AMergeOfHashLeavesFitsIntoTheDefaultBuffer) {
  EngineOptions options = small("main-memory");
  options.leaf_layout = "hash";
  options.log_buffer_bytes = 0;
  options.log_bytes = 64 << 20;
  Scarce scarce(options, {"t", 4, 1}, 5000);
  scarce.engine->begin(*scarce.memory);
  for (std::uint64_t key = 0; key < 5000; ++key)
    scarce.engine->erase(*scarce.memory, scarce.id, key);
  EXPECT_GT(scarce.engine->counters().at("merges"), 3);
  scarce.engine->abort(*scarce.memory);
  scarce.expect_as_loaded();
}

TEST(EngineRoom, AnOperationThatIsRefusedBeforeAnythingIsLoggedCanBeTakenBack) {
  EngineOptions options = small("basic-nvm-bm");
  options.dram_bytes = 12 * (4096 + 128);
  Scarce scarce(options, {"t", 8, 100}, 3000);
  scarce.engine->begin(*scarce.memory);
  const std::string said = refusal<CapacityError>([&] {
    for (std::uint64_t key = 0; key < 3000; key += 20)
      scarce.update(key, 100);
  });
  EXPECT_NE(said.find("dram_bytes: all 12 pages"), std::string::npos) << said;
  scarce.engine->abort(*scarce.memory);
  scarce.expect_as_loaded();

  scarce.engine->begin(*scarce.memory);
  std::string refused;
  for (std::uint64_t key = 0; key < 3000 && refused.empty(); key += 20) {
    // Insertions split leaves, which takes frames.
    refused = refusal<CapacityError>([&] {
      scarce.engine->erase(*scarce.memory, scarce.id, key);
      scarce.engine->insert(*scarce.memory, scarce.id, 10'000 + key, std::vector(100, std::byte{1}));
    });
  }
  EXPECT_NE(refused, "");
  scarce.engine->abort(*scarce.memory);
  scarce.expect_as_loaded();
}

// An operation that has changed a part of what it changes cannot be taken back, and must not be committed.
TEST(EngineRoom, AnOperationThatStopsHalfWayLeavesAnEngineThatMustRestart) {
  // A leaf splits into the last free page, its entry fills the root, and for that there is none.
  EngineOptions options = small("main-memory");
  options.dram_bytes = 255 * 4096;
  Scarce scarce(options, {"t", 8, 100}, 9287);
  scarce.engine->begin(*scarce.memory);
  const std::string said = refusal<CapacityError>([&] {
    for (std::uint64_t key = 10'000; key < 10'100; ++key)
      scarce.engine->insert(*scarce.memory, scarce.id, key, std::vector(100, std::byte{1}));
  });
  EXPECT_NE(said.find("dram_bytes"), std::string::npos) << said;
  const char* const restart = "in the middle of an operation; what is durable is sound: restart it";
  EXPECT_NE(refusal([&] { scarce.engine->abort(*scarce.memory); }).find(restart), std::string::npos);
  EXPECT_NE(refusal([&] { scarce.engine->commit(*scarce.memory); }).find(restart), std::string::npos);
  scarce.crash();
  scarce.expect_as_loaded();
}

TEST(EngineRoom, ATwoThreadEngineThatRefusesAnOperationMustRestart) {
  EngineOptions options = small("basic-nvm-bm");
  options.dram_bytes = 12 * (4096 + 128);
  options.threads = 2;
  Scarce scarce(options, {"t", 8, 100}, 3000);
  scarce.engine->begin(*scarce.memory);
  EXPECT_NE(refusal<CapacityError>([&] {
              for (std::uint64_t key = 0; key < 3000; key += 20)
                scarce.update(key, 100);
            }),
            "");
  EXPECT_NE(refusal([&] { scarce.engine->abort(*scarce.memory); }).find("restart it"), std::string::npos);
  scarce.crash();
  scarce.expect_as_loaded();
}

// Undone physically, it can be taken back: but it must be.
TEST(EngineRoom, AnOperationThatStopsHalfWayIsNotCommittedWherePagesAreChangedInPlace) {
  for (const char* engine : {"nvm-direct", "nvm-undo"}) {
    for (const std::uint64_t log : {20U, 24U}) {
      for (const std::uint64_t step : {1U, 3U}) {
        SCOPED_TRACE(std::string(engine) + ", " + std::to_string(log) + " KiB, " + std::to_string(step));
        EngineOptions options = small(engine);
        options.log_bytes = log << 10;
        Scarce scarce(options, {"t", 8, 300}, 600);
        const auto insert = [&](std::uint64_t key) {
          scarce.engine->insert(*scarce.memory, scarce.id, key, std::vector(300, std::byte{1}));
        };
        scarce.engine->begin(*scarce.memory);
        EXPECT_NE(refusal([&] {
                    for (std::uint64_t key = 0; key < 5000; key += step)
                      insert(1000 + key * 7919 % 5000);
                  }),
                  "");
        EXPECT_NE(refusal([&] { insert(10'000); }).find("abort the transaction"), std::string::npos);
        EXPECT_NE(refusal([&] { scarce.engine->commit(*scarce.memory); }).find("abort the transaction"),
                  std::string::npos);
        scarce.engine->abort(*scarce.memory);
        ASSERT_NO_FATAL_FAILURE(scarce.expect_as_loaded());
        scarce.engine->begin(*scarce.memory);
        insert(10'000);
        scarce.engine->erase(*scarce.memory, scarce.id, 10'000);
        scarce.engine->commit(*scarce.memory);
        ASSERT_NO_FATAL_FAILURE(scarce.expect_as_loaded());
      }
    }
  }
}

// The last page and the page allocation lie in different regions, one behind the other.
TEST(EngineRoom, ThePagesOfNvmUndoCanBeUsedToTheLast) {
  EngineOptions options = small("nvm-undo");
  options.pmem_bytes = 64 * 4096;
  Scarce scarce(options, {"t", 8, 1000}, 3);
  std::uint64_t key = 3;
  const std::string said = refusal<CapacityError>([&] {
    for (;; ++key) {
      scarce.engine->begin(*scarce.memory);
      scarce.engine->insert(*scarce.memory, scarce.id, key, std::vector(1000, std::byte{1}));
      scarce.engine->commit(*scarce.memory);
    }
  });
  EXPECT_NE(said, "");
  EXPECT_EQ(scarce.engine->counters().at("pages"), 64);
  scarce.engine->abort(*scarce.memory);
  EXPECT_EQ(scarce.engine->check(*scarce.memory), "");
}

// Where no log is kept there is nothing to force before a page is written back.
TEST(EngineRoom, WithoutALogPagesAreReplacedAllTheSame) {
  for (const char* device : {"none", "unwritten"}) {
    for (const char* engine : {"basic-nvm-bm", "spitfire"}) {
      SCOPED_TRACE(std::string(engine) + ", " + device);
      EngineOptions options = small(engine);
      options.log_device = device;
      options.dram_bytes = 10 * (4096 + 128);
      options.migration = {0.5, 0.1, 1, 1};
      Scarce scarce(options, {"t", 8, 1000}, 400);
      Random random(3);
      for (int transaction = 0; transaction < 3000; ++transaction) {
        scarce.engine->begin(*scarce.memory);
        scarce.update(random.below(400), 300);
        scarce.engine->commit(*scarce.memory);
      }
      scarce.expect_as_loaded();
    }
  }
}

// Sweeps over capacities end a curve there, whatever the engine.
TEST(EngineRoom, TiersThatAreTooSmallAreARefusalOfCapacity) {
  for (const auto& kind : engine_kinds<SimMemory>()) {
    const std::string name(kind.name);
    SCOPED_TRACE(name);
    const auto refused = [&](std::uint64_t EngineOptions::*tier) {
      EngineOptions options = small(name);
      options.*tier = 512;
      SimMemory memory;
      return refusal<CapacityError>([&] { static_cast<void>(kind.create(memory, options)); });
    };
    // Where it has a place for pages it needs room for some, and nowhere else.
    SimMemory memory;
    const EnginePlace place = kind.create(memory, small(name))->place();
    EXPECT_EQ(refused(&EngineOptions::dram_bytes) == "", place.dram == 0);
    EXPECT_EQ(refused(&EngineOptions::pmem_bytes) == "", place.pmem == 0);
    EXPECT_EQ(refused(&EngineOptions::ssd_bytes) == "", place.ssd == 0);
    const bool on_pmem = kind.home == memory::Medium::kPmem;
    const bool on_ssd = kind.home == memory::Medium::kBlock;
    EXPECT_NE(on_pmem ? place.pmem : on_ssd ? place.ssd : place.dram, 0U);
  }
}

// It had the leaf's latch in hand, and never gave it up.
TEST(EngineRoom, FptreeOfSeveralThreadsRefusesALeafMoreAndGoesOn) {
  for (const char* latches : {"none", "shared", "optimistic"}) {
    SCOPED_TRACE(latches);
    EngineOptions options = small("fptree");
    options.pmem_bytes = 8 * 968;
    options.threads = 2;
    options.latches = latches;
    Scarce scarce(options, {"t", 8, 8}, 8 * 56);
    const auto insert = [&](std::uint64_t key) {
      scarce.engine->insert(*scarce.memory, scarce.id, key, std::vector(8, std::byte{1}));
    };
    for (const bool alone : {true, false}) {
      scarce.engine->begin(*scarce.memory);
      const std::string said = refusal<CapacityError>([&] {
        insert(10'000);
        if (!alone)
          insert(10'001);
        scarce.engine->commit(*scarce.memory);
      });
      EXPECT_NE(said.find("its 8 leaves are full"), std::string::npos) << said;
      scarce.engine->abort(*scarce.memory);
      scarce.expect_as_loaded();
    }
    scarce.engine->begin(*scarce.memory);
    scarce.update(8 * 56 - 1, 8);
    scarce.engine->commit(*scarce.memory);
    scarce.expect_as_loaded();
  }
}

// Inner nodes that were loaded densely must not need more DRAM after a restart.
TEST(EngineRoom, FptreeRestartsInTheDramThatItHasUsed) {
  EngineOptions options = small("fptree");
  options.page_bytes = 16384;
  options.dram_bytes = 3 * 65536;
  options.pmem_bytes = 64 << 20;
  Scarce scarce(options, {"t", 8, 8}, 8000 * 56);
  scarce.engine->shutdown(*scarce.memory);
  scarce.crash();
  scarce.expect_as_loaded();
}

}  // namespace
}  // namespace pmsim::engines
