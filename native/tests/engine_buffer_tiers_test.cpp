#include <deque>
#include <unordered_map>

#include "engine_buffer_rig.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::engines::buffer {
namespace {

using memory::Medium;
using memory::OpKind;
using memory::Stream;

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
  EXPECT_EQ(rig.counts().lines_written_back, 9U * 256U + 2U) << "admitted pages, and two lines of page 12";
  EXPECT_EQ(rig.check(), "");
  rounds(21);
  EXPECT_GT(rig.counts().evictions_pmem, 9U + 3U);
  EXPECT_GT(rig.counts().pages_written_ssd, rig.counts().denials) << "dirty pages leave PMem for the SSD (6)";
  EXPECT_EQ(rig.check(), "");
  rig.restart();
  for (PageId id = 0; id < 40; ++id)
    EXPECT_TRUE(rig.same(id));
}

TEST(Transitions, SpitfirePagesGoFromTheSsdToPmemOrToDram) {
  for (const bool to_pmem : {false, true}) {
    BufferConfig config = tiny("spitfire", kPage, 8, 3, 64);
    config.migration = {1, 1, to_pmem ? 1.0 : 0.0, 1};
    OnPmem rig(config, 5);  // 3 and 4 are on the SSD alone
    rig.touch(3);
    rig.touch(4);
    EXPECT_EQ(rig.counts().pages_ssd_to_pmem, to_pmem ? 2U : 0U);
    EXPECT_EQ(rig.counts().pages_loaded_ssd, to_pmem ? 0U : 2U);
    EXPECT_EQ(rig.counts().pages_loaded_pmem, to_pmem ? 2U : 0U);
    EXPECT_EQ(rig.counts().pages_written_pmem, 0U) << "they have not been in a frame of DRAM";
    EXPECT_EQ(rig.check(), "");
  }
}

// Mini pages let a small DRAM have a frame of every page on PMem, none of which can be evicted then.
TEST(Transitions, SpitfireLooksForAFrameOnPmemNoLongerTheMoreThereAre) {
  const auto operations = [](std::uint64_t frames) {
    OnPmem rig(tiny("spitfire", kPage, 32, frames, 512), frames + 64);
    for (PageId id = 0; id < frames; ++id)
      rig.touch(id);
    Stream stream;
    rig.memory.attach(stream, 0);
    rig.touch(frames);
    rig.memory.detach();
    EXPECT_EQ(rig.counts().pages_loaded_ssd, 1U) << "to DRAM alone";
    EXPECT_EQ(rig.counts().evictions_dram, 0U);
    for (PageId id = frames; id < frames + 64; ++id)
      rig.touch(id);
    EXPECT_GT(rig.counts().evictions_pmem, 0U) << "DRAM has given up frames over PMem";
    EXPECT_GT(rig.counts().pages_ssd_to_pmem, 0U);
    EXPECT_EQ(rig.check(), "");
    return stream.size();
  };
  EXPECT_LT(operations(240), operations(30) + 30) << "but for probes of the page table";
}

TEST(Transitions, SpitfireThrowsForReadsOrForWrites) {
  for (const bool writes_stay : {false, true}) {
    BufferConfig config = tiny("spitfire", kPage, 8, 32, 64);
    config.migration = {writes_stay ? 1.0 : 0.0, writes_stay ? 0.0 : 1.0, 1, 1};
    OnPmem rig(config, 6);
    for (PageId id = 0; id < 3; ++id) {
      FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kChanged);
      rig.overwrite(page, 8000, Bytes(64, std::byte{1}));
      rig.manager->unfix(rig.memory, page);
      rig.manager->unpin_all(rig.memory);
    }
    EXPECT_EQ(rig.counts().direct_writes, writes_stay ? 3U : 0U);
    EXPECT_EQ(rig.counts().pages_loaded_pmem, writes_stay ? 0U : 3U);
    EXPECT_EQ(rig.counts().lines_loaded, writes_stay ? 0U : 3U * 2U) << "by the line: LSN and change";
    for (PageId id = 3; id < 6; ++id)
      rig.touch(id);
    EXPECT_EQ(rig.counts().pages_loaded_pmem, 3U);
    EXPECT_EQ(rig.counts().direct_fixes, 3U);
    EXPECT_EQ(rig.check(), "");
    rig.restart();
    for (PageId id = 0; id < 6; ++id)
      EXPECT_TRUE(rig.same(id));
  }
}

TEST(Transitions, SpitfireThrowsOnceForAChange) {
  BufferConfig config = tiny("spitfire", 4096, 1100, 1000, 1100);
  config.migration = {0, 0.5, 1, 1};
  OnPmem rig(config, 1000);
  for (PageId id = 0; id < 1000; ++id) {
    FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kChanged);
    rig.overwrite(page, 800, Bytes(8, std::byte{1}));
    rig.manager->unfix(rig.memory, page);
    rig.manager->unpin_all(rig.memory);
  }
  // Five standard deviations; thrown twice it were 250.
  EXPECT_NEAR(static_cast<double>(rig.counts().direct_writes), 500, 80);
  EXPECT_EQ(rig.counts().direct_writes + rig.counts().pages_loaded_pmem, 1000U);
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

}  // namespace
}  // namespace pmsim::engines::buffer
