#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "../src/crash/subjects/engine.hpp"
#include "../src/crash/subjects/turns.hpp"
#include "pmsim/crash/checker.hpp"

// Transactions whose commits overlap, under the crash checker.

namespace pmsim::crash {
namespace {

TEST(Turns, ChangeWhereThePartsSayAndNowhereElse) {
  Turns turns;
  std::string said;
  turns.run(
      [&] {
        said += "a0 ";
        EXPECT_EQ(turns.running(), 0U);
        EXPECT_TRUE(turns.yield());
        said += "a1 ";
        EXPECT_TRUE(turns.yield());
        said += "a2 ";
        EXPECT_FALSE(turns.yield()) << "the other one has ended";
        said += "a3 ";
      },
      [&] {
        said += "b0 ";
        EXPECT_EQ(turns.running(), 1U);
        EXPECT_TRUE(turns.yield());
        said += "b1 ";
      });
  EXPECT_EQ(said, "a0 b0 a1 b1 a2 a3 ");
}

TEST(Turns, BothRunToTheirEndsWhateverIsThrown) {
  Turns turns;
  bool ended = false;
  EXPECT_THROW(turns.run(
                   [&] {
                     turns.yield();
                     throw std::runtime_error("the first");
                   },
                   [&] {
                     turns.yield();
                     ended = true;
                     throw std::logic_error("the second");
                   }),
               std::runtime_error);
  EXPECT_TRUE(ended);
  EXPECT_THROW(turns.run([] {}, [] { throw std::logic_error("the second"); }), std::logic_error);
}

engines::EngineOptions with_logs() {
  engines::EngineOptions options;
  options.engine = "main-memory";
  options.page_bytes = 4096;
  options.dram_bytes = 10 * options.page_bytes;
  options.log_buffer_bytes = 6 * options.page_bytes;
  give_logs(options);
  return options;
}

/// As engine-main-memory-logs, with latches or without.
template <bool kWait>
std::unique_ptr<Subject> beside(std::uint64_t seed, Scale scale) {
  engines::EngineOptions options = with_logs();
  if (!kWait)
    options.latches = "none";
  constexpr EngineSubject::Size kSize{
      .transactions = 12, .most_operations = 6, .checkpoints = false, .beside = true};
  return std::make_unique<EngineSubject>(options, kSize, seed, scale);
}

TEST(EngineBeside, CommitsThatDoNotWaitForEachOtherAreFound) {
  CheckOptions options{.states = 500, .seed = 3};  // seeds 1 to 8 find it within 170
  options.small_programs = 0;
  const auto violated = [&](std::unique_ptr<Subject> (*make)(std::uint64_t, Scale)) {
    return check({"beside", "", kPmemLogsPoints, make, false}, options).violation;
  };
  const auto found = violated(beside<true>);
  EXPECT_FALSE(found) << found->counterexample;
  const auto missing = violated(beside<false>);
  ASSERT_TRUE(missing);
  EXPECT_NE(missing->counterexample.find("; beside it "), std::string::npos) << missing->counterexample;
}

}  // namespace
}  // namespace pmsim::crash
