#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/blocks/run/buffers.hpp"
#include "pmsim/blocks/run/merge.hpp"
#include "pmsim/blocks/run/move.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"

// Subjects: sorted runs that are moved from a buffer and merged, with each failure atomicity.

namespace pmsim::crash {

namespace {

using namespace blocks::run;
using blocks::SiteInfo;
using blocks::undo::Place;
using blocks::undo::RedoLog;
using blocks::undo::UndoLog;
using memory::SimMemory;

using Run = std::vector<Pair>;
/// The valid runs of each level, oldest first.
using Tree = std::vector<std::vector<Run>>;

struct FoundTree final : Recovered {
  Tree tree;
  std::optional<UndoLog> log;  ///< nothing where create() had not finished, or there is none
};

/// A program of moves and merges; keys are few, so that runs share some. The promise: the tree's runs are those
/// that the last acknowledged operation left, or that the one in flight leaves.
class SortedRunSubject final : public Subject {
 public:
  SortedRunSubject(FailureAtomicity atomicity, std::uint64_t seed, Scale scale)
      : atomicity_(atomicity),
        random_(seed),
        pairs_(scale == Scale::kSmall ? 2 : 9),
        levels_(scale == Scale::kSmall ? 2 : 3),
        after_recovery_(scale == Scale::kSmall ? 2 : 6),
        tree_(levels_) {
    draw_plan(tree_, scale == Scale::kSmall ? 5 : 30);
  }

  void create(SimMemory& memory) override {
    place_.bytes = UndoLog::place_bytes(2 * Levels::bytes(pairs_, levels_));
    place_.base = memory.allocate(memory::Medium::kPmem, place_.bytes, {.name = "undo log"});
    base_ = memory.allocate(memory::Medium::kPmem, Levels::bytes(pairs_, levels_), {.name = "tree"});
    const std::uint64_t largest = pairs_ << (2 * (levels_ - 1));
    buffer_ =
        memory.allocate(memory::Medium::kDram,
                        std::max(SortedBuffer::bytes(pairs_), UnsortedBuffer::bytes(pairs_)), {.name = "C0"});
    scratch_ = memory.allocate(memory::Medium::kDram, Merger::scratch_bytes(largest), {.name = "scratch"});
    if (atomicity_ != FailureAtomicity::kNone)
      log_.emplace(UndoLog::create(memory, place_));
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const Operation& operation = plan_[index];
    target_ = after(tree_, operation);
    in_flight_ = true;
    const Levels levels(base_, pairs_, levels_);
    Publisher publisher(atomicity_, log_ ? &*log_ : nullptr);
    if (operation.merged_level) {
      Merger merger(operation.algorithm, operation.target, scratch_);
      ensure(merger.merge(memory, levels, publisher, *operation.merged_level), "a planned merge was refused");
    } else if (operation.sorted) {
      moved<SortedBuffer>(memory, levels, publisher, operation.pairs);
    } else {
      moved<UnsortedBuffer>(memory, levels, publisher, operation.pairs);
    }
    tree_ = target_;
    in_flight_ = false;
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<FoundTree>();
    if (atomicity_ != FailureAtomicity::kNone) {
      found->log = UndoLog::open(memory, place_);
      if (found->log)
        found->log->recover(memory);
    }
    const Levels levels(base_, pairs_, levels_);
    const std::uint64_t word = levels.word(memory);
    found->tree.resize(levels_);
    for (std::uint32_t level = 0; level < levels_; ++level) {
      for (std::uint32_t index = 0; index < std::min(Levels::valid(word, level), kRunsPerLevel); ++index) {
        Run run(std::min(levels.size(memory, levels.run(level, index)), levels.capacity(level)));
        memory.read(Levels::pairs_of(levels.run(level, index)), std::as_writable_bytes(std::span(run)));
        found->tree[level].push_back(std::move(run));
      }
    }
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory&) const override {
    const auto& found = static_cast<const FoundTree&>(recovered);
    if (log_ && !found.log)
      return "the undo log was created and is gone";
    if (found.tree == tree_ || (in_flight_ && found.tree == target_))
      return {};
    for (std::uint32_t level = 0; level < levels_; ++level) {
      if (found.tree[level].size() != tree_[level].size() &&
          !(in_flight_ && found.tree[level].size() == target_[level].size()))
        return "level " + std::to_string(level) + " has " + std::to_string(found.tree[level].size()) + " runs";
    }
    return "a run does not hold what was written to it";
  }

  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<FoundTree&>(recovered);
    if (atomicity_ != FailureAtomicity::kNone && !found.log)
      return nullptr;
    auto next = std::make_unique<SortedRunSubject>(*this);
    next->log_ = std::move(found.log);
    next->tree_ = std::move(found.tree);
    next->in_flight_ = false;
    next->plan_.clear();
    next->draw_plan(next->tree_, after_recovery_);
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const Operation& operation = plan_[index];
    if (operation.merged_level)
      return std::string(operation.algorithm == MergeAlgorithm::kTwoWay ? "2-way" : "K-way") +
             " merge of level " + std::to_string(*operation.merged_level) +
             (operation.target == MergeTarget::kBuffer ? ", through a buffer" : "");
    return std::string("move ") + (operation.sorted ? "a sorted" : "an unsorted") + " buffer";
  }

