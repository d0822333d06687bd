#include <gtest/gtest.h>
#include <numeric>

#include <algorithm>

#include "machine_harness.hpp"
#include "pmsim/machine/prefetcher.hpp"

namespace pmsim::machine {
namespace {

using Ops = Script::Ops;

constexpr std::uint64_t kRow = 8192;

/// A load whose page is in the first TLB level and whose line is in no cache: what stands between `touched` and
/// it.
Picoseconds load_after(const PlatformParams& params, std::uint64_t touched, std::uint64_t loaded) {
  return time_of(params, {load(touched)}, {load(loaded)});
}

TEST(LoadLatency, OfDramIsTheOnChipPartPlusAnOpenOrANewRow) {
  const PlatformParams params = plain_machine();
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  EXPECT_EQ(load_after(params, kDramBase, kDramBase + 64), open_row);
  EXPECT_EQ(load_after(params, kDramBase, kDramBase + kRow - 64), open_row);
  EXPECT_EQ(load_after(params, kDramBase, kDramBase + kRow), open_row + params.dram.row_miss_penalty);
}

TEST(LoadLatency, OfPmemIsTheOnChipPartPlusTheBufferPlusTheMediumForANewBlock) {
  const PlatformParams params = plain_machine();
  const Picoseconds buffered = params.core.shared_read_latency + params.pmem.buffer_latency;
  EXPECT_EQ(load_after(params, kPmemBase, kPmemBase + 192), buffered);
  EXPECT_EQ(load_after(params, kPmemBase, kPmemBase + 256), buffered + params.pmem.media_read_latency);
}

TEST(LoadLatency, OfPmemGrowsByAMissOfTheModulesTranslations) {
  PlatformParams params = plain_machine();
  params.pmem.translation_miss_latency = 90 * kNs;
  const Picoseconds medium =
      params.core.shared_read_latency + params.pmem.buffer_latency + params.pmem.media_read_latency;
  EXPECT_EQ(load_after(params, kPmemBase, kPmemBase + 256), medium);
  EXPECT_EQ(load_after(params, kPmemBase, kPmemBase + 4096), medium + params.pmem.translation_miss_latency);
}

TEST(LoadLatency, OfACachedLineIsThatOfItsLevel) {
  PlatformParams params = plain_machine();
  params.l1.size = 1 << 10;  // two sets of eight ways: a line and 16 others do not fit
  Ops evicting = {load(kDramBase)};
  for (std::uint64_t line = 1; line <= 64; ++line) {
    evicting.push_back(load(kDramBase + line * 64));
  }
  EXPECT_EQ(time_of(params, evicting, {load(kDramBase)}), params.l2.latency);
  params.l2.size = params.l1.size;
  EXPECT_EQ(time_of(params, evicting, {load(kDramBase)}), params.llc.latency);
  // An L1 hit that nothing depends on costs its dispatch; its value is there one load-to-use time later.
  EXPECT_EQ(time_of(params, {load(kDramBase)}, {load(kDramBase)}), kInstruction);
  EXPECT_EQ(time_of(params, {load(kDramBase)}, {load(kDramBase), dependent_load(kDramBase)}),
            kInstruction + 2 * params.l1.latency);
}

TEST(LoadLatency, OfATranslationInTheSecondLevelGrowsByIt) {
  PlatformParams params = plain_machine();
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  params.tlb.first_level_entries = 1;
  const Picoseconds row_missed =
      params.core.shared_read_latency + params.dram.row_hit_latency + params.dram.row_miss_penalty;
  const Ops two_pages = {load(kDramBase), dependent_load(kDramBase + 2 * kRow)};
  EXPECT_EQ(time_of(params, two_pages, {load(kDramBase + 64)}), row_missed + params.tlb.second_level_latency);
}

TEST(LoadLatency, OfAPageWalkGrowsByItsLastEntry) {
  PlatformParams params = plain_machine();
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  const Picoseconds row_missed =
      params.core.shared_read_latency + params.dram.row_hit_latency + params.dram.row_miss_penalty;
  // The entries of neighbouring pages share a line, which the first walk has brought into L2.
  EXPECT_EQ(load_after(params, kDramBase, kDramBase + 2 * kRow),
            params.tlb.walk_latency + params.l2.latency + row_missed);
  // Eight entries to a line: this one comes from memory, in a row of its own, and closes the other.
  EXPECT_EQ(load_after(params, kDramBase, kDramBase + 8 * 4096),
            params.tlb.walk_latency + row_missed + row_missed);
}

TEST(LoadLatency, OfAPageWalkGrowsByTheEntryAboveWhereTheTableIsNotAtHand) {
  PlatformParams params = plain_machine();
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  constexpr std::uint64_t kTable = 512 * 4096;  // what the entries of one table map
  const Picoseconds row_missed =
      params.core.shared_read_latency + params.dram.row_hit_latency + params.dram.row_miss_penalty;
  const Picoseconds at_hand = params.tlb.walk_latency + row_missed + row_missed;
  // Eight tables have their entries in one line, which the first walk has brought into L2.
  EXPECT_EQ(load_after(params, kDramBase, kDramBase + kTable), at_hand + params.l2.latency);
  EXPECT_EQ(load_after(params, kDramBase, kDramBase + 8 * kTable), at_hand + row_missed);
  // The core remembers where a table is until as many others as it has entries have been walked through.
  const Ops two_tables = {load(kDramBase), dependent_load(kDramBase + kTable)};
  const Ops back = {load(kDramBase + 8 * 4096)};
  EXPECT_EQ(time_of(params, two_tables, back), at_hand);
  params.tlb.paging_structure_entries = 1;
  EXPECT_EQ(time_of(params, two_tables, back), at_hand + params.l2.latency);
}

TEST(LoadLatency, DependentLoadsFollowEachOtherAndIndependentOnesOverlap) {
  const PlatformParams params = plain_machine();
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  const Ops independent = {load(kDramBase + 64), load(kDramBase + 128), load(kDramBase + 192)};
  const Ops dependent = {load(kDramBase + 64), dependent_load(kDramBase + 128),
                         dependent_load(kDramBase + 192)};
  EXPECT_EQ(time_of(params, {load(kDramBase)}, dependent), 3 * open_row);
  // The bus is busy for read_burst per line, longer than a dispatch.
  EXPECT_EQ(time_of(params, {load(kDramBase)}, independent), open_row + 2 * params.dram.read_burst);
}

TEST(LoadLatency, AMispredictedBranchKeepsYoungerLoadsBackUntilItsValueIsThere) {
  PlatformParams params = plain_machine();
  params.core.mispredict_latency = 16 * kNs;
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  const memory::MicroOp predicted = {0, 1, memory::OpKind::kCompute, 0, 0};
  const std::uint64_t first = kDramBase + 64;
  const std::uint64_t second = kDramBase + 128;
  EXPECT_EQ(time_of(params, {load(kDramBase)}, {load(first), predicted, load(second)}),
            open_row + std::max(2 * kInstruction, params.dram.read_burst));
  const Ops mispredicted = {load(first), mispredicted_branch(), load(second)};
  EXPECT_EQ(time_of(params, {load(kDramBase)}, mispredicted),
            2 * open_row + params.core.mispredict_latency + kInstruction);
  // The same where the value is still waiting for its translation.
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  params.tlb.first_level_entries = 1;
  const Ops two_pages = {load(kDramBase), dependent_load(kDramBase + 4096)};
  EXPECT_EQ(time_of(params, two_pages, mispredicted),
            time_of(params, two_pages, {load(first), dependent_load(second)}) + params.core.mispredict_latency +
                kInstruction);
}

TEST(LoadLatency, ADependentLoadWaitsForTheHitBeforeItAndNotForAnOlderMiss) {
  const PlatformParams params = plain_machine();
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  const std::uint64_t cached = kDramBase;
  const std::uint64_t missed = kDramBase + 64;
  const std::uint64_t wanted = kDramBase + 128;
  const Ops after_hit = {load(missed), load(cached), dependent_load(wanted)};
  EXPECT_EQ(time_of(params, {load(cached)}, after_hit), 2 * kInstruction + params.l1.latency + open_row);
  // Further hits behind it, and other work, change nothing but what they dispatch.
  const Ops work = {load(missed), load(cached), store(cached), load(cached), dependent_load(wanted)};
  EXPECT_EQ(time_of(params, {load(cached)}, work), 4 * kInstruction + params.l1.latency + open_row);
  // The line of a hit may still be on its way.
  const Ops same_line = {load(missed), load(missed + 8), dependent_load(wanted)};
  EXPECT_EQ(time_of(params, {load(cached)}, same_line), 2 * open_row);
}

TEST(LoadLatency, ADependentLoadWaitsForAHitWhoseLineWaitsItself) {
  PlatformParams params = plain_machine();
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  const std::uint64_t far = kDramBase + 8 * 4096;
  const std::uint64_t farther = far + 8 * 4096;
  // For a page walk ...
  EXPECT_EQ(time_of(params, {load(kDramBase)}, {load(far), load(far + 8), dependent_load(farther)}),
            time_of(params, {load(kDramBase)}, {load(far), dependent_load(farther)}));
  // ... and, for the second one, for the load before.
  const Ops chain = {load(kDramBase + 64), dependent_load(far), load(far + 8), dependent_load(farther)};
  EXPECT_EQ(
      time_of(params, {load(kDramBase)}, chain),
      time_of(params, {load(kDramBase)}, {load(kDramBase + 64), dependent_load(far), dependent_load(farther)}));
}

TEST(LoadLatency, AMispredictedBranchOnAHitDoesNotWaitForAnOlderMiss) {
  PlatformParams params = plain_machine();
  params.core.mispredict_latency = 16 * kNs;
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  const Ops ops = {load(kDramBase + 64), load(kDramBase), mispredicted_branch(), load(kDramBase + 128)};
  EXPECT_EQ(time_of(params, {load(kDramBase)}, ops),
            2 * kInstruction + params.l1.latency + params.core.mispredict_latency + kInstruction + open_row);
}

TEST(LoadLatency, OfAPrefetchedLineIsNeverLessThanWhatIsLeftOfThePrefetch) {
  PlatformParams params = plain_machine();
  const std::uint64_t far = kDramBase + 8 * 4096;
  EXPECT_EQ(time_of(params, {load(kDramBase)}, {prefetch(far), load(far)}),
            time_of(params, {load(kDramBase)}, {load(far)}));
  params.tlb.page_size = params.tlb.dram_page_size = 4096;  // the prefetch has to wait for a page walk first
  EXPECT_EQ(time_of(params, {load(kDramBase)}, {prefetch(far), load(far)}),
            time_of(params, {load(kDramBase)}, {load(far)}));
}

/// To ask for a line once more does not bring it sooner.
TEST(LoadLatency, OfALineThatIsPrefetchedTwiceIsThatOfOnePrefetch) {
  const PlatformParams params = plain_machine();
  const std::uint64_t far = kDramBase + 8 * 4096;
  EXPECT_EQ(time_of(params, {load(kDramBase)}, {prefetch(far), prefetch(far), load(far)}),
            time_of(params, {load(kDramBase)}, {prefetch(far), load(far)}));
}

/// The tags hold the page from the first access on; the second may not overtake it all the same.
TEST(LoadLatency, OfTheSecondLineOfAPageContainsTheWalkThatTheFirstHasBegun) {
  PlatformParams params = plain_machine();
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  params.tlb.walk_latency = 1000 * kNs;
  params.dram.row_miss_penalty = 0;
  const std::uint64_t page = kDramBase + 8 * 4096;
  const Ops before = {load(kDramBase)};
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  const Picoseconds first = time_of(params, before, {load(page)});
  EXPECT_GT(first, params.tlb.walk_latency);
  EXPECT_EQ(time_of(params, before, {load(page), load(page + 64), dependent_load(page + 128)}),
            first + std::max(kInstruction, params.dram.read_burst) + open_row);
  // A page that is not being walked has nothing to wait for.
  const Ops both = {load(kDramBase), load(page)};
  EXPECT_EQ(time_of(params, both, {load(page + 64), dependent_load(page + 128)}), 2 * open_row);
}

/// Whichever place among the waiting loads each of them has: a younger one must not take the buffer first.
TEST(LoadLatency, OfLoadsThatWaitForOneWalkCountsInProgramOrder) {
  PlatformParams params = plain_machine();
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  params.tlb.walk_latency = 1000 * kNs;
  params.tlb.first_level_entries = 1;
  params.core.line_fill_buffers = 1;
  params.dram.banks = 1024;  // rows do not close each other
  const auto page = [](std::uint64_t number) { return kDramBase + number * 4096; };
  const Ops before = {load(page(0)), load(page(16))};
  // The first waits for a moment only, and leaves its place to the last, which waits for the walk of the
  // second.
  Ops ops = {
      load(page(0) + 64), load(page(32)), dependent_load(page(48)), {0, 20, memory::OpKind::kCompute, 0, 0}};
  const Picoseconds without = time_of(params, before, ops);
  ops.push_back(load(page(32) + 64));
  EXPECT_LE(time_of(params, before, ops), without + params.dram.read_burst);  // beside a walk on the bus
}

TEST(LoadLatency, FillBuffersLetThatManyMissesOverlap) {
  PlatformParams params = plain_machine();
  params.core.line_fill_buffers = 2;
  params.dram.read_burst = 1;
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  Ops loads;
  for (std::uint64_t line = 1; line <= 6; ++line) {
    loads.push_back(load(kDramBase + line * 64));
  }
  // Three rounds of two; the second of each pair was dispatched one instruction after the first.
  EXPECT_EQ(time_of(params, {load(kDramBase)}, loads), 3 * open_row + kInstruction);
}

/// A full read pending queue serves one load after the other; each keeps its fill buffer, and what depends on
/// it waits for its value.
TEST(LoadLatency, ALoadThatFindsItsModuleFullWaitsForAPlace) {
  PlatformParams params = plain_machine();
  params.controller.pmem_read_queue = 1;
  const Picoseconds at_module = params.pmem.buffer_latency + params.pmem.media_read_latency;
  const Picoseconds alone = params.core.shared_read_latency + at_module;
  const auto block = [](std::uint64_t number) { return kPmemBase + number * 256; };
  Ops loads;
  for (std::uint64_t number = 1; number <= 20; ++number) {
    loads.push_back(load(block(number)));
  }
  const std::int64_t places = params.core.line_fill_buffers;
  EXPECT_LT(places, 20);
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, {loads.begin(), loads.begin() + places}),
            alone + (places - 1) * at_module);
  // More than there are fill buffers: the front end goes on when one is free, and the module is never idle.
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, loads), alone + 19 * at_module);
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, {load(block(1)), load(block(2)), dependent_load(block(3))}),
            alone + at_module + alone);
  params.core.line_fill_buffers = 64;  // and more than a thread can have waiting
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, loads), alone + 19 * at_module);
  params.controller.pmem_read_queue = 0;
  EXPECT_EQ(time_of(params, {load(kPmemBase)}, loads), alone + 19 * params.pmem.media_read_service);
}

