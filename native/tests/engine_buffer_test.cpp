#include <deque>
#include <set>
#include <unordered_map>

#include "engine_buffer_rig.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::engines::buffer {
namespace {

using memory::Medium;
using memory::OpKind;
using memory::Stream;

constexpr std::uint32_t kPage = 16384;

BufferConfig three_tier(std::uint64_t dram = 8, std::uint64_t pmem = 32, std::uint64_t ssd = 64) {
  return tiny("three-tier", kPage, dram, pmem, ssd);
}

/// A rig whose first pages lie on PMem, clean.
struct OnPmem : Rig {
  explicit OnPmem(const BufferConfig& config, std::uint64_t count) : Rig(config) {
    Random random(7);
    for (std::uint64_t page = 0; page < count; ++page)
      load(random);
    manager->sync(memory);
  }
};

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

// The six transitions (Fig. 6).

TEST(Transitions, OneAPageFromTheSsdIsWholeAndNotOnPmem) {
  OnPmem rig(three_tier(8, 2, 64), 6);  // pages 2 to 5 are on the SSD alone
  FixedPage page = rig.manager->fix_page(rig.memory, 5, Access::kGrained);
  EXPECT_EQ(rig.counts().pages_loaded_ssd, 1U);
  EXPECT_FALSE(is_mini(page.frame));
  EXPECT_TRUE(rig.same(page, kPageHeaderBytes, kPage - kPageHeaderBytes));
  EXPECT_EQ(rig.counts().lines_loaded, 0U);
  rig.manager->unfix(rig.memory, page);
  EXPECT_EQ(rig.counts().pages_written_pmem, 0U);
  EXPECT_EQ(rig.check(), "");
}

TEST(Transitions, TwoAPageOnPmemIsLoadedByTheLine) {
  OnPmem rig(three_tier(), 3);
  rig.touch(2);
  EXPECT_EQ(rig.counts().pages_loaded_pmem, 1U);
  EXPECT_EQ(rig.counts().pages_loaded_ssd, 0U);
  EXPECT_EQ(rig.counts().lines_loaded, 1U);
}

TEST(Transitions, ThreeAndFiveAPageThatComesBackTooLateIsDeniedForEver) {
  BufferConfig config = three_tier(8, 2, 64);
  config.admission_entries = 4;
  OnPmem rig(config, 20);  // 0 and 1 are on PMem
  for (int round = 0; round < 5; ++round) {
    for (PageId id = 2; id < 11; ++id)
      rig.touch(id, Access::kFull);
  }
  // Nine pages in turn through eight frames: every page asks again after eight others, and the set holds four.
  EXPECT_EQ(rig.counts().evictions_dram, 45U - 8U);
  EXPECT_EQ(rig.counts().denials, 45U - 8U);
  EXPECT_EQ(rig.counts().admissions, 0U);
  EXPECT_EQ(rig.counts().pages_written_ssd, 0U) << "all of it was clean";
  EXPECT_EQ(rig.check(), "");
}

TEST(Transitions, AWarmPageIsAdmittedAndPmemMakesRoom) {
  BufferConfig config = three_tier(8, 2, 64);
  config.admission_entries = 64;
  OnPmem rig(config, 20);
  for (int round = 0; round < 2; ++round) {
    for (PageId id = 2; id < 11; ++id)
      rig.touch(id, Access::kFull);
  }
  // Nine pages through eight frames: each touch of the second round misses and evicts the next; from the ninth
  // eviction on the pages are in the set.
  EXPECT_EQ(rig.counts().denials, 9U);
  EXPECT_EQ(rig.counts().evictions_dram, 10U);
  EXPECT_EQ(rig.counts().admissions, 1U);
  EXPECT_EQ(rig.counts().evictions_pmem, 1U);
  EXPECT_EQ(rig.counts().pages_written_ssd, 0U) << "all of it was clean";
  EXPECT_EQ(rig.check(), "");
  rig.touch(2, Access::kFull);
  EXPECT_EQ(rig.counts().pages_loaded_pmem, 1U) << "the admitted page is page 2";
}

TEST(Transitions, DirtyPagesReachTheTierTheyGoTo) {
  BufferConfig config = three_tier(8, 12, 64);
  config.admission_entries = 64;
  OnPmem rig(config, 40);  // 0 to 11 are on PMem
  const auto rounds = [&rig](PageId from) {
    for (int round = 0; round < 3; ++round) {
      for (PageId id = from; id < from + 9; ++id) {
        FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kFull);
        rig.overwrite(page, 8000, Bytes(64, static_cast<std::byte>(id + static_cast<PageId>(round))));
        rig.manager->unfix(rig.memory, page);
        rig.manager->unpin_all(rig.memory);
      }
    }
  };
  // 27 touches, 19 evictions: each page is denied once, then admitted, and page 12 goes back to its frame.
  rounds(12);
  EXPECT_EQ(rig.counts().denials, 9U);
  EXPECT_EQ(rig.counts().pages_written_ssd, 9U) << "denied, and dirty (5)";
  EXPECT_EQ(rig.counts().admissions, 9U);
  EXPECT_EQ(rig.counts().evictions_pmem, 9U) << "clean ones, not written to the SSD";
  EXPECT_EQ(rig.counts().pages_loaded_pmem, 9U);
  EXPECT_EQ(rig.counts().pages_written_pmem, 9U + 1U);
  EXPECT_EQ(rig.counts().lines_written_back, 2U);
  EXPECT_EQ(rig.check(), "");
  rounds(21);
  EXPECT_GT(rig.counts().evictions_pmem, 9U + 3U);
  EXPECT_GT(rig.counts().pages_written_ssd, rig.counts().denials) << "dirty pages leave PMem for the SSD (6)";
  EXPECT_EQ(rig.check(), "");
  rig.restart();
  for (PageId id = 0; id < 40; ++id)
    EXPECT_TRUE(rig.same(id));
}

