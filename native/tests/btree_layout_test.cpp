// What nodes have room for, and what a search in one loads (van Renen et al. 2018, sections 3.1 and 5.5).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/btree/layout.hpp"
#include "pmsim/engines/btree/search.hpp"
#include "pmsim/engines/fptree/layout.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines::btree {
namespace {

using memory::kLineBytes;
using memory::SimMemory;

constexpr std::uint32_t kPageBytes = 16384;
constexpr TableSpec kPairs{"pairs", 8, 8};

// The paper has "at most 1024", as without a header, and "about 1000".
TEST(BTreeLayout, PageOf16KiBHolds1020PairsBehindItsHeader) {
  const Layout leaf = Layout::of(kPairs, kPageBytes, NodeKind::kSortedLeaf);
  EXPECT_EQ(kPageBytes / 16, 1024U);
  EXPECT_EQ(leaf.leaf_capacity, (kPageBytes - kLineBytes) / 16);
  EXPECT_EQ(leaf.leaf_capacity, 1020U);
  EXPECT_EQ(leaf.leaf_slots, 1020U);
  EXPECT_EQ(leaf.key(0), kLineBytes);
  EXPECT_EQ(leaf.payload(0), 64U + 1020 * 8);
  EXPECT_EQ(leaf.payload(1020), kPageBytes);
  EXPECT_EQ(leaf.inner_capacity, 1019U);  // and 1020 children
  // Seven eighths of the slots, beside the one for the key that marks empty slots.
  const Layout hashed = Layout::of(kPairs, kPageBytes, NodeKind::kHashLeaf);
  EXPECT_EQ(hashed.leaf_slots, 1019U);
  EXPECT_EQ(hashed.leaf_capacity, 892U);
  EXPECT_EQ(Layout::of({"rows", 4, 1000}, kPageBytes, NodeKind::kSortedLeaf).leaf_capacity, 16U);
}

// Section 3.1: at most 10 lines, 640 bytes of 16 kB. There are 10 probes at most; the last ones share lines, so
// that it is 10 lines with those of header and payload.
TEST(BTreeLayout, BinarySearchInAFullLeafLoadsAtMostTenLines) {
  SimMemory memory;
  const Layout leaf = Layout::of(kPairs, kPageBytes, NodeKind::kSortedLeaf);
  const Address page = memory.allocate(memory::Medium::kDram, kPageBytes);
  for (std::uint32_t slot = 0; slot < leaf.leaf_capacity; ++slot)
    memory.store<std::uint64_t>(page + leaf.key(slot), slot);
  std::size_t most_probes = 0, most_key_lines = 0, most_lines = 0;
  for (std::uint32_t row = 0; row < leaf.leaf_capacity; ++row) {
    std::set<std::uint32_t> lines;
    std::size_t probes = 0;
    const auto address_of = [&](std::uint32_t slot) {
      lines.insert(leaf.key(slot) / 64);
      ++probes;
      return page + leaf.key(slot);
    };
    ASSERT_EQ((search<std::uint64_t, false>(memory, leaf.leaf_capacity, std::uint64_t{row}, address_of)), row);
    lines.insert(leaf.key(row) / 64);  // whether it is there
    most_probes = std::max(most_probes, probes);
    most_key_lines = std::max(most_key_lines, lines.size());
    lines.insert({kCountOffset / 64, leaf.payload(row) / 64});
    most_lines = std::max(most_lines, lines.size());
  }
  EXPECT_EQ(most_probes, 10U);
  EXPECT_EQ(most_key_lines, 8U);
  EXPECT_EQ(most_lines, 10U);
  EXPECT_EQ(most_lines * kLineBytes, 640U);
}

TEST(BTreeLayout, FpTreeLeafHolds56EntriesIn960Bytes) {
  using Leaf = fptree::Leaf;
  EXPECT_EQ(Leaf::kSlots, 56U);
  EXPECT_EQ(Leaf::kBytes, 960U);
  EXPECT_EQ(Leaf::kBytes / kLineBytes, 15U);
  EXPECT_EQ(Leaf::pair(0, 0), kLineBytes);  // bitmap and fingerprints fill the line before
  EXPECT_EQ(Leaf::kFingerprints + Leaf::kSlots, kLineBytes);
  EXPECT_EQ(Leaf::pair(0, Leaf::kSlots), Leaf::kBytes);
  // The 4096 children of section 5.5, less the page's header.
  const Layout inner = Layout::of(kPairs, fptree::kInnerBytes, NodeKind::kSortedLeaf);
  EXPECT_EQ(inner.inner_capacity + 1, 4092U);
}

TEST(BTreeLayout, ArraysLieBehindEachOtherAndOneRowMoreDoesNotFit) {
  for (const std::uint32_t page : {4096U, 16384U, 65536U}) {
    for (const std::uint32_t key : {4U, 8U}) {
      for (std::uint32_t payload = 1; payload <= 1000; payload += 3) {
        const Layout leaf = Layout::of({"t", key, payload}, page, NodeKind::kSortedLeaf);
        EXPECT_LE(leaf.key(leaf.leaf_slots), leaf.payloads);
        EXPECT_LE(leaf.payload(leaf.leaf_slots), page);
        const std::uint32_t more = leaf.leaf_slots + 1;
        EXPECT_GT((leaf.key(more) + 7) / 8 * 8 + more * payload, page);
        EXPECT_LE(leaf.key(leaf.inner_capacity), leaf.children);
        EXPECT_EQ(leaf.children % 8, 0U);
        EXPECT_LE(leaf.child(leaf.inner_capacity + 1), page);
        const Layout hashed = Layout::of({"t", key, payload}, page, NodeKind::kHashLeaf);
        EXPECT_LT(hashed.leaf_capacity, hashed.leaf_slots);
        EXPECT_LE(hashed.key(hashed.leaf_slots + 1), hashed.payloads);
        EXPECT_LE(hashed.payload(hashed.leaf_slots + 1), page);
      }
    }
  }
}

TEST(BTreeLayout, RefusesKeysOfOtherSizesAndRowsOfWhichTwoDoNotFit) {
  const auto of = [](std::uint32_t key, std::uint32_t payload) {
    return Layout::of({"t", key, payload}, 4096, NodeKind::kSortedLeaf);
  };
  EXPECT_THROW(static_cast<void>(of(2, 8)), ConfigError);
  EXPECT_THROW(static_cast<void>(of(8, 0)), ConfigError);
  EXPECT_EQ(of(8, 2008).leaf_capacity, 2U);
  EXPECT_THROW(static_cast<void>(of(8, 2009)), ConfigError);
}

}  // namespace
}  // namespace pmsim::engines::btree
