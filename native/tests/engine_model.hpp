#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/core/same_bytes.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// Random sequences of operations against every engine, and a std::map beside it that must say the same.
namespace pmsim::engines::model {

using memory::SimMemory;
using Payload = std::vector<std::byte>;
using Rows = std::map<std::uint64_t, Payload>;

/// All rows of a table, by a full scan in a transaction of its own.
template <memory::Memory M>
Rows all_rows(M& memory, Engine<M>& engine, TableId table, std::uint32_t payload_bytes) {
  Rows found;
  engine.begin(memory);
  engine.scan(memory, table, 0, ~std::uint64_t{0}, 0, payload_bytes, ScanMode::kFullPages,
              [&](std::uint64_t key, std::span<const std::byte> row) {
                found[key].assign(row.begin(), row.end());
                return true;
              });
  engine.commit(memory);
  return found;
}

/// Of the engines that run on this memory.
template <memory::Memory M>
std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineKind<M>& kind : engine_kinds<M>())
    names.emplace_back(kind.name);
  return names;
}

/// Rows of a map, for bulk loading.
class MapSource final : public RowSource {
 public:
  explicit MapSource(const Rows& rows) : rows_(rows), next_(rows.begin()) {}
  [[nodiscard]] std::uint64_t rows() const override { return rows_.size(); }
  std::uint64_t next(std::span<std::byte> payload) override {
    std::copy(next_->second.begin(), next_->second.end(), payload.begin());
    return (next_++)->first;
  }

 private:
  const Rows& rows_;
  Rows::const_iterator next_;
};

/// What a sequence is about.
struct Plan {
  EngineOptions options;
  TableSpec table;
  std::uint64_t rows = 0;  ///< loaded
  std::uint64_t keys = 0;  ///< keys are below: about as many hits as misses when twice the rows
  double fill = 0.66;
  bool restarts = true;  ///< crashes and clean restarts too; needs an engine that is durable
  int transactions = 40;
  std::uint64_t operations =
      120;  ///< of a transaction, at most: with no-steal what it changes must fit into DRAM
};

/// One sequence. Every difference is a failure of the test that runs it; `context` is part of the message.
class Sequence {
 public:
  Sequence(const Plan& plan, std::uint64_t seed)
      : plan_(plan),
        random_(seed),
        context_(plan.options.engine + ", " + plan.options.leaf_layout + " leaves, seed " +
                 std::to_string(seed)),
        memory_(std::make_unique<SimMemory>(memory::SimOptions{
            .persistence = plan.restarts ? memory::Persistence::kAdr : memory::Persistence::kUntracked})) {}

  void run() {
    const auto& kind = engine_named<SimMemory>(plan_.options.engine);
    engine_ = kind.create(*memory_, plan_.options);
    while (committed_.size() < plan_.rows)
      committed_[random_.below(plan_.keys)] = payload();
    {
      MapSource source(committed_);
      table_ = engine_->load(*memory_, plan_.table, source, plan_.fill);
    }
    compare_all();
    for (int at = 0; at < plan_.transactions && !::testing::Test::HasFatalFailure(); ++at) {
      if (at % 8 == 0)
        next_phase();
      if (plan_.options.threads > 1)
        take_turn();
      transaction();
      if (plan_.options.threads > 1)
        check_latches();
      const std::uint64_t next = random_.below(100);
      if (next < 6)
        engine_->checkpoint(*memory_);
      if (next >= 6 && next < 12 && plan_.restarts)
        restart(true);
      if (next % 8 == 0)
        check();
    }
    if (!::testing::Test::HasFatalFailure())
      compare_all();
  }

  [[nodiscard]] std::map<std::string, double> counters() const { return engine_->counters(); }
  [[nodiscard]] std::uint64_t acquired() const noexcept { return acquired_; }
  /// Transactions of other logs that a commit has waited for.
  [[nodiscard]] std::uint64_t awaited() const noexcept { return awaited_; }

