#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine_wal_rig.hpp"
#include "pmsim/engines/wal/wal.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// Commits in groups: a batch stays in its thread's buffer until the group has been written, while others run.
namespace {

using namespace pmsim;
using engines::EngineOptions;
using engines::UndoRecord;
using engines::wal::Wal;
namespace rig = engines::wal::rig;
using memory::SimMemory;

TEST(EngineWalGroups, ALargeTransactionThatIsTakenBackLeavesABatchThatWaitsAlone) {
  constexpr std::uint64_t kUndone = 20;  // with two records of a kilobyte each: the buffer holds 24
  EngineOptions options = rig::options_of({"ssd", "poplog", "padded"});
  options.threads = 2;
  options.commits = "group";
  SimMemory memory;
  Wal wal(memory, options);
  const std::vector<std::byte> row(1000, std::byte{7});
  const auto waiting = [&] {
    std::vector<std::byte> sector(memory::kSectorBytes);
    memory.read(wal.place().buffer, sector);
    return sector;
  };
  std::set<std::uint64_t> undone;
  wal.work_as(0);
  wal.begin();
  wal.overwrite(memory, 0, 64, row);
  wal.on_placed([&] {
    const std::vector<std::byte> handed_over = waiting();
    wal.work_as(1);
    wal.begin();
    for (std::uint64_t key = 0; key < kUndone; ++key) {
      wal.note_undo(memory, {UndoRecord::Kind::kUpdate, 0, key, 0, row});
      wal.overwrite(memory, 1, 64, row);
    }
    wal.abort(memory, [&](const UndoRecord& record) { undone.insert(record.key); });
    EXPECT_EQ(waiting(), handed_over);
    wal.work_as(0);
  });
  wal.commit(memory);
  std::map<std::string, double> counters;
  wal.counters(counters);
  EXPECT_GE(counters["log_early_appends"], 2) << "the rollback has read parts from the log";
  EXPECT_EQ(undone.size(), kUndone);
}

}  // namespace
