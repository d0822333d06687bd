#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "../src/crash/subjects/turns.hpp"
#include "engine_model.hpp"
#include "pmsim/engines/wal/horizon.hpp"

/// What a thread does to the log and to the pages when its transaction begins (engines/wal/logged_store.hpp)
/// while the commit of another one is under way: longer and with more pages than the crash checker's subjects.

namespace pmsim::engines::model::overlap {
namespace {

constexpr std::uint32_t kPageBytes = 4096, kRowBytes = 1000;  // four rows in a page
constexpr std::uint64_t kRows = 400;
constexpr std::uint64_t kOwn = 24;  ///< keys, first half of them there, of the thread whose commit takes long
constexpr int kRounds = 60, kMeanwhile = 200;

struct Setup {
  const char* engine;
  const char* commits;  ///< "group" of one log on SSD, or "single" of a log for each thread
  std::uint64_t frames;
};

EngineOptions options_of(const Setup& setup) {
  EngineOptions options;
  options.engine = setup.engine;
  options.page_bytes = kPageBytes;
  options.dram_bytes = setup.frames * (kPageBytes + 256);
  options.threads = 2;
  options.commits = setup.commits;
  options.log_buffer_bytes = 6 * kPageBytes;
  options.log_bytes = 2560 << 10;
  if (options.engine != "main-memory")
    options.ssd_bytes = 200 * kPageBytes;
  if (options.engine == "three-tier")
    options.pmem_bytes = 20 * kPageBytes;
  if (options.commits == "group") {
    options.log_device = "ssd";
  } else {
    options.logs = "per-thread";
    options.log_bytes = options.log_bytes * options.threads + wal::Horizon::kBytes;
  }
  return options;
}

class Overlap : public ::testing::TestWithParam<Setup> {
 protected:
  Overlap() {
    for (std::uint64_t key = 1; key <= kRows; ++key) {
      if (key <= kOwn / 2 || key > kOwn)
        rows_[key] = Payload(kRowBytes, static_cast<std::byte>(key));
    }
    MapSource source(rows_);
    table_ = engine_->load(memory_, {"t", 8, kRowBytes}, source, 1.0);
    memory_.mark_sections();
  }

  /// Some rows of the thread's own: its commit stops until the other one has run so many transactions, or
  /// waits.
  void slow_transaction() {
    work_as(1);
    engine_->begin(memory_);
    const double before = written();
    pending_ = Rows(rows_.begin(), rows_.upper_bound(kOwn));
    for (int i = 0; i < 3; ++i)
      change(1 + random_.below(kOwn), *pending_);
    stops_ = true;
    if (options_.commits == "group")
      engine_->on_placed([this] { stop(); });
    engine_->commit(memory_);
    stops_ = false;
    rows_ = with_pending();
    pending_.reset();
    if (written() > before)
      crash();
  }
  void others() {
    for (int i = 0; i < kMeanwhile && !HasFailure(); ++i) {
      work_as(0);
      const bool beside = pending_.has_value();
      const double before = written();
      engine_->begin(memory_);
      if (beside && written() > before)
        crash();
      update(kOwn + 1 + random_.below(kRows - kOwn), rows_);
      engine_->commit(memory_);
    }
  }
  void rounds() {
    memory_.on_persistence_step([this] {
      if (options_.commits != "group" && stops_ && memory_.section() == memory::Section::kLog)
        stop();
    });
    for (int round = 0; round < kRounds && !HasFailure(); ++round) {
      memory_.on_latch_wait([this] { change_turns(); });
      turns_.run([this] { slow_transaction(); }, [this] { others(); });
      memory_.on_latch_wait({});
    }
  }
  double written() { return count("log_truncations") + count("pages_cleaned"); }
  double count(const char* name) { return engine_->counters().at(name); }

  std::uint64_t crashes_ = 0;  ///< after something was written back or truncated beside the slow transaction

 private:
  /// The rows if the transaction is committed whose commit is under way.
  [[nodiscard]] Rows with_pending() const {
    Rows rows = pending_.value_or(Rows{});
    rows.insert(rows_.upper_bound(pending_ ? kOwn : 0), rows_.end());
    return rows;
  }
  /// Pages come into being and are gone again.
  void change(std::uint64_t key, Rows& rows) {
    if (!rows.contains(key)) {
      rows[key] = Payload(kRowBytes, static_cast<std::byte>(random_.next()));
      ASSERT_TRUE(engine_->insert(memory_, table_, key, rows[key]));
    } else if (random_.below(2) == 0) {
      rows.erase(key);
      ASSERT_TRUE(engine_->erase(memory_, table_, key));
    } else {
      update(key, rows);
    }
  }
  void update(std::uint64_t key, Rows& rows) {
    const Payload bytes(900, static_cast<std::byte>(random_.next()));
    ASSERT_TRUE(engine_->update(memory_, table_, key, 50, bytes));
    std::ranges::copy(bytes, rows[key].begin() + 50);
  }
  /// Each thread has its own flushes and fences.
  void work_as(std::uint32_t thread) {
    memory_.attach(ignored_, thread);
    memory_.detach();
    engine_->work_as(thread);
  }
  void stop() {
    stops_ = false;
    change_turns();
  }
  void change_turns() {
    const auto thread = static_cast<std::uint32_t>(1 - turns_.running());
    const memory::Section section = memory_.enter(memory::Section::kWork);
    ASSERT_TRUE(turns_.yield());
    work_as(thread);
    static_cast<void>(memory_.enter(section));
  }
  void crash() {
    ++crashes_;
    SimMemory later = memory_.crash(memory_.durability().sample(random_));
    const auto restarted = engine_named<SimMemory>(options_.engine).restart(later, options_, engine_->place());
    ASSERT_EQ(restarted->check(later), "");
    const Rows found = all_rows(later, *restarted, table_, kRowBytes);
    EXPECT_TRUE(found == rows_ || found == with_pending())
        << "after crash " << crashes_ << (pending_ ? ", in the commit" : "");
  }

  EngineOptions options_ = options_of(GetParam());
  SimMemory memory_{{.persistence = memory::Persistence::kAdr}};
  std::unique_ptr<Engine<SimMemory>> engine_ =
      engine_named<SimMemory>(options_.engine).create(memory_, options_);
  memory::Stream ignored_;
  Rows rows_;                    ///< acknowledged
  std::optional<Rows> pending_;  ///< all up to kOwn, of the transaction whose commit is under way
  TableId table_ = 0;
  crash::Turns turns_;
  bool stops_ = false;  ///< the commit has begun, and not stopped yet
  Random random_{3};
};

TEST_P(Overlap, WritingBackAndTruncatingLeavesWhatACommitUnderWayNeeds) {
  rounds();
  EXPECT_GE(count("log_truncations"), 5);
  EXPECT_GE(crashes_, 10U);
}

std::string name_of(const ::testing::TestParamInfo<Setup>& info) {
  std::string name = std::string(info.param.engine) + "_" + info.param.commits;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Engines, Overlap,
                         ::testing::Values(Setup{"main-memory", "single", 200}, Setup{"ssd-bm", "single", 10},
                                           Setup{"ssd-bm", "group", 10}, Setup{"three-tier", "single", 10}),
                         name_of);

}  // namespace
}  // namespace pmsim::engines::model::overlap