TEST(LoadLatency, TheWindowStopsDispatchUntilTheOldestLoadHasRetired) {
  PlatformParams params = plain_machine();
  params.core.window = 4;
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  Ops far = {load(kDramBase + 64)};
  for (int instruction = 0; instruction < 3; ++instruction) {
    far.push_back({0, 1, memory::OpKind::kCompute, 0, 0});
  }
  Ops near = far;
  far.push_back({0, 1, memory::OpKind::kCompute, 0, 0});
  near.push_back(load(kDramBase + 128));
  far.push_back(load(kDramBase + 128));
  // Load, three others, load: the fifth instruction needs the first one's place.
  EXPECT_EQ(time_of(params, {load(kDramBase)}, near), 2 * open_row);
  EXPECT_EQ(time_of(params, {load(kDramBase)}, far), 2 * open_row + kInstruction);
  params.core.window = 5;
  EXPECT_EQ(time_of(params, {load(kDramBase)}, near), open_row + 4 * kInstruction);
}

TEST(Prefetcher, IsFasterInOrderAndStopsAtThePage) {
  PlatformParams off = plain_machine();
  PlatformParams on = off;
  on.prefetcher.enabled = 1;
  Ops page;
  for (std::uint64_t line = 0; line < 64; ++line) {
    page.push_back(dependent_load(kDramBase + line * 64));
  }
  const LaneResult without = run(off, page);
  const LaneResult with = run(on, page);
  EXPECT_EQ(without.counters.prefetches, 0);
  EXPECT_GT(with.counters.prefetches, 32);
  EXPECT_EQ(with.counters.dram_read_lines,
            without.counters.dram_read_lines);  // the walk, and the page: nothing else
  EXPECT_LT(2 * time_of(on, {}, page), time_of(off, {}, page));
}

