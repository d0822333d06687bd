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

BufferConfig by_two_threads() {
  BufferConfig config = three_tier(8, 32, 64);
  config.threads = 2;
  return config;
}

TEST(NoSteal, APageThatTwoTransactionsHaveChangedIsPinnedUntilBothHaveEnded) {
  OnPmem rig(by_two_threads(), 32);
  for (const std::uint32_t thread : {0, 1}) {
    rig.manager->work_as(thread);
    FixedPage page = rig.manager->fix_page(rig.memory, 3, Access::kFull);
    rig.overwrite(page, 100 + 8 * thread, Bytes(8, std::byte{2}));
    rig.manager->unfix(rig.memory, page);
  }
  for (const std::uint32_t thread : {0, 1}) {
    for (PageId id = 10; id < 30; ++id)
      rig.touch(id, Access::kFull);
    EXPECT_EQ(rig.counts().pages_written_pmem, 0U) << "before thread " << thread << " has ended";
    rig.manager->work_as(thread);
    rig.manager->unpin_all(rig.memory);
  }
  for (PageId id = 10; id < 30; ++id)
    rig.touch(id, Access::kFull);
  EXPECT_EQ(rig.counts().pages_written_pmem, 1U);
  rig.touch(3, Access::kFull);
  EXPECT_EQ(rig.check(), "");
}

/// Of a group that is durable, in which its transaction has not ended yet.
TEST(NoSteal, APageThatIsCleanedWhilePinnedIsDirtyAgainWhenItChangesAgain) {
  OnPmem rig(by_two_threads(), 32);
  const auto change = [&](std::uint32_t thread, std::uint32_t offset) {
    rig.manager->work_as(thread);
    FixedPage page = rig.manager->fix_page(rig.memory, 3, Access::kFull);
    rig.overwrite(page, offset, Bytes(8, std::byte{2}));
    rig.manager->unfix(rig.memory, page);
  };
  change(1, 100);
  rig.manager->unpin_all(rig.memory, 5);
  change(0, 108);
  rig.manager->work_as(1);
  EXPECT_EQ(rig.manager->write_back_before(rig.memory, 10), Rig::Manager::kNothingDirty);
  EXPECT_GE(rig.forced, rig.lsn);
  rig.manager->work_as(0);
  rig.manager->unpin_all(rig.memory, 6);
  EXPECT_EQ(rig.manager->write_back_before(rig.memory, 10), Rig::Manager::kNothingDirty);
  change(0, 116);
  rig.manager->unpin_all(rig.memory, 8);
  EXPECT_EQ(rig.manager->write_back_before(rig.memory, 8), 8U);
  EXPECT_EQ(rig.check(), "");
}

TEST(DirtyQueue, WhoBeganEarlierAndEndedLaterIsTheOldest) {
  SimMemory memory;
  wal::DirtyQueue queue(memory.allocate(memory::Medium::kDram, wal::DirtyQueue::bytes_for(8)), 8);
  const auto is_current = [](const wal::DirtyQueue::Entry&) { return true; };
  for (const wal::Lsn first : {10, 30, 40, 20, 40, 5})
    queue.push(memory, {first, first}, is_current);
  for (const wal::Lsn first : {5, 10, 20, 30, 40, 40}) {
    EXPECT_EQ(queue.front(memory).first, first);
    queue.pop();
  }
  EXPECT_TRUE(queue.empty());
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

TEST(Moves, WearThePagesWhereverTheMicroLogIs) {
  for (const bool on_ssd : {false, true}) {
    BufferConfig config = tiny("basic-nvm-bm", 4096, 8, 20, 0);
    config.meta_on_ssd = on_ssd;
    Rig rig(config, {.wear = true});
    Random random(1);
    const PageId id = rig.create(random);
    rig.checkpoint();
    rig.memory.reset_wear();
    for (std::uint32_t round = 0; round < 3; ++round) {
      FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kFull);
      rig.move(page, 2000, 1000, 200 + round);
      rig.manager->unfix(rig.memory, page);
      rig.manager->unpin_all(rig.memory);
      rig.checkpoint();
    }
    EXPECT_EQ(rig.counts().micro_log_writes, 3U);
    EXPECT_EQ(rig.memory.line_writes(rig.manager->place().pmem), std::vector<std::uint32_t>(4096 / 64, 3));
    rig.restart();
    EXPECT_TRUE(rig.same(id));
  }
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
