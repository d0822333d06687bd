#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/machine/hierarchy.hpp"
#include "pmsim/machine/lane.hpp"
#include "pmsim/machine/shared_feed.hpp"

namespace pmsim::machine {
namespace {

/// The recovery of an engine comes in one batch: Ctrl-C has to be noticed within it.
TEST(SharedFeed, PollsWithinALongBatchAndEndsWhenThatThrows) {
  const Script::Ops ops(std::size_t{3} << 20, load(kDramBase));
  const auto take = [&](const std::function<void()>& poll) {
    Script script(std::vector<Script::Ops>{ops});
    Hierarchy hierarchy(plain_machine(), 1);
    SharedFeed feed(script, hierarchy, 1, 1, poll);
    const TimedOp* first = nullptr;
    const TimedOp* last = nullptr;
    feed.lane(0).next(0, first, last);
    return last - first;
  };
  int calls = 0;
  const auto timed = take([&calls] { ++calls; });
  // After so many operations, not behind the last: when they are executed, and when they are sorted.
  EXPECT_EQ(calls, (3 << 20) / static_cast<int>(memory::Stream::kPollEvery) - 1 + 2);
  EXPECT_EQ(timed, take({}));
  EXPECT_THROW(static_cast<void>(take([] { throw std::runtime_error("Ctrl-C"); })), std::runtime_error);
}

/// And a lane has to come back between parts of it: it would time them all in one go.
TEST(SharedFeed, HandsOutALongBatchInPiecesAndOnce) {
  Script::Ops ops;
  for (std::uint64_t number = 0; number < 2'500'000; ++number)
    ops.push_back(load(kDramBase + number * 64));
  Script script(std::vector<Script::Ops>{std::move(ops)});
  Hierarchy hierarchy(plain_machine(), 1);
  SharedFeed feed(script, hierarchy, 1, 2);
  std::vector<std::vector<std::uint64_t>> lines(2);
  for (std::size_t lane = 0; lane < 2; ++lane) {
    for (;;) {
      const TimedOp* first = nullptr;
      const TimedOp* last = nullptr;
      feed.lane(lane).next(0, first, last);
      if (first == last)
        break;
      EXPECT_LE(last - first, 1 << 20);
      for (; first != last; ++first)
        lines[lane].push_back(first->line);
    }
  }
  EXPECT_GE(lines[0].size(), 2'500'000U);
  EXPECT_EQ(lines[0], lines[1]);
}

/// A server whose threads wake for nothing, have short operations, or one without end.
class Server final : public Feed {
 public:
  enum class Work { kNone, kShort, kEndless };
  explicit Server(Work work) : work_(work) {}
  void next(std::uint32_t, const TimedOp*& first, const TimedOp*& last) override {
    first = ops_.data() + (work_ == Work::kEndless ? 1 : 0);
    last = work_ == Work::kNone ? first : ops_.data() + (work_ == Work::kEndless ? 2 : 3);
  }
  [[nodiscard]] bool sleeps() const noexcept override { return true; }

 private:
  static constexpr TimedOp op(memory::OpKind kind, std::uint32_t instructions) {
    return {0, instructions, static_cast<std::uint8_t>(kind), kL1, kTlbFirst, 0};
  }
  Work work_;
  std::vector<TimedOp> ops_{op(memory::OpKind::kOperationBegin, 0), op(memory::OpKind::kCompute, 4),
                            op(memory::OpKind::kOperationEnd, 0)};
};

TEST(Lane, ServesForEverAndSaysSoWhereThreadsActAndNobodyGetsOn) {
  const auto serve = [](Server::Work work) {
    Server feed(work);
    Lane lane(plain_machine(), 1, feed, 0, 0);
    std::vector<Retired> retired;
    for (int call = 0; call < 2'000'000; ++call) {
      if (lane.threads()[0].sleeping())
        lane.wake(0, lane.now() + 1);
      static_cast<void>(lane.serve(kNever));
      lane.take_retired(retired);
    }
  };
  EXPECT_NO_THROW(serve(Server::Work::kShort));
  EXPECT_THROW(serve(Server::Work::kNone), SimulationError);
}

TEST(Lane, PollsWhileItServesALongOperationAndEndsWhenThatThrows) {
  Server feed(Server::Work::kEndless);
  Lane lane(plain_machine(), 1, feed, 0, 0);
  int calls = 0;
  EXPECT_THROW(static_cast<void>(lane.serve(kNever,
                                            [&calls] {
                                              if (++calls == 3)
                                                throw std::runtime_error("Ctrl-C");
                                            })),
               std::runtime_error);
  EXPECT_EQ(calls, 3);
}

/// A million operations of a load each, a thousand at once.
class Pieces final : public memory::Source {
 public:
  void refill(std::uint32_t, memory::Stream& stream) override {
    for (int number = 0; pieces_ > 0 && number < 1'000; ++number) {
      stream.push(memory::OpKind::kOperationBegin, 0, 0);
      stream.push(memory::OpKind::kLoad, kDramBase, 8);
      stream.push(memory::OpKind::kOperationEnd, 0, 0);
    }
    --pieces_;
  }

 private:
  int pieces_ = 1'000;
};

TEST(Simulate, TellsHowMuchOfTheRunLengthIsDone) {
  const auto take = [&](const Watch& watch) {
    Pieces pieces;
    const std::vector platforms{plain_machine(), plain_machine()};
    SimulateOptions options;
    options.length = {.warmup_operations = 200'000, .measured_operations = 800'000};
    options.watch = watch;
    return simulate(pieces, 1, platforms, options);
  };
  std::vector<double> told;
  const std::vector<LaneResult> watched = take([&](Doing doing) {
    EXPECT_EQ(doing.phase, Phase::kMeasure);
    told.push_back(doing.share);
  });
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 1);
  // A slice is 2^18 of the three million timed operations.
  EXPECT_GE(std::set<double>(told.begin(), told.end()).size(), 10U);
  EXPECT_EQ(take({})[1].elapsed, watched[1].elapsed);
  EXPECT_THROW(take([](Doing doing) {
                 if (doing.share > 0.5)
                   throw std::runtime_error("Ctrl-C");
               }),
               std::runtime_error);
}

}  // namespace
}  // namespace pmsim::machine
