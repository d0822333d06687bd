#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/machine/dram_channel.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {
namespace {

TEST(DramChannel, HasRowsOfTheirSizeHoweverFinelyChannelsTakeTurns) {
  for (const std::int64_t interleave : {64, 256, 8192, 16384, 65536}) {
    PlatformParams params = plain_machine();
    params.controller.channels = 2;
    params.controller.dram_interleave = interleave;
    Counters counters;
    DramChannel channel(params.dram, params.controller, counters);
    // The lines of the first channel, in order.
    constexpr std::int64_t kRows = 16;
    for (std::int64_t offset = 0; offset < 2 * kRows * params.dram.row_size; offset += memory::kLineBytes) {
      if (offset / interleave % 2 == 0)
        static_cast<void>(channel.read(static_cast<std::uint64_t>(offset) / memory::kLineBytes, 0));
    }
    EXPECT_EQ(counters.dram_read_lines, kRows * params.dram.row_size / memory::kLineBytes);
    EXPECT_EQ(counters.dram_row_misses, kRows) << interleave;
  }
}

TEST(DramChannel, ServesTheLinesOfARowOneAfterTheOtherOnceItIsOpen) {
  const PlatformParams params = plain_machine();
  const DramParams& dram = params.dram;
  Counters counters;
  DramChannel channel(dram, params.controller, counters);
  const Picoseconds first = dram.row_miss_penalty + dram.row_hit_latency;
  EXPECT_EQ(channel.read(0, 0), first);
  EXPECT_EQ(channel.read(1, 0), first + dram.read_burst);
  EXPECT_EQ(channel.read(2, 0), first + 2 * dram.read_burst);
  EXPECT_EQ(channel.read(3, first), first + dram.row_hit_latency);
  EXPECT_EQ(counters.dram_row_misses, 1);
}

TEST(DramChannel, KeepsNobodyElseWaitingForALineThatCannotBeReadYet) {
  PlatformParams params = plain_machine();
  params.dram.reread_delay = 300 * kNs;
  Counters counters;
  DramChannel channel(params.dram, params.controller, counters);
  EXPECT_EQ(channel.write(0, 0), 0);
  EXPECT_EQ(channel.read(0, kNs), params.dram.reread_delay + params.dram.row_hit_latency);
  EXPECT_LT(channel.read(1, kNs), params.dram.reread_delay);  // of the same row
}

TEST(DramChannel, ClosesNoRowBeforeItsLinesAreServed) {
  PlatformParams params = plain_machine();
  params.dram.bank_busy = 46 * kNs;
  Counters counters;
  DramChannel channel(params.dram, params.controller, counters);
  const auto row_lines = static_cast<std::uint64_t>(params.dram.row_size * params.controller.channels) /
                         static_cast<std::uint64_t>(memory::kLineBytes);
  static_cast<void>(channel.read(0, 0));
  // The bank is busy, so the second row opens late, and the lines that have been asked for meanwhile wait.
  Picoseconds last = 0;
  for (std::uint64_t line = 0; line < 30; ++line)
    last = channel.read(row_lines + line, 0);
  EXPECT_GE(channel.read(0, 0), last + params.dram.row_miss_penalty);
}

TEST(DramChannel, LetsReadsGoThatComeBeforeTheWritesThatItIsToldOf) {
  const PlatformParams params = plain_machine();
  Counters counters;
  DramChannel channel(params.dram, params.controller, counters);
  constexpr Picoseconds kSent = 10 * kNs;
  constexpr Picoseconds kCome = 900 * kNs;
  for (std::uint64_t line = 0; line < 8; ++line)
    EXPECT_EQ(channel.write(line, kCome, kCome - kSent), kCome);
  const std::uint64_t elsewhere = std::uint64_t{1} << 40;
  EXPECT_EQ(channel.read(elsewhere, kSent), kSent + params.dram.row_miss_penalty + params.dram.row_hit_latency);
}

/// Writes that arrive together, ten times as many as the queue holds.
class FullDramQueue : public ::testing::Test {
 protected:
  FullDramQueue() {
    for (std::int64_t line = 0; line < 10 * queue_; ++line)
      accepted_.push_back(channel_.write(static_cast<std::uint64_t>(line), 0));
  }

  const PlatformParams params_ = plain_machine();
  const DramParams& dram_ = params_.dram;
  const std::int64_t queue_ = params_.controller.dram_write_queue;
  const std::int64_t batch_ = queue_ - params_.controller.dram_write_low;
  const Picoseconds batch_time_ = dram_.turnaround + batch_ * dram_.write_burst;
  Counters counters_;
  DramChannel channel_{dram_, params_.controller, counters_};
  std::vector<Picoseconds> accepted_;
};

TEST_F(FullDramQueue, AcceptsALineWhenAnotherHasLeft) {
  for (std::int64_t line = 0; line < 10 * queue_; ++line) {
    const std::int64_t left = std::max<std::int64_t>(line + 1 - queue_, 0);
    const std::int64_t batches = (left + batch_ - 1) / batch_;
    EXPECT_EQ(accepted_[static_cast<std::size_t>(line)], batches * dram_.turnaround + left * dram_.write_burst);
  }
}

TEST_F(FullDramQueue, LetsReadsGoBetweenBatches) {
  const Picoseconds unloaded = dram_.row_miss_penalty + dram_.row_hit_latency;
  const std::uint64_t elsewhere = std::uint64_t{1} << 40;
  EXPECT_EQ(channel_.read(elsewhere, 0), batch_time_ + unloaded) << "behind the batch under way";
  const Picoseconds between = batch_time_ + 1;
  EXPECT_EQ(channel_.read(elsewhere + 1, between), 2 * batch_time_ + dram_.read_burst + dram_.row_hit_latency)
      << "behind the read before, and the batch that has begun after it";
  EXPECT_EQ(counters_.dram_forced_drains, 2);
}

TEST_F(FullDramQueue, IsWrittenWithoutAnyReadsToo) {
  const Picoseconds done = accepted_.back() + batch_time_ * 2;
  EXPECT_EQ(channel_.write(0, done), done);
  EXPECT_EQ(channel_.read(1, done), done + dram_.row_miss_penalty + dram_.row_hit_latency);
}

}  // namespace
}  // namespace pmsim::machine
