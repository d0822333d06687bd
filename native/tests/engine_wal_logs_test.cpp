#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine_wal_rig.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/wal/wal.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// The write-ahead log where every thread has one of its own.
namespace {

using namespace pmsim;
using engines::EngineOptions;
using engines::PageId;
using engines::UndoRecord;
using engines::wal::CommitOrder;
using engines::wal::Lsn;
using engines::wal::Record;
using engines::wal::Wal;
namespace rig = engines::wal::rig;
using memory::LatchMode;
using memory::MicroOp;
using memory::OpKind;
using memory::SimMemory;
using rig::Device;

constexpr std::uint32_t kThreads = 3;

/// What a restart finds.
struct Found {
  std::map<PageId, std::vector<std::string>> changes;  ///< of each page, in the order of redo
  std::vector<Lsn> lsns;
};

Found found_by(Wal& wal, SimMemory& memory) {
  Found found;
  wal.replay(memory, [&](const Record& record, Lsn lsn, Lsn) {
    found.changes[record.head.name].emplace_back(reinterpret_cast<const char*>(record.data.data()),
                                                 record.data.size());
    found.lsns.push_back(lsn);
  });
  return found;
}
Found found_by(std::optional<Wal> wal, SimMemory& memory) { return found_by(wal.value(), memory); }

class EngineWalLogs : public testing::TestWithParam<Device> {
 protected:
  /// A change of a page by the open transaction, as a store makes it.
  void change(Wal& wal, SimMemory& memory, PageId page, const std::string& text) {
    wal.follow(lsns_[page]);
    lsns_[page] = wal.overwrite(memory, page, 64, std::as_bytes(std::span(text)));
    made_[page].push_back(text);
  }
  void begin(std::uint32_t thread) {
    stream_.clear();
    memory_.attach(stream_, thread);
    wal_.work_as(thread);
    wal_.prepare(memory_);
    wal_.begin();
  }
  void commit() {
    wal_.commit(memory_);
    memory_.detach();
  }
  void one_change(std::uint32_t thread, PageId page, const std::string& text) {
    begin(thread);
    change(wal_, memory_, page, text);
    commit();
  }
  /// Micro-operations of the latest transaction of some kind.
  [[nodiscard]] std::vector<std::size_t> places(OpKind kind, std::optional<LatchMode> mode = {}) const {
    std::vector<std::size_t> found;
    for (std::size_t at = 0; at < stream_.size(); ++at) {
      const MicroOp& op = stream_[at];
      if (op.kind == kind && (!mode || op.flags == static_cast<std::uint8_t>(*mode)))
        found.push_back(at);
    }
    return found;
  }
  [[nodiscard]] std::size_t first_change_of_the_log() const {
    std::size_t at = 0;
    while (at < stream_.size() && (stream_[at].kind == OpKind::kCompute ||
                                   memory::medium_of(stream_[at].address) == memory::Medium::kDram))
      ++at;
    return at;
  }
  [[nodiscard]] SimMemory crashed() {
    Random random(1);
    return memory_.crash(memory_.durability().sample(random));
  }
  std::optional<Wal> after_crash(SimMemory& memory) { return Wal::recover(memory, options_, wal_.place()); }

