#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine_wal_rig.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/wal/wal.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace {

using namespace pmsim;
using engines::EngineOptions;
using engines::PageId;
using engines::UndoRecord;
using engines::wal::Kind;
using engines::wal::Lsn;
using engines::wal::Record;
using engines::wal::Wal;
namespace rig = engines::wal::rig;
using memory::SimMemory;
using rig::Device;

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// One line per record, as replay() gives it.
std::string describe(const Record& record) {
  const std::string data(reinterpret_cast<const char*>(record.data.data()), record.data.size());
  return std::to_string(static_cast<int>(record.head.kind)) + " page " + std::to_string(record.head.name) +
         " " + std::to_string(record.head.a) + " " + std::to_string(record.head.b) + " " +
         std::to_string(record.head.bytes) + " " + data;
}

struct Replayed {
  std::vector<std::string> redo;
  std::vector<Lsn> lsns;
};

Replayed replay(Wal& wal, SimMemory& memory) {
  Replayed replayed;
  wal.replay(memory, [&](const Record& record, Lsn lsn, Lsn batch) {
    EXPECT_LE(batch, lsn);
    replayed.redo.push_back(describe(record));
    replayed.lsns.push_back(lsn);
  });
  return replayed;
}

UndoRecord undo_insert(std::uint64_t key) { return {UndoRecord::Kind::kInsert, 0, key, 0, {}}; }

class EngineWal : public testing::TestWithParam<Device> {
 protected:
  EngineOptions options_ = rig::options_of(GetParam());
  SimMemory memory_{{.persistence = memory::Persistence::kAdr}};
  Wal wal_{memory_, options_};

  std::optional<Wal> after_crash(SimMemory& memory) { return Wal::recover(memory, options_, wal_.place()); }
  void one_transaction(const std::string& text, PageId page) {
    wal_.begin();
    wal_.overwrite(memory_, page, 100, bytes_of(text));
    wal_.commit(memory_);
  }
};

TEST_P(EngineWal, ReplayGivesEveryRedoRecordInOrderWithTheLsnItWasGiven) {
  std::vector<Lsn> given;
  for (PageId page = 0; page < 3; ++page) {
    wal_.begin();
    wal_.note_undo(memory_, undo_insert(page));
    given.push_back(wal_.allocate(memory_, page));
    given.push_back(wal_.overwrite(memory_, page, 64, bytes_of("after" + std::to_string(page))));
    given.push_back(wal_.move(memory_, page, 200, 100, 60));
    given.push_back(wal_.release(memory_, page));
    EXPECT_TRUE(wal_.commit(memory_));
  }
  SimMemory later = memory_.crash({});
  auto recovered = after_crash(later);
  ASSERT_TRUE(recovered);
  const Replayed replayed = replay(*recovered, later);
  EXPECT_EQ(replayed.lsns, given);
  EXPECT_TRUE(std::ranges::is_sorted(given, std::less_equal<>{}));
  ASSERT_EQ(replayed.redo.size(), 12U);
  EXPECT_EQ(replayed.redo[4], "3 page 1 0 0 0 ");
  EXPECT_EQ(replayed.redo[5], "1 page 1 64 0 6 after1");
  EXPECT_EQ(replayed.redo[6], "2 page 1 200 100 60 ");
  EXPECT_EQ(replayed.redo[7], "4 page 1 0 0 0 ");
  EXPECT_FALSE(recovered->is_open());
}

TEST_P(EngineWal, ATransactionWithoutChangesIsNotLogged) {
  const std::uint64_t before = wal_.used();
  wal_.begin();
  EXPECT_FALSE(wal_.commit(memory_));
  wal_.begin();
  wal_.abort(memory_, [](const UndoRecord&) { FAIL() << "nothing to take back"; });
  EXPECT_EQ(wal_.used(), before);
}

