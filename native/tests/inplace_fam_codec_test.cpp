// FAM in registers: the format, both paths, and the defects of the published listings.
#include "pmsim/blocks/inplace/fam_codec.hpp"

#include <gtest/gtest.h>

#include <array>
#include <tuple>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::blocks::inplace {
namespace {

/// A FAMB as the text describes it, field by field: the reference, which shares no code with the codec.
struct Fields {
  unsigned version = 0;
  std::uint64_t old_data = 0;
  std::uint64_t new_data = 0;

  [[nodiscard]] std::uint64_t packed() const {
    return version * 0x4000'0000'0000'0000ULL + old_data * 0x8000'0000ULL + new_data;
  }
  void update(std::uint64_t data) {
    version = version == 3 ? 0 : version + 1;
    old_data = new_data;
    new_data = data;
  }
};

std::vector<Fields> updated(std::vector<Fields> record, const std::vector<std::uint32_t>& words) {
  std::vector<std::uint64_t> tops(record.size() - words.size());
  for (std::size_t word = 0; word < words.size(); ++word) {
    record[word].update(words[word] % 0x8000'0000U);
    if (words[word] >= 0x8000'0000U)
      tops[word / 31] += std::uint64_t{1} << word % 31;
  }
  for (std::size_t top = 0; top < tops.size(); ++top)
    record[words.size() + top].update(tops[top]);
  return record;
}

std::vector<Famb> packed(const std::vector<Fields>& record) {
  std::vector<Famb> fambs;
  for (const Fields& fields : record)
    fambs.push_back(fields.packed());
  return fambs;
}

class Paths : public ::testing::TestWithParam<FamPath> {
 protected:
  void SetUp() override {
    if (GetParam() == FamPath::kAvx2 && fam_path() != FamPath::kAvx2)
      GTEST_SKIP() << "this CPU has no AVX2";
  }
  /// Updates `record` by both and compares every bit; then decodes.
  void check(std::vector<Fields>& record, const std::vector<std::uint32_t>& words) {
    std::vector<Famb> fambs = packed(record);
    record = updated(record, words);
    fam_advance(fambs, words, GetParam());
    ASSERT_EQ(fambs, packed(record));
    std::vector<std::uint32_t> decoded(words.size());
    fam_decode(fambs, decoded, GetParam());
    ASSERT_EQ(decoded, words);
  }
};

INSTANTIATE_TEST_SUITE_P(Fam, Paths, ::testing::Values(FamPath::kScalar, FamPath::kAvx2),
                         [](const auto& path) { return path.param == FamPath::kScalar ? "scalar" : "avx2"; });

/// All values that a mask, a shift or a sign could get wrong.
constexpr std::array<std::uint32_t, 6> kCorners{0, 1, 0x4000'0000, 0x7FFF'FFFF, 0x8000'0000, 0xFFFF'FFFF};

TEST_P(Paths, EveryCombinationOfCornerWordsOverEveryCombinationOfCornerFieldsRoundTrips) {
  const std::array<std::uint64_t, 4> data{0, 1, 0x4000'0000, 0x7FFF'FFFF};
  for (unsigned state = 0; state < 4 * 4 * 4; ++state) {
    const Fields before{state / 16, data[state / 4 % 4], data[state % 4]};
    for (unsigned choice = 0; choice < 6 * 6 * 6 * 6; ++choice) {
      std::vector<Fields> record(5, before);
      check(record, {kCorners[choice / 216], kCorners[choice / 36 % 6], kCorners[choice / 6 % 6],
                     kCorners[choice % 6]});
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

TEST_P(Paths, EveryBitOfEveryWordArrivesAloneAndIsMissedAlone) {
  for (const std::size_t words : {2U, 4U, 8U, 16U, 30U, 32U, 62U, 64U, 256U}) {
    for (std::size_t bit = 0; bit < 32 * words; ++bit) {
      std::vector<Fields> record(fambs_of(4 * words));
      std::vector<std::uint32_t> value(words);
      value[bit / 32] = 1U << bit % 32;
      check(record, value);
      for (std::uint32_t& word : value)
        word = ~word;
      check(record, value);
      ASSERT_FALSE(HasFatalFailure()) << words << " words, bit " << bit;
    }
  }
}

TEST_P(Paths, RandomUpdatesOfAllSizesMatchTheReferenceThroughAllVersions) {
  Random random(7);
  for (std::size_t words = 2; words <= 256; words += 2) {
    std::vector<Fields> record(fambs_of(4 * words));
    for (int update = 0; update < 100; ++update) {
      std::vector<std::uint32_t> value(words);
      for (std::uint32_t& word : value)
        word = static_cast<std::uint32_t>(random.next());
      check(record, value);
      ASSERT_FALSE(HasFatalFailure()) << words << " words, update " << update;
      for (const Fields& fields : record)
        ASSERT_EQ(fields.version, (update + 1) % 4);
    }
  }
}

TEST(FamCodec, PathsAgreeOnEveryBitOfArbitraryMemory) {
  Random random(11);
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t words = 2 + 2 * random.below(40);
    std::vector<Famb> scalar(fambs_of(4 * words));
    std::vector<std::uint32_t> value(words);
    for (Famb& famb : scalar)
      famb = random.next();  // also versions that differ, as after a crash
    for (std::uint32_t& word : value)
      word = static_cast<std::uint32_t>(random.next());
    std::vector<Famb> vector = scalar;
    fam_advance(scalar, value, FamPath::kScalar);
    fam_advance(vector, value, FamPath::kAvx2);
    ASSERT_EQ(scalar, vector);
    std::vector<std::uint32_t> one(words);
    std::vector<std::uint32_t> other(words);
    fam_decode(scalar, one, FamPath::kScalar);
    fam_decode(scalar, other, FamPath::kAvx2);
    ASSERT_EQ(one, other);
    ASSERT_EQ(one, value);
  }
}

TEST(Famb, HasTwoBitsOfVersionAndTwice31OfData) {
  EXPECT_EQ(famb_version(~Famb{0}), 3U);
  EXPECT_EQ(famb_old(~Famb{0}), 0x7FFF'FFFFU);
  EXPECT_EQ(famb_new(~Famb{0}), 0x7FFF'FFFFU);
  EXPECT_EQ((Fields{2, 5, 9}.packed()), std::uint64_t{2} << 62 | std::uint64_t{5} << 31 | 9);
}

TEST(Famb, VersionsWrapBothWays) {
  EXPECT_EQ(famb_version(famb_advance(Fields{3, 0, 0}.packed(), 0)), 0U);
  EXPECT_EQ(famb_version(famb_roll_back(Fields{0, 0, 0}.packed())), 3U);
}

TEST(Famb, RollingBackUndoesOneAdvance) {
  Random random(3);
  for (int round = 0; round < 10'000; ++round) {
    const Famb before = random.next();
    const Famb after = famb_roll_back(famb_advance(before, static_cast<std::uint32_t>(random.next())));
    ASSERT_EQ(famb_version(after), famb_version(before));
    ASSERT_EQ(famb_new(after), famb_new(before));
  }
}

TEST(Famb, CountFollowsTable3) {
  for (std::size_t bytes = 8; bytes <= 1024; bytes += 8)
    EXPECT_EQ(fambs_of(bytes), (8 * bytes + 30) / 31) << bytes;
}

/// Listing 2 of the paper with only its types repaired (it does not compile as printed).
std::array<Famb, 5> listing_2(std::array<Famb, 5> fambs, std::array<std::uint32_t, 4> values) {
  // fambs[0] holds the top bits.
  std::uint64_t msbs = 0;
  for (std::size_t word = 0; word < 4; ++word) {
    const std::uint32_t input = values[word] & 0x7FFF'FFFFU;
    Famb& famb = fambs[word + 1];
    famb = ((famb + kFambOneVersion) & kFambVersionMask) | ((famb << 31) & 0x3FFF'FFFF'FFFF'FFFFULL) | input;
    msbs |= std::uint64_t{input >> 31} << word;  // movemask of the masked register
  }
  const std::uint64_t new_version = ((msbs + 1) << 62) & (std::uint64_t{3} << 62);  // msbs + 1L<<62
  fambs[0] = new_version | fambs[0] << 31 | msbs;
  return fambs;
}

TEST(FamErratum, Listing2LosesTheSignBits) {
  const std::array<Famb, 5> fambs = listing_2({}, {0x8000'0001, 2, 0xFFFF'FFFF, 4});
  EXPECT_EQ(famb_new(fambs[0]), 0U);  // words 0 and 2 would be 0b101
}

TEST(FamErratum, Listing2LeavesVersionsThatDisagreeAfterTwoUpdates) {
  std::array<Famb, 5> fambs = listing_2(listing_2({}, {1, 2, 3, 4}), {5, 6, 7, 8});
  EXPECT_EQ(famb_version(fambs[1]), 2U);
  EXPECT_NE(famb_version(fambs[0]), famb_version(fambs[1]));
}

}  // namespace
}  // namespace pmsim::blocks::inplace