 private:
  void take_turn() {
    const auto thread = static_cast<std::uint32_t>(random_.below(plan_.options.threads));
    engine_->work_as(thread);
    stream_.clear();
    memory_->attach(stream_, thread);
  }
  /// Of what the transaction did: all latches have been given up, and nobody waits with one of those inside of
  /// the engine in hand (latches.hpp). Its own latch in the order of commits it holds all the time, and waits
  /// for others' with nothing else in hand (wal/commit_order.hpp).
  void check_latches() {
    memory_->detach();
    if (stream_.empty())
      return;  // the engine has restarted
    const memory::Address pages = engine_->place().latches;
    ASSERT_NE(pages, 0U) << context_;
    const std::uint64_t most = std::uint64_t{1} << 20;
    const memory::Address commits =
        plan_.options.logs == "per-thread" ? engine_->place().log_buffer : memory::Address{0};
    std::multiset<memory::Address> held;
    std::uint64_t inside = 0;
    bool committing = false;
    static constexpr auto kOptimistic = static_cast<std::uint8_t>(memory::LatchMode::kOptimistic);
    for (std::size_t at = 0; at < stream_.size(); ++at) {
      const memory::MicroOp& op = stream_[at];
      const bool of_page = op.address >= pages && op.address < pages + most;
      if (commits != 0 && op.address >= commits && op.address < commits + most) {
        if (op.kind == memory::OpKind::kRelease) {
          ASSERT_TRUE(std::exchange(committing, false)) << context_;
        } else if (op.kind == memory::OpKind::kAcquire && op.flags != kOptimistic) {
          ASSERT_FALSE(std::exchange(committing, true)) << context_;
        } else if (op.kind == memory::OpKind::kAcquire) {
          ++awaited_;
          ASSERT_TRUE(held.empty() && committing) << context_ << ": a transaction waits with a latch in hand";
        }
        continue;
      }
      if (op.kind == memory::OpKind::kAcquire && op.flags == kOptimistic && held.contains(op.address))
        continue;  // looked at again: a page below has been brought in
      if (op.kind == memory::OpKind::kAcquire) {
        ++acquired_;
        ASSERT_EQ(inside, 0U) << context_ << ": a latch is acquired behind one of the engine's inside";
        held.insert(op.address);
        inside += of_page ? 0 : 1;
        ASSERT_LE(held.size(), 5U) << context_;
      } else if (op.kind == memory::OpKind::kRelease) {
        const auto found = held.find(op.address);
        ASSERT_NE(found, held.end()) << context_ << ": a latch is released that was not acquired";
        held.erase(found);
        inside -= of_page ? 0 : 1;
      }
    }
    ASSERT_TRUE(held.empty() && !committing) << context_ << ": a latch is still held after the transaction";
  }

  /// Where leaves only fill or only empty, they split and merge: operations of a phase are of one kind mostly,
  /// and on few of the keys.
  void next_phase() {
    width_ = random_.below(3) == 0 ? plan_.keys : std::max<std::uint64_t>(plan_.keys / 10, 1);
    first_ = random_.below(plan_.keys - width_ + 1);
    static constexpr std::array<std::array<int, 2>, 4> kMixes{{{20, 45}, {0, 80}, {80, 80}, {60, 75}}};
    const auto& mix = kMixes[random_.below(kMixes.size())];
    erase_below_ = mix[0];
    insert_below_ = mix[1];
  }

  /// Some operations; then commit, abort, or, rarely, a crash before either.
  void transaction() {
    Rows now = committed_;
    engine_->begin(*memory_);
    for (std::uint64_t left = 1 + random_.below(random_.below(3) == 0 ? plan_.operations : 8);
         left > 0 && !::testing::Test::HasFatalFailure(); --left)
      operation(now);
    const std::uint64_t end = random_.below(100);
    if (end < 15) {
      engine_->abort(*memory_);
    } else if (end < 20 && plan_.restarts) {
      restart(false);
    } else {
      engine_->commit(*memory_);
      committed_ = std::move(now);
    }
  }

  void operation(Rows& now) {
    const std::uint64_t key = first_ + random_.below(width_);
    const auto row = now.find(key);
    const bool exists = row != now.end();
    const auto size = static_cast<std::uint32_t>(plan_.table.payload_bytes);
    const auto offset = static_cast<std::uint32_t>(random_.below(size));
    const auto bytes = static_cast<std::uint32_t>(1 + random_.below(std::min(size - offset, 100U)));
    const auto kind = static_cast<int>(random_.below(100));
    if (kind < erase_below_) {
      ASSERT_EQ(engine_->erase(*memory_, table_, key), exists) << context_ << ": erase " << key;
      now.erase(key);
    } else if (kind < insert_below_) {
      const Payload fresh = payload();
      ASSERT_EQ(engine_->insert(*memory_, table_, key, fresh), !exists) << context_ << ": insert " << key;
      now.try_emplace(key, fresh);
    } else if (kind < insert_below_ + (100 - insert_below_) / 3) {
      Payload change = payload();
      change.resize(bytes);
      ASSERT_EQ(engine_->update(*memory_, table_, key, offset, change), exists)
          << context_ << ": update " << key;
      if (exists)
        std::copy(change.begin(), change.end(), row->second.begin() + offset);
    } else if (kind < insert_below_ + (100 - insert_below_) * 2 / 3) {
      Payload found(bytes);
      ASSERT_EQ(engine_->read(*memory_, table_, key, offset, found), exists) << context_ << ": read " << key;
      ASSERT_TRUE(!exists || std::equal(found.begin(), found.end(), row->second.begin() + offset))
          << context_ << ": read " << key << " gives other bytes";
    } else {
      constexpr std::array kModes{ScanMode::kGrained, ScanMode::kFullPages, ScanMode::kPrefetchNext};
      scan(now, key, 1 + random_.below(30), offset, bytes, kModes[random_.below(kModes.size())]);
    }
  }