  EngineOptions options_ = rig::options_of(GetParam(), kThreads);
  SimMemory memory_{{.persistence = memory::Persistence::kAdr}};
  Wal wal_{memory_, options_};
  memory::Stream stream_;
  std::map<PageId, Lsn> lsns_;                       ///< what the pages' headers say
  std::map<PageId, std::vector<std::string>> made_;  ///< all changes, by page
};

TEST_P(EngineWalLogs, RedoRepeatsThePagesChangesInTheirOrder) {
  Random random(3);
  std::uint64_t changes = 0;
  for (int transaction = 0; transaction < 300; ++transaction) {
    // One thread has twice as much to do: its time runs ahead of the others'.
    begin(std::min<std::uint32_t>(static_cast<std::uint32_t>(random.below(kThreads + 1)), kThreads - 1));
    for (std::uint64_t left = 1 + random.below(3); left > 0; --left)
      change(wal_, memory_, random.below(6), std::to_string(++changes));
    commit();
  }
  SimMemory later = crashed();
  auto recovered = after_crash(later);
  ASSERT_TRUE(recovered);
  const Found found = found_by(*recovered, later);
  EXPECT_EQ(found.changes, made_);
  EXPECT_EQ(found.lsns.size(), changes);
  EXPECT_TRUE(std::ranges::is_sorted(found.lsns, std::less_equal<>{})) << "no two changes have one LSN";
  EXPECT_FALSE(recovered->is_open());
}

TEST_P(EngineWalLogs, ATransactionWaitsForWhoeverHasChangedItsPageBefore) {
  begin(0);
  change(wal_, memory_, 5, "a");
  change(wal_, memory_, 6, "a");
  commit();
  const std::vector<std::size_t> held = places(OpKind::kAcquire, LatchMode::kExclusive);
  ASSERT_EQ(held.size(), 1U);
  ASSERT_EQ(places(OpKind::kRelease).size(), 1U);
  const memory::Address latch = stream_[held.front()].address;
  EXPECT_EQ(stream_[places(OpKind::kRelease).front()].address, latch);
  EXPECT_LT(first_change_of_the_log(), places(OpKind::kRelease).front());
  EXPECT_EQ(places(OpKind::kAcquire, LatchMode::kOptimistic).size(), 0U) << "nobody was there before";

  one_change(1, 5, "b");
  const std::vector<std::size_t> waits = places(OpKind::kAcquire, LatchMode::kOptimistic);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(stream_[waits.front()].address, latch);
  EXPECT_LT(waits.front(), first_change_of_the_log()) << "before its own batch can become durable";

  one_change(1, 5, "c");
  EXPECT_EQ(places(OpKind::kAcquire, LatchMode::kOptimistic).size(), 0U) << "its own change";
  one_change(1, 6, "d");
  EXPECT_EQ(places(OpKind::kAcquire, LatchMode::kOptimistic).size(), 0U)
      << "it has seen that the transaction is durable";
  one_change(2, 7, "e");
  EXPECT_EQ(places(OpKind::kAcquire, LatchMode::kOptimistic).size(), 0U) << "a page of its own";
}

TEST_P(EngineWalLogs, ThreadsWithPagesOfTheirOwnShareNoLineThatIsWritten) {
  std::map<memory::Address, std::uint32_t> writers;
  for (int round = 0; round < 40; ++round) {
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      one_change(thread, thread, "mine");
      for (std::size_t at = 0; at < stream_.size(); ++at) {
        const MicroOp& op = stream_[at];
        const bool writes = op.kind == OpKind::kStore || op.kind == OpKind::kStreamStore ||
                            op.kind == OpKind::kAtomic || op.kind == OpKind::kAcquire;
        if (writes) {
          EXPECT_EQ(writers.try_emplace(op.address / memory::kLineBytes, thread).first->second, thread);
        }
      }
    }
  }
  EXPECT_EQ(CommitOrder::log_of(lsns_[2]), 2U);
}

TEST_P(EngineWalLogs, EveryLogsTransactionWithoutEndIsTakenBack) {
  one_change(2, 9, "whole");
  const auto fill = [&](Wal& wal, SimMemory& memory, std::uint32_t thread) {
    wal.work_as(thread);
    wal.prepare(memory);
    wal.begin();
    for (std::uint64_t key = 0; key < 180; ++key) {
      wal.note_undo(memory, {UndoRecord::Kind::kInsert, static_cast<std::uint16_t>(thread), key, 0, {}});
      change(wal, memory, thread, std::string(200, 'z'));
    }
  };
  fill(wal_, memory_, 0);
  Random random(5);
  SimMemory second = memory_.crash(memory_.durability().sample(random));
  auto once = after_crash(second);
  fill(*once, second, 1);
  SimMemory third = second.crash(second.durability().sample(random));
  auto twice = after_crash(third);
  const Found found = found_by(*twice, third);
  ASSERT_TRUE(twice->is_open());
  EXPECT_EQ(found.changes.at(9).size(), 1U);
  std::map<std::uint16_t, std::vector<std::uint64_t>> undone;
  std::vector<Lsn> ends;
  twice->finish(
      third,
      [&](const UndoRecord& record) {
        undone[record.table].push_back(record.key);
        change(*twice, third, record.table, "undone");
      },
      [&](Lsn age) { ends.push_back(age); });
  EXPECT_FALSE(twice->is_open());
  EXPECT_EQ(ends.size(), 2U);
  for (const std::uint16_t thread : {std::uint16_t{0}, std::uint16_t{1}}) {
    ASSERT_EQ(undone[thread].size(), found.changes.at(thread).size());
    EXPECT_TRUE(std::ranges::is_sorted(undone[thread], std::greater<>{}));
  }
  auto again = after_crash(third);
  EXPECT_EQ(found_by(*again, third).changes.at(1).back(), "undone");
  EXPECT_FALSE(again->is_open());
}

