#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "pmsim/blocks/index/driver.hpp"
#include "pmsim/blocks/index/fptree_leaf.hpp"
#include "pmsim/blocks/index/interleaved_leaf.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::index {
namespace {

using memory::FlushKind;
using memory::Medium;
using memory::MicroOp;
using memory::OpKind;
using memory::SimMemory;
using memory::Stream;
using memory::WordState;

constexpr std::size_t kLeaves = 5;

std::vector<Interleave> all_interleavings() {
  std::vector<Interleave> all;
  for (const bool reads : {false, true}) {
    for (const bool writes : {false, true}) {
      for (const Fence fence : {Fence::kSfence, Fence::kMfence}) {
        for (const FirstFlush flush : {FirstFlush::kPairAndFingerprint, FirstFlush::kPair})
          all.push_back({.reads = reads, .writes = writes, .fence = fence, .first_flush = flush});
      }
    }
  }
  return all;
}

std::size_t count(const Stream& stream, OpKind kind) {
  std::size_t found = 0;
  for (std::size_t index = 0; index < stream.size(); ++index)
    found += stream[index].kind == kind ? 1 : 0;
  return found;
}

using Model = std::map<std::uint64_t, std::uint64_t>;

Model contents_of(SimMemory& memory, Address leaf) {
  Model found;
  const FpTreeLeaf::Contents contents = FpTreeLeaf::recover(memory, leaf);
  EXPECT_EQ(contents.wrong_fingerprints, 0U);
  for (std::uint32_t index = 0; index < contents.count; ++index)
    found[contents.entries[index].key] = contents.entries[index].value;
  EXPECT_EQ(found.size(), contents.count) << "a key is there twice";
  return found;
}

TEST(FpTreeLeaf, HasThePapersLayout) {
  EXPECT_EQ(FpTreeLeaf::kSlots, 32U);
  EXPECT_EQ(FpTreeLeaf::kBytes, 576U);
  EXPECT_EQ(sizeof(FpTreeLeaf::fingerprint(0)), 1U);
  for (std::uint32_t slot = 0; slot < FpTreeLeaf::kSlots; ++slot) {
    const Address pair = FpTreeLeaf::pair(0, slot);
    EXPECT_EQ(pair % 8, 0U);
    EXPECT_EQ(pair / 64, (pair + FpTreeLeaf::kPairBytes - 1) / 64) << "a pair lies in two lines";
  }
  std::set<std::uint8_t> hashes;
  for (std::uint64_t key = 0; key < 100'000; ++key)
    hashes.insert(FpTreeLeaf::fingerprint(key * 8));
  EXPECT_EQ(hashes.size(), 256U);
}

TEST(FpTreeLeaf, BehavesAsAMapUntilItIsFull) {
  SimMemory memory;
  const Address leaf = memory.allocate(Medium::kPmem, FpTreeLeaf::kBytes);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    memory.store<std::uint32_t>(leaf, 0);
    Random random(seed);
    Model model;
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t key = random.below(100);  // small keys: fingerprints collide, misses are frequent
      const std::uint64_t value = random.next();
      const auto found = FpTreeLeaf::lookup(memory, leaf, key);
      const auto expected = model.find(key);
      ASSERT_EQ(found, expected == model.end() ? std::nullopt : std::optional(expected->second));
      if (expected == model.end()) {
        ASSERT_EQ(FpTreeLeaf::insert(memory, leaf, key, value), model.size() < FpTreeLeaf::kSlots);
        if (model.size() < FpTreeLeaf::kSlots)
          model[key] = value;
      }
    }
    EXPECT_EQ(contents_of(memory, leaf), model);
  }
}

TEST(FpTreeLeaf, LooksBehindAFingerprintThatMatchesByChance) {
  SimMemory memory;
  const Address leaf = memory.allocate(Medium::kPmem, FpTreeLeaf::kBytes);
  std::vector<std::uint64_t> twins;
  for (std::uint64_t key = 0; twins.size() < 3; ++key) {
    if (FpTreeLeaf::fingerprint(key) == 7)
      twins.push_back(key);
  }
  ASSERT_TRUE(FpTreeLeaf::insert(memory, leaf, twins[0], 10) && FpTreeLeaf::insert(memory, leaf, twins[1], 11));
  EXPECT_EQ(FpTreeLeaf::lookup(memory, leaf, twins[1]), 11U);
  EXPECT_EQ(FpTreeLeaf::lookup(memory, leaf, twins[2]), std::nullopt);
  InterleavedLeaf interleaved({});
  const std::array<InterleavedLeaf::Lookup, 2> wanted{{{leaf, twins[1]}, {leaf, twins[2]}}};
  std::array<std::optional<std::uint64_t>, 2> values{99, 99};
  interleaved.lookup(memory, wanted, values);
  EXPECT_EQ(values[0], 11U);
  EXPECT_EQ(values[1], std::nullopt);
}

