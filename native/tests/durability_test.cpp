#include "pmsim/memory/durability.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::memory {
namespace {

using Words = std::vector<std::uint64_t>;

/// A small persistent region whose legal images are seen as the values of chosen words.
class Durability : public ::testing::Test {
 protected:
  SimMemory memory{{.persistence = Persistence::kAdr}};
  Address base = memory.allocate(Medium::kPmem, 4096);

  void store(std::size_t word, std::uint64_t value) { memory.store<std::uint64_t>(base + 8 * word, value); }
  void stream(std::size_t word, std::uint64_t value) {
    memory.stream(base + 8 * word, std::as_bytes(std::span(&value, 1)));
  }
  void flush(std::size_t word, FlushKind kind = FlushKind::kClwb) { memory.flush(base + 8 * word, 8, kind); }

  Words after(const DurableImage& image, const std::vector<std::size_t>& words) {
    SimMemory crashed = memory.crash(image);
    Words values;
    for (const std::size_t word : words)
      values.push_back(crashed.load<std::uint64_t>(base + 8 * word));
    return values;
  }
  std::set<Words> images(const std::vector<std::size_t>& words) {
    const auto found = memory.durability().enumerate(100'000);
    EXPECT_TRUE(found.has_value());
    std::set<Words> result;
    for (const DurableImage& image : *found)
      result.insert(after(image, words));
    EXPECT_EQ(found->size(), memory.durability().count(100'000));
    return result;
  }
};

TEST_F(Durability, StoresOfOneLineBecomeDurableInOrder) {
  store(0, 1);
  store(1, 2);
  EXPECT_EQ(images({0, 1}), (std::set<Words>{{0, 0}, {1, 0}, {1, 2}}));
}

TEST_F(Durability, LinesAreIndependent) {
  store(0, 1);
  store(8, 2);
  EXPECT_EQ(images({0, 8}), (std::set<Words>{{0, 0}, {1, 0}, {0, 2}, {1, 2}}));
}

TEST_F(Durability, FlushAloneProvesNothingAndFenceMakesItsPrefixCertain) {
  store(0, 1);
  flush(0);
  EXPECT_EQ(images({0}), (std::set<Words>{{0}, {1}}));
  store(1, 2);
  memory.sfence();
  EXPECT_EQ(images({0, 1}), (std::set<Words>{{1, 0}, {1, 2}}));
}

TEST_F(Durability, AFenceWithoutFlushProvesNothing) {
  store(0, 1);
  memory.mfence();
  EXPECT_EQ(images({0}), (std::set<Words>{{0}, {1}}));
}

TEST_F(Durability, StreamedWordsAreUnorderedUntilAFence) {
  stream(0, 1);
  stream(1, 2);
  EXPECT_EQ(images({0, 1}), (std::set<Words>{{0, 0}, {1, 0}, {0, 2}, {1, 2}}));
  memory.sfence();
  EXPECT_EQ(images({0, 1}), (std::set<Words>{{1, 2}}));
  EXPECT_EQ(memory.durability().uncertain_lines(), 0U);
}

TEST_F(Durability, AnOlderStoreNeverOverwritesANewerOneOfTheSameWord) {
  store(0, 1);
  stream(0, 2);
  memory.sfence();  // the streamed word is certain, the cached store before it is not, and must not come back
  EXPECT_EQ(images({0}), (std::set<Words>{{2}}));
}

TEST_F(Durability, AStoreAfterAClflushIsNotDurableBeforeIt) {
  store(0, 1);
  flush(0, FlushKind::kClflush);
  store(8, 2);
  EXPECT_EQ(images({0, 8}), (std::set<Words>{{0, 0}, {1, 0}, {1, 2}}));
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const Words words = after(memory.durability().sample(random), {0, 8});
    EXPECT_NE(words, (Words{0, 2}));
  }
}

TEST_F(Durability, AFenceCompletesOnlyTheFlushesOfItsThread) {
  Stream one;
  Stream two;
  memory.attach(one, 1);
  store(0, 1);
  flush(0);
  memory.attach(two, 2);
  memory.sfence();
  EXPECT_EQ(images({0}), (std::set<Words>{{0}, {1}}));
  memory.attach(one, 1);
  memory.sfence();
  EXPECT_EQ(images({0}), (std::set<Words>{{1}}));
}

TEST_F(Durability, AFenceCompletesOnlyTheStreamedWordsOfItsThread) {
  Stream one;
  Stream two;
  memory.attach(one, 1);
  stream(0, 1);
  memory.attach(two, 2);
  stream(1, 2);
  memory.sfence();
  EXPECT_EQ(images({0, 1}), (std::set<Words>{{0, 2}, {1, 2}}));
}

TEST_F(Durability, WritesLargerThanAWordMayTear) {
  const std::array<std::uint64_t, 3> values{1, 2, 3};
  memory.write(base, std::as_bytes(std::span(values)));
  EXPECT_EQ(images({0, 1, 2}), (std::set<Words>{{0, 0, 0}, {1, 0, 0}, {1, 2, 0}, {1, 2, 3}}));
}

TEST_F(Durability, EightBytesThatCrossAWordMayTear) {
  const std::uint64_t value = ~std::uint64_t{0};
  memory.write(base + 4, std::as_bytes(std::span(&value, 1)));
  EXPECT_EQ(images({0, 1}), (std::set<Words>{{0, 0}, {~0ULL << 32, 0}, {~0ULL << 32, ~0ULL >> 32}}));
}

TEST_F(Durability, SamplesReachEveryImageAndNoOther) {
  for (std::uint64_t i = 0; i < 3; ++i)
    store(i, i + 1);
  stream(5, 9);
  store(8, 7);
  const auto all = images({0, 1, 2, 5, 8});
  std::set<Words> seen;
  Random random(7);
  for (int i = 0; i < 1000; ++i)
    seen.insert(after(memory.durability().sample(random), {0, 1, 2, 5, 8}));
  EXPECT_EQ(seen, all);
  EXPECT_EQ(all.size(), 4U * 2U * 2U);
}

TEST_F(Durability, CornerSamplesReachEveryImageAndNoOther) {
  for (std::uint64_t i = 0; i < 3; ++i)
    store(i, i + 1);
  stream(5, 9);
  memory.disable_site(1);
  store(8, 7);
  memory.order(1);
  store(9, 8);
  const std::vector<std::size_t> words{0, 1, 2, 5, 8, 9};
  const auto all = images(words);
  std::set<Words> seen;
  Random random(7);
  DurableImage image;
  for (int i = 0; i < 2000; ++i) {
    memory.durability().sample_corners(random, image);
    seen.insert(after(image, words));
  }
  EXPECT_EQ(seen, all);
  EXPECT_EQ(all.size(), 4U * 2U * 4U);
}

TEST_F(Durability, TooManyImagesAreRefusedInsteadOfEnumerated) {
  for (std::size_t line = 0; line < 20; ++line)
    store(8 * line, 1);
  EXPECT_EQ(memory.durability().count(std::uint64_t{1} << 19), std::nullopt);
  EXPECT_EQ(memory.durability().count(std::uint64_t{1} << 20), std::uint64_t{1} << 20);
  EXPECT_FALSE(memory.durability().enumerate(1000).has_value());
}

TEST_F(Durability, WordsAreDurableMaybeOrLost) {
  const Address dram = memory.allocate(Medium::kDram, 64);
  EXPECT_EQ(memory.word_state(base), WordState::kDurable);  // zeros since the beginning
  store(0, 1);
  EXPECT_EQ(memory.word_state(base), WordState::kMaybe);
  EXPECT_EQ(memory.word_state(base + 8), WordState::kDurable);
  store(0, 0);  // back to the durable value, but the 1 may still be what survives
  EXPECT_EQ(memory.word_state(base), WordState::kMaybe);
  EXPECT_EQ(memory.word_state(dram), WordState::kLost);
}

TEST_F(Durability, CrashKeepsTheRegionsAndLosesDram) {
  const Address dram = memory.allocate(Medium::kDram, 64);
  const Address more = memory.allocate(Medium::kPmem, 64, {"aligned", 1 << 20});
  memory.store<int>(dram, 5);
  memory.store<int>(more, 6);
  memory.flush(more, 4);
  memory.sfence();
  SimMemory crashed = memory.crash(memory.durability().enumerate(1)->front());
  EXPECT_EQ(crashed.load<int>(dram), 0);
  EXPECT_EQ(crashed.load<int>(more), 6);
  crashed.store<int>(more, 7);  // a second crash works on the crashed memory
  EXPECT_EQ(crashed.durability().count(10), 2U);
}

TEST_F(Durability, TheCallbackSeesEveryPersistenceStep) {
  std::vector<std::uint64_t> counts;
  memory.on_persistence_step([&] { counts.push_back(memory.durability().count(1000).value()); });
  const std::array<std::uint64_t, 16> two_lines{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  memory.write(base, std::as_bytes(std::span(two_lines)));
  memory.flush(base, 128);
  memory.sfence();
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{9, 81, 81, 81, 1}));
}

TEST_F(Durability, SectorsHaveAnyVersionSinceTheLastFlush) {
  const Address dram = memory.allocate(Medium::kDram, 1024);
  const Address device = memory.allocate(Medium::kBlock, 4096);
  memory.block_write(device, dram, 1024);
  memory.block_flush();
  memory.store<std::uint64_t>(dram, 1);
  memory.block_write(device, dram, 1024);  // the second sector does not change
  memory.store<std::uint64_t>(dram, 2);
  memory.block_write(device, dram, 512);
  std::set<std::uint64_t> first;
  const auto all = memory.durability().enumerate(100);
  ASSERT_TRUE(all.has_value());
  for (const DurableImage& image : *all) {
    SimMemory crashed = memory.crash(image);
    const Address frame = crashed.regions().places(Medium::kDram)[0].base;
    crashed.block_read(device, frame, 512);
    first.insert(crashed.load<std::uint64_t>(frame));
  }
  EXPECT_EQ(first, (std::set<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(all->size(), 3U);
  memory.block_flush();
  EXPECT_EQ(memory.durability().count(100), 1U);
}

TEST_F(Durability, AnOrderingPointChangesNothingUnlessItIsMissing) {
  store(0, 1);
  memory.order(1);
  store(1, 2);
  EXPECT_EQ(images({0, 1}), (std::set<Words>{{0, 0}, {1, 0}, {1, 2}}));
  EXPECT_EQ(memory.site_uses(1), 1U);
  Stream stream;
  memory.attach(stream);
  memory.order(1);
  EXPECT_TRUE(stream.empty()) << "an ordering point costs nothing";
}

TEST_F(Durability, WithoutItsOrderingPointAStoreMayOvertakeItsNeighbours) {
  memory.disable_site(1);
  store(0, 1);
  memory.order(1);
  store(1, 2);
  store(2, 3);
  EXPECT_EQ(images({0, 1, 2}),
            (std::set<Words>{
                {0, 0, 0}, {1, 0, 0}, {0, 2, 0}, {1, 2, 0}, {0, 0, 3}, {1, 0, 3}, {0, 2, 3}, {1, 2, 3}}));
  EXPECT_EQ(memory.site_uses(1), 1U) << "a disabled site is reached all the same";
  flush(0);
  memory.sfence();
  EXPECT_EQ(images({0, 1, 2}), (std::set<Words>{{1, 2, 3}}));
}

TEST_F(Durability, TheNextOrderingPointRestoresTheOrder) {
  memory.disable_site(2);
  store(0, 1);
  memory.order(1);
  store(1, 2);
  memory.order(2);
  store(2, 3);
  memory.order(3);
  store(3, 4);
  // 1 before everything; 2 and 3 in either order; 4 after all.
  const std::set<Words> expected{{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 2, 0, 0},
                                 {1, 0, 3, 0}, {1, 2, 3, 0}, {1, 2, 3, 4}};
  EXPECT_EQ(images({0, 1, 2, 3}), expected);
  std::set<Words> seen;
  Random random(3);
  for (int i = 0; i < 500; ++i)
    seen.insert(after(memory.durability().sample(random), {0, 1, 2, 3}));
  EXPECT_EQ(seen, expected);
}

TEST_F(Durability, AFenceEndsTheDisorderOfItsThreadOnly) {
  Stream one;
  Stream two;
  memory.disable_site(1);
  memory.attach(one, 1);
  store(0, 1);
  memory.order(1);
  memory.attach(two, 2);
  memory.sfence();
  memory.attach(one, 1);
  store(1, 2);
  EXPECT_EQ(images({0, 1}), (std::set<Words>{{0, 0}, {1, 0}, {0, 2}, {1, 2}}));
  memory.mfence();
  store(2, 3);
  EXPECT_EQ(images({0, 1, 2}), (std::set<Words>{{0, 0, 0}, {1, 0, 0}, {0, 2, 0}, {1, 2, 0}, {1, 2, 3}}));
}

TEST_F(Durability, AFlushWritesBackWhatHasLostItsOrder) {
  memory.disable_site(1);
  store(0, 1);
  memory.order(1);
  store(1, 2);
  flush(0);
  store(2, 3);
  memory.sfence();
  EXPECT_EQ(images({0, 1, 2}), (std::set<Words>{{1, 2, 0}, {1, 2, 3}}));
}

TEST_F(Durability, TheLogKeepsStoresAndPersistencePoints) {
  memory.keep_log();
  memory.label_operation(4);
  store(9, 7);
  memory.disable_site(2);
  memory.order(2);
  memory.flush(base + 72, 8, FlushKind::kClwb, 3);
  memory.sfence(5);
  const auto log = memory.log();
  ASSERT_EQ(log.size(), 4U);
  EXPECT_EQ(log[0].kind, OpKind::kStore);
  EXPECT_EQ(log[0].address, base + 72);
  EXPECT_EQ(log[0].data, (std::vector<std::byte>{std::byte{7}, {}, {}, {}, {}, {}, {}, {}}));
  EXPECT_EQ(log[0].operation, 4U);
  EXPECT_TRUE(log[1].order && log[1].disabled);
  EXPECT_EQ(log[2].kind, OpKind::kClwb);
  EXPECT_EQ(log[2].site, 3);
  EXPECT_EQ(log[3].kind, OpKind::kSfence);
  EXPECT_FALSE(log[3].disabled);
}

TEST(DurabilityEadr, StoresAreDurableAtOnceAndStreamedWordsAtTheFence) {
  SimMemory memory({.persistence = Persistence::kEadr});
  const Address base = memory.allocate(Medium::kPmem, 64);
  memory.store<std::uint64_t>(base, 1);
  EXPECT_EQ(memory.word_state(base), WordState::kDurable);
  const std::uint64_t value = 2;
  memory.stream(base + 8, std::as_bytes(std::span(&value, 1)));
  EXPECT_EQ(memory.word_state(base + 8), WordState::kMaybe);
  memory.sfence();
  EXPECT_EQ(memory.word_state(base + 8), WordState::kDurable);
}

TEST(DurabilityEadr, AMissingOrderingPointIsTheCompilersAndNotTheCaches) {
  SimMemory memory({.persistence = Persistence::kEadr});
  const Address base = memory.allocate(Medium::kPmem, 128);
  memory.disable_site(1);
  memory.store<std::uint64_t>(base, 1);
  memory.sfence();
  memory.store<std::uint64_t>(base + 8, 2);
  memory.order(1);
  memory.store<std::uint64_t>(base + 16, 3);
  EXPECT_EQ(memory.word_state(base), WordState::kDurable);
  EXPECT_EQ(memory.durability().count(100), 4U);  // any subset of the two
  memory.order(2);
  EXPECT_EQ(memory.durability().count(100), 1U);
  EXPECT_EQ(memory.durability().uncertain_lines(), 0U);
}

TEST(SiteUses, SitesAreCountedOnlyWhileTracking) {
  SimMemory memory;
  memory.sfence(3);
  EXPECT_EQ(memory.site_uses(3), 0U);
}

}  // namespace
}  // namespace pmsim::memory
