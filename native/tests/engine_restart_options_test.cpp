#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// Regions are laid out for the options of create(): a restart with others would read and write beside them.

namespace pmsim::engines {
namespace {

using memory::SimMemory;

class NumberedRows final : public RowSource {
 public:
  [[nodiscard]] std::uint64_t rows() const override { return 2000; }
  std::uint64_t next(std::span<std::byte> payload) override {
    std::memcpy(payload.data(), &next_, payload.size());
    return next_++;
  }

 private:
  std::uint64_t next_ = 0;
};

EngineOptions options_for(std::string_view engine) {
  EngineOptions options;
  options.engine = engine;
  options.page_bytes = 4096;
  options.dram_bytes = options.pmem_bytes = options.ssd_bytes = std::uint64_t{1} << 20;
  options.log_bytes = std::uint64_t{1} << 20;
  return options;
}

/// What a restart behind a crash says; nothing where it succeeds.
std::string restarted(std::string_view name, const std::function<void(EngineOptions&)>& change) {
  Random random(3);
  SimMemory memory(memory::SimOptions{.persistence = memory::Persistence::kAdr});
  EngineOptions options = options_for(name);
  const auto& kind = engine_named<SimMemory>(name);
  const auto engine = kind.create(memory, options);
  NumberedRows rows;
  engine->load(memory, {"t", 8, 8}, rows, 0.66);
  SimMemory after = memory.crash(memory.durability().sample(random));
  change(options);
  try {
    const auto again = kind.restart(after, options, engine->place());
    again->checkpoint(after);
    return again->check(after);
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(EngineRestartOptions, OthersThanThoseOfTheCreationAreRefused) {
  for (const auto& kind : engine_kinds<SimMemory>()) {
    SCOPED_TRACE(kind.name);
    EXPECT_EQ(restarted(kind.name, [](EngineOptions&) {}), "");
    const auto refused = [&](const std::string& said, const std::function<void(EngineOptions&)>& change) {
      const std::string error = restarted(kind.name, change);
      EXPECT_NE(error.find("engine " + std::string(kind.name) + ": " + said), std::string::npos) << error;
    };
    refused("dram_bytes = 2097152: it was made with 1048576", [](EngineOptions& o) { o.dram_bytes *= 2; });
    refused("pmem_bytes = 2097152: it was made with 1048576", [](EngineOptions& o) { o.pmem_bytes *= 2; });
    refused("ssd_bytes = 2097152: it was made with 1048576", [](EngineOptions& o) { o.ssd_bytes *= 2; });
    refused("page_bytes = 8192: it was made with 4096", [](EngineOptions& o) { o.page_bytes = 8192; });
    refused("log_bytes = 2097152: it was made with 1048576", [](EngineOptions& o) { o.log_bytes *= 2; });
    refused("log_device = \"ssd\": it was made with \"pmem\"", [](EngineOptions& o) { o.log_device = "ssd"; });
    refused("threads = 4: it was made with 1", [](EngineOptions& o) { o.threads = 4; });
  }
}

TEST(EngineRestartOptions, ThoseThatOnlyCostTimeMayChange) {
  for (const auto& kind : engine_kinds<SimMemory>()) {
    SCOPED_TRACE(kind.name);
    EXPECT_EQ(restarted(kind.name, [](EngineOptions& o) { o.cpu_cycles = o.transaction_cycles = 100; }), "");
    EXPECT_EQ(restarted(kind.name, [](EngineOptions& o) { o.cleaning = "paced"; }), "");
    EXPECT_EQ(restarted(kind.name, [](EngineOptions& o) { o.seed = 5; }), "");
  }
}

// A restart of what was another engine had read its pages as its own.
TEST(EngineRestartOptions, AnotherEngineIsRefused) {
  SimMemory memory(memory::SimOptions{.persistence = memory::Persistence::kAdr});
  const auto engine = engine_named<SimMemory>("basic-nvm-bm").create(memory, options_for("basic-nvm-bm"));
  EXPECT_THROW(static_cast<void>(
                   engine_named<SimMemory>("file-bm").restart(memory, options_for("file-bm"), engine->place())),
               ConfigError);
}

}  // namespace
}  // namespace pmsim::engines
