#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/index/fptree_leaf.hpp"
#include "pmsim/blocks/index/interleaved_leaf.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"

// Subjects: inserts into FP-tree leaves, one after the other and interleaved in groups.

namespace pmsim::crash {

namespace {

using blocks::index::FpTreeLeaf;
using blocks::index::InterleavedLeaf;
using memory::Address;
using memory::SimMemory;

/// Keys and values in the order of the keys. Made, copied and compared a hundred thousand times a second, so in
/// one piece of memory.
class Pairs {
 public:
  struct Pair {
    std::uint64_t key;
    std::uint64_t value;
    bool operator==(const Pair&) const = default;
  };

  [[nodiscard]] const Pair* find(std::uint64_t key) const {
    const auto at = std::ranges::lower_bound(pairs_, key, {}, &Pair::key);
    return at != pairs_.end() && at->key == key ? &*at : nullptr;
  }
  /// Returns false, and changes nothing, where the key is there.
  bool add(std::uint64_t key, std::uint64_t value) {
    const auto at = std::ranges::lower_bound(pairs_, key, {}, &Pair::key);
    if (at != pairs_.end() && at->key == key)
      return false;
    pairs_.insert(at, {key, value});
    return true;
  }
  void erase(std::uint64_t key) {
    std::erase_if(pairs_, [key](const Pair& pair) { return pair.key == key; });
  }
  [[nodiscard]] auto begin() const { return pairs_.begin(); }
  [[nodiscard]] auto end() const { return pairs_.end(); }
  bool operator==(const Pairs&) const = default;

 private:
  std::vector<Pair> pairs_;
};

/// The pairs of all leaves after recovery, before anything else was done to them.
struct FoundPairs final : Recovered {
  std::vector<Pairs> of;
  std::string problem;
};

/// Schedulers of interleaved inserts that nobody uses at the moment. Recovery may run inside of an insert, and
/// inside of another recovery, a hundred thousand times a second: each takes one of its own, and few are ever
/// made.
class Schedulers {
 public:
  explicit Schedulers(bool reads) : how_{.reads = reads} {}

  void insert(SimMemory& memory, std::span<const InterleavedLeaf::Insert> group, std::span<bool> durable) {
    std::unique_ptr<InterleavedLeaf> leaf;
    if (idle_.empty()) {
      leaf = std::make_unique<InterleavedLeaf>(how_);
    } else {
      leaf = std::move(idle_.back());
      idle_.pop_back();
    }
    leaf->insert(memory, group, durable);
    idle_.push_back(std::move(leaf));
  }

 private:
  blocks::index::Interleave how_;
  std::vector<std::unique_ptr<InterleavedLeaf>> idle_;
};

/// A program of inserts into few leaves, so that groups meet in a leaf and leaves become full. The promise:
/// every acknowledged pair is there; of the inserts under way each pair is absent or whole; nothing else is
/// there; every pair can be looked up.
///
/// Groups share their barriers; every second program interleaves their reads as well.
///
/// recover() goes on after the leaf's recovery and inserts one more pair into each leaf that has room: a slot
/// that an interrupted insert has left half-written is used again.
class LeafSubject final : public Subject {
 public:
  LeafSubject(std::uint64_t seed, Scale scale, bool grouped)
      : leaves_(scale == Scale::kSmall ? 2 : 3),
        grouped_(grouped),
        schedulers_(std::make_shared<Schedulers>(seed % 2 != 0)) {
    Random random(seed);
    const std::uint32_t inserts = scale == Scale::kSmall ? 4 : 110;  // three leaves have 96 slots
    most_ = !grouped ? 1 : scale == Scale::kSmall ? 3 : 8;
    draw_plan(random, 1, inserts);
    after_recovery_ = random.next();
    expected_.resize(leaves_);
  }

