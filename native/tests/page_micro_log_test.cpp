#include <gtest/gtest.h>

#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "page_buffer.hpp"
#include "pmsim/blocks/page/hybrid.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::page {
namespace {

using memory::SimMemory;

TEST(PageHybrid, a_log_that_is_still_valid_is_not_replayed_over_a_newer_version) {
  SimMemory memory;
  const StoreOptions options{.page_bytes = 512, .pages = 1};
  CostModel costs;
  costs.stream_line = 100;  // a page costs eight lines; a micro log costs two lines for each dirty one
  PageStore store(memory, options, Choice::kByCost, costs);
  Buffer page = make_buffer(memory, 512);
  Random random(5);
  store.flush(memory, 0, 0, page.frame);
  change(memory, page, random, 1);
  ASSERT_TRUE(store.uses_micro_log(0, page.frame));
  store.flush(memory, 0, 0, page.frame);  // leaves its log valid
  change(memory, page, random, 200);
  ASSERT_FALSE(store.uses_micro_log(0, page.frame));
  store.flush(memory, 0, 0, page.frame);
  store.recover(memory);
  EXPECT_EQ(content(memory, store.slots().area().payload(store.slots().at(0).slot), 512), page.reference);
  // Back into the slot that the log names, with another version: still not replayed.
  change(memory, page, random, 200);
  store.flush(memory, 0, 0, page.frame);
  store.recover(memory);
  EXPECT_EQ(content(memory, store.slots().area().payload(store.slots().at(0).slot), 512), page.reference);
}

TEST(PageMicroLog, of_two_writers_only_the_later_log_of_a_page_is_valid) {
  SimMemory memory;
  PageStore store(memory, {.page_bytes = 256, .pages = 2, .writers = 2}, Choice::kMicroLog);
  Buffer page = make_buffer(memory, 256);
  store.flush(memory, 0, 0, page.frame);
  Random random(9);
  for (const std::uint32_t writer : {1U, 0U}) {  // recovery applies the log of writer 0 before that of writer 1
    change(memory, page, random, 40);
    store.flush(memory, writer, 0, page.frame);
  }
  store.recover(memory);
  EXPECT_EQ(content(memory, store.slots().area().payload(store.slots().at(0).slot), 256), page.reference);
}

/// Pages of one line each; a log names a slot that its page has left. Two crashes of copies on write, each
/// between pid and pvn, give that slot to another page and back: then its header says what the log says.
TEST(PageMicroLog, of_a_page_that_has_moved_on_hides_none_of_the_page_as_it_is) {
  SimMemory memory;
  const PageId moved = 0, other = 1;
  const StoreOptions options{.page_bytes = 512, .pages = 2, .writers = 2};
  CostModel costs;
  costs.stream_line = 100;
  PageStore store(memory, options, Choice::kByCost, costs);
  Buffer page = make_buffer(memory, 512);
  Buffer neighbour = make_buffer(memory, 512);
  Random random(3);
  const auto flush = [&](Buffer& buffer, std::uint32_t writer, PageId id, std::uint32_t first,
                         std::uint32_t lines) {
    for (std::uint32_t line = first; line < first + lines; ++line) {
      const std::uint64_t value = random.next();
      std::memcpy(buffer.reference.data() + line * 64, &value, sizeof value);
      memory.store<std::uint64_t>(buffer.frame.data + line * 64, value);
      buffer.frame.mark_dirty(line * 64, sizeof value);
    }
    EXPECT_EQ(store.uses_micro_log(id, buffer.frame), lines == 1 && store.slots().at(id).slot != kNoSlot);
    store.flush(memory, writer, id, buffer.frame);
  };
  flush(page, 1, moved, 0, 8);
  flush(page, 1, moved, 0, 1);  // leaves the log of writer 1 valid
  const SlotId left = store.slots().at(moved).slot;
  flush(page, 1, moved, 0, 8);
  flush(neighbour, 0, other, 0, 8);
  ASSERT_NE(store.slots().at(moved).slot, left);
  ASSERT_NE(store.slots().at(other).slot, left);

  const Address pid = store.slots().area().pid(left);
  memory.store<std::uint64_t>(pid, other + 1);
  store.recover(memory);
  flush(page, 0, moved, 2, 1);  // the log of writer 0 is that of the page
  memory.store<std::uint64_t>(pid, moved + 1);
  store.recover(memory);
  flush(page, 1, moved, 2, 1);  // the same line: the log of writer 0 must not come back
  flush(page, 1, moved, 4, 1);
  store.recover(memory);
  EXPECT_EQ(content(memory, store.slots().area().payload(store.slots().at(moved).slot), 512), page.reference);
}

/// Writer 0 has logged one page and flushes another: its log of the first is invalid, but not durably so. A
/// flush of the first page by writer 1 could be acknowledged and undone by that log.
TEST(PageMicroLog, of_a_page_is_refused_to_another_writer_while_the_old_one_flushes) {
  SimMemory memory({.capacities = {}, .persistence = memory::Persistence::kAdr});
  PageStore store(memory, {.page_bytes = 256, .pages = 2, .writers = 2}, Choice::kMicroLog);
  Buffer page = make_buffer(memory, 256);
  Buffer other = make_buffer(memory, 256);
  Random random(11);
  store.flush(memory, 0, 0, page.frame);
  store.flush(memory, 0, 1, other.frame);
  change(memory, page, random, 40);
  store.flush(memory, 0, 0, page.frame);
  change(memory, page, random, 40);
  change(memory, other, random, 40);
  int steps = 0, refused = 0;
  memory.on_persistence_step([&] {
    ++steps;
    Random any(1);
    SimMemory meanwhile = memory.crash(memory.durability().sample(any));
    PageStore same = store;
    Frame frame = page.frame;
    try {
      same.flush(meanwhile, 1, 0, frame);
    } catch (const std::exception& error) {
      refused += std::string(error.what()).find("changes its writer") != std::string::npos ? 1 : 0;
    }
  });
  store.flush(memory, 0, 1, other.frame);
  memory.on_persistence_step({});
  EXPECT_GT(steps, 4);
  EXPECT_EQ(refused, steps);
  store.flush(memory, 1, 0, page.frame);
  store.recover(memory);
  for (const auto& [id, buffer] : {std::pair<PageId, Buffer*>{0, &page}, {1, &other}})
    EXPECT_EQ(content(memory, store.slots().area().payload(store.slots().at(id).slot), 256), buffer->reference);
}

/// A page that has moved on by copy on write since has no log that could come back.
TEST(PageMicroLog, of_a_page_that_has_moved_on_leaves_its_old_writer_free) {
  SimMemory memory({.capacities = {}, .persistence = memory::Persistence::kAdr});
  CostModel costs;
  costs.stream_line = 100;
  PageStore store(memory, {.page_bytes = 512, .pages = 2, .writers = 2}, Choice::kByCost, costs);
  Buffer page = make_buffer(memory, 512);
  Buffer other = make_buffer(memory, 512);
  Random random(12);
  store.flush(memory, 0, 0, page.frame);
  store.flush(memory, 0, 1, other.frame);
  change(memory, page, random, 1);
  ASSERT_TRUE(store.flush(memory, 0, 0, page.frame));
  change(memory, page, random, 200);
  ASSERT_FALSE(store.flush(memory, 1, 0, page.frame));
  change(memory, page, random, 1);
  change(memory, other, random, 1);
  memory.on_persistence_step([&] {
    Random any(1);
    SimMemory meanwhile = memory.crash(memory.durability().sample(any));
    PageStore same = store;
    Frame frame = page.frame;
    EXPECT_TRUE(same.flush(meanwhile, 1, 0, frame));
  });
  EXPECT_TRUE(store.flush(memory, 0, 1, other.frame));
}

/// How many of the sampled crashes during a flush of 40 dirty lines leave a page that is neither old nor new.
int torn_pages(memory::Site disabled) {
  SimMemory memory({.capacities = {}, .persistence = memory::Persistence::kAdr});
  PageStore store(memory, {.page_bytes = 4096, .pages = 1}, Choice::kMicroLog);
  Buffer page = make_buffer(memory, 4096);
  store.flush(memory, 0, 0, page.frame);
  const Bytes before = page.reference;
  page.frame.dirty.clear();
  for (std::uint32_t line = 0; line < 40; ++line) {
    const std::uint64_t value = line + 1;
    std::memcpy(page.reference.data() + line * 64, &value, sizeof value);
    memory.store<std::uint64_t>(page.frame.data + line * 64, value);
    page.frame.mark_dirty(line * 64, sizeof value);
  }
  memory.disable_site(disabled);
  int torn = 0;
  memory.on_persistence_step([&] {
    Random random(1);
    SimMemory after = memory.crash(memory.durability().sample(random));
    PageStore recovered = store;
    recovered.recover(after);
    const Bytes found = content(after, recovered.slots().area().payload(recovered.slots().at(0).slot), 4096);
    torn += found != before && found != page.reference ? 1 : 0;
  });
  store.flush(memory, 0, 0, page.frame);
  return torn;
}

TEST(PageMicroLog, of_many_lines_needs_the_write_back_of_its_whole_head) {
  EXPECT_EQ(torn_pages(memory::kNoSite), 0);
  EXPECT_GT(torn_pages(MicroLogs::kHeadFlush), 0);
}

}  // namespace
}  // namespace pmsim::blocks::page
