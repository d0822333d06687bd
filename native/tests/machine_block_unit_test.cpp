#include "pmsim/machine/block_unit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::machine {
namespace {

/// The same unit, tick by tick: at each one that finds it idle it takes what somebody waits for, or else a
/// program that was there before.
class Ticking {
 public:
  void arrive(std::uint64_t number, Picoseconds arrival, Picoseconds duration) {
    programs_.push_back({number, arrival, duration});
  }
  void wait_for_all_up_to(std::uint64_t number) {
    for (; !programs_.empty() && programs_.front().number <= number; programs_.pop_front())
      wanted_.push_back(programs_.front());
  }
  /// Until what was asked for now is done: it is the last in line, and what comes meanwhile goes behind it.
  Picoseconds serve(Picoseconds now, Picoseconds duration) {
    run(now);
    wanted_.push_back({kForeground, now, duration});
    while (!wanted_.empty())
      take(wanted_);
    return free_;
  }
  /// All ticks before `now`.
  void run(Picoseconds now) {
    while (!wanted_.empty())
      take(wanted_);
    for (; tick_ < now; ++tick_) {
      if (tick_ >= free_ && !programs_.empty() && programs_.front().arrival <= tick_)
        take(programs_);
    }
  }
  [[nodiscard]] Picoseconds end_of(std::uint64_t number) const {
    return number < ends_.size() ? ends_[number] : kNever;
  }

 private:
  static constexpr std::uint64_t kForeground = ~std::uint64_t{0};
  struct Work {
    std::uint64_t number;
    Picoseconds arrival;
    Picoseconds duration;
  };
  void take(std::deque<Work>& from) {
    const Work work = from.front();
    from.pop_front();
    free_ = std::max(free_, work.arrival) + work.duration;
    if (work.number == kForeground)
      return;
    ends_.resize(std::max<std::size_t>(ends_.size(), work.number + 1), kNever);
    ends_[work.number] = free_;
  }

  std::deque<Work> programs_;
  std::deque<Work> wanted_;
  std::vector<Picoseconds> ends_;
  Picoseconds free_ = 0;
  Picoseconds tick_ = 0;
};

TEST(BlockUnit, DoesWhatAUnitDoesTickByTick) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    BlockUnit unit;
    Ticking reference;
    Picoseconds now = 1;
    std::uint64_t number = 0;
    std::uint64_t forgotten = 0;
    Picoseconds arrival = 0;
    for (int step = 0; step < 120; ++step) {
      now += static_cast<Picoseconds>(random.below(12));
      const auto duration = static_cast<Picoseconds>(1 + random.below(20));
      switch (random.below(5)) {
        case 0:
          ASSERT_EQ(unit.serve(now, now, duration), reference.serve(now, duration)) << "seed " << seed;
          break;
        case 1:
        case 2:
          reference.run(now);
          arrival = std::max(arrival, now + static_cast<Picoseconds>(random.below(6)));
          unit.program(++number, arrival, duration);
          reference.arrive(number, arrival, duration);
          break;
        case 3: {
          const std::uint64_t until = forgotten + 1 + random.below(number - forgotten + 1);
          if (until > number)
            break;
          unit.advance(now);
          reference.run(now);
          reference.wait_for_all_up_to(until);
          const Picoseconds done = unit.finish(until);
          reference.run(now);
          ASSERT_EQ(done, reference.end_of(until)) << "seed " << seed;
          break;
        }
        default:
          unit.advance(now);
          reference.run(now);
          for (std::uint64_t each = forgotten + 1; each <= number; ++each)
            ASSERT_EQ(unit.done(each), reference.end_of(each)) << "seed " << seed << ", program " << each;
          while (forgotten < number && unit.done(forgotten + 1) <= now)
            unit.forget(++forgotten, now);
      }
    }
  }
}

TEST(BlockUnit, DoesWhatComesBeforeWorkThatIsToldOfEarly) {
  BlockUnit unit;
  EXPECT_EQ(unit.serve(0, 100, 50), 150);   // a write, whose data are on the link until 100
  EXPECT_EQ(unit.serve(10, 10, 40), 50);    // a read that comes before them
  EXPECT_EQ(unit.serve(20, 20, 60), 210);   // one that would put the write off
  EXPECT_EQ(unit.serve(30, 60, 40), 100);   // one that just fits, and leaves ten before it
  EXPECT_EQ(unit.serve(40, 50, 10), 60);    // which are taken, too
  EXPECT_EQ(unit.serve(40, 50, 1), 211);    // nothing is left
  EXPECT_EQ(unit.serve(300, 300, 5), 305);  // it has been idle, and nothing is done in the past
  EXPECT_EQ(unit.serve(301, 301, 5), 310);
}

TEST(BlockUnit, DoesNothingTwiceAtATimeHoweverEarlyItIsTold) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    BlockUnit unit;
    std::vector<std::pair<Picoseconds, Picoseconds>> busy;
    Picoseconds now = 0;
    for (int step = 0; step < 200; ++step) {
      now += static_cast<Picoseconds>(random.below(12));
      const auto start = now + static_cast<Picoseconds>(random.below(2) * random.below(60));
      const auto duration = static_cast<Picoseconds>(random.below(20));
      const Picoseconds ends = unit.serve(now, start, duration);
      ASSERT_GE(ends - duration, start);
      busy.emplace_back(ends - duration, ends);
    }
    std::ranges::sort(busy);
    for (std::size_t index = 1; index < busy.size(); ++index)
      ASSERT_LE(busy[index - 1].second, busy[index].first) << "seed " << seed;
  }
}

}  // namespace
}  // namespace pmsim::machine
