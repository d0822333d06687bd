#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/blocks/log/file_header.hpp"
#include "pmsim/blocks/log/poplog.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/core/same_bytes.hpp"
#include "pmsim/crash/registry.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/wal/horizon.hpp"
#include "pmsim/engines/wal/sector_log.hpp"
#include "turns.hpp"

namespace pmsim::crash {

/// The points of the log that a crash of an engine can tell. Not those of its creation, since an engine is
/// known only when its tables have been loaded, long after; nor those that keep stale words from completing a
/// torn entry, for which the log's own subjects choose their payloads: the bits of an engine's records never
/// agree by chance. The log on SSD flushes its new head with the next entry at the latest, which does not reuse
/// the space behind it, since a reserve is free (wal/wal.hpp).
inline constexpr std::array kPmemLogPoints{
    blocks::log::FileHeader::kSites[1], blocks::log::FileHeader::kSites[3], blocks::log::FileHeader::kSites[4],
    blocks::log::PopLog::kSites[0], blocks::log::PopLog::kSites[1]};
inline constexpr std::array kSsdLogPoints{engines::wal::SectorLog::kSites[1]};
/// Of several logs, besides those of each that the subjects with one log tell. The fence is missed where the
/// horizon is lost and the head of the log that is truncated next is not.
inline constexpr std::array kPmemLogsPoints{blocks::log::PopLog::kSites[0], blocks::log::PopLog::kSites[1],
                                            engines::wal::Horizon::kPmemSites[0],
                                            engines::wal::Horizon::kPmemSites[1]};
inline constexpr std::array kSsdLogsPoints{kSsdLogPoints[0], engines::wal::Horizon::kSsdSites[0]};

/// Three threads instead of one, with a log each, which has room for the largest transaction, with splits, and
/// its rollback.
inline void give_logs(engines::EngineOptions& options) {
  options.threads = 3;
  options.logs = "per-thread";
  options.log_bytes = 9 * options.log_buffer_bytes * options.threads + engines::wal::Horizon::kBytes;
}
/// As EngineSubject::Size::logged_before: the first of these logs is full.
inline constexpr double kFillsALog = 210e3;

/// What an engine holds after its restart.
struct FoundRows final : Recovered {
  bool created = false;
  std::map<std::uint64_t, std::vector<std::byte>> rows;
  std::string problem;
  std::unique_ptr<engines::Engine<memory::SimMemory>> engine;
};

/// Transactions, checkpoints and clean restarts of a storage engine with tiny capacities, by one thread or by
/// several in turn, or beside each other: while one's commit is under way, from any of its persistence steps in
/// the log on, another runs, and where that waits for the first one, or while its own commit is under way, the
/// first one goes on. Both use rows of their own, as if they had locked them.
///
/// Promise: acknowledged transactions are there whole, those in flight are there whole or not at all (not at
/// all before commit() is called, and where they are aborted), and every data structure is sound.
///
/// recover() restarts the engine and commits one transaction more, on a row of its own: a restart must leave
/// the log in a state in which it can be used, and the checker's crashes during recovery hit that as well.
class EngineSubject final : public Subject {
 public:
  struct Size {
    std::uint32_t transactions = 6;
    std::uint32_t most_operations = 3;  ///< of a transaction
    std::uint32_t payload_bytes = 900;  ///< four rows fill a page of 4 KiB
    std::uint32_t rows = 2;             ///< loaded
    std::uint32_t keys = 12;            ///< many hits, and three leaves and a root when all are there
    bool checkpoints = true;
    bool beside = false;  ///< transactions run beside others
    /// Large programs with even seeds begin when so many bytes have been logged: the log has been truncated as
    /// it filled, and soon begins to reuse its space.
    double logged_before = 0;
  };

  EngineSubject(const engines::EngineOptions& options, const Size& size, std::uint64_t seed, Scale scale)
      : options_(options), size_(size), random_(mix64(seed)) {
    options_.cleaning = seed % 4 < 2 ? "due" : "paced";
    const std::uint32_t count = scale == Scale::kSmall ? size.transactions / 2 : size.transactions;
    Rows rows{{kProbe, payload(0)}};
    for (std::uint64_t key = 1; key <= size.rows; ++key)
      rows[key * size.keys / (size.rows + 1)] = payload(key);
    committed_ = rows;
    if (seed % 2 != 0 || scale == Scale::kSmall)
      size_.logged_before = 0;
    for (std::uint32_t index = 0; index < count; ++index) {
      plan_.push_back(next_step(rows, size.rows < 4 && index < 2));
      const std::uint64_t dice = random_.below(8);
      if (size.checkpoints && dice < 3)
        plan_.push_back({Kind::kCheckpoint, {}, {}});
      if (dice == 3)
        plan_.push_back({Kind::kRestart, {}, {}});
    }
  }

