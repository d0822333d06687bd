#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/memory_system.hpp"
#include "pmsim/machine/requests.hpp"

namespace pmsim::machine {
namespace {

using Operation = LineRequest::Operation;
using memory::Medium;

constexpr std::uint64_t kDramLine = kDramBase / memory::kLineBytes;
constexpr std::uint64_t kPmemLine = kPmemBase / memory::kLineBytes;

/// Writes down what it hears.
struct Listener final : RequestListener {
  void requested(const LineRequest& request, Picoseconds acts_at) override {
    heard.push_back(request);
    EXPECT_LE(latest, acts_at);
    latest = acts_at;
  }
  void measurement_begins(Picoseconds now) override { began.push_back(now); }
  std::vector<LineRequest> heard;
  std::vector<Picoseconds> began;
  Picoseconds latest = 0;
};

std::vector<std::tuple<Picoseconds, std::uint64_t, std::uint32_t, Operation>> rows(
    const std::vector<LineRequest>& requests) {
  std::vector<std::tuple<Picoseconds, std::uint64_t, std::uint32_t, Operation>> rows;
  for (const LineRequest& request : requests) {
    rows.emplace_back(request.arrives, request.line, request.thread, request.operation);
  }
  return rows;
}

struct Rig {
  explicit Rig(const PlatformParams& params) : memory(params, counters, 1, 1 << 20) { memory.listen(listener); }
  Counters counters;
  Listener listener;
  MemorySystem memory;
};

TEST(LineRequests, AReadIsHeardOnceWhoeverAsksForIt) {
  Rig rig(plain_machine());
  rig.memory.read(kDramLine + 3, 50, 10, 7);
  rig.memory.read(kPmemLine + 4, 60, 20);
  rig.memory.load(kDramLine + 5, 70, 30, ReadToken{2, 0});
  rig.memory.load(kPmemLine + 6, 80, 40, ReadToken{2, 1});
  using enum Operation;
  EXPECT_EQ(rows(rig.listener.heard), (decltype(rows({})){{50, kDramLine + 3, 7, kRead},
                                                          {60, kPmemLine + 4, LineRequest::kNobody, kRead},
                                                          {70, kDramLine + 5, 2, kRead},
                                                          {80, kPmemLine + 6, 2, kRead}}));
}

TEST(LineRequests, ALoadIsHeardWhenItArrivesThoughItsQueueIsFull) {
  PlatformParams params = plain_machine();
  params.controller.pmem_read_queue = 1;
  Rig rig(params);
  EXPECT_NE(rig.memory.load(kPmemLine, 0, 0, ReadToken{0, 0}), kNever);
  // Who has no room to wait is turned away, and heard when it asks again.
  EXPECT_EQ(rig.memory.load(kPmemLine + 64, 5, 5, ReadToken{0, ReadToken::kNobody}), kNever);
  EXPECT_EQ(rig.listener.heard.size(), 1U);
  EXPECT_EQ(rig.memory.load(kPmemLine + 64, 9, 9, ReadToken{0, 1}), kNever);
  EXPECT_EQ(rig.listener.heard.size(), 2U);
  EXPECT_EQ(rig.listener.heard.back().arrives, 9);
  rig.memory.admit(0);
  EXPECT_EQ(rig.listener.heard.size(), 2U);
  EXPECT_EQ(rig.counters.pmem_read_lines, 2);
}

TEST(LineRequests, AWriteIsHeardWhenItArrivesThoughItsQueueIsFull) {
  PlatformParams params = plain_machine();
  params.controller.pmem_write_queue = 1;
  params.controller.pmem_credits = 1;
  params.llc.slices = 1;
  Rig rig(params);
  rig.memory.write(kDramLine, 5, 5, WriteToken{.thread = 3});
  for (std::uint32_t thread = 0; thread < 3; ++thread) {
    rig.memory.write(kPmemLine + thread, 10 + thread, 10,
                     WriteToken{.thread = thread, .writeback = thread == 2});
  }
  using enum Operation;
  const auto expected = decltype(rows({})){{5, kDramLine, 3, kWrite},
                                           {10, kPmemLine, 0, kWrite},
                                           {11, kPmemLine + 1, 1, kWrite},
                                           {12, kPmemLine + 2, LineRequest::kNobody, kWrite}};
  EXPECT_EQ(rows(rig.listener.heard), expected);
  std::vector<Grant> grants;
  while (rig.memory.next_drain(0) != kNever) {  // somebody waits
    rig.memory.drain(0, grants);
  }
  EXPECT_EQ(grants.size(), 2U);
  EXPECT_EQ(rows(rig.listener.heard), expected);
}

TEST(LineRequests, InMemoryModeTheProgramsAreHeardAndNotTheControllers) {
  PlatformParams params = plain_machine();
  params.controller.memory_mode = 1;
  params.dram.capacity = 4 << 20;
  Rig rig(params);
  const std::uint64_t lines = 8 * (params.dram.capacity / memory::kLineBytes);
  Random random(3);
  std::int64_t reads = 0;
  for (int request = 0; request < 2000; ++request) {
    const std::uint64_t line = kPmemLine + random.below(lines);
    if (random.below(2) == 0) {
      rig.memory.read(line, request, request);
      ++reads;
    } else {
      rig.memory.write(line, request, request, WriteToken{});
    }
  }
  EXPECT_EQ(rig.listener.heard.size(), 2000U);
  EXPECT_EQ(std::count_if(rig.listener.heard.begin(), rig.listener.heard.end(),
                          [](const LineRequest& heard) { return heard.operation == Operation::kRead; }),
            reads);
  EXPECT_EQ(rig.counters.memory_mode_hits + rig.counters.memory_mode_misses, reads);
  EXPECT_GT(rig.counters.pmem_read_lines, 0);  // of which nobody hears
}

/// A walk of two levels reads the upper table, then the last one, then the load its line.
TEST(LineRequests, ALoadThatMissesEverythingIsAWalkAndALine) {
  PlatformParams params = plain_machine();
  Script script({{load(kPmemBase + 640)}});
  Listener listener;
  const std::vector<PlatformParams> platforms{params};
  SimulateOptions options;
  options.length.measured_operations = 1;
  options.seed = 1;
  options.listener = &listener;
  const auto result = simulate(script, 1, platforms, options);
  ASSERT_EQ(listener.heard.size(), 3U);
  const Picoseconds half = params.core.shared_read_latency / 2;
  const Picoseconds dram = params.dram.row_miss_penalty + params.dram.row_hit_latency;
  const Picoseconds upper = params.tlb.walk_latency + half;
  EXPECT_EQ(listener.heard[0].arrives, upper);
  EXPECT_EQ(listener.heard[1].arrives, upper + dram + half + half);
  EXPECT_EQ(listener.heard[2].line, kPmemLine + 10);
  for (const LineRequest& heard : listener.heard) {
    EXPECT_EQ(heard.thread, 0U);
  }
  EXPECT_EQ(listener.began, std::vector<Picoseconds>{0});
  EXPECT_EQ(result.front().counters.dram_read_lines, 2);
  EXPECT_EQ(result.front().counters.pmem_read_lines, 1);
}

std::vector<LineRequest> in_order(const std::vector<std::pair<LineRequest, Picoseconds>>& made, Medium medium,
                                  bool measured_only = false, std::size_t begins_after = 0) {
  std::vector<LineRequest> found;
  RequestsInOrder order(medium, measured_only, [&](std::span<const LineRequest> piece) {
    found.insert(found.end(), piece.begin(), piece.end());
  });
  for (std::size_t number = 0; number < made.size(); ++number) {
    if (number == begins_after)
      order.measurement_begins(made[number].second);
    order.requested(made[number].first, made[number].second);
  }
  order.finish();
  return found;
}

TEST(LineRequestsInOrder, SortsByArrivalAndKeepsTheOrderOfThoseThatArriveTogether) {
  Random random(1);
  std::vector<std::pair<LineRequest, Picoseconds>> made;
  std::vector<LineRequest> expected;
  constexpr Picoseconds kStep = RequestsInOrder::kHeldBack / 1000;
  for (std::uint64_t number = 0; number < 200'000; ++number) {
    const auto now = static_cast<Picoseconds>(number) * kStep / 10;
    const Picoseconds away = static_cast<Picoseconds>(random.below(1000)) - 500;
    const LineRequest request{.arrives = std::max<Picoseconds>(0, now / kStep + away) * kStep,
                              .line = (number % 3 == 0 ? kDramLine : kPmemLine) + number};
    made.emplace_back(request, now);
    if (number % 3 != 0) {
      expected.push_back(request);
      expected.back().line -= kPmemLine;
    }
  }
  std::stable_sort(expected.begin(), expected.end(), [](const LineRequest& left, const LineRequest& right) {
    return left.arrives < right.arrives;
  });
  EXPECT_EQ(rows(in_order(made, Medium::kPmem)), rows(expected));
}

TEST(LineRequestsInOrder, OneThatIsSaidTooLateArrivesWithTheLastThatWasHandedOn) {
  constexpr Picoseconds kLong = 2 * RequestsInOrder::kHeldBack;
  const auto found =
      in_order({{{100, kDramLine}, 0}, {{kLong + 500, kDramLine + 1}, kLong}, {{50, kDramLine + 2}, kLong}},
               Medium::kDram);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1].line, 2U);
  EXPECT_EQ(found[1].arrives, 100);
  EXPECT_EQ(found[2].arrives, kLong + 500);
}

TEST(LineRequestsInOrder, OfTheMeasuredPartTimesCountFromItsStart) {
  const std::vector<std::pair<LineRequest, Picoseconds>> made{
      {{900, kDramLine}, 400}, {{700, kDramLine + 1}, 600}, {{550, kDramLine + 2}, 650}};
  const auto measured = in_order(made, Medium::kDram, true, 1);
  using enum Operation;
  EXPECT_EQ(rows(measured),
            (decltype(rows({})){{0, 2, LineRequest::kNobody, kRead}, {100, 1, LineRequest::kNobody, kRead}}));
  EXPECT_EQ(in_order(made, Medium::kDram, false, 1).size(), 3U);
}

}  // namespace
}  // namespace pmsim::machine