TEST_P(EngineWal, ACrashInsideOfACommitLeavesTheWholeTransactionOrNothing) {
  one_transaction("first", 1);
  bool whole = false;
  bool nothing = false;
  Random random(7);
  wal_.begin();
  wal_.overwrite(memory_, 2, 64, bytes_of(std::string(300, 'x')));
  wal_.overwrite(memory_, 3, 64, bytes_of(std::string(300, 'y')));
  memory_.on_persistence_step([&] {
    for (int sample = 0; sample < 4; ++sample) {
      memory::DurableImage image;
      memory_.durability().sample_corners(random, image);
      SimMemory later = memory_.crash(image);
      auto recovered = after_crash(later);
      ASSERT_TRUE(recovered);
      const Replayed replayed = replay(*recovered, later);
      ASSERT_GE(replayed.redo.size(), 1U);
      ASSERT_EQ(replayed.redo[0], "1 page 1 100 0 5 first");
      ASSERT_TRUE(replayed.redo.size() == 1 || replayed.redo.size() == 3);
      (replayed.redo.size() == 3 ? whole : nothing) = true;
    }
  });
  wal_.commit(memory_);
  memory_.on_persistence_step({});
  EXPECT_TRUE(nothing);
  EXPECT_TRUE(whole);
  SimMemory later = memory_.crash(memory_.durability().sample(random));
  auto recovered = after_crash(later);
  EXPECT_EQ(replay(*recovered, later).redo.size(), 3U) << "a commit must be durable when it returns";
}

TEST_P(EngineWal, ATransactionThatOutgrowsTheBufferIsAppendedInPartsAndTakenBackAfterACrash) {
  one_transaction("first", 1);
  wal_.begin();
  for (std::uint64_t key = 0; key < 180; ++key) {
    wal_.note_undo(memory_, undo_insert(key));
    wal_.overwrite(memory_, 5, 64, bytes_of(std::string(200, 'z')));
  }
  std::map<std::string, double> counters;
  wal_.counters(counters);
  ASSERT_GE(counters["log_early_appends"], 2);
  SimMemory later = memory_.crash(memory_.durability().enumerate(1)->front());
  auto recovered = after_crash(later);
  const std::size_t redone = replay(*recovered, later).redo.size() - 1;
  ASSERT_TRUE(recovered->is_open());
  std::vector<std::uint64_t> taken_back;
  recovered->finish(later, [&](const UndoRecord& record) {
    EXPECT_EQ(record.kind, UndoRecord::Kind::kInsert);
    taken_back.push_back(record.key);
    recovered->note_undo(later, record);  // as a tree does that uses the same code: ignored
    recovered->overwrite(later, 5, 64, bytes_of("undone"));
  });
  ASSERT_EQ(taken_back.size(), redone) << "exactly the operations that redo has repeated";
  for (std::size_t at = 0; at < taken_back.size(); ++at)
    ASSERT_EQ(taken_back[at], taken_back.size() - 1 - at) << "the latest first";
  EXPECT_FALSE(recovered->is_open());

  auto again = after_crash(later);
  replay(*again, later);
  EXPECT_FALSE(again->is_open()) << "a transaction that is taken back stays so";
}

TEST_P(EngineWal, UndoThatIsCutShortGoesOnWhereItWas) {
  wal_.begin();
  for (std::uint64_t key = 0; key < 180; ++key) {
    wal_.note_undo(memory_, undo_insert(key));
    wal_.overwrite(memory_, 5, 64, bytes_of(std::string(200, 'z')));
  }
  SimMemory later = memory_.crash(memory_.durability().enumerate(1)->front());
  auto recovered = after_crash(later);
  replay(*recovered, later);
  struct Cut {};
  std::vector<std::uint64_t> first;
  try {
    recovered->finish(later, [&](const UndoRecord& record) {
      if (first.size() == 100)
        throw Cut{};
      first.push_back(record.key);
      recovered->overwrite(later, 5, 64, bytes_of(std::string(200, 'u')));
    });
    FAIL() << "not so many operations were logged";
  } catch (Cut) {
  }
  auto again = after_crash(later);
  replay(*again, later);
  ASSERT_TRUE(again->is_open());
  std::vector<std::uint64_t> second;
  again->finish(later, [&](const UndoRecord& record) { second.push_back(record.key); });
  // What was undone since the last early append of undo is not in the log: redo did not repeat it either.
  ASSERT_LT(second.front(), first.front()) << "some of undo had been appended";
  EXPECT_GE(second.front() + 1, first.back());
  EXPECT_EQ(second.back(), 0U);
  EXPECT_EQ(second.size(), second.front() + 1);
}

