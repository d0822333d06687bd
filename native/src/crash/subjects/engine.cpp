#include "engine.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "pmsim/core/same_bytes.hpp"

namespace pmsim::crash {
namespace {

using Rows = std::map<std::uint64_t, std::vector<std::byte>>;

constexpr std::uint64_t kProbe = 1'000'000;
constexpr std::uint32_t kMarkAt = 100;  ///< of the row kProbe, what recover() changes
constexpr std::uint32_t kMarkBytes = 24;
constexpr std::uint32_t kMostWaits = 10'000;  ///< without a persistence step

/// What an engine holds after its restart.
struct FoundRows final : Recovered {
  bool created = false;
  std::map<std::uint64_t, std::vector<std::byte>> rows;
  std::string problem;
  std::unique_ptr<engines::Engine<memory::SimMemory>> engine;
};

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

bool probe_is_torn(const std::vector<std::byte>& row) {
  const auto mark =
      std::span(row).subspan(std::min<std::size_t>(kMarkAt, row.size())).first(row.empty() ? 0 : kMarkBytes);
  return !std::ranges::all_of(mark, [&](std::byte byte) { return byte == mark.front(); });
}

/// Of what was found from what there should be.
std::string difference(const Rows& found, const Rows& wanted) {
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

}  // namespace

EngineSubject::EngineSubject(const engines::EngineOptions& options, const Size& size, std::uint64_t seed,
                             Scale scale)
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

void EngineSubject::create(memory::SimMemory& memory) {
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

void EngineSubject::run(memory::SimMemory& memory, std::uint32_t index) {
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

void EngineSubject::step(memory::SimMemory& memory) {
  waits_ = 0;
  if (options_.logs == "per-thread" && turns_ != nullptr && in_flight_[turns_->running()] != nullptr &&
      memory.section() == memory::Section::kLog && random_.below(3) == 0)
    static_cast<void>(change_turns(memory));
}

std::unique_ptr<Recovered> EngineSubject::recover(memory::SimMemory& memory) const {
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

std::string EngineSubject::check(const Recovered& recovered, memory::SimMemory&) const {
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

std::unique_ptr<Subject> EngineSubject::resume(Recovered& recovered) const {
  auto& found = static_cast<FoundRows&>(recovered);
  if (!found.created)
    return nullptr;
  return std::unique_ptr<Subject>(new EngineSubject(*this, std::move(found.engine), found.rows));
}

std::string EngineSubject::describe(std::uint32_t index) const {
  const Step& step = plan_[index];
  if (step.kind == Kind::kCheckpoint)
    return "checkpoint";
  if (step.kind == Kind::kRestart)
    return "shutdown and restart";
  return describe(step) + (step.beside.empty() ? "" : "; beside it " + describe(step.beside.front()));
}

EngineSubject::EngineSubject(const EngineSubject& before,
                             std::unique_ptr<engines::Engine<memory::SimMemory>> engine, const Rows& found)
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

void EngineSubject::run(memory::SimMemory& memory, const Step& step, std::size_t part, std::uint32_t thread) {
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

void EngineSubject::note_in_flight(std::size_t part, const Step* step) {
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

void EngineSubject::apply(const Step& step, Rows& rows) {
  for (const Operation& operation : step.operations) {
    if (operation.kind == Operation::Kind::kErase)
      rows.erase(operation.key);
    else if (operation.kind == Operation::Kind::kInsert)
      rows[operation.key] = operation.bytes;
    else
      std::ranges::copy(operation.bytes, rows.at(operation.key).begin() + operation.offset);
  }
}

bool EngineSubject::change_turns(memory::SimMemory& memory) {
  const std::uint32_t thread = threads_[turns_->running()];
  const memory::Section section = memory.enter(memory::Section::kWork);
  const bool changed = turns_->yield();
  work_as(memory, thread % options_.threads);
  static_cast<void>(memory.enter(section));
  return changed;
}

void EngineSubject::work_as(memory::SimMemory& memory, std::uint32_t thread) {
  if (options_.threads == 1)
    return;
  memory::Stream* const attached = memory.attached();
  memory.attach(attached != nullptr ? *attached : ignored_, thread);
  if (attached == nullptr)
    memory.detach();
  engine_->work_as(thread);
}

const engines::EngineKind<memory::SimMemory>& EngineSubject::kind() const {
  return engines::engine_named<memory::SimMemory>(options_.engine);
}

std::vector<std::byte> EngineSubject::payload(std::uint64_t mark) {
  std::vector<std::byte> bytes(size_.payload_bytes);
  for (const std::size_t at : {std::size_t{0}, bytes.size() / 2 / 8 * 8, bytes.size() / 8 * 8 - 8}) {
    const std::uint64_t word = mark * 0x0101'0101'0101 + 1 + random_.below(200);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  return bytes;
}

EngineSubject::Step EngineSubject::next_step(Rows& rows, bool fill) {
  Step step = transaction(rows, fill, {});
  if (size_.beside && random_.below(2) == 0)
    step.beside.push_back(transaction(rows, fill, step.operations));
  return step;
}

EngineSubject::Step EngineSubject::transaction(Rows& rows, bool fill, const std::vector<Operation>& others) {
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

std::string EngineSubject::describe(const Step& step) {
  std::string text;
  for (const Operation& operation : step.operations) {
    static constexpr const char* kNames[]{"update", "insert", "erase"};
    text += std::string(text.empty() ? "" : ", ") + kNames[static_cast<int>(operation.kind)] + " " +
            std::to_string(operation.key);
  }
  return text + (step.kind == Kind::kAbort ? "; abort" : "; commit");
}

void EngineSubject::run(memory::SimMemory& memory, const Operation& operation) {
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

}  // namespace pmsim::crash
