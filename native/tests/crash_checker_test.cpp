#include "pmsim/crash/checker.hpp"

#include <gtest/gtest.h>

#include "crash_toys.hpp"

namespace pmsim::crash {
namespace {

using toys::Append;
using toys::Bug;
using toys::Transfer;
using toys::Undo;

const CheckOptions kQuick{.states = 5'000};

template <Bug kBug>
Violation violation_of() {
  const CheckReport report = check(Append<kBug>::kind(), kQuick);
  EXPECT_TRUE(report.violation.has_value());
  return report.violation.value_or(Violation{});
}

TEST(Checker, FindsNothingWrongWithTwoBarriers) {
  const CheckReport report = check(Append<Bug::kNone>::kind(), kQuick);
  EXPECT_FALSE(report.violation.has_value()) << report.violation->counterexample;
  EXPECT_GE(report.states, kQuick.states);
  EXPECT_GT(report.distinct, 0U);
  EXPECT_LT(report.distinct, report.states);
  EXPECT_EQ(report.rewrites, 0U);
  EXPECT_EQ(report.reached, (std::vector<memory::Site>{10, 11, 12, 13, 14}));
}

TEST(Checker, VisitsEveryLegalImageOfEveryStepOfASmallProgramOnce) {
  using Toy = Append<Bug::kNone>;
  Toy toy(1, Scale::kSmall);
  memory::SimMemory memory({.persistence = memory::Persistence::kAdr});
  std::uint64_t steps = 0;
  std::uint64_t images = 0;
  const auto step = [&] {
    ++steps;
    images += memory.durability().count(1'000'000).value();
  };
  memory.on_persistence_step(step);
  toy.create(memory);
  step();  // acknowledged
  for (std::uint32_t index = 0; index < toy.operations(); ++index) {
    toy.run(memory, index);
    step();
  }
  CheckOptions options = kQuick;
  options.small_programs = 1;
  options.large_programs = 0;
  const CheckReport report = check(Toy::kind(), options);
  EXPECT_EQ(report.states, images);
  EXPECT_EQ(report.steps, steps);
  EXPECT_EQ(report.exhaustive_steps, steps);
}

TEST(Checker, FindsAMissingFlush) {
  const Violation violation = violation_of<Bug::kNoFlush>();
  EXPECT_EQ(violation.message, "entry 0 is torn");
  EXPECT_EQ(violation.operation, 1U);
  EXPECT_EQ(violation.lost_words, 1U);
  EXPECT_NE(violation.counterexample.find("toy+0x40"), std::string::npos) << violation.counterexample;
  EXPECT_NE(violation.counterexample.find("  recovery stored nothing\n  recovery: entry 0 is torn"),
            std::string::npos)
      << violation.counterexample;
}
TEST(Checker, FindsAMissingFence) { EXPECT_EQ(violation_of<Bug::kNoFence>().message, "entry 0 is torn"); }
TEST(Checker, FindsTheWrongOrder) { EXPECT_EQ(violation_of<Bug::kWrongOrder>().message, "entry 0 is torn"); }
TEST(Checker, AnExceptionOfRecoveryIsAViolation) {
  EXPECT_EQ(violation_of<Bug::kRecoveryThrows>().message, "recovery threw: an odd number of entries");
}

TEST(Checker, AProgramThatCannotRunIsNoViolationAndIsNamed) {
  try {
    static_cast<void>(check(Append<Bug::kRunThrows>::kind(), kQuick));
    FAIL();
  } catch (const SimulationError& error) {
    EXPECT_STREQ(error.what(), "toy, seed 1, large: operation 2 fails while the power is on: full");
  }
}

TEST(Checker, DemandsWhatIsAcknowledgedAfterTheLastStepToo) {
  EXPECT_EQ(violation_of<Bug::kNoLastFence>().message, "found 0 entries; 1 are acknowledged");
}

template <typename Toy>
void expect_every_point_as_declared() {
  for (const blocks::SiteInfo& site : Toy::kSites) {
    const Mutant mutant = mutate(Toy::kind(), site, kQuick);
    EXPECT_TRUE(mutant.reached) << site.name;
    EXPECT_TRUE(mutant.as_declared()) << site.name;
  }
}

TEST(Mutation, EveryPointOfTheToysIsNeededOrDeclaredRedundant) {
  expect_every_point_as_declared<Append<Bug::kNone>>();
  expect_every_point_as_declared<Transfer<false>>();
}

TEST(Mutation, APointThatIsNeverReachedIsNotAsDeclared) {
  const Mutant mutant = mutate(Append<Bug::kNone>::kind(), {99, "nowhere", "never executed"}, kQuick);
  EXPECT_FALSE(mutant.reached);
  EXPECT_FALSE(mutant.as_declared());
}

TEST(Mutation, APointDeclaredRedundantThatIsNeededIsNotAsDeclared) {
  const Mutant mutant = mutate(Append<Bug::kNone>::kind(), {11, "payload: fence", "I thought so"}, kQuick);
  EXPECT_TRUE(mutant.reached);
  EXPECT_FALSE(mutant.as_declared());
}

TEST(Checker, ARecoveryThatIsNotIdempotentFailsOnlyUnderASecondCrash) {
  const CheckReport good = check(Transfer<false>::kind(), kQuick);
  EXPECT_FALSE(good.violation.has_value()) << good.violation->counterexample;
  EXPECT_GT(good.recovery_crashes, 0U);
  const CheckReport bad = check(Transfer<true>::kind(), kQuick);
  ASSERT_TRUE(bad.violation.has_value());
  EXPECT_GT(bad.violation->recovery_step, 0U);
  const std::string& text = bad.violation->counterexample;
  const std::size_t again = text.find("power failed again");
  ASSERT_NE(again, std::string::npos) << text;
  EXPECT_NE(text.find("  what recovery stored:\n      store ", again), std::string::npos) << text;
}

TEST(Checker, AsksAfterASecondCrashForWhatIsAcknowledgedMeanwhile) {
  const CheckReport good = check(Undo<false>::kind(), kQuick);
  EXPECT_FALSE(good.violation.has_value()) << good.violation->counterexample;
  // Every image after an acknowledgement has been possible before it, when the old word was right as well.
  const CheckReport bad = check(Undo<true>::kind(), kQuick);
  ASSERT_TRUE(bad.violation.has_value());
  EXPECT_GT(bad.violation->recovery_step, 0U);
  EXPECT_EQ(bad.violation->message, "0 updates found, 1 acknowledged");
}

TEST(Checker, LetsTheProgramGoOnAfterRecoveryAndCrashesItAgain) {
  const CheckReport good = check(Append<Bug::kNone>::kind(), kQuick);
  EXPECT_GT(good.resumed_crashes, good.states / 2);
  EXPECT_LT(good.resumed_crashes, 2 * good.states);
  EXPECT_EQ(check(Transfer<false>::kind(), kQuick).resumed_crashes, 0U);  // it does not say how
}

TEST(Checker, FindsAMistakeOfRecoveryThatOnlyTheNextOperationShows) {
  const Violation violation = violation_of<Bug::kRecoveredTail>();
  // The entry that was overwritten was acknowledged, or seen by whoever recovered.
  EXPECT_NE(violation.message.find("are acknowledged"), std::string::npos) << violation.message;
  EXPECT_GE(violation.resumed_operation, 1U);
  EXPECT_GT(violation.recovery_step, 0U);
  EXPECT_NE(violation.counterexample.find("the program went on:\n    1  append"), std::string::npos)
      << violation.counterexample;
  EXPECT_NE(violation.counterexample.find("power failed again at step"), std::string::npos);
}

TEST(Checker, FindsARecoveryThatFailsOnlyUnderAThirdCrash) {
  const CheckReport good = check(Transfer<false>::kind(), kQuick);
  EXPECT_GT(good.third_crashes, good.states / 8);
  EXPECT_LT(good.third_crashes, good.states);
  EXPECT_EQ(check(Append<Bug::kNone>::kind(), kQuick).third_crashes, 0U);  // its recovery has no steps
  const Violation violation = violation_of<Bug::kThirdCrash>();
  EXPECT_EQ(violation.failures, 3U);
  EXPECT_GE(violation.resumed_operation, 1U);
  EXPECT_NE(violation.message.find("are acknowledged"), std::string::npos) << violation.message;
  const std::string& text = violation.counterexample;
  const std::size_t went_on = text.find("the program went on:\n    1  append");
  ASSERT_NE(went_on, std::string::npos) << text;
  const std::size_t third = text.find("recovery began, and power failed again at its step", went_on);
  ASSERT_NE(third, std::string::npos) << text;
  EXPECT_NE(text.find("  recovery stored nothing\n", third), std::string::npos) << text;
}

TEST(Checker, EadrMakesFlushesUnnecessaryAndKeepsOrderingPoints) {
  CheckOptions options = kQuick;
  options.persistence = memory::Persistence::kEadr;
  for (const memory::Site site : std::array<memory::Site, 5>{10, 11, 12, 13, 14}) {
    const Mutant mutant = mutate(Append<Bug::kNone>::kind(), {site, "of the appends"}, options);
    EXPECT_FALSE(mutant.report.violation.has_value()) << site;
  }
  EXPECT_TRUE(mutate(Transfer<false>::kind(), {21, "ordering point"}, options).report.violation.has_value());
}

TEST(Checker, TheSameSeedVisitsTheSameStates) {
  const CheckReport one = check(Transfer<false>::kind(), kQuick);
  const CheckReport two = check(Transfer<false>::kind(), kQuick);
  EXPECT_EQ(one.states, two.states);
  EXPECT_EQ(one.distinct, two.distinct);
  EXPECT_EQ(one.recovery_crashes, two.recovery_crashes);
}

TEST(Checker, StopsWhenPollSaysSo) {
  CheckOptions options = kQuick;
  std::uint64_t polled = 0;
  options.poll = [&](std::uint64_t states) {
    polled += states;
    return polled >= 1'000;
  };
  const CheckReport report = check(Append<Bug::kNone>::kind(), options);
  EXPECT_TRUE(report.stopped);
  EXPECT_GE(polled, 1'000U);
  EXPECT_LT(report.states, 2'000U);
}

TEST(Checker, AStopWhileAViolationIsMadeSmallLeavesItAsItIsKnown) {
  CheckOptions options = kQuick;
  const CheckReport whole = check(Append<Bug::kRecoveredTail>::kind(), options);
  bool met = false;
  std::uint64_t since = 0;
  options.on_violation = [&](const std::string& message) {
    met = true;
    EXPECT_NE(message.find("are acknowledged"), std::string::npos) << message;
  };
  options.poll = [&](std::uint64_t states) {
    if (met)
      since += states;
    return met;
  };
  const CheckReport report = check(Append<Bug::kRecoveredTail>::kind(), options);
  ASSERT_TRUE(met && report.violation.has_value() && whole.violation.has_value());
  EXPECT_TRUE(report.stopped);
  EXPECT_FALSE(whole.stopped);
  const std::string& text = report.violation->counterexample;
  EXPECT_NE(text.find("are acknowledged"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("  (stopped while it was made shorter)\n")) << text;
  EXPECT_GT(report.violation->lost_words, whole.violation->lost_words);
  EXPECT_EQ(whole.violation->counterexample.find("stopped"), std::string::npos);
  EXPECT_LE(since, 256U) << "states are counted while the violation is made small";
}

}  // namespace
}  // namespace pmsim::crash
