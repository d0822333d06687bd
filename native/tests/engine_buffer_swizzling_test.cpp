#include "engine_buffer_rig.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::engines::buffer {
namespace {

using memory::OpKind;
using memory::Stream;

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

// As LeanStore: who reads writes nothing, who replaces a page latches it and the parent whose pointer it is.
TEST(Swizzling, WithoutCountsAFixOnlyReadsAndAnEvictionLatchesPageAndParent) {
  BufferConfig config = three_tier(8, 32, 64);
  config.mini_pages = config.count_fixes = false;
  Family rig(config);
  FixedPage parent = rig.manager->fix_page(rig.memory, 0, Access::kFull);
  FixedPage page = rig.child(parent, 2);
  rig.manager->unfix(rig.memory, page);
  const auto latched = [&](PageId id) { return rig.times_latched(id); };
  const std::uint64_t to_swizzle = latched(0);
  Stream stream;
  rig.memory.attach(stream);
  page = rig.child(parent, 2);
  rig.manager->unfix(rig.memory, page);
  rig.memory.detach();
  ASSERT_EQ(stream.size(), 2U);
  EXPECT_EQ(stream[0].kind, OpKind::kLoad);
  EXPECT_EQ(stream[1].kind, OpKind::kLoad);
  EXPECT_EQ(latched(0), to_swizzle);

  const std::uint64_t before = latched(page.id);
  for (PageId id = 10; id < 17; ++id)
    rig.touch(id);
  EXPECT_EQ(rig.counts().unswizzles, 1U);
  EXPECT_EQ(latched(page.id), before + 1);
  EXPECT_EQ(latched(0), to_swizzle + 1);
  EXPECT_EQ(rig.memory.load<FrameHead>(untagged(parent.frame)).id, 0U) << "in use: not evicted";
  rig.manager->unfix(rig.memory, parent);
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

}  // namespace
}  // namespace pmsim::engines::buffer