TEST(FpTreeLeaf, InsertHasTwoPhasesEachWithItsBarrier) {
  SimMemory memory;
  const Address leaf = memory.allocate(Medium::kPmem, FpTreeLeaf::kBytes);
  Stream stream;
  memory.attach(stream);
  ASSERT_TRUE(FpTreeLeaf::insert(memory, leaf, 5, 6));
  std::vector<std::pair<OpKind, std::uint16_t>> persistence;
  for (std::size_t index = 0; index < stream.size(); ++index) {
    if (stream[index].kind == OpKind::kClwb || stream[index].kind == OpKind::kSfence)
      persistence.emplace_back(stream[index].kind, stream[index].site);
  }
  const std::vector<std::pair<OpKind, std::uint16_t>> expected{{OpKind::kClwb, FpTreeLeaf::kFlushPair},
                                                               {OpKind::kClwb, FpTreeLeaf::kFlushFingerprint},
                                                               {OpKind::kSfence, FpTreeLeaf::kFenceEntry},
                                                               {OpKind::kClwb, FpTreeLeaf::kFlushBit},
                                                               {OpKind::kSfence, FpTreeLeaf::kFenceBit}};
  EXPECT_EQ(persistence, expected);
}

TEST(InterleavedLeaf, FindsWhatPlainLookupsFind) {
  SimMemory memory;
  const Address base = memory.allocate(Medium::kDram, kLeaves * FpTreeLeaf::kBytes);
  Random random(3);
  for (int insert = 0; insert < 100; ++insert)
    static_cast<void>(FpTreeLeaf::insert(memory, base + random.below(kLeaves) * FpTreeLeaf::kBytes,
                                         static_cast<std::uint64_t>(insert), random.next()));
  for (const bool reads : {false, true}) {
    InterleavedLeaf interleaved({.reads = reads});
    for (std::size_t size = 1; size <= kMaxGroup; ++size) {
      std::vector<InterleavedLeaf::Lookup> group;
      for (std::size_t index = 0; index < size; ++index)
        group.push_back({base + random.below(kLeaves) * FpTreeLeaf::kBytes, random.below(120)});
      std::vector<std::optional<std::uint64_t>> values(size, 1);
      interleaved.lookup(memory, group, values);
      for (std::size_t index = 0; index < size; ++index)
        ASSERT_EQ(values[index], FpTreeLeaf::lookup(memory, group[index].leaf, group[index].key));
    }
  }
}

TEST(InterleavedLeaf, EveryInterleavingLeavesWhatPlainInsertsLeave) {
  for (const Interleave& how : all_interleavings()) {
    for (const std::size_t size : {1, 2, 3, 7, 20, 64}) {
      SimMemory plain;
      SimMemory memory;
      const Address base = plain.allocate(Medium::kPmem, kLeaves * FpTreeLeaf::kBytes);
      ASSERT_EQ(memory.allocate(Medium::kPmem, kLeaves * FpTreeLeaf::kBytes), base);
      InterleavedLeaf interleaved(how);
      Random random(size);
      std::uint64_t key = 0;
      while (key < 2 * kLeaves * FpTreeLeaf::kSlots) {  // until everything is full, and beyond
        std::vector<InterleavedLeaf::Insert> group;
        for (std::size_t index = 0; index < size; ++index)
          group.push_back({base + random.below(kLeaves) * FpTreeLeaf::kBytes, key++, random.next()});
        std::array<bool, kMaxGroup> durable{};
        interleaved.insert(memory, group, std::span(durable).first(size));
        for (std::size_t index = 0; index < size; ++index) {
          ASSERT_EQ(durable[index],
                    FpTreeLeaf::insert(plain, group[index].leaf, group[index].key, group[index].value));
        }
        for (Address leaf = base; leaf < base + kLeaves * FpTreeLeaf::kBytes; leaf += FpTreeLeaf::kBytes)
          ASSERT_EQ(contents_of(memory, leaf), contents_of(plain, leaf));
      }
    }
  }
}

