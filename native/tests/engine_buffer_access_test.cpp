#include <span>

#include "engine_buffer_rig.hpp"
#include "pmsim/memory/stream.hpp"

// How pages come from PMem and go back: mapped and copied, by system calls, or not at all until they change.

namespace pmsim::engines::buffer {
namespace {

constexpr std::uint32_t kSmall = 8192;

void read_page(Rig& rig, PageId id) {
  FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kFull);
  EXPECT_TRUE(rig.same(page, kPageHeaderBytes, kSmall - kPageHeaderBytes));
  rig.manager->unfix(rig.memory, page);
}
void change_page(Rig& rig, PageId id, std::uint32_t offset) {
  FixedPage page = rig.manager->fix_page(rig.memory, id, Access::kGrained);
  rig.overwrite(page, offset, Bytes(8, std::byte{1}));
  EXPECT_TRUE(rig.same(page, kPageHeaderBytes, kSmall - kPageHeaderBytes));
  rig.manager->unfix(rig.memory, page);
  rig.manager->unpin_all(rig.memory);
}

// "The SE of original PostgreSQL incurs two copy operations for each miss", SE1 one, SE2 none but "before
// modifying the actual content of the page" (Mustafa et al., section IV).
TEST(PageAccess, CopiesAsOftenPerMissAsThePaperSays) {
  struct Case {
    const char* engine;
    std::uint64_t copies_of_a_miss, of_a_change, of_a_write_back;
  };
  for (const Case& test : {Case{"file-bm", 2, 0, 2}, {"basic-nvm-bm", 1, 0, 1}, {"redirect-bm", 0, 1, 1}}) {
    SCOPED_TRACE(test.engine);
    OnPmem rig(tiny(test.engine, kSmall, 8, 32, 0), 6);
    read_page(rig, 3);
    EXPECT_EQ(rig.counts().page_copies_in, test.copies_of_a_miss);
    read_page(rig, 3);
    change_page(rig, 3, 512);
    change_page(rig, 3, 4096);
    EXPECT_EQ(rig.counts().page_copies_in, test.copies_of_a_miss + test.of_a_change);
    EXPECT_EQ(rig.counts().page_copies_out, 0U);
    rig.checkpoint();
    EXPECT_EQ(rig.counts().page_copies_out, test.of_a_write_back);
    read_page(rig, 3);
    EXPECT_EQ(rig.counts().page_copies_in, test.copies_of_a_miss + test.of_a_change);
    EXPECT_EQ(rig.check(), "");
    rig.restart();
    read_page(rig, 3);
  }
}

TEST(PageAccess, ASystemCallThatCopiesStraightCopiesOnce) {
  BufferConfig config = tiny("file-bm", kSmall, 8, 32, 0);
  config.kernel_buffer = false;
  OnPmem rig(config, 6);
  read_page(rig, 3);
  EXPECT_EQ(rig.counts().page_copies_in, 1U);
  change_page(rig, 3, 512);
  rig.checkpoint();
  EXPECT_EQ(rig.counts().page_copies_out, 1U);
}

TEST(PageAccess, TheCostOfASystemCallIsPaidPerMissAndPerWriteBack) {
  const auto cycles = [](std::uint32_t of_a_call) {
    BufferConfig config = tiny("file-bm", kSmall, 8, 32, 0);
    config.system_call_cycles = of_a_call;
    OnPmem rig(config, 6);
    memory::Stream stream;
    std::vector<std::uint64_t> spent;
    const auto spend = [&](auto&& action) {
      stream.clear();
      rig.memory.attach(stream, 0);
      action();
      rig.memory.detach();
      spent.push_back(0);
      for (const memory::MicroOp& op : std::span(stream.data(), stream.size()))
        spent.back() += op.kind == memory::OpKind::kCompute ? op.address : 0;
    };
    spend([&] { read_page(rig, 3); });
    spend([&] { read_page(rig, 3); });
    spend([&] { change_page(rig, 3, 512); });
    spend([&] { rig.manager->write_back_all(rig.memory); });
    return spent;
  };
  const std::vector<std::uint64_t> free = cycles(0);
  const std::vector<std::uint64_t> paid = cycles(1000);
  EXPECT_EQ(paid, (std::vector<std::uint64_t>{free[0] + 1000, free[1], free[2], free[3] + 1000}));
}

// A page that is fixed twice, read through one handle, changed through the other.
TEST(PageAccess, EveryHandleOfARedirectedPageFollowsItToItsCopy) {
  OnPmem rig(tiny("redirect-bm", kSmall, 8, 32, 0), 6);
  FixedPage reader = rig.manager->fix_page(rig.memory, 2, Access::kFull);
  EXPECT_EQ(memory::medium_of(rig.manager->resident(rig.memory, reader, 640, 8)), memory::Medium::kPmem);
  FixedPage writer = rig.manager->fix_page(rig.memory, 2, Access::kGrained);
  rig.overwrite(writer, 640, Bytes(8, std::byte{9}));
  EXPECT_EQ(memory::medium_of(rig.manager->resident(rig.memory, reader, 640, 8)), memory::Medium::kDram);
  EXPECT_TRUE(rig.same(reader, 640, 8));
  rig.manager->unfix(rig.memory, reader);
  rig.manager->unfix(rig.memory, writer);
  rig.manager->unpin_all(rig.memory);
  EXPECT_EQ(rig.counts().page_copies_in, 1U);
  EXPECT_EQ(rig.check(), "");
}

TEST(PageAccess, AFrameThatPointsToPmemIsNoHit) {
  OnPmem rig(tiny("redirect-bm", kSmall, 8, 32, 0), 6);
  for (int round = 0; round < 4; ++round)
    read_page(rig, 2);
  EXPECT_EQ(rig.counts().dram_misses, 1U);
  EXPECT_EQ(rig.counts().direct_fixes, 3U);
  EXPECT_EQ(rig.counts().dram_hits, 0U);
  change_page(rig, 2, 512);  // found as a pointer, and copied
  EXPECT_EQ(rig.counts().direct_fixes, 4U);
  read_page(rig, 2);
  EXPECT_EQ(rig.counts().dram_hits, 1U);
  EXPECT_EQ(rig.counts().fixes, 1U + 4U + 1U) << "misses, direct ones, hits";
  EXPECT_EQ(rig.check(), "");
}

TEST(PageAccess, IsOfWholePagesWithTheirHomeOnPmem) {
  BufferConfig config = tiny("redirect-bm", kSmall, 8, 32, 0);
  config.cache_line_grained = true;
  EXPECT_THROW(config.check(), ConfigError);
  config = tiny("ssd-bm", kSmall, 8, 0, 32);
  config.page_access = PageAccess::kSystemCall;
  EXPECT_THROW(config.check(), ConfigError);
}

}  // namespace
}  // namespace pmsim::engines::buffer
