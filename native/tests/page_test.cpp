#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "page_buffer.hpp"
#include "pmsim/blocks/page/checksum.hpp"
#include "pmsim/blocks/page/cow_invalidate.hpp"
#include "pmsim/blocks/page/driver.hpp"
#include "pmsim/blocks/page/hybrid.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace {

using namespace pmsim;
using namespace pmsim::blocks::page;
using memory::SimMemory;

struct StoreCase {
  Choice choice;
  Write write;
  std::uint32_t page_bytes;
  std::uint32_t writers;
  bool load_clean;
};

class PageStores : public testing::TestWithParam<StoreCase> {};

/// Random flushes of random pages by random writers; after each few, everything volatile is forgotten.
template <typename M>
void random_flushes(M& memory, const StoreCase& test) {
  constexpr std::uint64_t kPages = 5;
  const StoreOptions options{.page_bytes = test.page_bytes,
                             .pages = kPages,
                             .writers = test.writers,
                             .spare_slots = 1,
                             .write = test.write};
  CostModel costs;
  costs.stream_line = 100;
  PageStore store(memory, options, test.choice, costs);
  Random random(7);
  std::map<PageId, Buffer> pages;
  for (int round = 0; round < 300; ++round) {
    const PageId page = random.below(kPages);
    if (!pages.contains(page))
      pages.emplace(page, make_buffer(memory, test.page_bytes));
    Buffer& buffer = pages.at(page);
    change(memory, buffer, random, static_cast<int>(random.below(12)));
    if (test.load_clean && store.slots().at(page).slot != kNoSlot)
      buffer.frame.resident = buffer.frame.dirty;  // the rest must come from the old slot
    store.flush(memory, static_cast<std::uint32_t>(random.below(test.writers)), page, buffer.frame);
    if (round % 7 == 6)
      store.recover(memory);
    std::set<SlotId> used;
    for (const auto& [id, expected] : pages) {
      const SlotId slot = store.slots().at(id).slot;
      ASSERT_TRUE(used.insert(slot).second) << "two pages in slot " << slot;
      ASSERT_EQ(content(memory, store.slots().area().payload(slot), test.page_bytes), expected.reference)
          << "page " << id << " in round " << round;
    }
  }
}

TEST_P(PageStores, hold_what_a_map_holds) {
  SimMemory memory;
  random_flushes(memory, GetParam());
}