TEST(Prefetcher, StartsAStreamWithTheAccessThatTheTriggerSays) {
  for (const std::int64_t trigger : {1, 2, 3, 10}) {
    Prefetcher prefetcher({.enabled = 1, .trigger = trigger, .distance = 16, .degree = 2});
    const std::uint64_t first = kDramBase / memory::kLineBytes;
    std::int64_t accesses = 0;
    for (bool fetched = false; !fetched; ++accesses)
      prefetcher.observe(first + static_cast<std::uint64_t>(accesses), [&](std::uint64_t) { fetched = true; });
    EXPECT_EQ(accesses, trigger);
  }
}

TEST(Prefetcher, FollowsAStreamIntoTheNextPageWhereStreamsCrossPages) {
  const auto lines_of = [](std::int64_t crosses, std::uint64_t accesses) {
    Prefetcher prefetcher({.enabled = 1, .trigger = 3, .distance = 16, .crosses_pages = crosses, .degree = 2});
    std::vector<std::uint64_t> fetched;
    for (std::uint64_t line = 0; line < accesses; ++line)
      prefetcher.observe(line, [&](std::uint64_t wanted) { fetched.push_back(wanted); });
    return fetched;
  };
  EXPECT_EQ(lines_of(0, 64).back(), 63U);
  EXPECT_EQ(lines_of(0, 66).back(), 63U);  // the next page begins anew
  // Every line from the trigger on, once, and as far ahead as the distance says.
  std::vector<std::uint64_t> all(66 - 1 + 16 - 2);
  std::iota(all.begin(), all.end(), 3U);
  EXPECT_EQ(lines_of(1, 66), all);
}

