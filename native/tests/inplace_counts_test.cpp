// In-place updates on simulated memory: what a record occupies, what an update writes back and waits for (Table
// 3).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "inplace_values.hpp"
#include "pmsim/blocks/inplace/atomic_word.hpp"
#include "pmsim/blocks/inplace/cow.hpp"
#include "pmsim/blocks/inplace/fam.hpp"
#include "pmsim/blocks/inplace/log.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::inplace {
namespace {

using memory::Address;
using memory::Medium;
using memory::OpKind;
using memory::SimMemory;

/// What the micro-operations of one update ask of the machine, counted as the machine counts them.
struct Cost {
  std::size_t lines = 0;     ///< write-backs: a line flushed twice in a row counts once, behind a fence again
  std::size_t distinct = 0;  ///< lines among them
  std::size_t barriers = 0;  ///< fences with something to wait for
  bool operator==(const Cost&) const = default;
};

Cost cost_of(const memory::Stream& stream) {
  Cost cost;
  std::set<Address> lines;
  std::set<Address> unfenced;
  for (std::size_t index = 0; index < stream.size(); ++index) {
    const memory::MicroOp& op = stream[index];
    if (op.kind == OpKind::kClwb || op.kind == OpKind::kStreamStore) {
      const Address line = op.address / memory::kLineBytes;
      lines.insert(line);
      cost.lines += unfenced.insert(line).second ? 1 : 0;
    } else if (op.kind == OpKind::kSfence) {
      cost.barriers += unfenced.empty() ? 0 : 1;
      unfenced.clear();
    }
  }
  cost.distinct = lines.size();
  return cost;
}

/// Runs `updates` updates on one record and returns the cost of each; checks the values on the way.
template <typename Block>
std::vector<Cost> costs(Block block, SimMemory& memory, Address record, int updates) {
  std::vector<Cost> found;
  for (int update = 0; update < updates; ++update) {
    memory::Stream stream;
    const Value value = value_of(static_cast<std::uint64_t>(update) + 1, block.value_bytes());
    memory.attach(stream);
    block.update(memory, record, value);
    memory.detach();
    found.push_back(cost_of(stream));
    for (const Reads reads : {Reads::kIndependent, Reads::kDependent}) {
      Value read(block.value_bytes());
      block.read(memory, record, read, reads);
      EXPECT_EQ(read, value);
    }
  }
  return found;
}

class Table3 : public ::testing::Test {
 protected:
  SimMemory memory;
  Address log = memory.allocate(Medium::kPmem, 1 << 16);
  Address record = memory.allocate(Medium::kPmem, 1 << 12);

  /// Every update of a record costs the same.
  void expect_all(const std::vector<Cost>& found, const Cost& expected) {
    for (const Cost& cost : found) {
      EXPECT_EQ(cost.lines, expected.lines);
      EXPECT_EQ(cost.distinct, expected.distinct);
      EXPECT_EQ(cost.barriers, expected.barriers);
    }
  }
};

TEST_F(Table3, CowOccupiesTwiceTheDataAndAFlagAndWritesBackTwoTwoAndThreeLines) {
  EXPECT_EQ(Cow(16).record_bytes(), 33U);
  EXPECT_EQ(Cow(32).record_bytes(), 65U);
  EXPECT_EQ(Cow(64).record_bytes(), 129U);
  expect_all(costs(Cow(16), memory, record, 5), {.lines = 2, .distinct = 1, .barriers = 2});
  for (const Cost& cost : costs(Cow(32), memory, record, 6))
    EXPECT_EQ((std::pair(cost.lines, cost.barriers)), (std::pair<std::size_t, std::size_t>(2, 2)));
  for (const Cost& cost : costs(Cow(64), memory, record, 6))
    EXPECT_EQ((std::pair(cost.lines, cost.barriers)), (std::pair<std::size_t, std::size_t>(3, 2)));
}

TEST_F(Table3, LogWritesBackTwoTwoAndThreeLines) {
  for (const auto& [bytes, lines] : std::map<std::size_t, std::size_t>{{16, 2}, {32, 2}, {64, 3}}) {
    memory.write(log, Value(1 << 16));  // a new log wants zeros
    const Logged logged = Logged::create(memory, bytes, {.base = log, .bytes = 1 << 16});
    EXPECT_EQ(logged.record_bytes(), bytes);
    expect_all(costs(logged, memory, record, 5), {.lines = lines, .distinct = lines, .barriers = 2});
  }
}

TEST_F(Table3, FamWritesBackOneTwoAndThreeLinesBehindOneBarrier) {
  EXPECT_EQ(Fam(16).record_bytes(), 40U);
  EXPECT_EQ(Fam(32).record_bytes(), 72U);
  EXPECT_EQ(Fam(64).record_bytes(), 136U);
  for (const auto& [bytes, lines] : std::map<std::size_t, std::size_t>{{16, 1}, {32, 2}, {64, 3}})
    expect_all(costs(Fam(bytes), memory, record, 5), {.lines = lines, .distinct = lines, .barriers = 1});
}

TEST_F(Table3, EightBytesTakeOneStoreAndOneBarrier) {
  expect_all(costs(AtomicWord(), memory, record, 3), {.lines = 1, .distinct = 1, .barriers = 1});
}

TEST(InPlaceSizes, TheSecondCowCopyNeverCostsMoreLinesAndTheGapCostsNoSpace) {
  const auto lines = [](std::size_t begin, std::size_t bytes) {
    return (begin + bytes - 1) / 64 - begin / 64 + 1;
  };
  for (std::size_t bytes = 8; bytes <= kMostBytes; bytes += 8) {
    SimMemory memory;
    const Address record = memory.allocate(Medium::kPmem, 4096);
    for (const Cost& cost : costs(Cow(bytes), memory, record, 2))
      ASSERT_EQ(cost.lines, lines(1, bytes) + 1) << bytes;
    ASSERT_EQ(Cow(bytes).stride(), whole_lines(2 * bytes + 1)) << bytes;
  }
}

}  // namespace
}  // namespace pmsim::blocks::inplace
