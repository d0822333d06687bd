#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "engine_model.hpp"
#include "pmsim/engines/wal/dirty_queue.hpp"

/// Incremental checkpoints (engines/wal/logged_store.hpp): which pages are written back when, and what a crash
/// finds.

namespace pmsim::engines::model {
namespace {

TEST(DirtyQueue, KeepsTheOrderAndDropsStaleEntriesWhenItIsFull) {
  SimMemory memory;
  constexpr std::uint64_t kPages = 4;
  const Address base = memory.allocate(memory::Medium::kDram, wal::DirtyQueue::bytes_for(kPages));
  wal::DirtyQueue queue(base, kPages);
  std::map<PageId, wal::Lsn> dirty;  // as frames would say
  const auto current = [&](const wal::DirtyQueue::Entry& entry) {
    const auto page = dirty.find(entry.id);
    return page != dirty.end() && page->second == entry.first;
  };
  Random random(5);
  std::vector<wal::DirtyQueue::Entry> expected;
  for (wal::Lsn lsn = 100; lsn < 3000; ++lsn) {
    const PageId id = random.below(kPages);
    if (dirty.contains(id)) {
      dirty.erase(id);  // written back by an eviction: the queue is not told
      std::erase_if(expected, [&](const auto& entry) { return entry.id == id; });
    } else {
      dirty[id] = lsn;
      expected.push_back({id, lsn});
      queue.push(memory, {id, lsn}, current);
    }
    ASSERT_LE(queue.size(), 2 * kPages);
  }
  for (; !queue.empty(); queue.pop()) {
    const auto entry = queue.front(memory);
    if (!current(entry))
      continue;
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(entry.first, expected.front().first);
    EXPECT_EQ(entry.id, expected.front().id);
    expected.erase(expected.begin());
  }
  EXPECT_TRUE(expected.empty());
}

constexpr std::uint32_t kPageBytes = 4096, kRowBytes = 1000;  // four rows in a page
constexpr std::uint64_t kRows = 300;

EngineOptions small_log(const std::string& engine) {
  EngineOptions options;
  options.engine = engine;
  options.page_bytes = kPageBytes;
  options.dram_bytes = 256 * (kPageBytes + 256);
  options.pmem_bytes = engine == "ssd-bm" || engine == "main-memory" ? 0 : 200 * kPageBytes;
  const bool on_pmem = engine_named<memory::SimMemory>(engine).home == memory::Medium::kPmem;
  options.ssd_bytes = on_pmem ? 0 : 400 * kPageBytes;
  options.log_buffer_bytes = 6 * kPageBytes;
  options.log_bytes = 32 * kPageBytes;
  return options;
}

/// Of an engine and its EngineOptions::cleaning.
class Checkpoints : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  Checkpoints() {
    for (std::uint64_t key = 1; key <= kRows; ++key)
      rows[key] = Payload(kRowBytes, static_cast<std::byte>(key));
    MapSource source(rows);
    table = engine->load(memory, {"t", 8, kRowBytes}, source, 1.0);
  }
  void update(std::uint64_t key, std::uint32_t offset, std::byte value) {
    const Payload bytes(100, value);
    engine->begin(memory);
    ASSERT_TRUE(engine->update(memory, table, key, offset, bytes));
    engine->commit(memory);
    std::ranges::copy(bytes, rows[key].begin() + offset);
  }
  double count(const char* name) { return engine->counters().at(name); }
  /// Log that changes of dirty pages may be spread over, at most: of so small a log half is the reserve.
  [[nodiscard]] double kept() const { return static_cast<double>(options.log_bytes) / 2; }

  void lose_nothing_in_crashes();
  void lose_no_new_page_while_the_log_is_truncated();