// The combined page table (section 4.3).

TEST(PageTable, OneLookupFindsAPageInDramOrOnPmem) {
  BufferConfig config = three_tier(8, 32, 64);
  config.pointer_swizzling = false;
  OnPmem rig(config, 32);
  Random random(11);
  for (int step = 0; step < 500; ++step)
    rig.touch(random.below(32), step % 4 == 0 ? Access::kFull : Access::kGrained);
  EXPECT_EQ(rig.counts().page_table_lookups, rig.counts().fixes);
  EXPECT_GT(rig.counts().dram_hits, 0U);
  EXPECT_GT(rig.counts().evictions_dram, 0U);
}

TEST(PageTable, EqualsAMapUnderRandomInsertsAndErasesAtFullLoad) {
  SimMemory memory;
  constexpr std::uint64_t kEntries = 300;
  const Address base = memory.allocate(Medium::kDram, IdTable::bytes_for(kEntries));
  IdTable table(base, kEntries);
  std::unordered_map<std::uint64_t, std::uint64_t> expected;
  Random random(1);
  for (int step = 0; step < 40'000; ++step) {
    const std::uint64_t id = random.below(700);
    const IdTable::Found found = table.find(memory, id);
    const auto reference = expected.find(id);
    ASSERT_EQ(static_cast<bool>(found), reference != expected.end());
    if (found) {
      ASSERT_EQ(found.value, reference->second);
      if (random.below(2) == 0) {
        table.erase(memory, found);
        expected.erase(reference);
      } else {
        table.assign(memory, found, step);
        reference->second = static_cast<std::uint64_t>(step);
      }
    } else if (expected.size() < kEntries) {
      table.insert(memory, id, static_cast<std::uint64_t>(step));
      expected[id] = static_cast<std::uint64_t>(step);
    }
    ASSERT_EQ(table.size(), expected.size());
  }
  std::uint64_t seen = 0;
  table.for_each(memory, [&](std::uint64_t id, std::uint64_t value) {
    ++seen;
    EXPECT_EQ(expected.at(id), value);
  });
  EXPECT_EQ(seen, expected.size());
}

// The admission set (section 4.2).

