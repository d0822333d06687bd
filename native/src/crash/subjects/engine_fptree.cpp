#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"
#include "pmsim/engines/fptree/engine.hpp"

// Subject: the engine fptree, a table of few leaves under transactions.

namespace pmsim::crash {

namespace {

using engines::EngineOptions;
using engines::EnginePlace;
using engines::TableSpec;
using memory::SimMemory;

using Tree = engines::fptree::FpTreeEngine<SimMemory, 4096>;
using Pairs = std::map<std::uint64_t, std::uint64_t>;

struct FoundTable final : Recovered {
  std::unique_ptr<Tree> engine;
  std::optional<Pairs> pairs;  ///< nothing: there is no table
  std::string problem;
};

class PairSource final : public engines::RowSource {
 public:
  explicit PairSource(const Pairs& pairs) : next_(pairs.begin()), rows_(pairs.size()) {}
  [[nodiscard]] std::uint64_t rows() const override { return rows_; }
  std::uint64_t next(std::span<std::byte> payload) override {
    std::memcpy(payload.data(), &next_->second, sizeof next_->second);
    return (next_++)->first;
  }

 private:
  Pairs::const_iterator next_;
  std::uint64_t rows_;
};

/// The promise: a table is there whole once load() has returned; a transaction is there whole once commit()
/// has, may be there whole from its call on, and leaves no trace before; the structures are sound.
///
/// The first leaf is loaded full, so that the first insert splits it; the last one holds one pair, so that
/// erasing it unlinks the leaf. After a recovery the program goes on with an erase at once, from a leaf that a
/// split has made: what a restart leaves undone is harmed by the next change.
class FpTreeSubject final : public Subject {
 public:
  FpTreeSubject(std::uint64_t seed, Scale scale) : random_(seed) {
    options_.engine = "fptree";
    options_.dram_bytes = 8 * 4096;
    options_.pmem_bytes = 8 * engines::fptree::LeafSpace<SimMemory>::kEach;
    options_.log_bytes = 1024;
    for (std::uint64_t row = 0; row < 57; ++row)
      loaded_[10 + row * 2] = random_.next();
    const std::uint64_t last = 10 + 56 * 2;
    plan_.push_back({{{Kind::kInsert, 11, random_.next()}}, true});  // splits
    plan_.push_back({{{Kind::kErase, last, 0}}, true});              // unlinks
    plan_.push_back({{{Kind::kUpdate, 12, random_.next()}}, true});  // in place
    plan_.push_back({{{Kind::kErase, 14, 0}}, true});
    plan_.push_back(
        {{{Kind::kUpdate, 16, random_.next()}, {Kind::kErase, 18, 0}, {Kind::kInsert, 19, 1}}, true});
    plan_.push_back({{{Kind::kErase, 20, 0}, {Kind::kInsert, 20, 7}, {Kind::kUpdate, 20, 8}}, false});
    if (scale == Scale::kSmall)
      return;
    // Fills leaves again and again: splits that take the unlinked leaf, and stale addresses in the micro-log.
    for (std::uint64_t at = 0; at < 60; ++at) {
      Transaction transaction;
      transaction.commit = random_.below(6) != 0;
      for (std::uint64_t left = random_.below(3) == 0 ? 1 + random_.below(5) : 1; left > 0; --left) {
        const auto kind = random_.below(4);
        transaction.changes.push_back(
            {kind < 3 ? Kind::kInsert : Kind::kErase, 10 + random_.below(160), random_.next()});
      }
      plan_.push_back(transaction);
    }
  }

  void create(SimMemory& memory) override {
    engine_ = std::make_unique<Tree>(memory, options_);
    place_ = engine_->place();
  }

  [[nodiscard]] std::uint32_t operations() const override {
    return static_cast<std::uint32_t>(plan_.size()) + first_;
  }