  void create(memory::SimMemory& memory) override {
    engine_ = kind().create(memory, options_);
    Source source(committed_);
    table_ = engine_->load(memory, {"t", 8, size_.payload_bytes}, source, 1.0);
    place_ = engine_->place();
    for (std::uint8_t value = 1; size_.logged_before > engine_->counters()["log_bytes"]; ++value) {
      const std::vector<std::byte> bytes(size_.payload_bytes - 200, std::byte{value});
      engine_->begin(memory);
      ensure(engine_->update(memory, table_, kProbe, 150, bytes), "a row that was loaded is not there");
      engine_->commit(memory);
    }
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(memory::SimMemory& memory, std::uint32_t index) override {
    const Step& step = plan_[index];
    switch (step.kind) {
      case Kind::kCheckpoint:
        return engine_->checkpoint(memory);
      case Kind::kRestart:
        engine_->shutdown(memory);
        engine_ = kind().restart(memory, options_, *place_);
        return;
      default:
        break;
    }
    if (step.beside.empty())
      return run(memory, step, 0, index);
    memory.mark_sections();
    memory.on_latch_wait([&] {
      ensure(++waits_ < kMostWaits && change_turns(memory), "a thread waits for a latch that nobody gives up");
    });
    Turns turns;
    turns_ = &turns;
    const auto end = [&] {
      turns_ = nullptr;
      memory.on_latch_wait({});
    };
    try {
      turns.run([&] { run(memory, step, 0, index); }, [&] { run(memory, step.beside.front(), 1, index + 1); });
    } catch (...) {
      end();
      throw;
    }
    end();
  }

  void step(memory::SimMemory& memory) override {
    waits_ = 0;
    if (options_.logs == "per-thread" && turns_ != nullptr && in_flight_[turns_->running()] != nullptr &&
        memory.section() == memory::Section::kLog && random_.below(3) == 0)
      static_cast<void>(change_turns(memory));
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(memory::SimMemory& memory) const override {
    auto found = std::make_unique<FoundRows>();
    if (!place_)
      return found;
    found->engine = kind().restart(memory, options_, *place_);
    const auto& engine = found->engine;
    found->created = true;
    engine->begin(memory);
    std::uint64_t visited = 0;
    engine->scan(memory, table_, 0, ~std::uint64_t{0}, 0, size_.payload_bytes, engines::ScanMode::kFullPages,
                 [&](std::uint64_t key, std::span<const std::byte> row) {
                   found->rows[key].assign(row.begin(), row.end());
                   return ++visited <= 2 * size_.keys + 2;  // leaves that a mutant links in a circle
                 });
    const bool torn = probe_is_torn(found->rows[kProbe]);
    found->rows.erase(kProbe);
    engine->commit(memory);
    found->problem = engine->check(memory);
    if (torn && found->problem.empty())
      found->problem = "the transaction of an earlier recovery is there in part";
    engine->begin(memory);
    const std::vector<std::byte> mark(kMarkBytes, std::byte{0x5a});
    if (!engine->update(memory, table_, kProbe, kMarkAt, mark) && found->problem.empty())
      found->problem = "a row that no transaction touches is gone";
    engine->commit(memory);
    if (found->problem.empty())
      found->problem = engine->check(memory);
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, memory::SimMemory&) const override {
    const auto& found = static_cast<const FoundRows&>(recovered);
    if (!found.created)
      return place_ ? "the engine is gone although it had been created" : "";
    if (!found.problem.empty())
      return found.problem;
    const std::string wrong = difference(found.rows, committed_);
    if (wrong.empty() ||
        std::ranges::any_of(allowed_, [&](const Rows& rows) { return difference(found.rows, rows).empty(); }))
      return "";
    return wrong + (allowed_.empty() ? "" : " (and it is not the committing transaction's either)");
  }

  /// Goes on with the engine that has restarted: a transaction, a checkpoint, a transaction.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<FoundRows&>(recovered);
    if (!found.created)
      return nullptr;
    return std::unique_ptr<Subject>(new EngineSubject(*this, std::move(found.engine), found.rows));
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const Step& step = plan_[index];
    if (step.kind == Kind::kCheckpoint)
      return "checkpoint";
    if (step.kind == Kind::kRestart)
      return "shutdown and restart";
    return describe(step) + (step.beside.empty() ? "" : "; beside it " + describe(step.beside.front()));
  }

 private:
  using Rows = std::map<std::uint64_t, std::vector<std::byte>>;
  static constexpr std::uint64_t kProbe = 1'000'000;
  static constexpr std::uint32_t kMarkAt = 100;  ///< of the row kProbe, what recover() changes
  static constexpr std::uint32_t kMarkBytes = 24;

  [[nodiscard]] static bool probe_is_torn(const std::vector<std::byte>& row) {
    const auto mark =
        std::span(row).subspan(std::min<std::size_t>(kMarkAt, row.size())).first(row.empty() ? 0 : kMarkBytes);
    return !std::ranges::all_of(mark, [&](std::byte byte) { return byte == mark.front(); });
  }

  struct Operation {
    enum class Kind : std::uint8_t { kUpdate, kInsert, kErase };
    Kind kind;
    std::uint64_t key;
    std::uint32_t offset;
    std::vector<std::byte> bytes;
  };
  enum class Kind : std::uint8_t { kCommit, kAbort, kCheckpoint, kRestart };
  struct Step {
    Kind kind;
    std::vector<Operation> operations;
    std::vector<Step> beside;  ///< none or one
  };
  static constexpr std::uint32_t kMostWaits = 10'000;  ///< without a persistence step
  class Source final : public engines::RowSource {
   public:
    explicit Source(const Rows& rows) : next_(rows.begin()), rows_(rows.size()) {}
    [[nodiscard]] std::uint64_t rows() const override { return rows_; }
    std::uint64_t next(std::span<std::byte> payload) override {
      std::ranges::copy(next_->second, payload.begin());
      return (next_++)->first;
    }

   private:
    Rows::const_iterator next_;
    std::uint64_t rows_;
  };

  EngineSubject(const EngineSubject& before, std::unique_ptr<engines::Engine<memory::SimMemory>> engine,
                const Rows& found)
      : Subject(before),
        options_(before.options_),
        size_(before.size_),
        random_(before.random_),
        engine_(std::move(engine)),
        table_(before.table_),
        place_(before.place_),
        committed_(found) {
    Rows rows = found;
    plan_.push_back(next_step(rows, false));
    if (size_.checkpoints)
      plan_.push_back({Kind::kCheckpoint, {}, {}});
    plan_.push_back(next_step(rows, false));
  }

  /// Part `part` of a step, by a thread of its own.
  void run(memory::SimMemory& memory, const Step& step, std::size_t part, std::uint32_t thread) {
    threads_[part] = thread;
    work_as(memory, thread % options_.threads);
    engine_->begin(memory);
    for (const Operation& operation : step.operations)
      run(memory, operation);
    if (step.kind == Kind::kAbort)
      return engine_->abort(memory);
    note_in_flight(part, &step);
    if (options_.logs == "shared" && turns_ != nullptr)
      engine_->on_placed([&] { static_cast<void>(change_turns(memory)); });
    engine_->commit(memory);
    apply(step, committed_);
    note_in_flight(part, nullptr);
  }
  /// What a crash may find besides what is committed: those in flight, each of them or both.
  void note_in_flight(std::size_t part, const Step* step) {
    in_flight_[part] = step;
    ++promises_;
    allowed_.clear();
    for (const Step* one : in_flight_) {
      if (one != nullptr)
        apply(*one, allowed_.emplace_back(committed_));
    }
    if (allowed_.size() == 2)
      apply(*in_flight_[1], allowed_.emplace_back(allowed_[0]));
  }
  static void apply(const Step& step, Rows& rows) {
    for (const Operation& operation : step.operations) {
      if (operation.kind == Operation::Kind::kErase)
        rows.erase(operation.key);
      else if (operation.kind == Operation::Kind::kInsert)
        rows[operation.key] = operation.bytes;
      else
        std::ranges::copy(operation.bytes, rows.at(operation.key).begin() + operation.offset);
    }
  }
  /// The other thread goes on, if it has not ended, until it is this one's turn again.
  bool change_turns(memory::SimMemory& memory) {
    const std::uint32_t thread = threads_[turns_->running()];
    const memory::Section section = memory.enter(memory::Section::kWork);
    const bool changed = turns_->yield();
    work_as(memory, thread % options_.threads);
    static_cast<void>(memory.enter(section));
    return changed;
  }
  /// Each thread has its own flushes and fences.
  void work_as(memory::SimMemory& memory, std::uint32_t thread) {
    if (options_.threads == 1)
      return;
    memory::Stream* const attached = memory.attached();
    memory.attach(attached != nullptr ? *attached : ignored_, thread);
    if (attached == nullptr)
      memory.detach();
    engine_->work_as(thread);
  }
  [[nodiscard]] const engines::EngineKind<memory::SimMemory>& kind() const {
    return engines::engine_named<memory::SimMemory>(options_.engine);
  }

  /// Few words that are not zero: what is equal before and after makes no durable images.
  [[nodiscard]] std::vector<std::byte> payload(std::uint64_t mark) {
    std::vector<std::byte> bytes(size_.payload_bytes);
    for (const std::size_t at : {std::size_t{0}, bytes.size() / 2 / 8 * 8, bytes.size() / 8 * 8 - 8}) {
      const std::uint64_t word = mark * 0x0101'0101'0101 + 1 + random_.below(200);
      std::memcpy(bytes.data() + at, &word, sizeof word);
    }
    return bytes;
  }

  /// A transaction, or two. `rows` are those before it, and then those after it. The first transactions only
  /// insert.
  [[nodiscard]] Step next_step(Rows& rows, bool fill) {
    Step step = transaction(rows, fill, {});
    if (size_.beside && random_.below(2) == 0)
      step.beside.push_back(transaction(rows, fill, step.operations));
    return step;
  }
  /// Without the rows of `others`.
  [[nodiscard]] Step transaction(Rows& rows, bool fill, const std::vector<Operation>& others) {
    const std::uint32_t most = size_.most_operations;
    Step step{fill || random_.below(4) > 0 ? Kind::kCommit : Kind::kAbort, {}, {}};
    Rows after = rows;
    for (std::uint64_t left = fill ? most : 1 + random_.below(most); left > 0; --left) {
      const std::uint64_t key = 1 + random_.below(size_.keys);
      if (std::ranges::find(others, key, &Operation::key) != others.end())
        continue;
      const auto row = after.find(key);
      if (row == after.end()) {
        step.operations.push_back({Operation::Kind::kInsert, key, 0, payload(key)});
        after[key] = step.operations.back().bytes;
      } else if (random_.below(3) == 0) {
        step.operations.push_back({Operation::Kind::kErase, key, 0, {}});
        after.erase(row);
      } else {
        std::vector<std::byte> bytes(8 + random_.below(30));
        for (std::byte& byte : bytes)
          byte = static_cast<std::byte>(random_.next());
        const auto offset = static_cast<std::uint32_t>(random_.below(size_.payload_bytes - bytes.size()));
        std::ranges::copy(bytes, row->second.begin() + offset);
        step.operations.push_back({Operation::Kind::kUpdate, key, offset, std::move(bytes)});
      }
    }
    if (step.kind == Kind::kCommit)
      rows = std::move(after);
    return step;
  }

  [[nodiscard]] static std::string describe(const Step& step) {
    std::string text;
    for (const Operation& operation : step.operations) {
      static constexpr const char* kNames[]{"update", "insert", "erase"};
      text += std::string(text.empty() ? "" : ", ") + kNames[static_cast<int>(operation.kind)] + " " +
              std::to_string(operation.key);
    }
    return text + (step.kind == Kind::kAbort ? "; abort" : "; commit");
  }

  void run(memory::SimMemory& memory, const Operation& operation) {
    bool done = false;
    switch (operation.kind) {
      case Operation::Kind::kUpdate:
        done = engine_->update(memory, table_, operation.key, operation.offset, operation.bytes);
        break;
      case Operation::Kind::kInsert:
        done = engine_->insert(memory, table_, operation.key, operation.bytes);
        break;
      case Operation::Kind::kErase:
        done = engine_->erase(memory, table_, operation.key);
        break;
    }
    ensure(done, "the engine refuses an operation of the program");
  }

  /// Of what was found from what there should be.
  [[nodiscard]] static std::string difference(const Rows& found, const Rows& wanted) {
    for (const auto& [key, bytes] : wanted) {
      const auto row = found.find(key);
      if (key == kProbe)
        continue;
      if (row == found.end())
        return "row " + std::to_string(key) + " is missing";
      if (!same_bytes(row->second, bytes)) {
        const auto at = std::ranges::mismatch(row->second, bytes).in1 - row->second.begin();
        return "row " + std::to_string(key) + " differs from byte " + std::to_string(at) + " on";
      }
    }
    for (const auto& [key, bytes] : found) {
      if (!wanted.contains(key))
        return "row " + std::to_string(key) + " should not be there";
    }
    return "";
  }

  engines::EngineOptions options_;
  Size size_;
  Random random_;
  std::vector<Step> plan_;
  std::unique_ptr<engines::Engine<memory::SimMemory>> engine_;
  engines::TableId table_ = 0;
  std::optional<engines::EnginePlace> place_;
  memory::Stream ignored_;
  Rows committed_;
  std::vector<Rows> allowed_;  ///< as well, while commits are under way
  std::uint64_t promises_ = 0;
  std::array<const Step*, 2> in_flight_{};  ///< whose commit() is under way, of the two of a step
  std::array<std::uint32_t, 2> threads_{};  ///< which run them
  Turns* turns_ = nullptr;
  std::uint32_t waits_ = 0;
};

}  // namespace pmsim::crash
