#include <gtest/gtest.h>

#include <array>

#include "pmsim/blocks/node/layout.hpp"

namespace pmsim::blocks::node {
namespace {

// Götze et al., DaMoN 2020, Fig. 2 and Table 4.

TEST(NodeLayout, HasThePairsOfTable4) {
  constexpr std::array<std::uint32_t, 5> kSizes{256, 512, 1024, 2048, 4096};
  constexpr std::array<std::uint32_t, 5> kBase{9, 19, 41, 83, 169};
  constexpr std::array<std::uint32_t, 5> kAligned{8, 18, 40, 82, 168};
  constexpr std::array<std::uint32_t, 5> kWithSearchStructure{8, 18, 37, 79, 160};
  for (std::size_t size = 0; size < kSizes.size(); ++size) {
    for (const Layout layout : {Layout::kSorted, Layout::kUnsorted}) {
      EXPECT_EQ(geometry(layout, kSizes[size], Header::kPacked)->entries, kBase[size]);
      EXPECT_EQ(geometry(layout, kSizes[size])->entries, kAligned[size]);
    }
    EXPECT_EQ(geometry(Layout::kIndirection, kSizes[size])->entries, kWithSearchStructure[size]);
  }
  // Hashes take a byte less than slots, which is a pair more at 2 KiB.
  EXPECT_EQ(geometry(Layout::kHashing, 2048)->entries, 80U);
  // A bitmap and two pointers fit the padded header's line.
  EXPECT_EQ(geometry(Layout::kBitmap, 4096)->entries, 168U);
}

TEST(NodeLayout, HasTheOffsetsOfFigure2) {
  const Geometry sorted = *geometry(Layout::kSorted, 1024);
  EXPECT_EQ((std::array{sorted.count, sorted.next, sorted.prev, sorted.keys}), (std::array{0U, 8U, 24U, 64U}));
  EXPECT_EQ(geometry(Layout::kSorted, 1024, Header::kPacked)->keys, 40U);

  const Geometry bitmap = *geometry(Layout::kBitmap, 1024);
  EXPECT_EQ((std::array{bitmap.bitmap, bitmap.next, bitmap.prev, bitmap.keys}), (std::array{0U, 8U, 24U, 64U}));

  const Geometry hashing = *geometry(Layout::kHashing, 4096);  // 160 pairs: 24 bytes of bitmap
  EXPECT_EQ((std::array{hashing.bitmap, hashing.hashes, hashing.next, hashing.keys}),
            (std::array{0U, 24U, 184U, 256U}));

  const Geometry slots = *geometry(Layout::kIndirection, 4096);  // 161 slots, in words
  EXPECT_EQ((std::array{slots.slots, slots.bitmap, slots.next, slots.keys}),
            (std::array{0U, 168U, 192U, 256U}));
}

TEST(NodeLayout, PutsKeysOnALineAndValuesBehindThem) {
  for (std::size_t layout = 0; layout < kLayoutNames.size(); ++layout) {
    for (std::uint32_t bytes = 128; bytes <= 4096; bytes += 72) {
      const auto places = geometry(static_cast<Layout>(layout), bytes);
      if (!places)
        continue;
      EXPECT_EQ(places->keys % memory::kLineBytes, 0U);
      EXPECT_EQ(places->values, places->keys + 8 * places->entries);
      EXPECT_LE(places->end(), bytes);
      EXPECT_GE(places->keys, places->prev + kPointerBytes);
      EXPECT_FALSE(geometry(static_cast<Layout>(layout), bytes, Header::kPadded, places->entries + 1));
    }
  }
}

// Section 5.2 counts the lines of the whole header (2, 2, 4 at 1, 2, 4 KiB), section 5.4 those that an erase
// writes back (1, 2, 3): slots and bitmap without the pointers.
TEST(NodeLayout, HasFrontStructuresOfAsManyLinesAsTheTextCounts) {
  const auto lines = [](std::uint32_t bytes) { return (bytes + 63) / 64; };
  for (const auto& [bytes, header, front] : {std::array{1024U, 2U, 1U}, {2048U, 2U, 2U}, {4096U, 4U, 3U}}) {
    const Geometry places = *geometry(Layout::kIndirection, bytes);
    EXPECT_EQ(lines(places.keys), header);
    EXPECT_EQ(lines(places.front_bytes()), front);
  }
  EXPECT_EQ(lines(geometry(Layout::kUnsorted, 4096)->prev + kPointerBytes), 1U);
}

TEST(NodeLayout, RefusesWhatHoldsNothingOrCannotBeNumbered) {
  EXPECT_FALSE(geometry(Layout::kSorted, 100));  // one pair
  EXPECT_FALSE(geometry(Layout::kHashing, kMostNodeBytes + 64));
  EXPECT_TRUE(geometry(Layout::kHashing, 8192)->entries > kMostSlots);
  EXPECT_EQ(geometry(Layout::kIndirection, 8192)->entries, kMostSlots);  // slots are bytes
}

}  // namespace
}  // namespace pmsim::blocks::node