TEST_P(EngineWal, AbortTakesBackWhatIsInTheLogAndInTheBufferLatestFirst) {
  one_transaction("first", 1);
  const std::vector<std::byte> before = bytes_of("old bytes");
  for (const std::uint64_t operations : {3U, 200U}) {
    wal_.begin();
    for (std::uint64_t key = 0; key < operations; ++key) {
      wal_.note_undo(memory_, {UndoRecord::Kind::kUpdate, 3, key, 17, before});
      wal_.overwrite(memory_, 5, 64, bytes_of(std::string(150, 'z')));
    }
    std::uint64_t expected = operations;
    wal_.abort(memory_, [&](const UndoRecord& record) {
      EXPECT_EQ(record.kind, UndoRecord::Kind::kUpdate);
      EXPECT_EQ(record.table, 3);
      EXPECT_EQ(record.offset, 17U);
      EXPECT_TRUE(std::ranges::equal(record.before, before));
      EXPECT_EQ(record.key, --expected);
      wal_.overwrite(memory_, 5, 64, bytes_of("back"));
    });
    EXPECT_EQ(expected, 0U);
    SimMemory later = memory_.crash(memory_.durability().enumerate(1)->front());
    auto recovered = after_crash(later);
    EXPECT_EQ(replay(*recovered, later).redo.back(), "1 page 5 64 0 4 back");
    EXPECT_FALSE(recovered->is_open());
  }
}

TEST_P(EngineWal, TruncationDropsWhatPrecedesAndKeepsTheRest) {
  for (int round = 0; round < 40; ++round) {  // many passes over the space
    one_transaction("a", 1);
    one_transaction("b", 2);
    const Lsn keep = wal_.open_age();
    one_transaction(std::string(3000, 'c'), 3);
    one_transaction(std::string(3000, 'd'), 4);
    wal_.truncate_to(memory_, keep);
    // All is durable, but for poplog's mark of how far its space is clean, which need not be.
    const auto images = memory_.durability().enumerate(2);
    ASSERT_TRUE(images.has_value());
    for (const auto& image : *images) {
      SimMemory later = memory_.crash(image);
      auto recovered = after_crash(later);
      const Replayed replayed = replay(*recovered, later);
      ASSERT_EQ(replayed.redo.size(), 2U);
      EXPECT_EQ(replayed.redo[0].substr(0, 8), "1 page 3");
      EXPECT_EQ(replayed.redo[1].substr(0, 8), "1 page 4");
    }
    wal_.truncate_to(memory_, wal_.open_age());
    EXPECT_EQ(wal_.used(), 0U);
    EXPECT_FALSE(wal_.is_at_reserve());
  }
}

TEST_P(EngineWal, ATransactionLargerThanTheLogIsRefusedWithItsRemedy) {
  wal_.begin();
  std::string message;
  try {
    for (std::uint64_t key = 0; key < 4000; ++key) {
      wal_.note_undo(memory_, undo_insert(key));
      wal_.overwrite(memory_, 5, 64, bytes_of(std::string(200, 'z')));
    }
  } catch (const ConfigError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("raise log_bytes"), std::string::npos) << message;
  // What is left of the log is enough to take it back.
  std::uint64_t undone = 0;
  wal_.abort(memory_, [&](const UndoRecord&) {
    ++undone;
    wal_.overwrite(memory_, 5, 64, bytes_of(std::string(200, 'b')));
  });
  EXPECT_GT(undone, 100U);
}

