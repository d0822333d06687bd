// In-place updates on simulated memory: crashes at every step, and why logs fail in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>

#include "inplace_values.hpp"
#include "pmsim/blocks/inplace/atomic_word.hpp"
#include "pmsim/blocks/inplace/cow.hpp"
#include "pmsim/blocks/inplace/fam.hpp"
#include "pmsim/blocks/inplace/log.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::inplace {
namespace {

using memory::Address;
using memory::DurableImage;
using memory::Medium;
using memory::SimMemory;
/// Its own order: GCC 12 raises a false alarm on that of vectors of bytes.
struct ByBytes {
  bool operator()(const Value& left, const Value& right) const {
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(), std::less<>{});
  }
};
using Values = std::set<Value, ByBytes>;

// FAM without a cache model: any subset of the FAMBs of an update may have reached memory.

/// The record of `words` after `subset` of its FAMBs took the update from `before` to `after`.
class AnySubset : public ::testing::Test {
 protected:
  SimMemory memory;
  Address record = memory.allocate(Medium::kPmem, 4096);
  Fam fam{16};

  std::array<Famb, 5> fambs() {
    std::array<Famb, 5> all;
    memory.read(record, std::as_writable_bytes(std::span(all)));
    return all;
  }
  void put(const std::array<Famb, 5>& all) { memory.write(record, std::as_bytes(std::span(all))); }
  Value read() {
    Value value(16);
    fam.read(memory, record, value);
    return value;
  }
};

TEST_F(AnySubset, RecoveryGivesTheOldOrTheNewValueFromEveryVersion) {
  for (std::uint64_t history = 1; history <= 8; ++history) {  // all versions, twice
    const std::array<Famb, 5> before = fambs();
    const Value old_value = read();
    const Value new_value = value_of(history, 16);
    fam.update(memory, record, new_value);
    const std::array<Famb, 5> after = fambs();
    for (unsigned subset = 0; subset < 32; ++subset) {
      std::array<Famb, 5> torn = before;
      for (std::size_t famb = 0; famb < 5; ++famb)
        torn[famb] = (subset >> famb & 1) != 0 ? after[famb] : before[famb];
      put(torn);
      const Fam::Recovery recovery = fam.recover(memory, record);
      EXPECT_FALSE(recovery.damaged);
      EXPECT_EQ(read(), subset == 31 ? new_value : old_value);
      EXPECT_EQ(recovery.rolled_back, subset == 31 ? 0U : static_cast<std::uint32_t>(std::popcount(subset)));
      EXPECT_EQ(fam.recover(memory, record).rolled_back, 0U);
    }
    put(after);
  }
}

TEST_F(AnySubset, EveryFambIsRolledBackAtMostOnceHoweverOftenRecoveryCrashes) {
  Random random(5);
  for (std::uint64_t round = 0; round < 50'000; ++round) {
    const std::array<Famb, 5> before = fambs();
    const Value old_value = read();
    fam.update(memory, record, value_of(round, 16));
    const std::array<Famb, 5> after = fambs();
    std::array<Famb, 5> torn;
    const unsigned subset = static_cast<unsigned>(random.below(31));
    for (std::size_t famb = 0; famb < 5; ++famb)
      torn[famb] = (subset >> famb & 1) != 0 ? after[famb] : before[famb];
    std::array<int, 5> rolled_back{};
    for (int crash = 0; crash < 4; ++crash) {
      put(torn);
      fam.recover(memory, record);
      const std::array<Famb, 5> whole = fambs();
      for (std::size_t famb = 0; famb < 5; ++famb) {
        if (whole[famb] != torn[famb] && (crash == 3 || random.below(2) == 0)) {
          torn[famb] = whole[famb];  // this store of recovery has reached memory before the next crash
          ++rolled_back[famb];
        }
      }
    }
    put(torn);
    ASSERT_EQ(read(), old_value);
    for (std::size_t famb = 0; famb < 5; ++famb)
      ASSERT_EQ(rolled_back[famb], static_cast<int>(subset >> famb & 1));
    if (round % 3 == 0)
      fam.update(memory, record, value_of(~round, 16));  // life goes on from the recovered record
  }
}

TEST_F(AnySubset, VersionsThatNoCrashLeavesAreReportedAndNotTouched) {
  std::array<Famb, 5> damaged{};
  damaged[2] = std::uint64_t{2} << 62;
  put(damaged);
  EXPECT_TRUE(fam.recover(memory, record).damaged);
  EXPECT_EQ(fambs(), damaged);
}

