#include <gtest/gtest.h>

#include <bitset>
#include <cstddef>
#include <span>
#include <vector>

#include "pmsim/core/count_bits.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim {
namespace {

TEST(CountBits, CountsEveryBitOfWordsAndOfWhatIsLeft) {
  Random random(1);
  std::vector<std::byte> bytes(70);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random.next());
  for (std::size_t begin = 0; begin < 8; ++begin) {
    std::size_t expected = 0;
    for (std::size_t end = begin; end < bytes.size(); ++end) {
      EXPECT_EQ(count_bits(std::span(bytes).subspan(begin, end - begin)), expected);
      expected += std::bitset<8>(std::to_integer<unsigned>(bytes[end])).count();
    }
  }
}

}  // namespace
}  // namespace pmsim