  EngineOptions options = [] {
    const auto& [name, cleaning] = GetParam();
    EngineOptions given = small_log(name);
    given.cleaning = cleaning;
    return given;
  }();
  SimMemory memory{{.persistence = memory::Persistence::kAdr}};
  std::unique_ptr<Engine<SimMemory>> engine = engine_named<SimMemory>(options.engine).create(memory, options);
  Rows rows;
  TableId table = 0;
};

TEST_P(Checkpoints, WriteAHotPageOncePerLengthOfTheLog) {
  for (int i = 0; i < 2000; ++i)
    update(7, 300, static_cast<std::byte>(i));
  EXPECT_GE(count("log_truncations"), 5);
  EXPECT_EQ(count("checkpoints"), 0);
  const double lengths = count("log_bytes") / kept();
  EXPECT_GE(count("pages_cleaned"), 5);
  EXPECT_LE(count("pages_cleaned"), 1.1 * lengths + 1);
}

TEST_P(Checkpoints, WriteFewPagesAtATimeAndEachOnce) {
  // The pages of the hundred rows are dirtied in turn, then one hot row makes the log pass them by.
  double most = 0;
  double before = 0;
  const auto step = [&](std::uint64_t key) {
    update(key, 0, std::byte{9});
    most = std::max(most, count("pages_cleaned") - before);
    before = count("pages_cleaned");
  };
  for (std::uint64_t key = 1; key <= 100; ++key)
    step(key);
  EXPECT_EQ(before, 0) << "there is room in the log";
  for (int i = 0; i < 320; ++i)
    step(kRows);
  const double pages = 100 / 4.0 + 1;  // of the rows, and the hot one
  EXPECT_GE(before, pages);
  EXPECT_LE(before, pages + 2) << "the hot one again";
  EXPECT_LE(most, 2);
  EXPECT_EQ(count("checkpoints"), 0);
}

void Checkpoints::lose_nothing_in_crashes() {
  Random random(11);
  for (int i = 1; i <= 900; ++i) {
    // Popular rows, whose pages stay dirty over many truncations, and others.
    update(random.below(3) != 0 ? 1 + random.below(5) : 1 + random.below(kRows),
           static_cast<std::uint32_t>(random.below(900)), static_cast<std::byte>(random.next()));
    if (i % 60 != 0)
      continue;
    SimMemory later = memory.crash(memory.durability().sample(random));
    const auto restarted = engine_named<SimMemory>(options.engine).restart(later, options, engine->place());
    Payload found(kRowBytes);
    restarted->begin(later);
    for (const auto& [key, row] : rows) {
      ASSERT_TRUE(restarted->read(later, table, key, 0, found)) << key;
      ASSERT_EQ(found, row) << "row " << key << " after " << i << " transactions";
    }
    restarted->commit(later);
    ASSERT_EQ(restarted->check(later), "");
  }
  EXPECT_GE(count("log_truncations"), 3);
  EXPECT_GE(count("pages_cleaned"), 10);
}

TEST_P(Checkpoints, LoseNothingInACrash) { lose_nothing_in_crashes(); }

/// Rows are inserted, so pages are allocated all the time; the power fails at steps that make room in the log.
/// A page whose records have gone from the log must be in the map of pages by then.
void Checkpoints::lose_no_new_page_while_the_log_is_truncated() {
  Random random(12);
  std::uint64_t crashes = 0;
  const auto crash = [&] {
    if (random.below(32) != 0 || ::testing::Test::HasFailure())
      return;
    ++crashes;
    SimMemory later = memory.crash(memory.durability().sample(random));
    const auto restarted = engine_named<SimMemory>(options.engine).restart(later, options, engine->place());
    ASSERT_EQ(restarted->check(later), "") << "after " << rows.size() << " rows";
    Payload found(kRowBytes);
    restarted->begin(later);
    for (auto row = rows.rbegin(); row != rows.rend() && row->first > kRows; ++row) {
      ASSERT_TRUE(restarted->read(later, table, row->first, 0, found)) << row->first << " of " << rows.size();
      ASSERT_EQ(found, row->second);
    }
    restarted->commit(later);
  };
  for (std::uint64_t key = kRows + 1; key <= kRows + 160 && !HasFailure(); ++key) {
    const Payload row(kRowBytes, static_cast<std::byte>(random.next()));
    memory.on_persistence_step(crash);
    engine->begin(memory);
    memory.on_persistence_step({});
    ASSERT_TRUE(engine->insert(memory, table, key, row));
    engine->commit(memory);
    rows[key] = row;
  }
  EXPECT_GE(count("log_truncations"), 2);
  EXPECT_GE(crashes, 30U);
}

TEST_P(Checkpoints, LoseNoNewPageWhileTheLogIsTruncated) { lose_no_new_page_while_the_log_is_truncated(); }

class PacedCheckpoints : public Checkpoints {};

TEST_P(PacedCheckpoints, LoseNoNewPageWhileTheLogIsTruncated) { lose_no_new_page_while_the_log_is_truncated(); }

TEST_P(PacedCheckpoints, LoseNothingInACrash) { lose_nothing_in_crashes(); }

TEST_P(PacedCheckpoints, WritePagesThatWereChangedAtOneTimeOneAfterTheOther) {
  for (std::uint64_t key = 1; key <= 100; ++key)
    update(key, 0, std::byte{9});
  constexpr double pages = 25;  // of four rows
  const double begin = count("log_bytes");
  // One hot row until half of the log that there is has passed: half of the pages, and never two at once.
  double cleaned = count("pages_cleaned");
  while (count("log_bytes") - begin < kept() / 2) {
    update(kRows, 0, std::byte{1});
    EXPECT_LE(count("pages_cleaned") - cleaned, 1);
    cleaned = count("pages_cleaned");
  }
  EXPECT_GT(cleaned, pages / 4);
  EXPECT_LT(cleaned, pages);
  EXPECT_EQ(count("log_truncations"), 0) << "none was due";
}

TEST_P(PacedCheckpoints, TruncateTheLogByPieces) {
  double used = 0;
  for (int i = 0; i < 2000; ++i) {
    update(7, 300, static_cast<std::byte>(i));
    used = count("log_bytes");
  }
  // Each transaction that finds the log full frees about what it takes.
  const double full = (used - kept()) / (used / 2000);
  EXPECT_GT(count("log_truncations"), full / 2);
}

const auto kLogged = ::testing::Values("basic-nvm-bm", "file-bm", "redirect-bm", "ssd-bm", "three-tier",
                                       "spitfire", "main-memory");
std::string name_of(const ::testing::TestParamInfo<std::tuple<const char*, const char*>>& parameter) {
  std::string name = std::get<0>(parameter.param);
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Logged, Checkpoints, ::testing::Combine(kLogged, ::testing::Values("due")), name_of);
INSTANTIATE_TEST_SUITE_P(Logged, PacedCheckpoints, ::testing::Combine(kLogged, ::testing::Values("paced")),
                         name_of);

TEST(Checkpoints, KeepRandomSequencesRightWhereTheLogIsSmall) {
  for (const char* engine : {"basic-nvm-bm", "redirect-bm", "three-tier", "main-memory"}) {
    EngineOptions options = small_log(engine);
    if (options.engine != "main-memory")
      options.dram_bytes = 64 * kPageBytes;
    Plan plan{.options = options,
              .table = {"t", 8, kRowBytes},
              .rows = 120,
              .keys = 250,
              .transactions = 80,
              .operations = 8};
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      plan.options.cleaning = seed % 2 == 0 ? "paced" : "due";
      Sequence(plan, seed).run();
      if (HasFatalFailure())
        return;
    }
  }
}

}  // namespace
}  // namespace pmsim::engines::model