TEST_P(EngineWalLogs, WhatAPageNeedsStaysInEveryLogUntilItIsYoungEnough) {
  const std::string large(3000, 'x');
  begin(1);
  const Lsn old = wal_.open_age();
  change(wal_, memory_, 1, "old");
  commit();
  for (int round = 0; round < 20; ++round) {
    one_change(0, 10, large);
    one_change(1, 11, large);
  }
  EXPECT_LT(old, wal_.open_age());
  EXPECT_GT(wal_.used(), 60'000U);
  for (const std::uint32_t thread : {0, 1}) {
    wal_.work_as(thread);
    wal_.truncate_to(memory_, old);
  }
  SimMemory later = crashed();
  EXPECT_EQ(found_by(after_crash(later), later).changes.at(1).size(), 1U);

  begin(1);
  const std::uint64_t before = wal_.used();
  const Lsn young = wal_.open_age();
  change(wal_, memory_, 2, "young");
  commit();
  wal_.truncate_to(memory_, young);
  EXPECT_LT(wal_.used(), before / 10);
  wal_.work_as(0);
  EXPECT_GT(wal_.used(), 60'000U) << "another thread's log is that thread's business";
  SimMemory last = crashed();
  const Found found = found_by(after_crash(last), last);
  EXPECT_FALSE(found.changes.contains(1));
  EXPECT_EQ(found.changes.at(2).size(), 1U);
  wal_.truncate_all(memory_);
  SimMemory empty = crashed();
  EXPECT_TRUE(found_by(after_crash(empty), empty).lsns.empty());
}

TEST_P(EngineWalLogs, CleaningIsDueForPagesThatFillALogAndNoOthers) {
  const std::string large(3000, 'x');
  std::vector<Lsn> ages;
  while (!wal_.cleaning_is_due()) {
    begin(0);
    ages.push_back(wal_.open_age());
    change(wal_, memory_, 10, large);
    commit();
  }
  const Lsn due = wal_.due_age();
  EXPECT_GT(due, ages.front());
  EXPECT_LT(due, ages.back());
  wal_.truncate_to(memory_, due);
  EXPECT_FALSE(wal_.cleaning_is_due());
  EXPECT_GT(wal_.used(), wal_.capacity() / 2) << "no more than is due";
}

TEST_P(EngineWalLogs, LsnsOfALaterLifeAreLater) {
  for (int round = 0; round < 50; ++round)
    one_change(static_cast<std::uint32_t>(round) % kThreads, 1, "before");
  const Lsn before = lsns_[1];
  wal_.truncate_all(memory_);
  SimMemory later = crashed();
  auto recovered = after_crash(later);
  ASSERT_TRUE(found_by(*recovered, later).lsns.empty());
  for (const std::uint32_t thread : {0, 1, 2}) {
    recovered->work_as(thread);
    recovered->prepare(later);
    recovered->begin();
    EXPECT_GT(recovered->allocate(later, 1), before) << "of a page whose header is not asked";
    recovered->commit(later);
  }
}

TEST_P(EngineWalLogs, APageIsReleasedBeforeAnotherThreadAllocatesIt) {
  for (int round = 0; round < 9; ++round)
    one_change(0, 1, "ahead");
  begin(0);
  wal_.follow(lsns_[1]);
  const Lsn released = wal_.release(memory_, 1);
  commit();
  begin(1);
  EXPECT_GT(wal_.allocate(memory_, 1), released);
  commit();
  EXPECT_EQ(places(OpKind::kAcquire, LatchMode::kOptimistic).size(), 1U)
      << "it waits until the release is durable";
}

/// The buffer manager asks for every page that it writes back, also in the middle of an operation.
TEST_P(EngineWalLogs, APageOfAnotherThreadForcesNothing) {
  for (int round = 0; round < 2; ++round)
    one_change(0, 1, "ahead");
  begin(1);
  wal_.note_undo(memory_, {UndoRecord::Kind::kInsert, 0, 1, 0, {}});
  wal_.force(memory_, lsns_[1]);
  change(wal_, memory_, 2, "mine");
  ASSERT_LT(lsns_[2], lsns_[1]);
  wal_.force(memory_, lsns_[1]);
  EXPECT_EQ(wal_.used(), 0U);
  wal_.force(memory_, lsns_[2]);
  EXPECT_GT(wal_.used(), 0U);
  commit();
}

TEST_P(EngineWalLogs, WhatIsOverIsNotRedoneFromALogThatHasBeenTruncatedLess) {
  begin(0);
  lsns_[1] = wal_.allocate(memory_, 1);
  commit();
  begin(1);
  wal_.follow(lsns_[1]);
  static_cast<void>(wal_.release(memory_, 1));
  commit();
  for (int round = 0; round < 20; ++round)
    one_change(1, 2, std::string(3000, 'x'));
  begin(1);
  const Lsn age = wal_.open_age();
  change(wal_, memory_, 3, "young");
  commit();
  wal_.truncate_to(memory_, age);
  SimMemory later = crashed();
  const Found found = found_by(after_crash(later), later);
  EXPECT_EQ(found.changes.size(), 1U)
      << "the release is gone; so must the allocation be, which thread 0's log has";
  EXPECT_EQ(found.changes.at(3).size(), 1U);
}

/// Transactions of threads 0 and 1 that have not ended, both of which have changed page 7; and then thread 1
/// does something. Where it waits, thread 0 commits.
class EngineWalOverlap : public EngineWalLogs {
 protected:
  void begin_both() {
    one_change(0, 7, "before");
    begin(0);
    change(wal_, memory_, 7, "of thread 0");
    begin(1);
    wal_.note_undo(memory_, {UndoRecord::Kind::kInsert, 0, 1, 0, {}});
    change(wal_, memory_, 7, "of thread 1");
    memory_.on_latch_wait([this] {
      ++waits_;
      wal_.work_as(0);
      wal_.commit(memory_);
      wal_.work_as(1);
    });
  }
  int waits_ = 0;
};

TEST_P(EngineWalOverlap, ABatchWaitsForATransactionThatHasNotEnded) {
  begin_both();
  commit();
  EXPECT_EQ(waits_, 1);
  SimMemory later = crashed();
  EXPECT_EQ(found_by(after_crash(later), later).changes, made_);
}

TEST_P(EngineWalOverlap, APartWaitsAsWell) {
  begin_both();
  change(wal_, memory_, 8, std::string(options_.log_buffer_bytes / 2, 'x'));
  EXPECT_EQ(waits_, 0);
  wal_.note_undo(memory_, {UndoRecord::Kind::kInsert, 0, 2, 0, {}});
  EXPECT_EQ(waits_, 1);
  EXPECT_GT(wal_.used(), 0U) << "it is a part of the log";
}

TEST_P(EngineWalOverlap, WhatIsForcedWaitsAsWell) {
  begin_both();
  wal_.force(memory_, lsns_[7]);
  EXPECT_EQ(waits_, 1);
  EXPECT_GT(wal_.used(), 0U);
}

TEST_P(EngineWalOverlap, APageIsNotWrittenBackBeforeItsTransactionIsDurable) {
  one_change(0, 7, "before");
  const Lsn before = lsns_[7];
  begin_both();
  begin(2);
  wal_.force(memory_, before);
  EXPECT_EQ(waits_, 0) << "that has been durable for long";
  wal_.work_as(0);
  change(wal_, memory_, 9, "of thread 0");
  wal_.work_as(2);
  wal_.force(memory_, lsns_[9]);
  EXPECT_EQ(waits_, 1);
}

TEST_P(EngineWalOverlap, BeforeTheMapOfPagesIsWrittenNobodyHasBegun) {
  begin_both();
  wal_.settle(memory_);
  EXPECT_EQ(waits_, 1);
  wal_.settle(memory_);
  EXPECT_EQ(waits_, 1) << "nobody else is left";
}

TEST_P(EngineWalOverlap, NobodysChangesAreOlderThanWhatOthersSay) {
  EXPECT_EQ(wal_.others_age(), Wal::kNoAge);
  begin(0);
  const Lsn age = wal_.open_age();
  EXPECT_EQ(wal_.others_age(), Wal::kNoAge) << "its own";
  begin(1);
  EXPECT_GT(wal_.open_age(), age);
  EXPECT_EQ(wal_.others_age(), age);
}

const auto kDevices = testing::Values(Device{"pmem", "poplog", "padded"}, Device{"ssd", "poplog", "padded"});
INSTANTIATE_TEST_SUITE_P(Devices, EngineWalOverlap, kDevices, rig::name_of);
INSTANTIATE_TEST_SUITE_P(Devices, EngineWalLogs,
                         testing::Values(Device{"pmem", "poplog", "padded"}, Device{"pmem", "rawl", "naive"},
                                         Device{"pmem", "classic", "dram-tail"},
                                         Device{"ssd", "poplog", "padded"}),
                         rig::name_of);

/// A batch has its place in a group, and its thread waits until that is durable; meanwhile others run.
TEST(EngineWalGroups, WhoNeedsAMemberOfAGroupMakesItDurable) {
  EngineOptions options = rig::options_of({"ssd", "poplog", "padded"});
  options.threads = 2;
  options.commits = "group";
  SimMemory memory({.persistence = memory::Persistence::kAdr});
  Wal wal(memory, options);
  const auto change = [&](std::uint32_t thread, const std::string& text) {
    wal.work_as(thread);
    wal.begin();
    return wal.overwrite(memory, thread, 64, std::as_bytes(std::span(text)));
  };
  // What a crash leaves at worst: no sector that need not be there.
  const auto found = [&] {
    memory::DurableImage least;
    const std::vector<memory::UncertainCell> cells = memory.durability().cells(1'000'000).value();
    for (const memory::UncertainCell& cell : cells)
      least.push_back({cell.address, cell.contents.front().bytes});
    SimMemory later = memory.crash(least);
    return found_by(Wal::recover(later, options, wal.place()), later).lsns.size();
  };
  const Lsn begin = wal.open_age();
  const Lsn lsn = change(0, "of thread 0");
  int placed = 0;
  wal.on_placed([&] {
    ++placed;
    static_cast<void>(change(1, "of thread 1"));
    EXPECT_EQ(wal.others_age(), begin);
    EXPECT_EQ(found(), 0U);
    wal.force(memory, lsn);
    EXPECT_EQ(found(), 1U) << "its page may be written back";
    wal.commit(memory);
    EXPECT_EQ(found(), 2U);
    wal.work_as(0);
  });
  wal.commit(memory);
  EXPECT_EQ(placed, 1);
  EXPECT_EQ(wal.others_age(), Wal::kNoAge);
  std::map<std::string, double> counters;
  wal.counters(counters);
  EXPECT_EQ(counters["log_bytes"], 2 * memory::kSectorBytes) << "each batch counts once";
}

TEST(EngineWalLogsOptions, WhatCannotWorkIsRefusedByName) {
  const auto refusal = [](auto change) {
    EngineOptions options = rig::options_of({"pmem", "poplog", "padded"}, kThreads);
    change(options);
    return rig::refusal(options);
  };
  EXPECT_NE(refusal([](EngineOptions& o) { o.logs = "many"; }).find("logs = \"many\""), std::string::npos);
  EXPECT_NE(refusal([](EngineOptions& o) { o.log_device = "unwritten"; }).find("log_device"),
            std::string::npos);
  EXPECT_NE(refusal([](EngineOptions& o) { o.threads = 300; }).find("threads"), std::string::npos);
  EXPECT_NE(refusal([](EngineOptions& o) { o.log_bytes = 256 << 10; }).find("of each thread"),
            std::string::npos);
  EXPECT_NE(refusal([](EngineOptions& o) { o.log_bytes = 256; }).find("log_size: a place"), std::string::npos)
      << "no room for what several logs have in common";
  EXPECT_EQ(refusal([](EngineOptions&) {}), "accepted");
}

}  // namespace