TEST(AdmissionSet, RemembersTheLastDeniedOnesFirstInFirstOut) {
  SimMemory memory;
  constexpr std::uint64_t kCapacity = 5;
  AdmissionSet set(memory.allocate(Medium::kDram, AdmissionSet::bytes_for(kCapacity)), kCapacity);
  std::deque<std::uint64_t> expected;
  Random random(2);
  std::uint64_t admitted = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t id = random.below(12);
    const auto at = std::ranges::find(expected, id);
    const bool is_in = at != expected.end();
    ASSERT_EQ(set.consider(memory, id), is_in) << step;
    if (is_in) {
      expected.erase(at);
      ++admitted;
    } else {
      if (expected.size() == kCapacity)
        expected.pop_front();
      expected.push_back(id);
    }
    ASSERT_EQ(set.size(), expected.size());
  }
  EXPECT_GT(admitted, 1000U);
}

// Pointer swizzling (section 3.3).

/// Pages 0 and 1 are parents, of pages 2..5 and 6..9, in swips at 1024, 1032, ...
struct Family : OnPmem {
  explicit Family(const BufferConfig& config) : OnPmem(config, 20) {
    for (PageId parent = 0; parent < 2; ++parent) {
      FixedPage page = manager->fix_page(memory, parent, Access::kFull);
      Bytes swips(32);
      for (std::uint64_t child = 0; child < 4; ++child) {
        const std::uint64_t id = 2 + 4 * parent + child;
        std::memcpy(swips.data() + child * 8, &id, 8);
      }
      overwrite(page, 1024, swips);
      manager->unfix(memory, page);
    }
    manager->unpin_all(memory);
    manager->write_back_all(memory);
  }
  FixedPage child(FixedPage& parent, std::uint32_t index, Access access = Access::kGrained) {
    return manager->fix_child(memory, parent, 1024 + index * 8, access);
  }
};

TEST(Swizzling, TheSecondFixFollowsAPointerAndDoesNotAskThePageTable) {
  Family rig(three_tier());
  FixedPage parent = rig.manager->fix_page(rig.memory, 0, Access::kFull);
  FixedPage page = rig.child(parent, 2);
  EXPECT_EQ(page.id, 4U);
  rig.manager->unfix(rig.memory, page);
  const std::uint64_t lookups = rig.counts().page_table_lookups;
  Stream stream;
  rig.memory.attach(stream);
  page = rig.child(parent, 2);
  rig.memory.detach();
  EXPECT_EQ(page.id, 4U);
  EXPECT_EQ(rig.counts().page_table_lookups, lookups);
  EXPECT_EQ(rig.counts().swizzled_fixes, 1U);
  // The swip, the frame's head, and the head again with one fix more: nothing else is touched.
  ASSERT_EQ(stream.size(), 3U);
  EXPECT_EQ(stream[0].kind, OpKind::kLoad);
  EXPECT_EQ(stream[1].kind, OpKind::kLoad);
  EXPECT_EQ(stream[1].flags, memory::kDependent);
  EXPECT_EQ(stream[2].kind, OpKind::kStore);
  EXPECT_EQ(stream[1].address, stream[2].address);
  rig.manager->unfix(rig.memory, page);
  rig.manager->unfix(rig.memory, parent);
  EXPECT_EQ(rig.check(), "");
}

TEST(Swizzling, APageWithSwizzledChildrenStaysAndAnEvictedChildBecomesAnIdAgain) {
  BufferConfig config = three_tier(8, 32, 64);
  config.mini_pages = false;
  Family rig(config);
  FixedPage parent = rig.manager->fix_page(rig.memory, 0, Access::kFull);
  FixedPage page = rig.child(parent, 0);
  rig.manager->unfix(rig.memory, page);
  rig.manager->unfix(rig.memory, parent);
  const auto swip = [&] {
    return rig.memory.load<Swip>(untagged(parent.frame) + FullFrame{kPage}.header_bytes() + 1024);
  };
  EXPECT_NE(swip() & kSwizzled, 0U);
  const auto full_of = [&] { return rig.memory.load<FrameHead>(untagged(parent.frame)); };
  EXPECT_EQ(full_of().state.children, 1U);
  for (PageId id = 10; id < 17; ++id)
    rig.touch(id);
  // The hand has been over both; the child went, the parent could not before it.
  EXPECT_EQ(full_of().id, 0U);
  for (PageId id = 10; id < 17; ++id)
    rig.touch(id);
  EXPECT_EQ(rig.counts().unswizzles, 1U);
  EXPECT_EQ(rig.check(), "");
}