// Crashes at every persistence step of every update, with a second crash at every step of recovery.

/// Runs `work` on a tracked memory and calls `visit` with what every legal crash on the way leaves; with `most
/// / 5` drawn ones at steps that have more than `most` (streamed zeros).
void at_every_crash(SimMemory& memory, const std::function<void()>& work,
                    const std::function<void(SimMemory&)>& visit, unsigned most = 500) {
  Random random(1);
  const auto look = [&] {
    auto images = memory.durability().enumerate(most);
    if (!images) {
      images.emplace();
      for (unsigned draw = 0; draw < most / 5; ++draw)
        images->push_back(memory.durability().sample(random));
    }
    for (const DurableImage& image : *images) {
      SimMemory crashed = memory.crash(image);
      visit(crashed);
    }
  };
  memory.on_persistence_step(look);
  work();
  memory.on_persistence_step({});
  look();
}

template <typename Block>
struct Setup {
  SimMemory memory{{.persistence = memory::Persistence::kAdr}};
  Address log = memory.allocate(Medium::kPmem, 512);
  Address record = memory.allocate(Medium::kPmem, 256);
  Block block;

  explicit Setup(std::size_t bytes) : block(make(memory, bytes, log)) {}

  static Block make(SimMemory& memory, std::size_t bytes, Address log) {
    if constexpr (std::same_as<Block, Logged>)
      return Logged::create(memory, bytes, place(bytes, log));
    else
      return Block(bytes);
  }
  /// Two entries, so that every third update truncates the log.
  static log::Place place(std::size_t bytes, Address log) {
    return {.base = log, .bytes = Logged::log_bytes(bytes, 2)};
  }

  /// Recovery as after a restart: nothing volatile survives.
  Value recovered(SimMemory& after) const {
    Block restarted = block;
    if constexpr (std::same_as<Block, Logged>) {
      restarted = *Logged::recover(after, block.value_bytes(), place(block.value_bytes(), log));
    } else if constexpr (std::same_as<Block, Fam>) {
      EXPECT_FALSE(restarted.recover(after, record).damaged);
    }
    Value value(block.value_bytes());
    restarted.read(after, record, value);
    return value;
  }
};

/// Values found after a crash during update `u` are those before and after it, both occur, and none else.
template <typename Block, typename... Arguments>
void expect_atomic(Arguments... arguments) {
  Setup<Block> setup(arguments...);
  Value before(setup.block.value_bytes());
  std::size_t states = 0;
  for (std::uint64_t update = 1; update <= 5; ++update) {
    const Value next = value_of(update, setup.block.value_bytes());
    Values found;
    at_every_crash(
        setup.memory, [&] { setup.block.update(setup.memory, setup.record, next); },
        [&](SimMemory& crashed) {
          ++states;
          SimMemory again = crashed.crash({});
          found.insert(setup.recovered(crashed));
          if (states % 8 == 0) {  // once more, with the power cut at every step of recovery
            at_every_crash(
                again, [&] { found.insert(setup.recovered(again)); },
                [&](SimMemory& twice) { found.insert(setup.recovered(twice)); }, 20);
          }
        });
    EXPECT_TRUE(found == (Values{before, next})) << "update " << update << ": " << found.size() << " values";
    const auto acknowledged = setup.memory.durability().enumerate(1);
    ASSERT_TRUE(acknowledged.has_value()) << "something of an acknowledged update is not certain";
    SimMemory crashed = setup.memory.crash(acknowledged->front());
    EXPECT_EQ(setup.recovered(crashed), next);
    before = next;
  }
  EXPECT_GT(states, 20U);
}

TEST(InPlaceCrash, FamOfOneLineIsAtomic) { expect_atomic<Fam>(std::size_t{16}); }
TEST(InPlaceCrash, FamOfThreeLinesIsAtomic) { expect_atomic<Fam>(std::size_t{64}); }
TEST(InPlaceCrash, CowOfOneLineIsAtomic) { expect_atomic<Cow>(std::size_t{16}); }
TEST(InPlaceCrash, CowOfThreeLinesIsAtomic) { expect_atomic<Cow>(std::size_t{64}); }
TEST(InPlaceCrash, AWordIsAtomic) { expect_atomic<AtomicWord>(std::size_t{8}); }
TEST(InPlaceCrash, LoggedUpdatesAreAtomicAlsoWhenTheLogIsReused) { expect_atomic<Logged>(std::size_t{64}); }

