#include <set>

#include "engine_buffer_rig.hpp"

namespace pmsim::engines::buffer {
namespace {

// Cache-line-grained pages (section 3.1).

TEST(FullPage, AFixAllocatesWithoutLoadingAndOnlyWhatIsAskedForIsLoaded) {
  BufferConfig config = three_tier();
  config.mini_pages = false;
  OnPmem rig(config, 4);
  FixedPage page = rig.manager->fix_page(rig.memory, 2, Access::kGrained);
  EXPECT_EQ(rig.counts().lines_loaded, 0U);
  EXPECT_TRUE(rig.same(page, 1000, 1));
  EXPECT_EQ(rig.counts().lines_loaded, 1U);
  EXPECT_TRUE(rig.same(page, 1000, 20));
  EXPECT_EQ(rig.counts().lines_loaded, 1U) << "byte 1000 to 1019 is on the line that is there";
  EXPECT_TRUE(rig.same(page, 1000, 64));
  EXPECT_EQ(rig.counts().lines_loaded, 2U) << "the next line too";
  EXPECT_TRUE(rig.same(page, kPageHeaderBytes, kPage - kPageHeaderBytes));
  EXPECT_EQ(rig.counts().lines_loaded, 256U);
  rig.manager->unfix(rig.memory, page);
  EXPECT_EQ(rig.check(), "");
}

TEST(FullPage, TheFullPathLoadsTheRestAtOnce) {
  BufferConfig config = three_tier();
  config.mini_pages = false;
  OnPmem rig(config, 4);
  rig.touch(1);
  EXPECT_EQ(rig.counts().lines_loaded, 1U);
  FixedPage page = rig.manager->fix_page(rig.memory, 1, Access::kFull);
  EXPECT_EQ(rig.counts().lines_loaded, 256U);
  rig.manager->unfix(rig.memory, page);
}

TEST(FullPage, OnlyDirtyLinesAndTheLineOfTheLsnAreWrittenBack) {
  for (const bool mini : {false, true}) {
    BufferConfig config = three_tier();
    config.mini_pages = mini;
    OnPmem rig(config, 4);
    FixedPage page = rig.manager->fix_page(rig.memory, 3, Access::kGrained);
    EXPECT_TRUE(rig.same(page, 64 * 9, 64 * 3));
    rig.overwrite(page, 64 * 10 + 5, Bytes(100, std::byte{1}));
    rig.manager->unfix(rig.memory, page);
    rig.manager->unpin_all(rig.memory);
    rig.manager->write_back_all(rig.memory);
    EXPECT_EQ(rig.counts().lines_written_back, 3U) << "lines 0, 10 and 11";
    EXPECT_EQ(rig.counts().micro_log_writes, 0U);
    rig.manager->write_back_all(rig.memory);
    EXPECT_EQ(rig.counts().pages_written_pmem, 1U) << "clean by now";
    EXPECT_EQ(rig.check(), "");
    EXPECT_EQ(rig.forced, rig.lsn);
  }
}

// Mini pages (section 3.2).

TEST(MiniPage, SixteenLinesFitAndTheSeventeenthPromotes) {
  OnPmem rig(three_tier(), 4);
  FixedPage page = rig.manager->fix_page(rig.memory, 0, Access::kGrained);
  for (std::uint32_t line = 0; line < 16; ++line)
    EXPECT_TRUE(rig.same(page, 64 * (255 - 7 * line), 8));
  EXPECT_EQ(rig.counts().promotions, 0U);
  EXPECT_EQ(rig.counts().lines_loaded, 16U);
  EXPECT_TRUE(rig.same(page, 64, 8));
  EXPECT_EQ(rig.counts().promotions, 1U);
  EXPECT_EQ(rig.counts().lines_loaded, 17U) << "what the mini page had is copied in DRAM";
  for (std::uint32_t line = 0; line < 16; ++line)
    EXPECT_TRUE(rig.same(page, 64 * (255 - 7 * line), 8)) << "by way of the wrapper";
  EXPECT_EQ(rig.counts().lines_loaded, 17U);
  rig.manager->unfix(rig.memory, page);
  EXPECT_EQ(rig.check(), "");
}

TEST(MiniPage, RangesAreContiguousInWhateverOrderLinesCame) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    OnPmem rig(three_tier(), 1);
    FixedPage page = rig.manager->fix_page(rig.memory, 0, Access::kGrained);
    std::set<std::uint32_t> loaded;
    for (int step = 0; step < 6; ++step) {
      const auto offset = static_cast<std::uint32_t>(kPageHeaderBytes + random.below(24 * 64));
      const auto bytes = static_cast<std::uint32_t>(1 + random.below(4 * 64));
      for (std::uint32_t line = offset / 64; line <= (offset + bytes - 1) / 64; ++line)
        loaded.insert(line);
      ASSERT_TRUE(rig.same(page, offset, bytes));
      ASSERT_EQ(rig.counts().lines_loaded, loaded.size());
      ASSERT_EQ(rig.counts().promotions, loaded.size() > 16 ? 1U : 0U);
    }
    rig.manager->unfix(rig.memory, page);
    ASSERT_EQ(rig.check(), "");
  }
}

