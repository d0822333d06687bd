#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
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

using Pairs = std::map<std::uint64_t, std::uint64_t>;

/// The pairs of all leaves after recovery, before anything else was done to them.
struct FoundPairs final : Recovered {
  std::vector<Pairs> of;
  std::string problem;
};

/// A program of inserts into few leaves, so that groups meet in a leaf and leaves become full. The promise:
/// every acknowledged pair is there; of the inserts under way each pair is absent or whole; nothing else is
/// there; every pair can be looked up.
///
/// recover() goes on after the leaf's recovery and inserts one more pair into each leaf that has room: a slot
/// that an interrupted insert has left half-written is used again.
class LeafSubject final : public Subject {
 public:
  LeafSubject(std::uint64_t seed, Scale scale, bool grouped)
      : leaves_(scale == Scale::kSmall ? 2 : 3), grouped_(grouped), interleaved_({}) {
    Random random(seed);
    const std::uint32_t inserts = scale == Scale::kSmall ? 4 : 110;  // three leaves have 96 slots
    const std::uint32_t most = !grouped ? 1 : scale == Scale::kSmall ? 3 : 8;
    for (std::uint32_t key = 1; key <= inserts;) {
      std::vector<Insert> group;
      for (std::uint64_t left = 1 + random.below(most); left > 0 && key <= inserts; --left, ++key)
        group.push_back({random.below(leaves_), key, random.next()});
      plan_.push_back(std::move(group));
    }
    expected_.resize(leaves_);
  }

  void create(SimMemory& memory) override {
    base_ = memory.allocate(memory::Medium::kPmem, leaves_ * FpTreeLeaf::kBytes, {.name = "leaves"});
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const std::vector<Insert>& group = plan_[index];
    in_flight_ = &group;
    durable_.fill(false);
    if (grouped_) {
      std::vector<InterleavedLeaf::Insert> inserts;
      for (const Insert& insert : group)
        inserts.push_back({address(insert.leaf), insert.key, insert.value});
      interleaved_.insert(memory, inserts, std::span(durable_).first(group.size()));
    } else {
      durable_[0] = FpTreeLeaf::insert(memory, address(group[0].leaf), group[0].key, group[0].value);
    }
    for (std::size_t at = 0; at < group.size(); ++at) {
      if (durable_[at])
        expected_[group[at].leaf][group[at].key] = group[at].value;
    }
    in_flight_ = nullptr;
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<FoundPairs>();
    for (std::uint64_t leaf = 0; leaf < leaves_; ++leaf) {
      found->of.push_back(contents(memory, leaf, found->problem));
      Pairs& pairs = found->of.back();
      if (!pairs.contains(kProbe))
        insert_probe(memory, leaf);
      // A recovery before this one may have inserted it; that is not part of the program.
      if (const auto probe = pairs.find(kProbe); probe != pairs.end()) {
        if (probe->second != ~leaf)
          found->problem = "the pair inserted after recovery is torn";
        pairs.erase(probe);
      }
    }
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory& memory) const override {
    const auto& found = static_cast<const FoundPairs&>(recovered);
    if (!found.problem.empty())
      return found.problem;
    for (std::uint64_t leaf = 0; leaf < leaves_; ++leaf) {
      const std::string where = "leaf " + std::to_string(leaf) + ": ";
      Pairs possible = expected_[leaf];
      Pairs certain = expected_[leaf];
      for (std::size_t at = 0; in_flight_ != nullptr && at < in_flight_->size(); ++at) {
        const Insert& insert = (*in_flight_)[at];
        if (insert.leaf != leaf)
          continue;
        possible[insert.key] = insert.value;
        if (durable_[at])
          certain[insert.key] = insert.value;
      }
      for (const auto& [key, value] : certain) {
        if (!found.of[leaf].contains(key))
          return where + "key " + std::to_string(key) + " was acknowledged and is gone";
      }
      for (const auto& [key, value] : found.of[leaf]) {
        const auto wanted = possible.find(key);
        if (wanted == possible.end())
          return where + "key " + std::to_string(key) + " was never inserted";
        if (wanted->second != value)
          return where + "key " + std::to_string(key) + " has value " + std::to_string(value) + ", must be " +
                 std::to_string(wanted->second);
      }
      std::string problem;
      Pairs now = contents(memory, leaf, problem);
      now.erase(kProbe);
      if (!problem.empty() || now != found.of[leaf])
        return where + (problem.empty() ? "an insert after recovery has changed other pairs" : problem);
    }
    return {};
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

  struct Insert {
    std::uint64_t leaf;
    std::uint64_t key;
    std::uint64_t value;
  };

  [[nodiscard]] Address address(std::uint64_t leaf) const { return base_ + leaf * FpTreeLeaf::kBytes; }

  /// As the program inserts, through the same persistence points.
  void insert_probe(SimMemory& memory, std::uint64_t leaf) const {
    if (!grouped_)
      return static_cast<void>(FpTreeLeaf::insert(memory, address(leaf), kProbe, ~leaf));
    const InterleavedLeaf::Insert probe{address(leaf), kProbe, ~leaf};
    bool durable = false;
    InterleavedLeaf({}).insert(memory, std::span(&probe, 1), std::span(&durable, 1));
  }

  /// What recovery finds in a leaf; lookups must find the same.
  [[nodiscard]] Pairs contents(SimMemory& memory, std::uint64_t leaf, std::string& problem) const {
    const FpTreeLeaf::Contents recovered = FpTreeLeaf::recover(memory, address(leaf));
    Pairs pairs;
    for (std::uint32_t at = 0; at < recovered.count; ++at) {
      const auto& [key, value] = recovered.entries[at];
      if (!pairs.try_emplace(key, value).second)
        problem = "key " + std::to_string(key) + " is there twice";
      if (FpTreeLeaf::lookup(memory, address(leaf), key) != value)
        problem = "key " + std::to_string(key) + " is there but its lookup fails";
    }
    if (recovered.wrong_fingerprints > 0)
      problem = "a used slot has a wrong fingerprint";
    return pairs;
  }

  std::uint64_t leaves_;
  bool grouped_;
  InterleavedLeaf interleaved_;
  std::vector<std::vector<Insert>> plan_;
  Address base_ = 0;
  std::vector<Pairs> expected_;
  const std::vector<Insert>* in_flight_ = nullptr;
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
