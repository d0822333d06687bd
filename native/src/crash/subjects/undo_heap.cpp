#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/undo/heap.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"

// Subject: objects allocated and freed in transactions.

namespace pmsim::crash {

namespace {

using blocks::SiteInfo;
using blocks::undo::Heap;
using blocks::undo::Place;
using blocks::undo::RedoLog;
using blocks::undo::UndoLog;
using memory::Address;
using memory::SimMemory;

/// What the roots lead to: of each, the stamp of its object, or 0.
using Stamps = std::vector<std::uint64_t>;

struct FoundObjects final : Recovered {
  Stamps stamps;
  std::string problem;
  std::optional<UndoLog> log;
  std::optional<Heap> heap;  ///< nothing where create() had not finished
};

/// A program of transactions over a table of roots, each of which points to an object or to nothing. A
/// transaction gives one to three roots (sometimes up to seven) a new object, or frees theirs. The promise: all
/// of a transaction or nothing; every object that is allocated belongs to one root, and every root's object is
/// allocated and has its bytes and its header.
class UndoHeapSubject final : public Subject {
 public:
  UndoHeapSubject(std::uint64_t seed, Scale scale)
      : small_(scale == Scale::kSmall), random_(seed), stamps_(small_ ? 2 : 6) {
    draw_plan(small_ ? 3 : 40);
  }

  void create(SimMemory& memory) override {
    log_place_.bytes = UndoLog::kHeaderBytes + 1024;
    log_place_.base = memory.allocate(memory::Medium::kPmem, log_place_.bytes, {.name = "undo log"});
    heap_place_.bytes = Heap::place_bytes(stamps_.size() + kSpareObjects, kObjectBytes, kRunBytes);
    heap_place_.base = memory.allocate(memory::Medium::kPmem, heap_place_.bytes, {.name = "heap"});
    roots_ = memory.allocate(memory::Medium::kPmem, stamps_.size() * sizeof(Address), {.name = "roots"});
    log_.emplace(UndoLog::create(memory, log_place_));
    heap_.emplace(Heap::create(memory, heap_place_, kObjectBytes, kRunBytes));
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const Transaction& transaction = plan_[index];
    target_ = stamps_;
    for (const Change& change : transaction.changes)
      target_[change.root] = target_[change.root] == 0 ? change.stamp : 0;
    in_flight_ = transaction.commits;
    log_->begin(memory);
    Stamps now = stamps_;
    for (const Change& change : transaction.changes) {
      toggle(memory, *log_, *heap_, change, now[change.root] == 0);
      now[change.root] = now[change.root] == 0 ? change.stamp : 0;
    }
    if (transaction.commits) {
      heap_->commit(memory, *log_);
      stamps_ = target_;
    } else {
      heap_->abort(memory, *log_);
    }
    in_flight_ = false;
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<FoundObjects>();
    found->log = UndoLog::open(memory, log_place_);
    if (found->log) {
      found->log->recover(memory);
      found->heap = Heap::open(memory, heap_place_, kObjectBytes, kRunBytes);
    }
    found->stamps.assign(stamps_.size(), 0);
    if (!found->heap)
      return found;
    std::set<Address> allocated;
    found->heap->for_each(memory, [&](Address object) { allocated.insert(object); });
    for (std::size_t root = 0; root < stamps_.size(); ++root) {
      const Address object = pointer(memory, root);
      if (object == 0)
        continue;
      if (allocated.erase(object) == 0)
        found->problem = "root " + std::to_string(root) + " has an object that is free, or another root's";
      found->stamps[root] = memory.load<std::uint64_t>(object);
      if (memory.load<std::uint64_t>(object + kSecondStamp) != found->stamps[root])
        found->problem = "the object of root " + std::to_string(root) + " is torn";
    }
    if (!allocated.empty())
      found->problem = std::to_string(allocated.size()) + " objects are allocated and belong to no root";
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory&) const override {
    const auto& found = static_cast<const FoundObjects&>(recovered);
    if ((log_ && !found.log) || (heap_ && !found.heap))
      return "the log or the heap was created and is gone";
    if (!found.problem.empty())
      return found.problem;
    if (found.stamps != stamps_ && !(in_flight_ && found.stamps == target_))
      return "the objects are neither those of the last transaction nor those of the one in flight";
    return {};
  }

  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<FoundObjects&>(recovered);
    if (!found.heap)
      return nullptr;
    auto next = std::make_unique<UndoHeapSubject>(*this);
    next->log_ = std::move(found.log);
    next->heap_ = std::move(found.heap);
    next->stamps_ = std::move(found.stamps);
    next->in_flight_ = false;
    next->plan_.clear();
    next->draw_plan(2);
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    std::string text = plan_[index].commits ? "commit: change root" : "abort: change root";
    for (const Change& change : plan_[index].changes)
      text += " " + std::to_string(change.root);
    return text;
  }