TEST_P(PageStores, hold_it_on_real_memory) {
  memory::HostMemory memory({.best_flush = true});
  random_flushes(memory, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Techniques, PageStores,
                         testing::Values(StoreCase{Choice::kCow, Write::kStream, 16384, 1, false},
                                         StoreCase{Choice::kCow, Write::kStoreFlush, 4096, 3, false},
                                         StoreCase{Choice::kCow, Write::kStream, 1024, 2, true},
                                         StoreCase{Choice::kMicroLog, Write::kStream, 16384, 1, false},
                                         StoreCase{Choice::kMicroLog, Write::kStoreFlush, 1024, 3, false},
                                         StoreCase{Choice::kMicroLog, Write::kStream, 65536, 2,
                                                   false},  // its line set spans three lines
                                         StoreCase{Choice::kByCost, Write::kStream, 1024, 2, false},
                                         StoreCase{Choice::kByCost, Write::kStoreFlush, 192, 4, false}));

TEST(PageCowInvalidate, holds_what_a_map_holds) {
  for (const Write write : {Write::kStream, Write::kStoreFlush}) {
    SimMemory memory;
    const StoreOptions options{.page_bytes = 256, .pages = 4, .writers = 2, .spare_slots = 1, .write = write};
    CowInvalidate store(SlotArea::allocate(memory, 6, 256), options);
    Random random(3);
    std::map<PageId, Buffer> pages;
    for (int round = 0; round < 200; ++round) {
      const PageId page = random.below(4);
      if (!pages.contains(page))
        pages.emplace(page, make_buffer(memory, 256));
      change(memory, pages.at(page), random, 5);
      store.flush(memory, static_cast<std::uint32_t>(random.below(2)), page, pages.at(page).frame);
      if (round % 5 == 4)
        store.recover(memory);
      for (const auto& [id, expected] : pages)
        ASSERT_EQ(content(memory, store.area().payload(store.slot_of(id)), 256), expected.reference);
    }
  }
}

TEST(PageChecksum, repairs_a_torn_page_from_snapshot_and_log) {
  SimMemory memory;
  const StoreOptions options{.page_bytes = 512, .pages = 2};
  ChecksumStore store(memory, options, 8);
  std::vector<Buffer> buffers{make_buffer(memory, 512), make_buffer(memory, 512)};
  Line content_a;
  content_a.fill(std::byte{0xaa});
  Line content_b;
  content_b.fill(std::byte{0xbb});
  store.update(memory, 0, 3, content_a, buffers[0].frame);
  for (PageId page = 0; page < 2; ++page) {
    store.flush(memory, page, buffers[page].frame);
    store.snapshot(memory, page, buffers[page].frame);
  }
  store.truncate(memory);
  store.update(memory, 0, 5, content_b, buffers[0].frame);
  store.flush(memory, 0, buffers[0].frame);
  // A torn write: one word of the page is not what its checksum says.
  memory.store<std::uint64_t>(store.home().payload(0) + 5 * kLineBytes, 1);

  std::vector<Frame> frames{buffers[0].frame, buffers[1].frame};
  store.recover(memory, frames);
  for (const Address page : {frames[0].data, store.home().payload(0)}) {
    EXPECT_EQ(content(memory, page + 3 * kLineBytes, kLineBytes), Bytes(content_a.begin(), content_a.end()));
    EXPECT_EQ(content(memory, page + 5 * kLineBytes, kLineBytes), Bytes(content_b.begin(), content_b.end()));
    EXPECT_EQ(content(memory, page, kLineBytes), Bytes(kLineBytes));
  }
}

TEST(PageChecksum, says_when_neither_copy_is_whole) {
  SimMemory memory;
  ChecksumStore store(memory, {.page_bytes = 128, .pages = 1}, 4);
  Buffer buffer = make_buffer(memory, 128);
  store.update(memory, 0, 0, Line{}, buffer.frame);
  store.flush(memory, 0, buffer.frame);
  store.snapshot(memory, 0, buffer.frame);
  store.truncate(memory);
  memory.store<std::uint64_t>(store.home().payload(0), 1);
  std::vector<Frame> frames{buffer.frame};
  EXPECT_NO_THROW(store.recover(memory, frames));                         // the snapshot is
  const Address snapshot = store.home().base + (std::uint64_t{1} << 21);  // the region after the home slots
  memory.store<std::uint64_t>(store.home().payload(0), 1);
  memory.store<std::uint64_t>(snapshot + SlotArea::kHeaderBytes, 1);
  EXPECT_THROW(store.recover(memory, frames), ConfigError);
}

// Fig. 6: slots of A (newest), B (newest) and a stale B, which a flush of A is about to take.
class Figure6 : public testing::Test {
 protected:
  static constexpr std::uint32_t kBytes = 64;
  static constexpr PageId kA = 0;
  static constexpr PageId kB = 1;

  Figure6() {
    memory_.emplace(memory::SimOptions{.capacities = {}, .persistence = memory::Persistence::kAdr});
    store_.emplace(*memory_, StoreOptions{.page_bytes = kBytes, .pages = 2}, Choice::kCow);
    frame_ = memory_->allocate(memory::Medium::kDram, kBytes);
    flush(kB, 1);
    flush(kB, 2);
    flush(kA, 3);  // over the stale B
    flush(kA, 4);
    flush(kB, 5);  // now the free slot is a stale B, older than A
  }
  void flush(PageId page, std::uint8_t fill) {
    Line line;
    line.fill(static_cast<std::byte>(fill));
    memory_->write(frame_, line);
    Frame frame{.data = frame_, .dirty = {}, .resident = {}};
    frame.mark_dirty(0, kBytes);
    store_->flush(*memory_, 0, page, frame);
  }

  std::optional<SimMemory> memory_;
  std::optional<PageStore> store_;
  Address frame_ = 0;
};

TEST_F(Figure6, a_slot_goes_through_four_states) {
  // Which slot is free: the one that no page lies in.
  SlotId free = 0;
  while (free == store_->slots().at(kA).slot || free == store_->slots().at(kB).slot)
    ++free;
  const SlotArea area = store_->slots().area();
  std::set<std::tuple<std::uint64_t, std::uint64_t, bool>> states;  // pid, pvn, payload is A's
  const auto look = [&] {
    const auto images = memory_->durability().enumerate(1 << 12);
    ASSERT_TRUE(images.has_value());
    for (const memory::DurableImage& image : *images) {
      SimMemory after = memory_->crash(image);
      const Bytes payload = content(after, area.payload(free), kBytes);
      // What is written partly is no state of its own: the header still says stale B.
      const bool whole = payload == Bytes(kBytes, std::byte{6});
      states.emplace(after.load<std::uint64_t>(area.pid(free)), after.load<std::uint64_t>(area.pvn(free)),
                     whole);
    }
  };
  look();
  memory_->on_persistence_step(look);
  flush(kA, 6);
  memory_->on_persistence_step({});
  look();
  const std::uint64_t pvn = store_->slots().at(kA).pvn;
  const std::uint64_t stale =
      2;  // versions count all flushes, and B's first outdated one was the second of all
  using State = std::tuple<std::uint64_t, std::uint64_t, bool>;
  EXPECT_EQ(states, (std::set<State>{{kB + 1, stale, false},  // 1: until the payload is complete
                                     {kB + 1, stale, true},   // 2: stale B with A's payload
                                     {kA + 1, stale, true},   // 3: outdated A
                                     {kA + 1, pvn, true}}));  // 4: newest A
}

/// What recovery makes of the slot when the two header stores become durable in this order.
std::string newest_of_free_slot(bool pid_first) {
  SimMemory memory({.capacities = {}, .persistence = memory::Persistence::kAdr});
  PageStore store(memory, {.page_bytes = 64, .pages = 2}, Choice::kCow);
  const SlotArea area = store.slots().area();
  // A: version 9 in slot 0. B: version 5 in slot 1. Slot 2: stale B, version 4, its payload already A's.
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> headers{{1, 9}, {2, 5}, {2, 4}};
  for (SlotId slot = 0; slot < headers.size(); ++slot) {
    memory.store<std::uint64_t>(area.pid(slot), headers[slot].first);
    memory.store<std::uint64_t>(area.pvn(slot), headers[slot].second);
  }
  if (pid_first) {
    memory.store<std::uint64_t>(area.pid(2), 1);
  } else {
    memory.store<std::uint64_t>(area.pvn(2), 10);
  }
  store.recover(memory);
  return store.slots().at(1).slot == 2 ? "newest B" : store.slots().at(0).slot == 2 ? "newest A" : "outdated";
}

TEST(PageHeader, pid_before_pvn_never_makes_a_stale_slot_the_newest_of_its_old_page) {
  EXPECT_EQ(newest_of_free_slot(true), "outdated");
  EXPECT_EQ(newest_of_free_slot(false), "newest B");  // A's payload under B's name: why the order matters
}

TEST_F(Figure6, a_missing_ordering_point_recovers_the_wrong_page) {
  memory_->disable_site(Cow::kPidBeforePvn);
  bool wrong = false;
  memory_->on_persistence_step([&] {
    const auto images = memory_->durability().enumerate(1 << 12);
    ASSERT_TRUE(images.has_value());
    for (const memory::DurableImage& image : *images) {
      SimMemory after = memory_->crash(image);
      PageStore recovered = *store_;
      recovered.recover(after);
      const Address b = recovered.slots().area().payload(recovered.slots().at(kB).slot);
      wrong = wrong || content(after, b, kBytes) != Bytes(kBytes, std::byte{5});
    }
  });
  flush(kA, 6);
  EXPECT_TRUE(wrong);
}

TEST(PageVersions, are_used_once_in_the_whole_store) {
  SimMemory memory;
  const StoreOptions options{.page_bytes = 64, .pages = 6, .writers = 3};
  PageStore store(memory, options, Choice::kCow);
  Frame frame{.data = memory.allocate(memory::Medium::kDram, 64), .dirty = {}, .resident = {}};
  Random random(11);
  std::set<std::uint64_t> versions;
  for (int count = 0; count < 500; ++count) {
    const PageId page = random.below(6);
    const std::uint64_t before = store.slots().at(page).pvn;
    frame.mark_dirty(0, 64);
    store.flush(memory, static_cast<std::uint32_t>(random.below(3)), page, frame);
    ASSERT_GT(store.slots().at(page).pvn, before);
    ASSERT_TRUE(versions.insert(store.slots().at(page).pvn).second);
    if (count % 50 == 49)
      store.recover(memory);
  }
}

TEST(PageRecovery, is_durable_when_it_returns) {
  SimMemory memory({.capacities = {}, .persistence = memory::Persistence::kAdr});
  PageStore store(memory, {.page_bytes = 256, .pages = 1}, Choice::kMicroLog);
  Buffer page = make_buffer(memory, 256);
  store.flush(memory, 0, 0, page.frame);
  int replays = 0;
  memory.on_persistence_step([&] {
    Random random(1);
    SimMemory after = memory.crash(memory.durability().sample(random));
    PageStore recovered = store;
    int steps = 0;
    after.on_persistence_step([&] { ++steps; });
    recovered.recover(after);
    replays += steps > 0 ? 1 : 0;
    EXPECT_EQ(after.durability().uncertain_lines(), 0U);
  });
  Random random(2);
  change(memory, page, random, 30);
  store.flush(memory, 0, 0, page.frame);
  EXPECT_GT(replays, 0);
}

TEST(PageRecovery, of_two_slots_without_versions_keeps_one_durably) {
  SimMemory memory({.capacities = {}, .persistence = memory::Persistence::kAdr});
  const StoreOptions options{.page_bytes = 64, .pages = 1};
  CowInvalidate store(SlotArea::allocate(memory, 2, 64), options);
  memory.store<std::uint64_t>(store.area().pid(0), 1);
  memory.store<std::uint64_t>(store.area().pid(1), 1);
  memory.flush(store.area().header(0), kLineBytes);
  memory.flush(store.area().header(1), kLineBytes);
  memory.sfence();
  store.recover(memory);
  EXPECT_EQ(store.slot_of(0), 0U);
  EXPECT_EQ(memory.load<std::uint64_t>(store.area().pid(1)), 0U);
  EXPECT_EQ(memory.durability().uncertain_lines(), 0U);
}

TEST(LineMask, counts_the_groups_of_lines_that_it_touches) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    LineMask mask;
    std::set<std::uint32_t> lines;
    for (std::uint64_t left = random.below(300); left > 0; --left)
      lines.insert(static_cast<std::uint32_t>(random.below(kMaxLines)));
    for (const std::uint32_t line : lines)
      mask.set(line);
    for (const std::uint32_t size : {1U, 2U, 3U, 4U, 16U, 32U, 64U, 100U, 256U}) {
      std::set<std::uint32_t> groups;
      for (const std::uint32_t line : lines)
        groups.insert(line / size);
      ASSERT_EQ(mask.groups(size), groups.size()) << size;
    }
  }
}