TEST(Swizzling, APromotedMiniPageIsRedirectedWhenItIsUnfixed) {
  Family rig(three_tier());
  FixedPage parent = rig.manager->fix_page(rig.memory, 1, Access::kFull);
  FixedPage page = rig.child(parent, 3);
  const Address mini = page.frame;
  EXPECT_TRUE(is_mini(mini));
  EXPECT_TRUE(rig.same(page, 64, 64 * 20));
  FixedPage again = rig.child(parent, 3);
  EXPECT_EQ(again.frame, mini) << "until it is unfixed the parent points to the wrapper";
  rig.manager->unfix(rig.memory, again);
  rig.manager->unfix(rig.memory, page);
  again = rig.child(parent, 3);
  EXPECT_FALSE(is_mini(again.frame));
  EXPECT_EQ(rig.counts().swizzled_fixes, 2U);
  rig.manager->unfix(rig.memory, again);
  rig.manager->unfix(rig.memory, parent);
  EXPECT_EQ(rig.check(), "");
}

TEST(Swizzling, NoPointerLeavesDram) {
  Family rig(three_tier());
  FixedPage parent = rig.manager->fix_page(rig.memory, 0, Access::kFull);
  for (std::uint32_t index = 0; index < 4; ++index) {
    FixedPage page = rig.child(parent, index);
    rig.manager->unfix(rig.memory, page);
  }
  rig.overwrite(parent, 1024 + 40, Bytes(8, std::byte{1}));  // on the line of the swips
  rig.manager->unfix(rig.memory, parent);
  rig.manager->unpin_all(rig.memory);
  rig.manager->write_back_all(rig.memory);
  EXPECT_EQ(rig.counts().unswizzles, 4U);
  rig.restart();
  EXPECT_TRUE(rig.same(0)) << "the reference has ids";
}

TEST(Swizzling, DataThatLooksLikeAPointerIsNotTouched) {
  Family rig(three_tier());
  FixedPage parent = rig.manager->fix_page(rig.memory, 0, Access::kFull);
  FixedPage page = rig.child(parent, 1);
  const Swip swip = kSwizzled | page.frame;
  Bytes copy(8);
  std::memcpy(copy.data(), &swip, 8);
  rig.overwrite(parent, 2048, copy);
  rig.manager->unfix(rig.memory, page);
  rig.manager->unfix(rig.memory, parent);
  rig.manager->unpin_all(rig.memory);
  rig.restart();
  EXPECT_TRUE(rig.same(0));
}

