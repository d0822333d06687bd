#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine_model.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/workloads/oltp/temporary_file.hpp"

/// The engines on this machine's memory: the same source, real loads, stores and flushes.

namespace pmsim::engines::model {
namespace {

using memory::HostMemory;

constexpr std::uint32_t kPayload = 8;  // all that fptree takes

class OnHostMemory : public ::testing::TestWithParam<std::string> {};

TEST_P(OnHostMemory, KeepsWhatTransactionsCommitAndFindsItAgain) {
  EngineOptions options;
  options.engine = GetParam();
  options.page_bytes = 4096;
  options.dram_bytes = options.pmem_bytes = 4 << 20;
  options.ssd_bytes = options.engine == "main-memory" ? 0 : 8 << 20;
  options.log_bytes = 1 << 20;
  const workloads::oltp::TemporaryFile ssd;
  memory::HostOptions host;
  host.capacities = memory::Capacities::of(64 << 20, 64 << 20, 64 << 20);
  host.block_path = ssd.path();
  host.best_flush = true;
  HostMemory memory(host);

  Rows rows;
  for (std::uint64_t key = 1; key <= 600; ++key)
    rows[3 * key] = Payload(kPayload, static_cast<std::byte>(key));
  MapSource source(rows);
  const auto& kind = engine_named<HostMemory>(options.engine);
  std::unique_ptr<Engine<HostMemory>> engine = kind.create(memory, options);
  const TableId table = engine->load(memory, {"t", 8, kPayload}, source, 0.66);
  Random random(1);
  for (std::uint32_t round = 0; round < 300; ++round) {
    Rows after = rows;
    engine->begin(memory);
    for (std::uint32_t operation = 0; operation < 4; ++operation) {
      const std::uint64_t key = 1 + random.below(2000);
      const Payload payload(kPayload, static_cast<std::byte>(random.next()));
      if (!after.contains(key)) {
        EXPECT_TRUE(engine->insert(memory, table, key, payload));
        after[key] = payload;
      } else if (random.below(2) == 0) {
        EXPECT_TRUE(engine->erase(memory, table, key));
        after.erase(key);
      } else {
        EXPECT_TRUE(engine->update(memory, table, key, 0, payload));
        after[key] = payload;
      }
    }
    if (round % 5 == 0) {
      engine->abort(memory);
    } else {
      engine->commit(memory);
      rows = after;
    }
    if (round % 100 == 99) {
      engine->shutdown(memory);
      const EnginePlace place = engine->place();
      engine = kind.restart(memory, options, place);
    }
  }
  EXPECT_EQ(engine->check(memory), "");
  EXPECT_EQ(all_rows(memory, *engine, table, kPayload), rows);
}

INSTANTIATE_TEST_SUITE_P(Engines, OnHostMemory, ::testing::ValuesIn(engine_names<HostMemory>()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace pmsim::engines::model