TEST(MiniPage, AnEarlierLineMovesTheOthersSoThatAddressesDoNotOutliveTheNextCall) {
  OnPmem rig(three_tier(), 1);
  FixedPage page = rig.manager->fix_page(rig.memory, 0, Access::kGrained);
  const Address before = rig.manager->resident(rig.memory, page, 640, 8);
  static_cast<void>(rig.manager->resident(rig.memory, page, 320, 8));
  const Address after = rig.manager->resident(rig.memory, page, 640, 8);
  EXPECT_EQ(after, before + 64);
  EXPECT_TRUE(rig.same(page, 640, 8));
  // A change right after a line came in before it goes to the right line.
  rig.overwrite(page, 640, Bytes(8, std::byte{9}));
  EXPECT_TRUE(rig.same(page, 640, 8));
  EXPECT_TRUE(rig.same(page, 320, 64));
  rig.manager->unfix(rig.memory, page);
  rig.manager->unpin_all(rig.memory);
  EXPECT_EQ(rig.check(), "");
}

TEST(MiniPage, DirtyMarksMoveWithTheirLinesAndIntoThePromotedPage) {
  OnPmem rig(three_tier(), 1);
  FixedPage page = rig.manager->fix_page(rig.memory, 0, Access::kGrained);
  rig.overwrite(page, 64 * 200, Bytes(8, std::byte{1}));
  for (std::uint32_t line = 100; line < 105; ++line)
    EXPECT_TRUE(rig.same(page, 64 * line, 8));
  EXPECT_EQ(rig.counts().promotions, 0U);
  rig.manager->unpin_all(rig.memory);
  EXPECT_TRUE(rig.same(page, 64 * 10, 64 * 12));
  EXPECT_EQ(rig.counts().promotions, 1U);
  rig.manager->unfix(rig.memory, page);
  EXPECT_EQ(rig.check(), "") << "clean lines equal PMem, so a lost mark shows";
  rig.manager->write_back_all(rig.memory);
  EXPECT_EQ(rig.counts().lines_written_back, 2U);
  rig.restart();
  EXPECT_TRUE(rig.same(0));
}

TEST(MiniPage, APromotedOneIsAWrapperUntilItsLastUserIsGone) {
  OnPmem rig(three_tier(), 2);
  FixedPage first = rig.manager->fix_page(rig.memory, 0, Access::kGrained);
  FixedPage second = rig.manager->fix_page(rig.memory, 0, Access::kGrained);
  EXPECT_EQ(first.frame, second.frame);
  EXPECT_TRUE(rig.same(first, 64 * 20, 64 * 17));
  FixedPage third = rig.manager->fix_page(rig.memory, 0, Access::kGrained);
  EXPECT_FALSE(is_mini(third.frame)) << "the page table has the full page";
  rig.overwrite(second, 640, Bytes(8, std::byte{3}));
  EXPECT_TRUE(rig.same(third, 640, 8)) << "one page, whichever handle";
  rig.manager->unfix(rig.memory, third);
  rig.manager->unfix(rig.memory, first);
  EXPECT_TRUE(rig.same(second, 64 * 25, 8));
  rig.manager->unfix(rig.memory, second);
  rig.manager->unpin_all(rig.memory);
  EXPECT_EQ(rig.check(), "");
}

TEST(MiniPage, FifteenOfThemShareTheFrameOfOneFullPage) {
  OnPmem rig(three_tier(8), 32);
  for (PageId id = 0; id < 30; ++id)
    rig.touch(id);
  EXPECT_EQ(rig.counts().evictions_dram, 0U);
  EXPECT_EQ(rig.counts().mini_allocated, 30U);
  const std::uint64_t misses = rig.counts().dram_misses;
  for (PageId id = 0; id < 30; ++id)
    rig.touch(id);
  EXPECT_EQ(rig.counts().dram_misses, misses);
  EXPECT_EQ(rig.check(), "");
}

TEST(MiniPage, ASlabIsClearedForAFullPageAndWarmMiniPagesMoveTogether) {
  BufferConfig config = three_tier(8, 140, 140);
  OnPmem rig(config, 140);
  for (PageId id = 0; id < 120; ++id)
    rig.touch(id);  // eight slabs of fifteen
  EXPECT_EQ(rig.counts().evictions_dram, 0U);
  rig.touch(130, Access::kFull);
  rig.touch(131, Access::kFull);
  EXPECT_GT(rig.counts().evictions_dram, 0U);
  EXPECT_EQ(rig.check(), "");
  // One page of each slab stays warm; full pages come and go.
  Random random(5);
  for (int step = 0; step < 400; ++step) {
    const auto slab = static_cast<PageId>(15 * random.below(6));
    rig.touch(slab);
    if (step % 3 == 0)
      rig.touch(122 + random.below(18), Access::kFull);
    else
      rig.touch(random.below(120));
    ASSERT_EQ(rig.check(), "");
  }
  EXPECT_GT(rig.counts().mini_relocated, 0U);
}

}  // namespace
}  // namespace pmsim::engines::buffer
