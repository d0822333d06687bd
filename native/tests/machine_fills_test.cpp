#include <gtest/gtest.h>

#include <cstdint>

#include "pmsim/machine/fills.hpp"

namespace pmsim::machine {
namespace {

constexpr std::uint64_t kApart = std::uint64_t{1} << 20;  ///< lines, as between regions of threads

TEST(Fills, KnowWhatWasNotedLast) {
  Fills<256> fills;
  EXPECT_EQ(fills.arrival(7), 0);
  fills.note_dropped(7, kLlc);
  EXPECT_TRUE(fills.is_dropped(7));
  EXPECT_EQ(fills.level_of(7, kL2), kLlc);
  fills.note(7, 5, kFromCore);
  EXPECT_FALSE(fills.is_dropped(7));
  EXPECT_EQ(fills.level_of(7, kL2), kL2);
  EXPECT_EQ(fills.arrival(7), 5);
  EXPECT_EQ(fills.source(7), kFromCore);
  fills.note(7, 6, kFromMemory);
  EXPECT_EQ(fills.arrival(7), 6);
  EXPECT_EQ(fills.arrival(kApart + 7), 0);
}

TEST(Fills, StreamsThatRunAtOneDistanceDoNotHideDroppedPrefetches) {
  Fills<256> fills;
  for (std::uint64_t line = 0; line < 40; ++line) {
    for (std::uint64_t stream = 0; stream < 4; ++stream)
      fills.note_dropped(stream * kApart + line, kFromMemory);
  }
  for (std::uint64_t line = 0; line < 40; ++line)
    EXPECT_TRUE(fills.is_dropped(line)) << line;
}

TEST(Fills, WhatHasComeDoesNotHideDroppedPrefetches) {
  Fills<256> fills;
  fills.note_dropped(3, kFromMemory);
  for (std::uint64_t line = 4; line < 100'000; ++line)
    fills.note(line, 1, kFromMemory);
  EXPECT_TRUE(fills.is_dropped(3));
}

}  // namespace
}  // namespace pmsim::machine
