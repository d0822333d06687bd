#include <gtest/gtest.h>

#include <cstdint>

#include "machine_harness.hpp"

namespace pmsim::machine {
namespace {

using Ops = Script::Ops;

/// Of streams behind a clflush only the first waits for what the clflush has written; the others wait for
/// nothing of each other.
TEST(Clflush, HoldsTheQueueUntilItsOwnWriteHasBeenAcceptedAndNoLonger) {
  const PlatformParams params = plain_machine();
  const auto time = [&](std::uint64_t streams) {
    Ops ops = {{kPmemBase, 64, memory::OpKind::kClflush, 0, 0}};
    for (std::uint64_t line = 1; line <= streams; ++line)
      ops.push_back(stream_store(kPmemBase + line * 64));
    ops.push_back(sfence());
    return time_of(params, {load(kPmemBase), store(kPmemBase)}, ops);
  };
  const Picoseconds one = time(1);
  EXPECT_GE(one, 2 * params.core.shared_write_latency);
  EXPECT_LT(one, 3 * params.core.shared_write_latency);
  EXPECT_GE(time(8), one);
  EXPECT_LE(time(8), one + 7 * params.pmem.bus_write);
}

/// A second clflush of a dirty line holds it again.
TEST(Clflush, OfEachDirtyLineHoldsTheQueue) {
  const PlatformParams params = plain_machine();
  const auto time = [&](bool dirty) {
    Ops before = {load(kPmemBase), load(kPmemBase + 64), store(kPmemBase)};
    if (dirty)
      before.push_back(store(kPmemBase + 64));
    return time_of(params, before,
                   {{kPmemBase, 64, memory::OpKind::kClflush, 0, 0},
                    {kPmemBase + 64, 64, memory::OpKind::kClflush, 0, 0},
                    stream_store(kPmemBase + 128),
                    sfence()});
  };
  EXPECT_GE(time(true), 3 * params.core.shared_write_latency);
  EXPECT_LT(time(false), 3 * params.core.shared_write_latency);
}

}  // namespace
}  // namespace pmsim::machine
