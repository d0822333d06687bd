#include <set>

#include "engine_buffer_rig.hpp"

namespace pmsim::engines::buffer {
namespace {

// No-steal, write-ahead.

TEST(NoSteal, PinnedPagesAreNotEvictedAndATransactionLargerThanDramIsRefused) {
  OnPmem rig(three_tier(8, 32, 64), 32);
  for (PageId id = 0; id < 7; ++id) {
    FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kFull);
    rig.overwrite(page, 100, Bytes(8, std::byte{2}));
    rig.manager->unfix(rig.memory, page);
  }
  for (PageId id = 10; id < 30; ++id)
    rig.touch(id, Access::kFull);
  EXPECT_EQ(rig.counts().pages_written_pmem, 0U);
  FixedPage page = rig.manager->fix_page(rig.memory, 8, Access::kFull);
  rig.overwrite(page, 100, Bytes(8, std::byte{2}));
  rig.manager->unfix(rig.memory, page);
  try {
    static_cast<void>(rig.manager->fix_page(rig.memory, 20, Access::kFull));
    FAIL();
  } catch (const CapacityError& error) {
    EXPECT_NE(std::string(error.what()).find("dram_bytes"), std::string::npos);
  }
  rig.manager->unpin_all(rig.memory);
  rig.touch(20, Access::kFull);
  EXPECT_EQ(rig.check(), "");
}

TEST(NoSteal, PinnedMiniPagesMakeRoomForFullPagesByMovingTogether) {
  OnPmem rig(three_tier(8, 140, 140), 140);
  for (PageId id = 0; id < 120; ++id)
    rig.touch(id);  // eight slabs of fifteen
  for (PageId id = 0; id < 120; id += 15) {
    FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kGrained);
    rig.overwrite(page, 640, Bytes(8, std::byte{7}));
    rig.manager->unfix(rig.memory, page);
  }
  for (PageId id = 125; id < 132; ++id)
    rig.touch(id, Access::kFull);  // seven full pages, so the eight pinned ones share a slab
  EXPECT_EQ(rig.counts().pages_written_pmem, 0U);
  EXPECT_GE(rig.counts().mini_relocated, 7U);
  for (PageId id = 0; id < 120; id += 15)
    rig.touch(id, Access::kGrained, 10);
  rig.manager->unpin_all(rig.memory);
  EXPECT_EQ(rig.check(), "");
}

TEST(NoSteal, AReleasedPageIsThereUntilTheTransactionEnds) {
  OnPmem rig(three_tier(), 4);
  FixedPage page = rig.manager->fix_page(rig.memory, 2, Access::kGrained);
  rig.manager->release(rig.memory, page);
  FixedPage fresh = rig.manager->allocate(rig.memory);
  EXPECT_EQ(fresh.id, 4U) << "not the released one";
  rig.pages[4] = Bytes(kPage - kPageHeaderBytes);
  rig.manager->unfix(rig.memory, fresh);
  rig.manager->unpin_all(rig.memory);
  rig.pages.erase(2);
  EXPECT_EQ(rig.check(), "");
  fresh = rig.manager->allocate(rig.memory);
  EXPECT_EQ(fresh.id, 2U);
  rig.pages[2] = Bytes(kPage - kPageHeaderBytes);
  EXPECT_TRUE(rig.same(fresh, kPageHeaderBytes, kPage - kPageHeaderBytes)) << "zero again";
  rig.manager->unfix(rig.memory, fresh);
  EXPECT_EQ(rig.check(), "");
  rig.restart();
  EXPECT_TRUE(rig.same(2));
}

TEST(WriteAhead, TheLogIsAskedForBeforeAChangedPageLeavesDram) {
  for (const char* engine : {"basic-nvm-bm", "file-bm", "redirect-bm", "ssd-bm", "three-tier"}) {
    Rig rig(tiny(engine, 4096, 8, 20, 40));
    Random random(1);
    rig.create(random);
    const std::uint64_t lsn = rig.lsn;
    EXPECT_EQ(rig.forced, 0U);
    for (int count = 0; count < 12; ++count)
      rig.create(random);
    EXPECT_GE(rig.forced, lsn) << engine;
  }
}

TEST(Moves, GoThroughTheMicroLogUnlessTheFormatIsToBeRedoneAnyway) {
  OnPmem rig(three_tier(), 2);
  FixedPage page = rig.manager->fix_page(rig.memory, 0, Access::kFull);
  rig.move(page, 5000, 1000, 200);
  rig.manager->unfix(rig.memory, page);
  rig.manager->unpin_all(rig.memory);
  rig.manager->write_back_all(rig.memory);
  EXPECT_EQ(rig.counts().micro_log_writes, 1U);
  page = rig.manager->fix_page(rig.memory, 1, Access::kFull);
  rig.manager->format(rig.memory, page, ++rig.lsn);
  std::ranges::fill(rig.pages[1], std::byte{0});
  rig.move(page, 5000, 1000, 200);
  rig.manager->unfix(rig.memory, page);
  rig.manager->unpin_all(rig.memory);
  rig.manager->write_back_all(rig.memory);
  EXPECT_EQ(rig.counts().micro_log_writes, 1U);
  EXPECT_EQ(rig.check(), "");
}

// Allocation.

TEST(Allocation, SurvivesARestartAndReusesWhatWasReleased) {
  for (const bool on_ssd : {false, true}) {
    BufferConfig config = tiny("ssd-bm", 4096, 8, 0, 40);
    config.meta_on_ssd = on_ssd;
    Rig rig(config);
    Random random(1);
    for (int count = 0; count < 20; ++count)
      rig.create(random);
    for (const PageId id : {3, 11, 19}) {
      FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kFull);
      rig.manager->release(rig.memory, page);
      rig.pages.erase(id);
    }
    rig.manager->unpin_all(rig.memory);
    rig.restart();
    EXPECT_EQ(rig.check(), "");
    std::set<PageId> again;
    for (int count = 0; count < 3; ++count)
      again.insert(rig.create(random));
    EXPECT_EQ(again, (std::set<PageId>{3, 11, 19}));
    EXPECT_EQ(rig.create(random), 20U);
    rig.restart();
    EXPECT_EQ(rig.check(), "");
  }
}

TEST(Allocation, AFullHomeTierIsACapacityError) {
  Rig rig(tiny("basic-nvm-bm", 4096, 8, 10, 0));
  Random random(1);
  for (int count = 0; count < 10; ++count)
    rig.create(random);
  EXPECT_THROW(static_cast<void>(rig.manager->allocate(rig.memory)), CapacityError);
  EXPECT_EQ(rig.check(), "");
  EXPECT_THROW(rig.load(random), CapacityError);
}

}  // namespace
}  // namespace pmsim::engines::buffer
