#include <gtest/gtest.h>

#include "machine_harness.hpp"

namespace pmsim::machine {
namespace {

struct Measured {
  double operations;
  double bytes;
  Counters counters;

  [[nodiscard]] double per_operation(std::int64_t count) const {
    return static_cast<double>(count) / operations;
  }
};

Measured run_mixed(const std::string& groups) {
  const PlatformParams params = plain_machine();
  const LaneResult result = run_workload("mixed", {{"groups", groups}, {"region_size", std::int64_t{64} << 20}},
                                         std::span(&params, 1))
                                .front();
  return {static_cast<double>(result.groups[0].operations), static_cast<double>(result.groups[0].user_bytes),
          result.counters};
}

/// An entry of two lines comes from DRAM; both lines are read, since they are stored to, and written; one
/// barrier.
TEST(MixedWorkload, LogWritersStoreAndFlushEntriesWithOneBarrierEach) {
  const Measured log = run_mixed("log:pmem:1:128");
  EXPECT_EQ(log.bytes, 128 * log.operations);
  EXPECT_NEAR(log.per_operation(log.counters.persist_barriers), 1.0, 0.01);
  EXPECT_NEAR(log.per_operation(log.counters.pmem_read_lines), 2.0, 0.05);
  EXPECT_NEAR(log.per_operation(log.counters.pmem_write_lines), 2.0, 0.05);
  EXPECT_NEAR(log.per_operation(log.counters.dram_read_lines + log.counters.llc_hits), 2.0, 0.05);
}

/// An operation is a sixteenth of a page: 16 lines from DRAM, 16 streamed; a page adds a line for its header.
TEST(MixedWorkload, PageWritersCopyFromDramWithTwoBarriersAndAFencePerPage) {
  const Measured page = run_mixed("page:pmem:1:16384");
  EXPECT_EQ(page.bytes, 1024 * page.operations);
  EXPECT_NEAR(page.per_operation(16 * page.counters.fences), 3.0, 0.05);
  EXPECT_NEAR(page.per_operation(16 * page.counters.persist_barriers), 2.0, 0.05);
  EXPECT_NEAR(page.per_operation(page.counters.pmem_write_lines), 16.0 + 1.0 / 16.0, 0.1);
  EXPECT_NEAR(page.per_operation(page.counters.dram_read_lines + page.counters.llc_hits), 16.0, 0.2);
}

/// Nothing is read where lines are streamed from registers.
TEST(MixedWorkload, AppendAndOverwriteFenceEachAccess) {
  for (const std::string task : {"append", "overwrite"}) {
    const Measured run = run_mixed(task + ":pmem:1:256");
    EXPECT_NEAR(run.per_operation(run.counters.persist_barriers), 1.0, 0.01) << task;
    EXPECT_NEAR(run.per_operation(run.counters.pmem_write_lines), 4.0, 0.05) << task;
    EXPECT_EQ(run.counters.dram_read_lines, 0) << task;
  }
}

}  // namespace
}  // namespace pmsim::machine