 private:
  static constexpr std::uint64_t kObjectBytes = 256;  ///< two units with its header
  static constexpr std::uint64_t kSecondStamp = 192;  ///< in another line
  static constexpr std::uint64_t kRunBytes = 2048;    ///< three objects
  static constexpr std::uint64_t kSpareObjects = 4;
  /// Their redo logs have several lines, and may end with one: only the end marker in the next line hides the
  /// entries of an earlier log there.
  static constexpr std::uint64_t kManyChanges = 7;

  struct Change {
    std::uint64_t root;
    std::uint64_t stamp;
  };
  struct Transaction {
    std::vector<Change> changes;
    bool commits;
  };

  void draw_plan(std::uint32_t transactions) {
    for (; transactions > 0; --transactions) {
      Transaction transaction{{}, random_.below(4) != 0};
      const std::uint64_t most = small_ ? 2 : random_.below(4) == 0 ? kManyChanges : 3;
      for (std::uint64_t left = 1 + random_.below(most); left > 0; --left)
        transaction.changes.push_back({random_.below(stamps_.size()), random_.next() | 1});
      plan_.push_back(std::move(transaction));
    }
  }

  [[nodiscard]] Address pointer(SimMemory& memory, std::uint64_t root) const {
    return memory.load<Address>(roots_ + root * sizeof(Address));
  }

  void toggle(SimMemory& memory, UndoLog& log, Heap& heap, const Change& change, bool allocate) const {
    const Address root = roots_ + change.root * sizeof(Address);
    log.add_range(memory, root, sizeof(Address));
    Address object = 0;
    if (allocate) {
      object = heap.allocate(memory, log);
      memory.store<std::uint64_t>(object, change.stamp);
      memory.store<std::uint64_t>(object + kSecondStamp, change.stamp);
    } else {
      heap.free(memory, log, pointer(memory, change.root));
    }
    memory.store<Address>(root, object);
  }

  bool small_;
  Random random_;
  Stamps stamps_;  ///< as acknowledged
  Stamps target_;
  bool in_flight_ = false;  ///< a transaction that may already count
  std::vector<Transaction> plan_;
  Place log_place_;
  Place heap_place_;
  Address roots_ = 0;
  std::optional<UndoLog> log_;
  std::optional<Heap> heap_;
};

/// Without those of commits that change one word: a root's snapshot and an object's bits are two.
const std::vector<SiteInfo>& sites() {
  static const std::vector<SiteInfo> all = [] {
    std::vector<SiteInfo> sites;
    for (const std::span<const SiteInfo> part :
         std::initializer_list<std::span<const SiteInfo>>{Heap::kSites, UndoLog::kSites, RedoLog::kLogSites})
      sites.insert(sites.end(), part.begin(), part.end());
    return sites;
  }();
  return all;
}

}  // namespace

extern const SubjectKind kUndoHeap;
const SubjectKind kUndoHeap{"undo-heap", "objects allocated and freed in transactions, as PMDK has them",
                            sites(), [](std::uint64_t seed, Scale scale) -> std::unique_ptr<Subject> {
                              return std::make_unique<UndoHeapSubject>(seed, scale);
                            }};

}  // namespace pmsim::crash