  void run(SimMemory& memory, std::uint32_t index) override {
    if (index < first_) {
      may_be_ = loaded_;
      PairSource source(loaded_);
      engine_->load(memory, {"pairs", 8, 8}, source, 1.0);
      must_be_ = loaded_;
      may_be_.reset();
      return;
    }
    const Transaction& transaction = plan_[index - first_];
    Pairs after = *must_be_;
    engine_->begin(memory);
    for (const Change& change : transaction.changes)
      make(memory, change, after);
    if (!transaction.commit)
      return engine_->abort(memory);
    may_be_ = after;
    engine_->commit(memory);
    must_be_ = after;
    may_be_.reset();
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<FoundTable>();
    if (place_.meta == 0)
      return found;
    found->engine = std::make_unique<Tree>(memory, options_, place_);
    found->problem = found->engine->check(memory);
    found->pairs = contents(memory, *found->engine);
    return found;
  }

  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<FoundTable&>(recovered);
    if (!found.pairs)
      return nullptr;
    std::unique_ptr<FpTreeSubject> next(new FpTreeSubject(*this, std::move(found.engine), *found.pairs));
    const std::uint64_t upper = 10 + 50 * 2;
    next->plan_ = {{{{Kind::kErase, upper, 0}}, true},
                   {{{Kind::kInsert, upper, 1}, {Kind::kUpdate, 12, 2}, {Kind::kErase, 16, 0}}, true},
                   {{{Kind::kInsert, 13, 3}}, true}};
    return next;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory&) const override {
    const auto& found = static_cast<const FoundTable&>(recovered);
    if (!found.problem.empty())
      return found.problem;
    if (found.pairs.has_value() != must_be_.has_value() && !(found.pairs.has_value() && may_be_))
      return must_be_ ? "the table was loaded and is gone" : "there is a table that nobody loads";
    if (!found.pairs)
      return {};
    const std::string wrong = must_be_ ? difference(*found.pairs, *must_be_) : "the table is not whole";
    if (wrong.empty() || (may_be_ && difference(*found.pairs, *may_be_).empty()))
      return {};
    return wrong;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    if (index < first_)
      return "load 57 pairs";
    const Transaction& transaction = plan_[index - first_];
    std::string text;
    for (const Change& change : transaction.changes) {
      text += change.kind == Kind::kInsert ? "insert " : change.kind == Kind::kErase ? "erase " : "update ";
      text += std::to_string(change.key) + ", ";
    }
    return text + (transaction.commit ? "commit" : "abort");
  }

 private:
  enum class Kind { kInsert, kErase, kUpdate };
  struct Change {
    Kind kind;
    std::uint64_t key;
    std::uint64_t value;
  };
  struct Transaction {
    std::vector<Change> changes;
    bool commit = true;
  };

  /// The program that goes on from what a recovery has found.
  FpTreeSubject(const FpTreeSubject& before, std::unique_ptr<Tree> engine, const Pairs& found)
      : Subject(before),
        random_(before.random_),
        options_(before.options_),
        engine_(std::move(engine)),
        place_(before.place_),
        first_(0),
        must_be_(found) {}

  void make(SimMemory& memory, const Change& change, Pairs& after) {
    const std::span<const std::byte> payload = std::as_bytes(std::span(&change.value, 1));
    switch (change.kind) {
      case Kind::kInsert:
        if (engine_->insert(memory, 0, change.key, payload))
          after[change.key] = change.value;
        return;
      case Kind::kErase:
        engine_->erase(memory, 0, change.key);
        after.erase(change.key);
        return;
      case Kind::kUpdate:
        if (engine_->update(memory, 0, change.key, 0, payload))
          after[change.key] = change.value;
        return;
    }
  }
  [[nodiscard]] static std::optional<Pairs> contents(SimMemory& memory, Tree& engine) {
    Pairs pairs;
    if (memory.load<std::uint64_t>(engine.place().meta + engines::fptree::Meta::kTables) == 0)
      return std::nullopt;
    engine.begin(memory);
    engine.scan(memory, 0, 0, ~std::uint64_t{0}, 0, 8, engines::ScanMode::kGrained,
                [&](std::uint64_t key, std::span<const std::byte> row) {
                  std::memcpy(&pairs[key], row.data(), row.size());
                  return true;
                });
    engine.commit(memory);
    return pairs;
  }
  [[nodiscard]] static std::string difference(const Pairs& found, const Pairs& expected) {
    for (const auto& [key, value] : expected) {
      const auto there = found.find(key);
      if (there == found.end())
        return "key " + std::to_string(key) + " is missing";
      if (there->second != value)
        return "key " + std::to_string(key) + " has value " + std::to_string(there->second) + ", must be " +
               std::to_string(value);
    }
    for (const auto& [key, value] : found) {
      if (!expected.contains(key))
        return "key " + std::to_string(key) + " must not be there";
    }
    return {};
  }

  Random random_;
  EngineOptions options_;
  std::unique_ptr<Tree> engine_;
  EnginePlace place_;
  std::uint32_t first_ = 1;  ///< operation that the plan begins with: behind load()
  Pairs loaded_;
  std::vector<Transaction> plan_;
  std::optional<Pairs> must_be_;  ///< acknowledged; nothing: no table
  std::optional<Pairs> may_be_;   ///< what is being acknowledged
};

}  // namespace

extern const SubjectKind kEngineFpTree;
const SubjectKind kEngineFpTree{"engine-fptree", "engine fptree: leaves on PMem, splits, undo of transactions",
                                engines::fptree::kSites,
                                [](std::uint64_t seed, Scale scale) -> std::unique_ptr<Subject> {
                                  return std::make_unique<FpTreeSubject>(seed, scale);
                                }};

}  // namespace pmsim::crash