TEST(Swizzling, ARememberedRootNeedsNoLookupAndARecycledFrameIsNoticed) {
  BufferConfig config = three_tier(8, 32, 64);
  OnPmem rig(config, 32);
  RootRef root{.id = 3};
  FixedPage page = rig.manager->fix(rig.memory, root, Access::kFull);
  rig.manager->unfix(rig.memory, page);
  page = rig.manager->fix(rig.memory, root, Access::kFull);
  EXPECT_EQ(rig.counts().page_table_lookups, 1U);
  rig.manager->unfix(rig.memory, page);
  for (int round = 0; round < 4; ++round) {
    for (PageId id = 10; id < 30; ++id)
      rig.touch(id, id % 2 == 0 ? Access::kFull : Access::kGrained);
  }
  page = rig.manager->fix(rig.memory, root, Access::kFull);
  EXPECT_EQ(page.id, 3U);
  EXPECT_TRUE(rig.same(page, kPageHeaderBytes, 4000));
  rig.manager->unfix(rig.memory, page);
  EXPECT_EQ(rig.check(), "");
}

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
  for (const char* engine : {"basic-nvm-bm", "ssd-bm", "three-tier"}) {
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

// Loading and restart.

TEST(Loading, FillsPmemFirstAndTheSsdHasAll) {
  OnPmem rig(three_tier(8, 5, 64), 9);
  EXPECT_EQ(rig.check(), "");
  rig.touch(4);
  EXPECT_EQ(rig.counts().pages_loaded_pmem, 1U);
  rig.touch(5);
  EXPECT_EQ(rig.counts().pages_loaded_ssd, 1U);
  rig.restart();
  for (PageId id = 0; id < 9; ++id)
    EXPECT_TRUE(rig.same(id));
}

TEST(Restart, ReadsOneLineOfEachFrameOnPmemByIndependentLoads) {
  OnPmem rig(three_tier(8, 32, 64), 32);
  const EnginePlace place = rig.manager->place();
  Rig::Manager again(rig.memory, rig.config(), place);
  Stream stream;
  rig.memory.attach(stream);
  again.recover(rig.memory);
  rig.memory.detach();
  std::map<Address, int> lines;
  for (std::size_t op = 0; op < stream.size(); ++op) {
    const Address address = stream[op].address;
    if (stream[op].kind != OpKind::kLoad || address < place.pmem || address >= place.pmem + 32 * kPage)
      continue;
    EXPECT_EQ(stream[op].flags & memory::kDependent, 0);
    ++lines[address / 64];
  }
  EXPECT_EQ(lines.size(), 32U);
  for (const auto& [line, count] : lines)
    EXPECT_EQ(count, 1) << "line " << line;
}

// Clock, against a second implementation: a queue, in which who was touched goes round once more. (Another one,
// by other people, is in tests/test_buffer_clock.py.)

TEST(Clock, HitsEqualThoseOfASecondChanceQueue) {
  constexpr std::uint64_t kFrames = 16;
  Rig rig(tiny("ssd-bm", 4096, kFrames, 0, 64));
  Random random(4);
  for (int count = 0; count < 64; ++count)
    rig.load(random);
  rig.manager->sync(rig.memory);
  struct Entry {
    PageId id;
    bool touched;
  };
  std::deque<Entry> queue;
  for (int step = 0; step < 20'000; ++step) {
    const PageId id = std::min(random.below(64), random.below(64));
    const std::uint64_t hits = rig.counts().dram_hits;
    rig.touch(id, Access::kFull);
    const auto at = std::ranges::find(queue, id, &Entry::id);
    ASSERT_EQ(rig.counts().dram_hits - hits, at != queue.end() ? 1U : 0U) << "step " << step;
    if (at != queue.end()) {
      at->touched = true;
      continue;
    }
    while (queue.size() == kFrames) {
      Entry front = queue.front();
      queue.pop_front();
      if (front.touched)
        queue.push_back({front.id, false});
    }
    queue.push_back({id, true});  // loading a page is touching it
  }
}

// Options.

TEST(Config, RefusesWhatCannotBeAndNamesTheOption) {
  const auto message = [](auto change, const std::string& engine = "three-tier") {
    BufferConfig config = tiny(engine, kPage, 8, 8, 8);
    change(config);
    try {
      SimMemory memory;
      const Rig::Manager manager(memory, config);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message([](BufferConfig& config) { config.dram_bytes = 100'000; }).find("dram_bytes"),
            std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.ssd_bytes = 0; }).find("ssd_bytes"), std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.pmem_bytes = 0; }).find("pmem_bytes"), std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.page_bytes = 12'000; }).find("page_bytes"),
            std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.page_bytes = 32768; }).find("mini_pages"),
            std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.cache_line_grained = false; }).find("cache_line_grained"),
            std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.migration[2] = 1.5; }).find("migration"),
            std::string::npos);
  EXPECT_EQ(message([](BufferConfig&) {}), "accepted");
}

}  // namespace
}  // namespace pmsim::engines::buffer