TEST(PageCostModel, is_the_longer_of_a_threads_own_work_and_its_share_of_the_medium) {
  const CostModel costs{.stream_line = 8'000,
                        .read_line = 10'000,
                        .persist = 100'000,
                        .repeat = 500'000,
                        .block_write = 20'000,
                        .lines_per_block = 4};
  LineMask dirty;
  for (std::uint32_t line = 0; line < 40; ++line)
    dirty.set(line * 6);  // 40 lines: never two in a block of four, 10 blocks of log
  EXPECT_EQ(costs.cow(256, 1), 256 * 18'000 + 2 * 100'000);
  EXPECT_EQ(costs.cow(256, 7), 7 * 65 * 20'000);
  EXPECT_EQ(costs.micro_log(dirty, 1), 40 * 26'000 + 4 * 100'000 + 3 * 500'000);
  EXPECT_EQ(costs.micro_log(dirty, 7), 7 * (10 + 40 + 1) * 20'000);
  EXPECT_TRUE(costs.prefers_micro_log(dirty, 256, 1));
  EXPECT_TRUE(costs.prefers_micro_log(dirty, 256, 7));
  dirty.set_first(200);
  EXPECT_FALSE(costs.prefers_micro_log(dirty, 256, 1));
  EXPECT_FALSE(costs.prefers_micro_log(dirty, 256, 7));
}

TEST(PageStoreErrors, name_the_key) {
  SimMemory memory;
  EXPECT_THROW(PageStore(memory, {.page_bytes = 100, .pages = 1}, Choice::kCow), ConfigError);
  EXPECT_THROW(PageStore(memory, {.page_bytes = 131072, .pages = 1}, Choice::kCow), ConfigError);
  DriverOptions options;
  options.store.pages = 4;
  options.dirty_lines = 257;
  EXPECT_THROW(PageFlushDriver<SimMemory>(memory, options), ConfigError);
}

TEST(PageDriver, polls_while_its_pages_are_set_up_and_ends_when_that_throws) {
  const auto set_up = [](const Watch& watch) {
    SimMemory memory;
    DriverOptions options;
    options.store = {.page_bytes = 1024, .pages = 5'000, .writers = 2};
    options.dirty_lines = 3;
    PageFlushDriver<SimMemory>(memory, options, Poll(watch, Phase::kLoad));
  };
  std::vector<double> shares;
  set_up([&](Doing doing) { shares.push_back(doing.share); });
  EXPECT_EQ(shares, (std::vector{1'024 / 5e3, 2'048 / 5e3, 3'072 / 5e3, 4'096 / 5e3}));
  EXPECT_THROW(set_up([](Doing) { throw std::runtime_error("Ctrl-C"); }), std::runtime_error);
}

TEST(PageDriver, every_technique_writes_what_lies_in_dram) {
  for (std::size_t technique = 0; technique < kTechniqueNames.size(); ++technique) {
    memory::HostMemory memory({.best_flush = true});
    DriverOptions options;
    options.store = {.page_bytes = 1024, .pages = 8, .writers = 2};
    options.technique = static_cast<Technique>(technique);
    options.dirty_lines = 3;
    options.fill = true;
    PageFlushDriver<memory::HostMemory> driver(memory, options);
    for (int count = 0; count < 20; ++count)
      driver.operation(memory, static_cast<std::uint32_t>(count % 2));
    EXPECT_EQ(driver.micro_logged(1) > 0, options.technique == Technique::kMicroLog)
        << kTechniqueNames[technique];
  }
}

}  // namespace