  void create(SimMemory& memory) override {
    base_ = memory.allocate(memory::Medium::kPmem, leaves_ * FpTreeLeaf::kBytes, {.name = "leaves"});
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const std::vector<Insert>& group = plan_[index];
    in_flight_ = &group;
    last_ = group;
    durable_.fill(false);
    if (grouped_) {
      std::vector<InterleavedLeaf::Insert> inserts;
      for (const Insert& insert : group)
        inserts.push_back({address(insert.leaf), insert.key, insert.value});
      schedulers_->insert(memory, inserts, std::span(durable_).first(group.size()));
    } else {
      durable_[0] = FpTreeLeaf::insert(memory, address(group[0].leaf), group[0].key, group[0].value);
    }
    for (std::size_t at = 0; at < group.size(); ++at) {
      if (durable_[at])
        expected_[group[at].leaf].add(group[at].key, group[at].value);
    }
    in_flight_ = nullptr;
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<FoundPairs>();
    for (std::uint64_t leaf = 0; leaf < leaves_; ++leaf) {
      found->of.push_back(contents(memory, leaf, found->problem));
      Pairs& pairs = found->of.back();
      // A recovery before this one may have inserted it; that is not part of the program.
      if (const Pairs::Pair* probe = pairs.find(kProbe); probe == nullptr) {
        insert_probe(memory, leaf);
      } else {
        if (probe->value != ~leaf)
          found->problem = "the pair inserted after recovery is torn";
        pairs.erase(kProbe);
      }
    }
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory& memory) const override {
    const auto& found = static_cast<const FoundPairs&>(recovered);
    if (!found.problem.empty())
      return found.problem;
    for (std::uint64_t leaf = 0; leaf < leaves_; ++leaf) {
      std::string wrong = check_promise(found.of[leaf], leaf);
      Pairs now = contents(memory, leaf, wrong);
      if (wrong.empty())
        wrong = check_lookups(now, leaf, memory);
      now.erase(kProbe);
      if (wrong.empty() && now != found.of[leaf])
        wrong = "an insert after recovery has changed other pairs";
      if (!wrong.empty())
        return "leaf " + std::to_string(leaf) + ": " + wrong;
    }
    return {};
  }

  /// Goes on with inserts of new keys. What recovery has found must stay.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto next = std::make_unique<LeafSubject>(*this);
    next->expected_ = std::move(static_cast<FoundPairs&>(recovered).of);
    next->in_flight_ = nullptr;
    Random random(after_recovery_);
    next->draw_plan(random, kFirstAfterRecovery, kFirstAfterRecovery + 1 + random.below(4));
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    std::string text = grouped_ ? "a group inserts" : "insert";
    for (const Insert& insert : plan_[index])
      text += " key " + std::to_string(insert.key) + " into leaf " + std::to_string(insert.leaf) +
              (&insert == &plan_[index].back() ? "" : ",");
    return text;
  }

 private:
  static constexpr std::uint64_t kProbe = 1'000'000;
  static constexpr std::uint64_t kFirstAfterRecovery = 2'000'000;

  struct Insert {
    std::uint64_t leaf;
    std::uint64_t key;
    std::uint64_t value;
  };

  /// Inserts of the keys `first` to `last`, in groups.
  void draw_plan(Random& random, std::uint64_t first, std::uint64_t last) {
    plan_.clear();
    for (std::uint64_t key = first; key <= last;) {
      std::vector<Insert> group;
      for (std::uint64_t left = 1 + random.below(most_); left > 0 && key <= last; --left, ++key)
        group.push_back({random.below(leaves_), key, random.next()});
      plan_.push_back(std::move(group));
    }
  }

  [[nodiscard]] Address address(std::uint64_t leaf) const { return base_ + leaf * FpTreeLeaf::kBytes; }

  /// As the program inserts, through the same persistence points.
  void insert_probe(SimMemory& memory, std::uint64_t leaf) const {
    if (!grouped_)
      return static_cast<void>(FpTreeLeaf::insert(memory, address(leaf), kProbe, ~leaf));
    const InterleavedLeaf::Insert probe{address(leaf), kProbe, ~leaf};
    bool durable = false;
    schedulers_->insert(memory, std::span(&probe, 1), std::span(&durable, 1));
  }

