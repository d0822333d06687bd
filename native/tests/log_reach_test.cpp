#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "pmsim/blocks/log/any.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/memory/stream.hpp"

// How much of a log its recovery reads, and what that bound costs.

namespace pmsim::blocks::log {
namespace {

using memory::Medium;
using memory::Persistence;
using memory::SimMemory;

using Bytes = std::vector<std::byte>;

[[nodiscard]] Place allocate(SimMemory& memory, std::uint64_t bytes) {
  Place place{.bytes = bytes, .buffer_bytes = 4096};
  place.base = memory.allocate(Medium::kPmem, bytes);
  place.buffer = memory.allocate(Medium::kDram, place.buffer_bytes);
  return place;
}

/// Lines read and fences waited for by what `work` does.
struct Cost {
  std::uint64_t lines = 0;
  std::uint64_t fences = 0;
};
template <typename Work>
Cost cost_of(SimMemory& memory, Work&& work) {
  memory::Stream stream;
  memory.attach(stream);
  work();
  memory.detach();
  std::set<std::uint64_t> lines;
  Cost cost;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    if (stream[i].kind == memory::OpKind::kLoad)
      lines.insert(stream[i].address / kLineBytes);
    cost.fences += stream[i].kind == memory::OpKind::kSfence ? 1 : 0;
  }
  cost.lines = lines.size();
  return cost;
}

template <typename Algorithm>
class LogReach : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 1 << 20, kReach = 4096;
  SimMemory memory{{.persistence = Persistence::kAdr}};
  Place place = allocate(memory, kBytes);
  Algorithm log = Algorithm::create(memory, place, {.reach = kReach});

  Cost recovery() {
    return cost_of(memory, [&] { log = *Algorithm::recover(memory, place, {}); });
  }
};
using LogsThatClear = ::testing::Types<PopLog, RawlLog>;
TYPED_TEST_SUITE(LogReach, LogsThatClear);

TYPED_TEST(LogReach, BoundsWhatRecoveryReads) {
  for (int i = 0; i < 100; ++i)
    this->log.append(this->memory, Bytes(100, std::byte{1}));
  // The file header, the entries, and the reach; not the megabyte.
  const std::uint64_t entries = (this->log.tail() - this->log.head()) / kLineBytes;
  EXPECT_LE(this->recovery().lines, 1 + entries + this->kReach / kLineBytes);
  this->log.truncate(this->memory);
  EXPECT_LE(this->recovery().lines, 1 + this->kReach / kLineBytes);
  EXPECT_GE(this->recovery().lines, this->kReach / kLineBytes);
}

TYPED_TEST(LogReach, IsRaisedByALargerGroupAtTheCostOfOneBarrier) {
  const auto fences = [&](std::size_t bytes) {
    return cost_of(this->memory, [&] { this->log.append(this->memory, Bytes(bytes, std::byte{1})); }).fences;
  };
  EXPECT_EQ(fences(3000), 1U);
  EXPECT_EQ(fences(9000), 2U);
  EXPECT_EQ(fences(9000), 1U);
  EXPECT_EQ(fences(12000), 1U) << "it doubles, to 16 KiB";
  this->log.truncate(this->memory);
  static_cast<void>(this->recovery());
  EXPECT_EQ(fences(12000), 1U) << "it is durable";
  this->log.truncate(this->memory);
  EXPECT_GE(this->recovery().lines, 16384 / kLineBytes);
}

TEST(PopLogTruncation, ThatACrashHasCutShortIsCleanedUpOnce) {
  SimMemory memory{{.persistence = Persistence::kAdr}};
  const Place place = allocate(memory, 1 << 20);
  PopLog log = PopLog::create(memory, place, {});
  while (log.fits(10000))
    log.append(memory, Bytes(10000, std::byte{0xff}));
  const Lsn end = log.tail();
  // As if the power had failed when the head had moved and nothing was zero yet.
  memory.store<std::uint64_t>(place.base + 16, end);
  const auto recovery = [&] { return cost_of(memory, [&] { log = *PopLog::recover(memory, place, {}); }); };
  EXPECT_GE(recovery().lines, 15 * log.capacity() / 16 / kLineBytes);
  EXPECT_EQ(log.tail(), end);
  const Space space(place.base + FileHeader::kBytes, log.capacity());
  for (Lsn at = end; at < end + log.capacity(); at += 8)
    ASSERT_EQ(space.word(memory, at), 0U) << at;
  EXPECT_LE(recovery().lines, 2 + (std::uint64_t{64} << 10) / kLineBytes);
}

/// Two entries of 24 bytes share the line of the tail, and a third one may wait for its commit there. The next
/// commit streams the whole line from its buffer in DRAM.
TEST(PopLogTruncation, OfAPartKeepsPassedSpaceZeroThoughItsLineIsStreamedAgain) {
  const Bytes ones(8, std::byte{0xff});
  for (const bool waiting : {false, true}) {
    for (const bool both : {false, true}) {
      if (both && !waiting)
        continue;  // that is all of them: the tail has a line of zeros then
      SimMemory memory{{.persistence = Persistence::kAdr}};
      const Place place = allocate(memory, 1 << 10);
      PopLog log = PopLog::create(memory, place, {.layout = Layout::kDramTail, .group_commit = 8});
      log.append(memory, ones);
      const Lsn second = log.append(memory, ones);
      log.commit(memory);
      const Lsn committed = log.tail();
      if (waiting)
        log.append(memory, ones);
      log.truncate_to(memory, both ? committed : second);
      log.append(memory, ones);
      log.commit(memory);
      const Space space(place.base + FileHeader::kBytes, log.capacity());
      for (Lsn at = log.tail(); at < log.head() + log.capacity(); at += 8)
        EXPECT_EQ(space.word(memory, at), 0U) << at << (waiting ? ", one waits" : "") << (both ? ", both" : "");
      int entries = 0;
      log.for_each(memory, [&](Lsn, std::span<const std::byte> payload) {
        EXPECT_TRUE(std::ranges::equal(payload, ones));
        ++entries;
      });
      EXPECT_EQ(entries, 2 + (waiting ? 1 : 0) - (both ? 1 : 0));
    }
  }
}

}  // namespace
}  // namespace pmsim::blocks::log
