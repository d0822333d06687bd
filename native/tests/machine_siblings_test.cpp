#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/fill_buffers.hpp"

/// Hardware threads of one core, and the fill buffers that they take in turns.
namespace pmsim::machine {
namespace {

constexpr auto kAgent = FillBuffers::kStoreQueue;

TEST(FillBuffers, OneThreadNeverWaitsForATurn) {
  FillBuffers buffers(2, 1);
  const std::size_t only = buffers.join();
  buffers.want(only, kAgent, 0);
  EXPECT_FALSE(buffers.take(only, 0, 50, Cause::kDram));
  EXPECT_EQ(buffers.earliest(only, 0), 0);
  EXPECT_FALSE(buffers.take(only, 0, 70, Cause::kDram));
  EXPECT_EQ(buffers.earliest(only, 0), 50);
  EXPECT_EQ(buffers.earliest_of_all(only, 0), 0);
}

TEST(FillBuffers, WhoTookTheLastOneLetsTheOtherGoFirst) {
  FillBuffers buffers(2);
  const std::size_t first = buffers.join();
  const std::size_t second = buffers.join();
  EXPECT_FALSE(buffers.take(first, 0, 50, Cause::kDram)) << "nobody else wants one";
  EXPECT_EQ(buffers.earliest(first, 0), 0);
  EXPECT_FALSE(buffers.take(first, 0, 60, Cause::kDram));
  buffers.want(first, kAgent, 0);
  buffers.want(second, kAgent, 10);
  EXPECT_EQ(buffers.earliest(first, 0), kNever);
  EXPECT_EQ(buffers.earliest(second, 0), 50);
  EXPECT_TRUE(buffers.take(second, 50, 200, Cause::kDram));
  EXPECT_EQ(buffers.earliest(first, 0), 60);
  EXPECT_EQ(buffers.earliest(second, 0), kNever);
}

TEST(FillBuffers, WhoWantsOneLaterKeepsNobodyWaiting) {
  FillBuffers buffers(1);
  const std::size_t first = buffers.join();
  const std::size_t second = buffers.join();
  EXPECT_FALSE(buffers.take(first, 0, 50, Cause::kDram));
  buffers.want(second, kAgent, 51);
  EXPECT_EQ(buffers.earliest(first, 0), 50);
  buffers.want(second, kAgent, 50);
  EXPECT_EQ(buffers.earliest(first, 0), kNever);
  buffers.want(second, kAgent, kNever);
  EXPECT_EQ(buffers.earliest(first, 0), 50);
}

/// A load that needs more of them free than there are: streaming stores must not take those, free or not.
TEST(FillBuffers, ThoseThatHaveBeenFreeForLongAreNotTakenOutOfTurn) {
  FillBuffers buffers(2, 1);
  const std::size_t streams = buffers.join();
  const std::size_t loads = buffers.join();
  EXPECT_FALSE(buffers.take(streams, 0, 50, Cause::kDram));
  EXPECT_FALSE(buffers.take(streams, 1, 60, Cause::kDram));
  EXPECT_EQ(buffers.earliest_of_all(streams, 30), 30);
  buffers.want(loads, kAgent, 20);
  EXPECT_EQ(buffers.earliest_of_all(streams, 10), 10) << "it was there before";
  EXPECT_EQ(buffers.earliest_of_all(streams, 30), kNever);
  EXPECT_EQ(buffers.earliest(loads, 20), 50);
}

TEST(FillBuffers, WhoHasWaitedForHisTurnTakesNoneBeforeIt) {
  FillBuffers buffers(2);
  const std::size_t first = buffers.join();
  const std::size_t second = buffers.join();
  buffers.want(first, kAgent, 0);
  buffers.want(second, kAgent, 0);
  buffers.take(first, 0, 500, Cause::kDram);
  buffers.take(second, 30, 500, Cause::kDram);
  buffers.release(20);  // as if a third had been free all the time
  EXPECT_EQ(buffers.earliest(first, 0), 30);
}

/// Whoever wants one gets it in time, whatever the others do; and of those that want one, one may take it.
TEST(FillBuffers, GoRound) {
  for (const std::size_t threads : {2U, 3U, 8U}) {
    FillBuffers buffers(4, 2);
    std::vector<int> taken(threads);
    for (std::size_t thread = 0; thread < threads; ++thread) {
      EXPECT_EQ(buffers.join(), thread);
    }
    for (std::size_t thread = 0; thread < threads; ++thread) {
      buffers.want(thread, static_cast<FillBuffers::Agent>(thread % FillBuffers::kAgents), 0);
    }
    Random random(threads);
    for (int step = 0; step < 1'000; ++step) {
      std::size_t may = threads;
      for (std::size_t thread = 0; thread < threads; ++thread) {
        // Streaming threads and loading ones.
        const Picoseconds free =
            thread % 2 == 0 ? buffers.earliest_of_all(thread, 0) : buffers.earliest(thread, 0);
        if (free != kNever) {
          EXPECT_EQ(may, threads) << "one at a time";
          may = thread;
        }
      }
      ASSERT_LT(may, threads);
      const Picoseconds at = may % 2 == 0 ? buffers.earliest_of_all(may, 0) : buffers.earliest(may, 0);
      EXPECT_TRUE(buffers.take(may, at, at + 1 + static_cast<Picoseconds>(random.below(100)), Cause::kDram));
      ++taken[may];
    }
    const auto [least, most] = std::minmax_element(taken.begin(), taken.end());
    EXPECT_LE(*most - *least, 1);
  }
}

/// Bytes per second of two threads of one core at random places; K buffers are kept back for streaming stores.
std::array<double, 2> together(const std::string& first, const std::string& second, std::int64_t kept_back) {
  PlatformParams params = plain_machine();
  params.core.cores = 1;
  params.core.threads_per_core = 2;
  params.core.stream_fill_buffers = kept_back;
  params.core.frequency = 2'900'000'000;  // few things happen at the same time, where the first goes first
  const LaneResult result =
      run_workload("mixed",
                   {{"groups", first + ":1:256;" + second + ":1:256"}, {"region_size", std::int64_t{64} << 20}},
                   std::span(&params, 1))
          .front();
  const auto rate = [&](std::size_t group) {
    return static_cast<double>(result.groups[group].user_bytes) / static_cast<double>(result.elapsed);
  };
  return {rate(0), rate(1)};
}

TEST(Siblings, NeitherStarvesAndWhichComesFirstDoesNotMatter) {
  for (const std::string memory : {":dram", ":pmem"}) {
    for (const std::int64_t kept_back : {0, 2}) {
      const auto [loads, streams] = together("read" + memory, "write" + memory, kept_back);
      const auto [streams_first, loads_second] = together("write" + memory, "read" + memory, kept_back);
      EXPECT_GT(loads, streams / 3) << memory << kept_back;
      EXPECT_GT(streams, loads / 3) << memory << kept_back;
      EXPECT_NEAR(loads_second / loads, 1, 0.05) << memory << kept_back;
      EXPECT_NEAR(streams_first / streams, 1, 0.05) << memory << kept_back;
    }
  }
}

TEST(Siblings, ThatDoTheSameGetTheSame) {
  for (const std::string task :
       {"read:dram", "write:dram", "read:pmem", "write:pmem", "append:pmem", "page:dram"}) {
    for (const std::int64_t kept_back : {0, 2}) {
      const auto [first, second] = together(task, task, kept_back);
      EXPECT_NEAR(second / first, 1, 0.03) << task << kept_back;
    }
  }
}

/// What a core computes in a time, it computes for all of its threads, whether cycles or instructions say so.
TEST(Siblings, TogetherComputeAsMuchAsOneThread) {
  PlatformParams params = plain_machine();
  params.core.cores = 1;
  params.core.threads_per_core = 2;
  for (const memory::MicroOp& work :
       {memory::MicroOp{1000, 1, memory::OpKind::kCompute, 0, 0}, {0, 1000, memory::OpKind::kCompute, 0, 0}}) {
    const Script::Ops ops(100, work);
    const Picoseconds alone = run(params, ops).elapsed;
    EXPECT_EQ(run(params, {ops, ops}).elapsed, 2 * alone) << work.address << " cycles";
  }
}

}  // namespace
}  // namespace pmsim::machine