TEST(InterleavedLeaf, SuspendsALookupTwiceAndPrefetchesItsTwoLines) {
  SimMemory memory;
  const Address leaf = memory.allocate(Medium::kPmem, FpTreeLeaf::kBytes);
  ASSERT_TRUE(FpTreeLeaf::insert(memory, leaf, 5, 6));
  InterleavedLeaf interleaved({});
  Stream stream;
  memory.attach(stream);
  const std::array<InterleavedLeaf::Lookup, 3> group{{{leaf, 5}, {leaf, 5}, {leaf, 5}}};
  std::array<std::optional<std::uint64_t>, 3> values{};
  interleaved.lookup(memory, group, values);
  EXPECT_EQ(interleaved.scheduler().suspensions(), 2 * group.size());
  EXPECT_EQ(count(stream, OpKind::kPrefetch), 2 * group.size());
  // All headers are on their way before the first one is looked at.
  std::size_t prefetches = 0;
  for (std::size_t index = 0; stream[index].kind != OpKind::kLoad; ++index)
    prefetches += stream[index].kind == OpKind::kPrefetch ? 1 : 0;
  EXPECT_EQ(prefetches, group.size());
}

TEST(InterleavedLeaf, SharesOneBarrierPerPhaseAmongAllInsertsOfAGroup) {
  for (const std::size_t size : {1, 3, 20, 32}) {
    for (const bool reads : {false, true}) {
      SimMemory memory;
      const Address leaf = memory.allocate(Medium::kPmem, FpTreeLeaf::kBytes);
      InterleavedLeaf interleaved({.reads = reads, .writes = true, .fence = Fence::kMfence});
      std::vector<InterleavedLeaf::Insert> group;
      for (std::size_t index = 0; index < size; ++index)
        group.push_back({leaf, index, index});
      std::array<bool, kMaxGroup> durable{};
      Stream stream;
      memory.attach(stream);
      interleaved.insert(memory, group, std::span(durable).first(size));
      EXPECT_EQ(count(stream, OpKind::kMfence), 2U);
      EXPECT_EQ(count(stream, OpKind::kSfence), 0U);
      EXPECT_EQ(interleaved.scheduler().suspensions(), size * (reads ? 4 : 2));
    }
  }
}

TEST(InterleavedLeaf, AllocatesNoFrameAfterTheFirstGroup) {
  SimMemory memory;
  const Address leaf = memory.allocate(Medium::kPmem, FpTreeLeaf::kBytes);
  InterleavedLeaf interleaved({});
  std::array<InterleavedLeaf::Lookup, kMaxGroup> lookups{};
  std::array<InterleavedLeaf::Insert, kMaxGroup> inserts{};
  lookups.fill({leaf, 1});
  inserts.fill({leaf, 1, 2});
  std::array<std::optional<std::uint64_t>, kMaxGroup> values{};
  std::array<bool, kMaxGroup> durable{};
  interleaved.lookup(memory, lookups, values);
  interleaved.insert(memory, inserts, durable);
  const std::size_t frames = interleaved.scheduler().frames();
  EXPECT_GE(frames, kMaxGroup);
  EXPECT_LE(frames, 2 * kMaxGroup);
  for (int repetition = 0; repetition < 10; ++repetition) {
    interleaved.lookup(memory, lookups, values);
    interleaved.insert(memory, inserts, durable);
  }
  EXPECT_EQ(interleaved.scheduler().frames(), frames);
}

TEST(InterleavedLeaf, PassesOnWhatAMemoryThrowsAndGoesOnAfterwards) {
  SimMemory memory;
  const Address leaf = memory.allocate(Medium::kPmem, FpTreeLeaf::kBytes);
  ASSERT_TRUE(FpTreeLeaf::insert(memory, leaf, 1, 2));
  InterleavedLeaf interleaved({});
  const std::array<InterleavedLeaf::Lookup, 2> outside{{{leaf, 1}, {leaf + 4 * FpTreeLeaf::kBytes, 1}}};
  std::array<std::optional<std::uint64_t>, 2> values{};
  EXPECT_THROW(interleaved.lookup(memory, outside, values), ConfigError);
  const std::array<InterleavedLeaf::Lookup, 2> inside{{{leaf, 1}, {leaf, 2}}};
  interleaved.lookup(memory, inside, values);
  EXPECT_EQ(values[0], 2U);
  EXPECT_EQ(values[1], std::nullopt);
}

