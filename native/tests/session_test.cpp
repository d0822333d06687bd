#include "pmsim/system/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/blocks/log/poplog.hpp"
#include "pmsim/core/poll.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/system/part.hpp"

namespace pmsim::system {
namespace {

using machine::PlatformParams;
using Values = std::map<std::string, workloads::Parameters::Value>;
using Event = std::tuple<Picoseconds, std::uint32_t, Picoseconds>;  // end, worker, begin

PlatformParams small_machine() {
  PlatformParams params = machine::plain_machine();
  params.core.cores = 8;
  params.controller.channels = 2;
  params.pmem.dimms = 2;
  return params;
}

Values log_values(std::int64_t threads, const std::string& algorithm = "poplog") {
  return {{"algorithm", algorithm},
          {"layout", "padded"},
          {"entry_size", std::int64_t{112}},
          {"group_commit", std::int64_t{1}},
          {"dancing_fields", std::int64_t{8}},
          {"log_size", std::int64_t{1} << 20},
          {"threads", threads},
          {"cpu_cycles", std::int64_t{0}},
          {"memory", "pmem"},
          {"timed", std::int64_t{1}}};
}

std::vector<PartSpec> log_parts(std::int64_t log_size = std::int64_t{1} << 20,
                                const std::string& algorithm = "poplog") {
  return {{"log",
           {{"algorithm", algorithm},
            {"layout", "padded"},
            {"entry_size", std::int64_t{64}},
            {"log_size", log_size},
            {"largest_group", std::int64_t{64}},
            {"memory", "pmem"}}}};
}

/// Gives every worker its next request when its last one ends, `requests` times each. Where `stop` says so,
/// the machine is stopped on the way, as events of somebody else would.
template <typename Stop>
std::vector<Event> closed_loop(Session& session, int requests, Stop&& stop) {
  std::vector<Event> events;
  std::vector<int> left(session.workers(), requests);
  for (std::uint32_t worker = 0; worker < session.workers(); ++worker)
    session.submit(worker, {.id = worker}, 0);
  std::vector<Completion> due;
  Picoseconds now = 0;
  for (std::size_t busy = session.workers(); busy > 0;) {
    const Picoseconds until = stop(now);
    const Picoseconds at = session.advance(until);
    if (at == kNever) {
      now = until;
      continue;
    }
    now = at;
    session.take_due(due);
    for (const Completion& completion : due) {
      events.emplace_back(completion.time, completion.worker, completion.begin);
      if (--left[completion.worker] > 0) {
        session.submit(completion.worker, {.id = completion.worker}, at);
      } else {
        --busy;
      }
    }
  }
  return events;
}

Picoseconds never_stop(Picoseconds) { return kNever - 1; }

TEST(Session, OneWorkerInAClosedLoopIsTheNativeRunToThePicosecond) {
  for (const std::string algorithm : {"poplog", "classic", "header", "rawl"}) {
    const PlatformParams platform = small_machine();
    const int requests = 5'000;
    const auto workload =
        workloads::make_workload("log", workloads::Parameters("log", log_values(1, algorithm)), platform, 3);
    machine::SimulateOptions options;
    options.length = {0, requests};
    options.seed = 3;
    options.pmem_footprint = workload->pmem_footprint();
    const machine::LaneResult native =
        machine::simulate(*workload, 1, std::span(&platform, 1), options).front();
    Session session(make_workload_service("log", log_values(1, algorithm), platform, 3), platform, 1, 3);
    const std::vector<Event> events = closed_loop(session, requests, never_stop);
    ASSERT_EQ(events.size(), static_cast<std::size_t>(requests));
    machine::Histogram latency;
    for (const auto& [end, worker, begin] : events)
      latency.record(end - begin);
    // The native run stops when its last operation's end is dispatched, before that retires.
    EXPECT_EQ(native.groups[0].latency.count(), requests - 1);
    machine::Histogram but_last;
    for (std::size_t index = 0; index + 1 < events.size(); ++index)
      but_last.record(std::get<0>(events[index]) - std::get<2>(events[index]));
    EXPECT_EQ(but_last.mean(), native.groups[0].latency.mean()) << algorithm;
    EXPECT_EQ(but_last.maximum(), native.groups[0].latency.maximum()) << algorithm;
    for (const double quantile : {0.01, 0.5, 0.9, 0.99, 0.999})
      EXPECT_EQ(but_last.percentile(quantile), native.groups[0].latency.percentile(quantile)) << algorithm;
    EXPECT_EQ(session.counters(std::get<0>(events.back())).fences, native.counters.fences) << algorithm;
  }
}

TEST(Session, StoppingTheMachineAnywhereChangesNothing) {
  const PlatformParams platform = small_machine();
  const auto run = [&](auto&& stop) {
    Session session(make_workload_service("log", log_values(6), platform, 3), platform, 6, 3);
    return closed_loop(session, 500, stop);
  };
  const std::vector<Event> whole = run(never_stop);
  Random random(5);
  EXPECT_EQ(whole, run([&](Picoseconds now) { return now + 1 + static_cast<Picoseconds>(random.below(700)); }));
  EXPECT_EQ(whole, run([](Picoseconds now) { return now + 1'000; }));
  EXPECT_TRUE(std::ranges::is_sorted(whole, {}, [](const Event& event) { return std::get<0>(event); }));
}

TEST(Session, AnOperationBeginsWhenItsRequestComesOrItsWorkerIsReady) {
  const PlatformParams platform = small_machine();
  const Picoseconds cycle = kSecond / platform.core.frequency;
  Session session(make_service({{"compute", {}}}, platform, 2, 1, false), platform, 2, 1);
  session.submit(1, {.id = 7, .first = static_cast<std::uint64_t>(10 * cycle)}, 123'456);
  std::vector<Completion> due;
  EXPECT_EQ(session.advance(123'456), kNever);
  EXPECT_EQ(session.advance(kNever), 123'456 + 10 * cycle);
  session.take_due(due);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].request, 7U);
  EXPECT_EQ(due[0].worker, 1U);
  EXPECT_EQ(due[0].begin, 123'456);
  EXPECT_TRUE(session.idle(1));
  EXPECT_EQ(session.next(), kNever);
}

TEST(Session, CompletionsOfOneTimeComeInTheOrderOfTheirWorkers) {
  const PlatformParams platform = small_machine();
  Session session(make_service({{"compute", {}}}, platform, 4, 1, false), platform, 4, 1);
  for (const std::uint32_t worker : {2U, 0U, 3U, 1U})
    session.submit(worker, {.id = worker, .first = 50'000}, 1'000);
  std::vector<Completion> due;
  std::vector<std::uint32_t> order;
  while (session.advance(kNever) == 51'000) {
    session.take_due(due);
    for (const Completion& completion : due)
      order.push_back(completion.worker);
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(Session, ABusyWorkerATimeInThePastAndTooManyWorkersAreRefused) {
  const PlatformParams platform = small_machine();
  Session session(make_service({{"compute", {}}}, platform, 2, 1, false), platform, 2, 1);
  session.submit(0, {.first = 5'000}, 100);
  EXPECT_THROW(session.submit(0, {.first = 5'000}, 100), SimulationError);
  EXPECT_EQ(session.advance(3'000), kNever);
  EXPECT_THROW(session.submit(1, {.first = 5'000}, 2'998), SimulationError);
  EXPECT_NO_THROW(session.submit(1, {.first = 5'000}, 3'000));
  EXPECT_THROW(Session(make_service({{"compute", {}}}, platform, 9, 1, false), platform, 9, 1), ConfigError);
}

/// 10,000 rows of 8 bytes.
std::map<std::string, workloads::Parameters::Value> small_engine(const std::string& name) {
  return {{"engine", name},
          {"dram_capacity", std::int64_t{1} << 22},
          {"pmem_capacity", std::int64_t{1} << 22},
          {"ssd_capacity", std::int64_t{0}},
          {"page_size", std::int64_t{4096}},
          {"log_device", "pmem"},
          {"log_size", std::int64_t{1} << 20},
          {"cpu_cycles", std::int64_t{0}},
          {"transaction_cycles", std::int64_t{0}},
          {"library_cycles", std::int64_t{0}},
          {"system_call_cycles", std::int64_t{0}},
          {"system_call_copies", std::int64_t{2}},
          {"latches", std::string("optimistic")},
          {"logs", std::string("shared")},
          {"commits", std::string("single")},
          {"cleaning", std::string("due")},
          {"cleaning", std::string("due")},
          {"fixes", std::string("counted")},
          {"rows", std::int64_t{10'000}},
          {"row_size", std::int64_t{8}}};
}

TEST(Session, LoadingAnEnginePollsOnceForEachStrideOfRowsAndEndsWhenThatThrows) {
  const PlatformParams platform = small_machine();
  const PartSpec engine{"engine", small_engine("main-memory")};
  std::uint64_t calls = 0;
  const auto made = make_service({engine}, platform, 1, 1, false, [&calls](Doing) { ++calls; });
  EXPECT_EQ(calls, 10'000 / Poll::kStride);
  const auto stop = [](Doing) { throw std::runtime_error("Ctrl-C"); };
  EXPECT_THROW(static_cast<void>(make_service({engine}, platform, 1, 1, false, stop)), std::runtime_error);
}

/// The table is loaded in pieces, so that a memory which can be crashed follows a few pages of it at a time.
TEST(Session, LoadingAnEngineThatCanCrashLeavesFewLinesUncertainMeanwhileAndNoneInTheEnd) {
  const PlatformParams platform = small_machine();
  memory::SimMemory memory({.persistence = memory::Persistence::kAdr});
  std::size_t most = 0;
  const Watch watch = [&](Doing) { most = std::max(most, memory.durability().uncertain_lines()); };
  workloads::Parameters parameters("engine", small_engine("nvm-direct"));
  const std::unique_ptr<Part> engine = make_engine(parameters, {memory, platform, 1, 1, watch, false});
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, 4 * 4096 / memory::kLineBytes);  // of some 60 pages
  EXPECT_EQ(memory.durability().uncertain_lines(), 0U);
}

TEST(Session, EveryAcknowledgedLogEntryIsThereAfterAPowerFailureAtAnyTime) {
  const PlatformParams platform = small_machine();
  Random random(11);
  int partly = 0;
  for (const std::string algorithm : {"poplog", "classic", "header", "rawl"}) {
    for (int trial = 0; trial < 60; ++trial) {
      const std::uint32_t workers = 1 + static_cast<std::uint32_t>(random.below(4));
      Session session(make_service(log_parts(1 << 16, algorithm), platform, workers, 5, true), platform,
                      workers, 5);
      std::vector<std::uint64_t> acknowledged;
      std::uint64_t next = 0;
      std::vector<Completion> due;
      Picoseconds now = 0;
      for (int failure = 0; failure < 3; ++failure) {
        for (std::uint32_t worker = 0; worker < workers; ++worker) {
          if (session.idle(worker))
            session.submit(worker, {.id = next++, .first = next - 1, .count = 1}, now);
        }
        const Picoseconds end = now + 1 + static_cast<Picoseconds>(random.below(20'000'000));
        for (;;) {
          const Picoseconds at = session.advance(end);
          if (at == kNever)
            break;
          session.take_due(due);
          for (const Completion& completion : due) {
            acknowledged.push_back(completion.request);
            session.submit(completion.worker, {.id = next++, .first = next - 1, .count = 1}, at);
          }
        }
        const std::uint32_t lost = session.crash(end, end + 1'000, ~std::uint64_t{0}, random.next());
        EXPECT_LE(lost, workers);
        // Another failure in the middle of the recovery, now and then.
        now = end + 1'000;
        if (random.below(3) == 0) {
          now += static_cast<Picoseconds>(random.below(3'000'000));
          if (session.advance(now) == kNever)
            session.crash(now, now, ~std::uint64_t{0}, random.next());
        }
        now = session.advance(kNever);
        ASSERT_NE(now, kNever);
        session.take_due(due);
        ASSERT_EQ(due.size(), 1U);
        ASSERT_EQ(due[0].request, ~std::uint64_t{0});
        const std::vector<std::uint64_t> present = session.service().present();
        ASSERT_EQ(std::ranges::adjacent_find(present), present.end()) << "an entry is there twice";
        std::ranges::sort(acknowledged);
        ASSERT_TRUE(std::ranges::includes(present, acknowledged)) << algorithm << " trial " << trial;
        ASSERT_TRUE(present.empty() || present.back() < next);
        partly += present.size() > acknowledged.size() ? 1 : 0;
      }
    }
  }
  EXPECT_GT(partly, 50) << "requests in flight never became durable: the failures come too late or too early";
}

/// Entries that one worker has been told of and that a failure at a random time has taken all the same.
int lost_entries(memory::Site disabled) {
  const PlatformParams platform = small_machine();
  Random random(3);
  int lost = 0;
  for (int trial = 0; trial < 40; ++trial) {
    Session session(make_service(log_parts(1 << 16), platform, 1, 5, true), platform, 1, 5);
    session.service().tracked_memory()->disable_site(disabled);
    std::vector<std::uint64_t> acknowledged;
    std::vector<Completion> due;
    session.submit(0, {.id = 0, .first = 0}, 0);
    const Picoseconds end = 2'000'000 + static_cast<Picoseconds>(random.below(4'000'000));
    for (Picoseconds at = session.advance(end); at != kNever; at = session.advance(end)) {
      session.take_due(due);
      acknowledged.push_back(due[0].request);
      session.submit(0, {.id = due[0].request + 1, .first = due[0].request + 1}, at);
    }
    session.crash(end, end, ~std::uint64_t{0}, random.next());
    EXPECT_NE(session.advance(kNever), kNever);
    session.take_due(due);
    const std::vector<std::uint64_t> present = session.service().present();
    lost += std::ranges::includes(present, acknowledged) ? 0 : 1;
  }
  return lost;
}

TEST(Session, WithoutTheBarriersOfTheLogAcknowledgedEntriesAreLost) {
  EXPECT_EQ(lost_entries(memory::kNoSite), 0);
  EXPECT_GT(lost_entries(blocks::log::PopLog::kEntryFence), 0);
  EXPECT_GT(lost_entries(blocks::log::PopLog::kEntryFlush), 0);
}

TEST(Session, WhatAWarmUpHasStoredIsDurableAlsoWhereItIsStopped) {
  const PlatformParams platform = small_machine();
  for (const int calls : {3, 1 << 30}) {
    Session session(make_service(log_parts(1 << 20), platform, 1, 5, true), platform, 1, 5);
    int called = 0;
    const Watch stop = [&](Doing) {
      if (++called == calls)
        throw std::runtime_error("stopped");
    };
    const Mix mix({{.first = Mix::First::kSequence}}, 3);
    try {
      session.warm_up(mix, 6'000, stop);
      EXPECT_NE(calls, 3);
    } catch (const std::runtime_error&) {
      EXPECT_EQ(calls, 3);
    }
    const std::size_t before = session.service().present().size();
    EXPECT_GT(before, 50U);
    session.submit(0, {.id = 1, .first = 1'000'000}, 0);
    const Picoseconds end = session.advance(kNever);
    session.crash(end, end, ~std::uint64_t{0}, 7);
    ASSERT_NE(session.advance(kNever), kNever);
    EXPECT_EQ(session.service().present().size(), before + 1);
  }
}

TEST(Session, AWarmUpLeavesWarmCachesAndCountsNothing) {
  const PlatformParams platform = small_machine();
  const std::vector<PartSpec> table = {
      {"table", {{"rows", std::int64_t{16}}, {"row_size", std::int64_t{64}}, {"memory", "pmem"}}}};
  for (const std::uint64_t requests : {0, 64}) {
    Session session(make_service(table, platform, 1, 5, false), platform, 1, 5);
    const Mix mix({{.first = Mix::First::kSequence}}, 3);
    const Watch stop = [](Doing) { throw std::runtime_error("stopped"); };
    for (int again = 0; again < 2; ++again)
      session.warm_up(mix, requests, {});
    if (requests > 0) {
      EXPECT_THROW(session.warm_up(mix, 1'000'000, stop), std::runtime_error);
    }
    session.counters(0).for_each(
        [](std::string_view name, std::int64_t value) { EXPECT_EQ(value, 0) << name; });
    session.submit(0, {.id = 1, .first = 5}, 0);
    const Picoseconds end = session.advance(kNever);
    const machine::Counters counted = session.counters(end);
    EXPECT_EQ(counted.pmem_read_lines, requests == 0 ? 1 : 0);
    EXPECT_EQ(counted.loads, 2);
    EXPECT_EQ(counted.l1_hits, requests == 0 ? 0 : 2);
    EXPECT_EQ(counted.tlb_walks, requests == 0 ? 2 : 0);
  }
}

TEST(Session, EveryPicosecondIsCountedOnceThroughPowerFailures) {
  const PlatformParams platform = small_machine();
  Session session(make_service(log_parts(1 << 16), platform, 2, 5, true), platform, 2, 5);
  std::vector<Completion> due;
  Picoseconds now = 0;
  for (int failure = 0; failure < 3; ++failure) {
    session.submit(0, {.id = 1, .first = 1}, now);
    now = session.advance(kNever);
    session.take_due(due);
    session.crash(now + 1, now + 1'000'000, ~std::uint64_t{0}, 7);
    now = session.advance(kNever);
    session.take_due(due);
  }
  now += 5'000'000;
  std::int64_t counted = 0;
  session.counters(now).for_each(
      [&](std::string_view name, std::int64_t value) { counted += name.starts_with("time_") ? value : 0; });
  EXPECT_EQ(counted, 2 * now);
}

}  // namespace
}  // namespace pmsim::system