TEST(Prefetcher, CountsTheLinesThatItFetchesAndNotThoseThatFindItsQueueFull) {
  PlatformParams params = plain_machine();
  params.prefetcher = {.enabled = 1, .trigger = 3, .distance = 16, .degree = 16, .queue = 2};
  const Counters counters =
      run(params, {load(kPmemBase), load(kPmemBase + 64), load(kPmemBase + 128)}).counters;
  EXPECT_EQ(counters.memory_reads, 3);
  EXPECT_EQ(counters.pmem_read_lines, 3 + 2);
  EXPECT_EQ(counters.prefetches, 2);
}

TEST(Prefetcher, DoesNotFollowLoadsWithoutOrder) {
  PlatformParams params = plain_machine();
  params.prefetcher.enabled = 1;
  Ops scattered;
  for (std::uint64_t line = 0; line < 64; ++line) {
    scattered.push_back(load(kDramBase + line * 5 % 64 * 64));
  }
  EXPECT_EQ(run(params, scattered).counters.prefetches, 0);
}

/// A list that is read in order among accesses without order, which begin a stream each.
TEST(Prefetcher, KeepsAStreamThatGoesOnAmongManyThatDoNot) {
  PlatformParams params = plain_machine();
  params.prefetcher.enabled = 1;
  params.prefetcher.trigger = 9;
  Ops ops;
  std::uint64_t page = 0;
  for (std::uint64_t line = 0; line < 64; ++line) {
    ops.push_back(load(kDramBase + line * 64));
    for (int other = 0; other < 8; ++other) {
      ops.push_back(load(kDramBase + ++page * 4096));
    }
  }
  EXPECT_GT(run(params, ops).counters.prefetches, 32);
}

