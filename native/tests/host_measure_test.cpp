#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <stdexcept>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/memory/host_cpu.hpp"

namespace pmsim::host {
namespace {

using Values = std::map<std::string, Parameters::Value>;

/// Counts what it is asked to do.
class Counting final : public Benchmark {
 public:
  Counting(std::uint32_t threads, std::uint64_t limit) : threads_(threads), limit_(limit) {}
  [[nodiscard]] std::uint32_t threads() const override { return threads_; }
  [[nodiscard]] std::uint64_t limit() const override { return limit_; }
  void prepare(std::uint32_t, std::uint64_t operations) override {
    ++prepares;
    prepared += operations;
  }
  void reset() override {
    ++resets;
    since_reset = 0;
    prepared_at_reset = prepared.exchange(0);
    prepares_at_reset = prepares.exchange(0);
  }
  void run(std::uint32_t thread, std::uint64_t operations) override {
    if (fails && resets > 0 && thread + 1 == threads_)
      throw ConfigError("made to fail");
    for (std::uint64_t spun = 0; works && spun < operations; ++spun)
      memory::instruction::pause();
    since_reset += operations;
    most_since_reset = std::max(most_since_reset.load(), since_reset.load());
  }
  std::atomic<std::uint64_t> since_reset{0};
  std::atomic<std::uint64_t> most_since_reset{0};
  std::atomic<std::uint64_t> prepared{0};
  std::atomic<std::uint32_t> prepares{0};
  std::uint64_t prepared_at_reset = 0;
  std::uint32_t prepares_at_reset = 0;
  int resets = 0;
  bool fails = false;
  bool works = false;  ///< operations take time

 private:
  std::uint32_t threads_;
  std::uint64_t limit_;
};

TEST(HostMeasure, ResetsBeforeEachRepetitionAndGivesOneSampleOfEach) {
  Counting benchmark(1, 0);
  EXPECT_EQ(measure(benchmark, {.repetitions = 4, .seconds = 0.0005, .poll = {}}).samples.size(), 4U);
  EXPECT_EQ(benchmark.resets, 4);
}

/// What choosing operations has brought into the caches is flushed by reset(), so it comes first; and only what
/// is chosen before the clock runs is not timed.
TEST(HostMeasure, OperationsOfARepetitionAreChosenBeforeItsReset) {
  Counting benchmark(2, 0);
  benchmark.works = true;
  static_cast<void>(measure(benchmark, {.repetitions = 3, .seconds = 0.0005, .poll = {}}));
  EXPECT_EQ(benchmark.prepares_at_reset, 2U);  // one of each thread, since the last reset
  EXPECT_GT(benchmark.prepared_at_reset, 0U);
  EXPECT_EQ(benchmark.prepares, 0U);  // none while it runs
}

TEST(HostMeasure, AThreadDoesAtMostTheLimitInARepetition) {
  Counting benchmark(1, 1000);
  static_cast<void>(measure(benchmark, {.repetitions = 3, .seconds = 0.01, .poll = {}}));
  EXPECT_EQ(benchmark.most_since_reset, 1000U);
}

TEST(HostMeasure, AnErrorOfOneThreadReachesTheCallerAndNoThreadWaitsForEver) {
  Counting benchmark(3, 0);
  benchmark.fails = true;
  EXPECT_THROW(static_cast<void>(measure(benchmark, {.repetitions = 4, .seconds = 0.0005, .poll = {}})),
               ConfigError);
}

TEST(HostMeasure, APollThatThrowsEndsIt) {
  Counting benchmark(2, 0);
  int calls = 0;
  const auto poll = [&] {
    if (++calls == 2)
      throw std::runtime_error("interrupted");
  };
  EXPECT_THROW(static_cast<void>(measure(benchmark, {.repetitions = 9, .seconds = 0.0005, .poll = poll})),
               std::runtime_error);
  EXPECT_EQ(benchmark.resets, 1);
}

#if defined(__x86_64__)
TEST(HostBenchmarks, AColdChaseVisitsEachNodeAtMostOnce) {
  const std::unique_ptr<Benchmark> chase = make_benchmark(
      "chase", {"chase", Values{{"memory", "dram"}, {"region_size", 65536}, {"spacing", 256}, {"cold", 1}}},
      {});
  EXPECT_EQ(chase->limit(), 256U);
}

TEST(HostBenchmarks, LoopsOfEveryAccessStayInTheirRegion) {
  for (const char* operation : {"load", "store", "ntstore", "store+clflush"}) {
    for (const char* pattern : {"random", "sequential"}) {
      const Values values{{"memory", "dram"},   {"operation", operation}, {"pattern", pattern},
                          {"threads", 2},       {"access_size", 256},     {"fence_every", 0},
                          {"instructions", 32}, {"region_size", 4096}};
      const std::unique_ptr<Benchmark> lines = make_benchmark("bandwidth", {"bandwidth", values}, {});
      EXPECT_EQ(lines->limit(), 8U);
      for (const std::uint32_t thread : {0U, 1U}) {
        lines->reset();
        lines->run(thread, 100);
      }
    }
  }
}

TEST(HostBenchmarks, RefusesWhatCannotBe) {
  const auto message = [](const char* name, const Values& values) -> std::string {
    try {
      static_cast<void>(make_benchmark(name, {name, values}, {}));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("chaze", {}).find("known: chase"), std::string::npos);
  EXPECT_NE(message("compute", {{"instruction", "div"}}).find("choose one of dependent-add, nop"),
            std::string::npos);
  EXPECT_NE(message("compute", {{"instruction", "nop"}, {"threads", 1}}).find("not a parameter"),
            std::string::npos);
  EXPECT_NE(message("bandwidth", {{"memory", "dram"},
                                  {"operation", "load"},
                                  {"pattern", "random"},
                                  {"threads", 1},
                                  {"access_size", 64},
                                  {"fence_every", 0},
                                  {"instructions", 5},
                                  {"region_size", 4096}})
                .find("must be a multiple of 16"),
            std::string::npos);
  EXPECT_NE(message("chase", {{"memory", "dram"}, {"region_size", 4096}, {"spacing", 4096}, {"cold", 0}})
                .find("fewer than two nodes"),
            std::string::npos);
}
#endif

}  // namespace
}  // namespace pmsim::host