  [[nodiscard]] std::string check_promise(const Pairs& found, std::uint64_t leaf) const {
    Pairs possible = expected_[leaf];
    Pairs certain = expected_[leaf];
    for (std::size_t at = 0; in_flight_ != nullptr && at < in_flight_->size(); ++at) {
      const Insert& insert = (*in_flight_)[at];
      if (insert.leaf != leaf)
        continue;
      possible.add(insert.key, insert.value);
      if (durable_[at])
        certain.add(insert.key, insert.value);
    }
    for (const auto& [key, value] : certain) {
      if (found.find(key) == nullptr)
        return "key " + std::to_string(key) + " was acknowledged and is gone";
    }
    for (const auto& [key, value] : found) {
      const Pairs::Pair* wanted = possible.find(key);
      if (wanted == nullptr)
        return "key " + std::to_string(key) + " was never inserted";
      if (wanted->value != value)
        return "key " + std::to_string(key) + " has value " + std::to_string(value) + ", must be " +
               std::to_string(wanted->value);
    }
    return {};
  }

  /// Every pair of the leaf can be looked up. Asked of the leaves that the last inserts went to: the others are
  /// as they were when it was asked of them.
  [[nodiscard]] std::string check_lookups(const Pairs& pairs, std::uint64_t leaf, SimMemory& memory) const {
    if (std::ranges::find(last_, leaf, &Insert::leaf) == last_.end())
      return {};
    for (const auto& [key, value] : pairs) {
      if (FpTreeLeaf::lookup(memory, address(leaf), key) != value)
        return "key " + std::to_string(key) + " is there but its lookup fails";
    }
    return {};
  }

  /// What recovery finds in a leaf.
  [[nodiscard]] Pairs contents(SimMemory& memory, std::uint64_t leaf, std::string& problem) const {
    const FpTreeLeaf::Contents recovered = FpTreeLeaf::recover(memory, address(leaf));
    Pairs pairs;
    for (std::uint32_t at = 0; at < recovered.count; ++at) {
      const auto& [key, value] = recovered.entries[at];
      if (!pairs.add(key, value))
        problem = "key " + std::to_string(key) + " is there twice";
    }
    if (recovered.wrong_fingerprints > 0)
      problem = "a used slot has a wrong fingerprint";
    return pairs;
  }

  std::uint64_t leaves_;
  bool grouped_;
  std::uint64_t most_ = 1;            ///< inserts of a group
  std::uint64_t after_recovery_ = 0;  ///< seed of the inserts after a recovery
  std::shared_ptr<Schedulers> schedulers_;
  std::vector<std::vector<Insert>> plan_;
  Address base_ = 0;
  std::vector<Pairs> expected_;
  const std::vector<Insert>* in_flight_ = nullptr;
  std::vector<Insert> last_;  ///< in flight or acknowledged last
  std::array<bool, blocks::index::kMaxGroup> durable_{};
};

}  // namespace

extern const SubjectKind kLeafInsert;
const SubjectKind kLeafInsert{"leaf-insert", "FP-tree leaf: inserts one after the other", FpTreeLeaf::kSites,
                              [](std::uint64_t seed, Scale scale) -> std::unique_ptr<Subject> {
                                return std::make_unique<LeafSubject>(seed, scale, false);
                              }};

extern const SubjectKind kLeafGroupInsert;
const SubjectKind kLeafGroupInsert{
    "leaf-group-insert", "FP-tree leaf: groups of interleaved inserts that share their barriers",
    InterleavedLeaf::kSites, [](std::uint64_t seed, Scale scale) -> std::unique_ptr<Subject> {
      return std::make_unique<LeafSubject>(seed, scale, true);
    }};

}  // namespace pmsim::crash