/// Cuts the power at every persistence step of groups into one leaf: every legal image must hold all
/// acknowledged pairs and may hold each pair under way, whole.
TEST(InterleavedLeaf, LosesNothingAcknowledgedAndTearsNothingInAnyCrash) {
  for (const Interleave& how : all_interleavings()) {
    SimMemory memory({.persistence = memory::Persistence::kAdr});
    const Address leaf = memory.allocate(Medium::kPmem, FpTreeLeaf::kBytes);
    InterleavedLeaf interleaved(how);
    std::vector<InterleavedLeaf::Insert> group;
    std::array<bool, kMaxGroup> durable{};
    Model acknowledged;
    std::size_t crashes = 0;
    memory.on_persistence_step([&] {
      Model certain = acknowledged;
      Model possible = acknowledged;
      for (std::size_t index = 0; index < group.size(); ++index) {
        possible[group[index].key] = group[index].value;
        if (durable[index])
          certain[group[index].key] = group[index].value;
      }
      const auto images = memory.durability().enumerate(1 << 14);
      ASSERT_TRUE(images.has_value());
      for (const memory::DurableImage& image : *images) {
        SimMemory after = memory.crash(image);
        const Model found = contents_of(after, leaf);
        ++crashes;
        for (const auto& pair : certain)
          ASSERT_TRUE(found.contains(pair.first) && found.at(pair.first) == pair.second);
        for (const auto& [key, value] : found)
          ASSERT_TRUE(possible.contains(key) && possible.at(key) == value) << key << " " << value;
      }
    });
    for (std::uint64_t round = 0; round < 3; ++round) {
      group.clear();
      durable.fill(false);
      for (std::uint64_t index = 0; index < 3; ++index)
        group.push_back({leaf, 10 * round + index + 1, ~index});
      interleaved.insert(memory, group, std::span(durable).first(group.size()));
      for (const auto& insert : group)
        acknowledged[insert.key] = insert.value;
      group.clear();
    }
    EXPECT_GT(crashes, 100U);
    EXPECT_EQ(contents_of(memory, leaf), acknowledged);
  }
}

template <memory::Memory M>
void drive(M& memory, bool inserts, bool interleaved, bool at_once) {
  using Driver = InterleaveDriver<M>;
  Driver driver(memory, {.inserts = inserts,
                         .interleaved = interleaved,
                         .group_size = 7,
                         .region_bytes = 2 * 7 * FpTreeLeaf::kBytes,
                         .threads = 2,
                         .fill_at_once = at_once});
  ASSERT_EQ(driver.group(), interleaved ? 7U : 1U);
  for (std::uint32_t call = 0; call < 200; ++call)
    driver.operation(memory, call % 2);
  // Each counts as an operation, also where leaves are few and a group often chooses one twice.
  EXPECT_EQ(driver.done(0), 100 * driver.group());
}

TEST(InterleaveDriver, DoesWhatItIsAskedOnBothMemories) {
  for (const bool inserts : {false, true}) {
    for (const bool interleaved : {false, true}) {
      for (const bool at_once : {false, true}) {
        SimMemory simulated;
        drive(simulated, inserts, interleaved, at_once);
      }
      memory::HostMemory host({.best_flush = true});
      drive(host, inserts, interleaved, true);
    }
  }
}

/// All that is chosen ahead finds room, however much more is asked for.
TEST(InterleaveDriver, ChoosesAhead) {
  for (const bool inserts : {false, true}) {
    SimMemory memory;
    InterleaveDriver<SimMemory> driver(
        memory, {.inserts = inserts, .group_size = 7, .region_bytes = 100 * FpTreeLeaf::kBytes});
    for (std::uint32_t round = 0; round < 50; ++round) {
      driver.prepare(memory, 0, 1000);
      for (std::uint32_t call = 0; call < 5; ++call)
        driver.operation(memory, 0);
    }
    EXPECT_EQ(driver.done(0), 50 * 5 * driver.group());
  }
}

TEST(LeafContents, GivesEveryKeyOfALeafAFingerprintOfItsOwn) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t leaf = 0; leaf < 1000; ++leaf) {
    std::set<std::uint8_t> fingerprints;
    for (std::uint32_t slot = 0; slot < FpTreeLeaf::kSlots; ++slot) {
      keys.insert(LeafContents::key(leaf, slot));
      fingerprints.insert(FpTreeLeaf::fingerprint(LeafContents::key(leaf, slot)));
    }
    ASSERT_EQ(fingerprints.size(), FpTreeLeaf::kSlots);
    ASSERT_LT(LeafContents::pairs_before_inserts(leaf), FpTreeLeaf::kSlots);
  }
  EXPECT_EQ(keys.size(), 1000 * FpTreeLeaf::kSlots);
}

}  // namespace
}  // namespace pmsim::blocks::index
