#include "pmsim/memory/stream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

namespace pmsim::memory {
namespace {

TEST(Stream, KeepsWhatWasPushedBeyondEveryGrowthAndAfterClear) {
  Stream stream;
  for (const std::uint64_t count : {200'000U, 3U, 300'000U}) {
    stream.clear();
    EXPECT_TRUE(stream.empty());
    for (std::uint64_t number = 0; number < count; ++number)
      stream.push(OpKind::kLoad, number, 8, kDependent, 7);
    ASSERT_EQ(stream.size(), count);
    for (std::uint64_t number = 0; number < count; ++number)
      ASSERT_EQ(stream[number].address, number);
    EXPECT_EQ(stream[count - 1].bytes, 8U);
    EXPECT_EQ(stream[count - 1].flags, kDependent);
    EXPECT_EQ(stream[count - 1].site, 7);
  }
}

TEST(Stream, PollsOnceForEachStrideOfAnOperationAndEndsWhenThatThrows) {
  const auto fill = [](Stream& stream) {
    for (std::uint64_t number = 0; number <= 3 * Stream::kPollEvery; ++number)
      stream.push(OpKind::kLoad, number, 8);
  };
  Stream stream;
  int calls = 0;
  stream.on_poll([&calls] { ++calls; });
  for (const int expected : {3, 6}) {  // its room is there the second time
    stream.clear();
    fill(stream);
    EXPECT_EQ(calls, expected);
  }
  stream.clear();
  stream.on_poll([] { throw std::runtime_error("Ctrl-C"); });
  EXPECT_THROW(fill(stream), std::runtime_error);
  EXPECT_EQ(stream.size(), Stream::kPollEvery);
}

}  // namespace
}  // namespace pmsim::memory