INSTANTIATE_TEST_SUITE_P(Devices, EngineWal,
                         testing::Values(Device{"pmem", "poplog", "padded"}, Device{"pmem", "poplog", "naive"},
                                         Device{"pmem", "poplog", "dram-tail"},
                                         Device{"pmem", "classic", "naive"}, Device{"pmem", "rawl", "padded"},
                                         Device{"pmem", "header-dancing", "dram-tail"},
                                         Device{"ssd", "poplog", "padded"}),
                         rig::name_of);

TEST(EngineWalOptions, WhatCannotWorkIsRefusedByName) {
  const auto refusal = [](auto change) {
    EngineOptions options = rig::options_of({"pmem", "poplog", "padded"});
    change(options);
    return rig::refusal(options);
  };
  EXPECT_NE(refusal([](EngineOptions& o) { o.log_device = "tape"; }).find("log_device"), std::string::npos);
  EXPECT_NE(refusal([](EngineOptions& o) { o.log_algorithm = "pmemlog"; }).find("pmemlog"), std::string::npos);
  EXPECT_NE(refusal([](EngineOptions& o) { o.log_bytes = 90'000; }).find("log_bytes"), std::string::npos);
  EXPECT_NE(refusal([](EngineOptions& o) { o.log_buffer_bytes = 16384; }).find("log_buffer_bytes"),
            std::string::npos);
  EXPECT_EQ(refusal([](EngineOptions&) {}), "accepted");
}

/// The entries of a log on PMem have at most 256 MiB each, but a transaction and its rollback go into many.
TEST(EngineWalOptions, ATransactionMayBeAsLargeAsItsLogHasRoomFor) {
  EngineOptions options = rig::options_of({"pmem", "poplog", "padded"});
  options.log_bytes = std::uint64_t{2} << 30;
  options.log_buffer_bytes = 8 << 20;
  SimMemory memory(memory::SimOptions{.capacities = memory::Capacities::of(1 << 30, 4ULL << 30, 1 << 30)});
  Wal wal(memory, options);
  wal.begin();
  const std::string row(60'000, 'r');
  for (std::uint64_t key = 0; key < 1'300; ++key) {
    wal.note_undo(memory, {UndoRecord::Kind::kUpdate, 0, key, 0, bytes_of(row)});
    wal.overwrite(memory, 3, 64, bytes_of(row));
  }
  wal.commit(memory);
}

TEST(EngineWalOptions, ATransactionWithoutChangesTakesItsCallbackWithIt) {
  SimMemory memory;
  Wal wal(memory, rig::options_of({"pmem", "poplog", "padded"}));
  wal.begin();
  wal.on_placed([] { FAIL() << "that of a transaction which has been taken back"; });
  wal.abort(memory, [](const UndoRecord&) {});
  wal.begin();
  wal.overwrite(memory, 3, 64, bytes_of("new"));
  wal.commit(memory);
}

TEST(EngineWalCost, ACommitIsOneBarrierOfPoplog) {
  const EngineOptions options = rig::options_of({"pmem", "poplog", "padded"});
  SimMemory memory;
  Wal wal(memory, options);
  memory::Stream stream;
  memory.attach(stream);
  wal.begin();
  wal.note_undo(memory, {UndoRecord::Kind::kUpdate, 0, 1, 0, bytes_of(std::string(100, 'o'))});
  wal.overwrite(memory, 3, 64, bytes_of(std::string(100, 'n')));
  wal.commit(memory);
  const std::span<const memory::MicroOp> ops(stream.data(), stream.size());
  const auto fences =
      std::ranges::count_if(ops, [](const memory::MicroOp& op) { return op.kind == memory::OpKind::kSfence; });
  const auto flushes =
      std::ranges::count_if(ops, [](const memory::MicroOp& op) { return op.kind == memory::OpKind::kClwb; });
  EXPECT_EQ(fences, 1);
  // 16 (entry) + 8 (batch) + 2 records of 16 + 104 bytes = 264: five lines.
  EXPECT_EQ(flushes, 5);
}

}  // namespace
