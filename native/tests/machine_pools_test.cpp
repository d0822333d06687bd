#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/buffer_line.hpp"
#include "pmsim/machine/buffer_pool.hpp"
#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/divider.hpp"
#include "pmsim/machine/load_order.hpp"
#include "pmsim/machine/read_buffer.hpp"
#include "pmsim/machine/timed_loads.hpp"

namespace pmsim::machine {
namespace {

/// Against a sorted list; times come in any order and often twice.
TEST(BufferPool, IsASortedListOfTimesAndANumberThatWait) {
  constexpr std::array<std::pair<std::size_t, std::size_t>, 7> kSizes{
      {{1, 0}, {2, 0}, {7, 0}, {10, 0}, {16, 0}, {10, 2}, {1, 3}}};
  for (const auto& [common, kept_back] : kSizes) {
    const std::size_t buffers = common + kept_back;
    BufferPool pool(common, kept_back);
    std::vector<Picoseconds> reference(buffers, 0);
    std::size_t waiting = 0;
    Random random(buffers);
    for (int step = 0; step < 5'000; ++step) {
      const auto time = static_cast<Picoseconds>(random.below(50));
      const std::uint64_t choice = random.below(3);
      if (choice == 0 && waiting > 0) {
        pool.release(time);
        reference.push_back(time);
        --waiting;
      } else if (!reference.empty()) {
        reference.erase(reference.begin());
        if (choice == 1) {
          pool.take_waiting();
          ++waiting;
        } else {
          pool.take(time);
          reference.push_back(time);
        }
      }
      std::sort(reference.begin(), reference.end());
      ASSERT_EQ(pool.earliest_of_all(), reference.empty() ? kNever : reference.front())
          << buffers << " buffers, step " << step;
      ASSERT_EQ(pool.earliest(), reference.size() <= kept_back ? kNever : reference[kept_back])
          << buffers << " buffers, step " << step;
      ASSERT_EQ(pool.all_wait(), reference.empty());
    }
  }
}

/// The smallest number that no load of a reference has.
std::size_t unused(const auto& reference) {
  std::size_t load = 0;
  const auto has = [&](const auto& entry) { return entry.second == load; };
  while (std::any_of(reference.begin(), reference.end(), has)) {
    ++load;
  }
  return load;
}

/// Against a vector, from empty to full.
TEST(LoadOrder, IsAListOfSmallNumbers) {
  LoadOrder order;
  std::vector<std::size_t> reference;
  Random random(9);
  bool filled = false;
  for (int step = 0; step < 20'000; ++step) {
    const auto place = static_cast<std::ptrdiff_t>(random.below(reference.size() + 1));
    const auto load = static_cast<std::size_t>(random.below(LoadOrder::kLoads));
    if (reference.size() < LoadOrder::kLoads && random.below(2) == 0) {
      order.insert(static_cast<std::size_t>(place), load);
      reference.insert(reference.begin() + place, load);
    } else if (place < std::ssize(reference) && random.below(2) == 0) {
      order.erase(static_cast<std::size_t>(place));
      reference.erase(reference.begin() + place);
    } else if (!reference.empty()) {
      order.pop_front();
      reference.erase(reference.begin());
    }
    filled = filled || reference.size() == LoadOrder::kLoads;
    ASSERT_EQ(order.size(), reference.size()) << "step " << step;
    ASSERT_EQ(order.empty(), reference.empty()) << "step " << step;
    ASSERT_TRUE(reference.empty() || order.front() == reference.front()) << "step " << step;
    for (std::size_t at = 0; at < reference.size(); ++at) {
      ASSERT_EQ(order[at], reference[at]) << "step " << step << ", place " << at;
    }
  }
  EXPECT_TRUE(filled);
}

/// Against a map, whose keys ascend.
TEST(BufferLine, KeepsProgramOrderWhoeverComesAndGoes) {
  BufferLine line;
  std::map<std::uint64_t, std::size_t> reference;
  Random random(3);
  for (int step = 0; step < 5'000; ++step) {
    const std::uint64_t key = random.below(1'000);
    if (random.below(2) == 0 && reference.size() < BufferLine::kLoads && !reference.contains(key)) {
      const std::size_t load = unused(reference);
      line.join(load, key);
      line.ask_at(step);
      reference[key] = load;
    } else if (!reference.empty()) {
      const std::size_t place = random.below(2) == 0 ? 0 : random.below(reference.size());
      line.leave(place);
      reference.erase(std::next(reference.begin(), static_cast<std::ptrdiff_t>(place)));
    }
    ASSERT_EQ(line.size(), reference.size()) << "step " << step;
    ASSERT_EQ(line.asks_at() == kNever, reference.empty()) << "step " << step;
    std::size_t place = 0;
    for (const auto& [first, load] : reference) {
      ASSERT_EQ(line[place], load) << "step " << step;
      ASSERT_TRUE(place++ > 0 || line.front_key() == first) << "step " << step;
    }
  }
}

/// Against a map, whose pairs ascend; many loads have the same time.
TEST(TimedLoads, TheEarliestLeavesAndOfThoseTheOldest) {
  TimedLoads loads;
  std::map<std::pair<Picoseconds, std::uint64_t>, std::size_t> reference;
  Random random(4);
  for (std::uint64_t step = 0; step < 5'000; ++step) {
    const bool room = reference.size() < TimedLoads::kLoads;
    if (reference.empty() || (room && random.below(2) == 0)) {
      const auto time = static_cast<Picoseconds>(random.below(20));
      const std::uint64_t key = random.below(1'000) * 5'000 + step;
      const std::size_t load = unused(reference);
      loads.add(load, key, time);
      reference[{time, key}] = load;
    } else {
      ASSERT_EQ(loads.front(), reference.begin()->second) << "step " << step;
      ASSERT_EQ(loads.front_key(), reference.begin()->first.second) << "step " << step;
      loads.leave_front();
      reference.erase(reference.begin());
    }
    ASSERT_EQ(loads.next(), reference.empty() ? kNever : reference.begin()->first.first) << "step " << step;
  }
}

TEST(Divider, AgreesWithDivisionUpToTheEdgesOfItsRange) {
  Random random(5);
  for (const std::uint64_t divisor :
       {1ULL, 2ULL, 3ULL, 6ULL, 64ULL, 768ULL, 12'345ULL, (1ULL << 24) - 1, 1ULL << 24}) {
    const Divider divider(divisor);
    const std::uint64_t largest = (std::uint64_t{1} << 40) / divisor * divisor;
    for (const std::uint64_t dividend : {std::uint64_t{0}, divisor - 1, divisor, largest - 1, largest}) {
      ASSERT_EQ(divider.quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
    }
    for (int step = 0; step < 1'000; ++step) {
      const std::uint64_t dividend = random.below(std::uint64_t{1} << 40);
      ASSERT_EQ(divider.quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
    }
  }
}

/// Blocks whose lower 32 bits agree are told apart, and an empty place holds no block.
TEST(ReadBuffer, FindsTheWholeBlockNumber) {
  for (const std::size_t size : {1U, 7U, 8U, 9U, 24U}) {
    ReadBuffer buffer(size);
    EXPECT_EQ(buffer.find(0xffff'ffff), ReadBuffer::kNotFound);
    EXPECT_EQ(buffer.find(5), ReadBuffer::kNotFound);
    buffer.put(size - 1, 5, 100);
    EXPECT_EQ(buffer.find(5), size - 1);
    EXPECT_EQ(buffer.find((std::uint64_t{1} << 32) + 5), ReadBuffer::kNotFound);
    EXPECT_EQ(buffer.available(size - 1), 100);
  }
}

/// Against a linear search, with places taken in a circle as a module does.
TEST(ReadBuffer, HoldsWhatWasPutInLast) {
  for (const std::size_t size : {1U, 2U, 7U, 64U}) {
    ReadBuffer buffer(size);
    std::vector<std::uint64_t> held(size, ~std::uint64_t{0});
    Random random(size);
    std::size_t next = 0;
    for (int step = 0; step < 5'000; ++step) {
      const std::uint64_t block = random.below(2 * size) << random.below(40);
      const auto found = static_cast<std::size_t>(std::find(held.begin(), held.end(), block) - held.begin());
      ASSERT_EQ(buffer.find(block), found == size ? ReadBuffer::kNotFound : found) << size << ", step " << step;
      if (found == size) {
        buffer.put(next, block, step);
        held[next] = block;
        next = next + 1 == size ? 0 : next + 1;
      } else {
        buffer.put(found, block, step);
        ASSERT_EQ(buffer.available(found), step);
      }
    }
  }
}

TEST(Modulus, AgreesWithTheRemainderOfAnyNumber) {
  Random random(5);
  for (const std::uint64_t divisor : {1ULL, 2ULL, 3ULL, 24ULL, 28ULL, 64ULL, 1023ULL, 1ULL << 62, ~0ULL}) {
    const Modulus modulus(divisor);
    for (const std::uint64_t dividend :
         {std::uint64_t{0}, divisor - 1, divisor, divisor + 1, ~std::uint64_t{0}}) {
      ASSERT_EQ(modulus.remainder(dividend), dividend % divisor) << dividend << " % " << divisor;
    }
    for (int step = 0; step < 1'000; ++step) {
      const std::uint64_t dividend = random.next() >> random.below(64);
      ASSERT_EQ(modulus.remainder(dividend), dividend % divisor) << dividend << " % " << divisor;
    }
  }
}

/// A run ends with the operation that completes its length, and its time is that operation's, however long one
/// thread may go on undisturbed.
TEST(Lane, MeasuresExactlyTheOperationsOfItsLength) {
  Script::Ops ops;
  for (std::uint64_t line = 0; line < 1'000; ++line) {
    ops.push_back({100, 1, memory::OpKind::kCompute, 0, 0});
    ops.push_back(end());
  }
  Script script({ops});
  const PlatformParams params = plain_machine();
  SimulateOptions options;
  options.length = {.warmup_operations = 10, .measured_operations = 200};
  const LaneResult result = simulate(script, 1, std::span(&params, 1), options).front();
  EXPECT_EQ(result.groups[0].operations, 200);
  EXPECT_EQ(result.elapsed, 200 * 100 * kNs);
}

}  // namespace
}  // namespace pmsim::machine