 private:
  struct Operation {
    std::optional<std::uint32_t> merged_level;  ///< else a move
    Run pairs;                                  ///< of a move, in the order of their insertion
    bool sorted = false;
    MergeAlgorithm algorithm = MergeAlgorithm::kTwoWay;
    MergeTarget target = MergeTarget::kDirect;
  };

  /// Moves while level 0 has room, merges where a level has none.
  void draw_plan(Tree tree, std::uint32_t operations) {
    for (; operations > 0; --operations) {
      Operation operation;
      std::uint32_t full = 0;
      while (full < levels_ && tree[full].size() == kRunsPerLevel)
        ++full;
      if (full == levels_)
        return;  // the whole tree
      if (full > 0) {
        operation.merged_level = full - 1;
        operation.algorithm = random_.below(2) == 0 ? MergeAlgorithm::kTwoWay : MergeAlgorithm::kKWay;
        operation.target = random_.below(2) == 0 ? MergeTarget::kDirect : MergeTarget::kBuffer;
      } else {
        operation.sorted = random_.below(2) == 0;
        std::map<std::uint64_t, bool> used;
        while (operation.pairs.size() < pairs_) {
          const std::uint64_t key = 1 + random_.below(4 * pairs_);
          if (used.emplace(key, true).second)
            operation.pairs.push_back({key, {random_.next(), random_.next()}});
        }
      }
      tree = after(std::move(tree), operation);
      plan_.push_back(std::move(operation));
    }
  }

  [[nodiscard]] static Tree after(Tree tree, const Operation& operation) {
    std::map<std::uint64_t, Pair> pairs;
    if (operation.merged_level) {
      for (const Run& run : tree[*operation.merged_level]) {
        for (const Pair& pair : run)
          pairs[pair.key] = pair;
      }
      tree[*operation.merged_level].clear();
    } else {
      for (const Pair& pair : operation.pairs)
        pairs[pair.key] = pair;
    }
    Run run;
    for (const auto& [key, pair] : pairs)
      run.push_back(pair);
    tree[operation.merged_level ? *operation.merged_level + 1 : 0].push_back(std::move(run));
    return tree;
  }

  template <typename Buffer>
  void moved(SimMemory& memory, const Levels& levels, Publisher& publisher, const Run& pairs) const {
    Buffer buffer(buffer_, pairs_);
    buffer.fill(memory, pairs);
    ensure(blocks::run::move(memory, levels, publisher, buffer, pairs.size()), "a planned move was refused");
  }

  FailureAtomicity atomicity_;
  Random random_;
  std::uint64_t pairs_;  ///< of a run of level 0
  std::uint32_t levels_;
  std::uint32_t after_recovery_;  ///< operations
  Tree tree_;                     ///< as acknowledged
  Tree target_;
  bool in_flight_ = false;
  std::vector<Operation> plan_;
  Place place_;
  Address base_ = 0;
  Address buffer_ = 0;
  Address scratch_ = 0;
  std::optional<UndoLog> log_;
};

/// `own` and the points of the undo log but for those of an abort, which no operation makes. Some of these are
/// not needed here, each of `redundant` with its reason.
std::vector<SiteInfo> with_log(std::span<const SiteInfo> own, std::span<const SiteInfo> redundant) {
  std::vector<SiteInfo> sites(own.begin(), own.end());
  for (const SiteInfo& site : UndoLog::kSites) {
    if (site.id >= UndoLog::kAbortFlush && site.id <= UndoLog::kAbortEndFence)
      continue;
    const auto here = std::ranges::find(redundant, site.id, &SiteInfo::id);
    sites.push_back({site.id, site.name, here == redundant.end() ? site.redundant : here->redundant});
  }
  sites.insert(sites.end(), RedoLog::kWordSites.begin(), RedoLog::kWordSites.end());
  return sites;
}
constexpr std::string_view kOneWord =
    "Run_Ptr is one word, whole before and after, and what it says is durable";
const std::vector<SiteInfo> kIndividual =
    with_log(Publisher::kIndividualSites,
             std::array{
                 SiteInfo{UndoLog::kCommitFence,
                          {},
                          "Run_Ptr is one word, and the fence behind the generation waits for both"},
                 SiteInfo{UndoLog::kSnapshotFence, {}, kOneWord},
                 SiteInfo{UndoLog::kRecoverFence, {}, kOneWord},
                 SiteInfo{UndoLog::kRecoverEndFlush, {}, kOneWord},
             });
const std::vector<SiteInfo> kTransaction =
    with_log({}, std::array{SiteInfo{
                     UndoLog::kSnapshotFence,
                     {},
                     "that of the run comes behind that of Run_Ptr and begins with a fence; what the run held "
                     "does not matter"}});

template <FailureAtomicity kAtomicity>
std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) {
  return std::make_unique<SortedRunSubject>(kAtomicity, seed, scale);
}

}  // namespace

extern const SubjectKind kSortedRun;
extern const SubjectKind kSortedRunIndividual;
extern const SubjectKind kSortedRunTransaction;

const SubjectKind kSortedRun{"sorted-run", "sorted runs, published by one word", Publisher::kNoneSites,
                             make<FailureAtomicity::kNone>};
const SubjectKind kSortedRunIndividual{"sorted-run-individual",
                                       "sorted runs, published by a transaction of one word", kIndividual,
                                       make<FailureAtomicity::kIndividual>};
const SubjectKind kSortedRunTransaction{"sorted-run-transaction",
                                        "sorted runs, written and published in a transaction", kTransaction,
                                        make<FailureAtomicity::kTransaction>};

}  // namespace pmsim::crash