TEST(InPlaceCrash, AnUpdateToZerosIsReplayedLikeAnyOther) {
  SimMemory memory{{.persistence = memory::Persistence::kAdr}};
  const log::Place place{.base = memory.allocate(Medium::kPmem, 4096), .bytes = 4096};
  const Address record = memory.allocate(Medium::kPmem, 4096);
  Logged logged = Logged::create(memory, 16, place);
  logged.update(memory, record, value_of(1, 16));
  memory.disable_site(Logged::kRecordFlush);  // the entry is durable, the record is not
  logged.update(memory, record, Value(16));
  Values unrecovered;
  const auto images = memory.durability().enumerate(100);
  for (const DurableImage& image : *images) {
    SimMemory crashed = memory.crash(image);
    Value value(16);
    crashed.peek(record, value);
    unrecovered.insert(value);
    const auto restarted = Logged::recover(crashed, 16, place);
    ASSERT_TRUE(restarted.has_value());
    restarted->read(crashed, record, value);
    EXPECT_EQ(value, Value(16));
  }
  EXPECT_TRUE(unrecovered.contains(value_of(1, 16)));
}

TEST(InPlaceCrash, ALogThatWasNeverCreatedIsNotRecovered) {
  SimMemory memory;
  const log::Place place{.base = memory.allocate(Medium::kPmem, 4096), .bytes = 4096};
  EXPECT_FALSE(Logged::recover(memory, 16, place).has_value());
}

// Claims inplace-poplog-unsafe and inplace-rawl-unsafe: logs assume fresh space; a record holds the only copy.

/// Outcomes of a torn update of two words: none of them is the old value.
bool loses_old_and_new(SimMemory& memory, Address record, const std::array<std::uint64_t, 3>& old_words,
                       const std::array<std::uint64_t, 3>& new_words, const std::function<void()>& update) {
  bool lost = false;
  at_every_crash(memory, update, [&](SimMemory& crashed) {
    std::array<std::uint64_t, 3> words;
    crashed.read(record, std::as_writable_bytes(std::span(words)));
    lost = lost || (words != old_words && words != new_words);
  });
  return lost;
}

TEST(InPlaceUnsafe, PopLogInPlaceLosesTheOldDataBetweenZeroingAndWriting) {
  SimMemory memory{{.persistence = memory::Persistence::kAdr}};
  const Address record = memory.allocate(Medium::kPmem, 4096);
  const auto entry = [](std::uint64_t a, std::uint64_t b) {
    return std::array<std::uint64_t, 3>{static_cast<std::uint64_t>(std::popcount(a) + std::popcount(b)), a, b};
  };
  const auto put = [&](const std::array<std::uint64_t, 3>& words) {
    memory.write(record, std::as_bytes(std::span(words)));
    memory.flush(record, sizeof words);
    memory.sfence();
  };
  const auto old_words = entry(0x1111, 0x2222);
  const auto new_words = entry(0x333, 0x4);
  put(old_words);
  // Without zeroing it would be worse: stale bits fake the count. So zero, persist, write, persist.
  EXPECT_TRUE(loses_old_and_new(memory, record, old_words, new_words, [&] {
    put({});
    put(new_words);
  }));
}

TEST(InPlaceUnsafe, RawlInPlaceLosesTheWordsItHasOverwritten) {
  SimMemory memory{{.persistence = memory::Persistence::kAdr}};
  const Address record = memory.allocate(Medium::kPmem, 4096);
  const auto entry = [](std::uint64_t bit, std::uint64_t seed) {  // 63 bits of data and the validity bit
    return std::array<std::uint64_t, 3>{seed << 1 | bit, (seed + 1) << 1 | bit, (seed + 2) << 1 | bit};
  };
  const auto put = [&](const std::array<std::uint64_t, 3>& words) {
    memory.write(record, std::as_bytes(std::span(words)));
    memory.flush(record, sizeof words);
    memory.sfence();
  };
  put(entry(0, 100));
  // The bits tell that the record is torn; what the first words were, nobody knows any more.
  EXPECT_TRUE(loses_old_and_new(memory, record, entry(0, 100), entry(1, 200), [&] { put(entry(1, 200)); }));
}

}  // namespace
}  // namespace pmsim::blocks::inplace