  void scan(const Rows& now, std::uint64_t from, std::uint64_t limit, std::uint32_t offset, std::uint32_t bytes,
            ScanMode mode) {
    auto expected = now.lower_bound(from);
    std::uint64_t seen = 0;
    std::string problem;
    const std::uint64_t stop_after = random_.below(4) == 0 ? random_.below(10) : limit;
    const auto visited = engine_->scan(
        *memory_, table_, from, limit, offset, bytes, mode,
        [&](std::uint64_t key, std::span<const std::byte> row) {
          if (expected == now.end() || expected->first != key) {
            problem = "key " + std::to_string(key) + " where there must be " +
                      (expected == now.end() ? "none" : std::to_string(expected->first));
            return false;
          }
          if (row.size() != bytes || !same_bytes(row, std::span(expected->second).subspan(offset, bytes)))
            problem = "key " + std::to_string(key) + " has other bytes";
          ++expected;
          ++seen;
          return seen < stop_after;
        });
    ASSERT_EQ(problem, "") << context_ << ": scan from " << from;
    ASSERT_EQ(visited, seen) << context_;
    ASSERT_TRUE(expected == now.end() || seen == limit || seen >= stop_after)
        << context_ << ": scan from " << from << " misses key " << expected->first;
  }

  void compare_all() {
    engine_->begin(*memory_);
    for (const ScanMode mode : {ScanMode::kGrained, ScanMode::kFullPages, ScanMode::kPrefetchNext}) {
      auto expected = committed_.begin();
      engine_->scan(*memory_, table_, 0, ~std::uint64_t{0}, 0, plan_.table.payload_bytes, mode,
                    [&](std::uint64_t key, std::span<const std::byte> row) {
                      if (expected == committed_.end() || expected->first != key ||
                          !std::equal(row.begin(), row.end(), expected->second.begin(), expected->second.end()))
                        return false;
                      ++expected;
                      return true;
                    });
      ASSERT_TRUE(expected == committed_.end()) << context_ << ": the rows differ at key " << expected->first;
    }
    engine_->commit(*memory_);
    check();
  }
  void check() { ASSERT_EQ(engine_->check(*memory_), "") << context_; }

  /// A clean one, or after a power failure in the middle of whatever is going on.
  void restart(bool clean) {
    if (clean)
      engine_->shutdown(*memory_);
    const EnginePlace place = engine_->place();
    auto after = std::make_unique<SimMemory>(memory_->crash(memory_->durability().sample(random_)));
    engine_.reset();
    memory_ = std::move(after);
    stream_.clear();
    context_ += clean ? " R" : " C";
    engine_ = engine_named<SimMemory>(plan_.options.engine).restart(*memory_, plan_.options, place);
    compare_all();
  }

  [[nodiscard]] Payload payload() {
    Payload bytes(plan_.table.payload_bytes);
    for (std::byte& byte : bytes)
      byte = static_cast<std::byte>(random_.next());
    return bytes;
  }

  const Plan& plan_;
  Random random_;
  std::string context_;
  std::unique_ptr<SimMemory> memory_;
  std::unique_ptr<Engine<SimMemory>> engine_;
  TableId table_ = 0;
  Rows committed_;
  memory::Stream stream_;       ///< of the last transaction, of several threads
  std::uint64_t acquired_ = 0;  ///< latches
  std::uint64_t awaited_ = 0;
  std::uint64_t first_ = 0;  ///< the keys of the phase
  std::uint64_t width_ = 1;
  int erase_below_ = 0;  ///< per cent
  int insert_below_ = 0;
};

}  // namespace pmsim::engines::model