/// Otherwise late prefetches would add to the misses that a core can have under way.
TEST(Prefetcher, LeavesALineThatIsStillOnItsWayInAFillBufferOfTheLoad) {
  PlatformParams params = plain_machine();
  params.prefetcher.enabled = 1;
  params.prefetcher.trigger = 2;
  params.core.line_fill_buffers = 1;
  params.dram.read_burst = 10 * kNs;
  params.dram.row_miss_penalty = 0;
  const std::uint64_t page_end = kDramBase + 2 * 4096;  // so that one line alone is prefetched
  const std::uint64_t far = kDramBase + 4 * 4096;
  const Picoseconds open_row = params.core.shared_read_latency + params.dram.row_hit_latency;
  const Ops before = {load(kDramBase)};
  const Ops stream = {load(page_end - 192), load(page_end - 128), load(page_end - 64)};
  // The third line follows the second on the bus; then the buffer is free for another miss.
  const Picoseconds third = time_of(params, before, stream);
  Ops and_more = stream;
  and_more.push_back(load(far));
  EXPECT_EQ(time_of(params, before, and_more), third + open_row);
}

/// An L1 keeps a line that its L2 gives up, because nobody asks L2 for it. Made dirty there, it comes to the
/// last level once more, by way of L2.
TEST(Caches, TheLastLevelHasALineOnce) {
  PlatformParams params = plain_machine();
  params.l1 = {.size = 1024, .ways = 16, .latency = 2 * kNs};  // one set each
  params.l2 = {.size = 1024, .ways = 16, .latency = 5 * kNs};
  params.llc.size = 64 << 10;
  params.llc.slices = 1;
  std::uint64_t others = 0;
  Script::Ops ops{load(kPmemBase)};
  for (int line = 0; line < 16; ++line) {
    ops.push_back(load(kPmemBase + 64 * ++others));
    ops.push_back(load(kPmemBase));
  }
  ops.push_back(store(kPmemBase));
  for (int line = 0; line < 32; ++line) {
    ops.push_back(load(kPmemBase + 64 * ++others));
  }
  ops.push_back(clwb(kPmemBase));
  ops.push_back(sfence());
  ops.push_back(load(kPmemBase));
  const Counters counters = run(params, ops).counters;
  EXPECT_EQ(counters.llc_hits, 0);  // the flush has dropped the line
  EXPECT_EQ(counters.memory_reads, static_cast<std::int64_t>(others) + 2);
}

/// Of operations that follow each other without a pause, as those of a client that waits for each answer: what
/// they have taken adds up to the time that has passed, although loads of the next one run ahead while the last
/// one still waits for its load, its store or its fence.
TEST(Latency, OperationsOfOneThreadDoNotOverlap) {
  const PlatformParams params = plain_machine();
  const memory::MicroOp begins{0, 0, memory::OpKind::kOperationBegin, 0, 0};
  Script::Ops ops;
  for (std::uint64_t operation = 0; operation < 200; ++operation) {
    const std::uint64_t at = kPmemBase + operation * (1 << 13);
    ops.insert(ops.end(), {begins, load(at), dependent_load(at + 4096)});
    if (operation % 2 == 0) {
      ops.insert(ops.end(), {store(at + 64), clwb(at + 64), sfence()});
    }
    ops.push_back(end());
  }
  const LaneResult result = run(params, ops);
  const Histogram& latency = result.groups[0].latency;
  EXPECT_EQ(latency.count(), 200);
  // The run ends with the dispatch of its last end, which retires later.
  EXPECT_NEAR(latency.sum(), static_cast<double>(result.elapsed), static_cast<double>(latency.maximum()));
}

}  // namespace
}  // namespace pmsim::machine
