#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/blocks/node/balance.hpp"
#include "pmsim/blocks/node/erase.hpp"
#include "pmsim/blocks/node/insert.hpp"
#include "pmsim/blocks/node/merge.hpp"
#include "pmsim/blocks/node/pairs.hpp"
#include "pmsim/blocks/node/persistence.hpp"
#include "pmsim/blocks/node/recover.hpp"
#include "pmsim/blocks/node/search.hpp"
#include "pmsim/blocks/node/split.hpp"
#include "pmsim/blocks/undo/undo_log.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"

// Subjects: lists of B+-tree nodes in each layout, changed in an order that is failure-atomic, or in
// transactions.

namespace pmsim::crash {

namespace {

using namespace blocks::node;
using blocks::undo::UndoLog;
using memory::SimMemory;

using SimNode = Node<SimMemory>;

/// A node of the list: where it lies and what it holds, by key.
struct Held {
  std::size_t place;
  std::vector<Pair> pairs;
  bool operator==(const Held&) const = default;
};
using List = std::vector<Held>;

enum class What : std::uint8_t { kInsert, kErase, kSplit, kBalance, kMerge };

/// One operation, and the list when it has ended.
struct Step {
  What what;
  std::size_t at;         ///< the node in the list; of two, the one with the smaller keys
  Pair pair{};            ///< inserted or erased
  std::size_t place = 0;  ///< of the new node
  bool to_larger = false;
  List after;
};

struct Found final : Recovered {
  List list;
  std::string problem;
  std::optional<UndoLog> log;
};

std::string shown(const List& list) {
  std::string text;
  for (const Held& held : list) {
    text += (text.empty() ? "node " : ", node ") + std::to_string(held.place) + " {";
    for (const Pair& pair : held.pairs)
      text += (pair == held.pairs.front() ? "" : " ") + std::to_string(pair.key) + ":" +
              std::to_string(pair.value.first) + "/" + std::to_string(pair.value.second);
    text += "}";
  }
  return text;
}

/// A program of operations on a list of few nodes. The promise: the list is as after the last acknowledged
/// operation, or as after the one in flight; links, order, slots, hashes and counts agree with the pairs.
class NodeSubject final : public Subject {
 public:
  NodeSubject(Layout layout, Persist persist, std::uint64_t seed, Scale scale)
      : geometry_(*geometry(layout, scale == Scale::kSmall ? 192 : 320)), persist_(persist) {
    Random random(seed);
    List list{{0, {}}};
    if (!transactions()) {  // two nodes that never meet
      list.push_back({1, {}});
    }
    draw(random, std::move(list), scale == Scale::kSmall ? 5 : 70);
    after_recovery_ = random.next();
  }

  void create(SimMemory& memory) override {
    base_ = memory.allocate(memory::Medium::kPmem, kPlaces * kStride, {.name = "nodes"});
    if (!transactions())
      return;
    log_place_.bytes = UndoLog::place_bytes(4 * kStride);
    log_place_.base = memory.allocate(memory::Medium::kPmem, log_place_.bytes, {.name = "undo log"});
    log_ = UndoLog::create(memory, log_place_);
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const Step& step = plan_[index];
    in_flight_ = &step;
    Persistence<SimMemory> persistence(memory, persist_, log_ ? &*log_ : nullptr);
    persistence.begin();
    execute(memory, persistence, step);
    persistence.end();
    expected_ = step.after;
    in_flight_ = nullptr;
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<Found>();
    if (transactions()) {
      found->log = UndoLog::open(memory, log_place_);
      if (found->log)
        found->log->recover(memory);
    }
    Changes changes;
    for (std::size_t place = 0; place < (transactions() ? 0 : 2); ++place) {
      SimNode node(memory, geometry_, address(place), changes);
      blocks::node::recover(node);
    }
    read_list(memory, *found);
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory& memory) const override {
    const auto& found = static_cast<const Found&>(recovered);
    if (!found.problem.empty())
      return found.problem;
    if (found.list != expected_ && (in_flight_ == nullptr || found.list != in_flight_->after))
      return "the list is " + shown(found.list) + ", must be " + shown(expected_) +
             (in_flight_ == nullptr ? "" : " or, in flight, " + shown(in_flight_->after));
    return check_searches(found.list, memory);
  }

  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<Found&>(recovered);
    if (transactions() && !found.log)
      return nullptr;
    auto next = std::make_unique<NodeSubject>(*this);
    next->log_ = std::move(found.log);
    next->in_flight_ = nullptr;
    Random random(after_recovery_);
    next->draw(random, found.list, 3);
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const Step& step = plan_[index];
    const std::string node = "node " + std::to_string(step.at) + " of the list";
    switch (step.what) {
      case What::kInsert:
        return "insert key " + std::to_string(step.pair.key) + " into " + node;
      case What::kErase:
        return "erase key " + std::to_string(step.pair.key) + " from " + node;
      case What::kSplit:
        return "split " + node + " into place " + std::to_string(step.place);
      case What::kBalance:
        return "balance " + node + " and its neighbour, towards the " + (step.to_larger ? "larger" : "smaller");
      case What::kMerge:
        return "merge " + node + " with its neighbour";
    }
    return {};
  }

 private:
  static constexpr std::size_t kPlaces = 3;
  static constexpr std::uint64_t kStride = 320;
  static constexpr std::uint64_t kLargestKey = 1'000'000;

  [[nodiscard]] bool transactions() const noexcept { return persist_ == Persist::kTransaction; }
  [[nodiscard]] Address address(std::size_t place) const noexcept { return base_ + place * kStride; }

  void draw(Random& random, List list, std::uint32_t operations) {
    expected_ = list;
    plan_.clear();
    // Unsorted nodes that nothing is erased from are full at some point.
    for (std::uint32_t tries = 0; plan_.size() < operations && tries < 20 * operations; ++tries) {
      Step step = draw_step(random, list);
      if (step.after == list)
        continue;
      list = step.after;
      plan_.push_back(std::move(step));
    }
  }

  /// An operation that the list allows, or one that changes nothing.
  Step draw_step(Random& random, const List& list) const {
    const std::size_t at = random.below(list.size());
    Step step{.what = What::kInsert, .at = at, .after = list};
    const std::vector<Pair>& pairs = list[at].pairs;
    const bool has_next = at + 1 < list.size();
    const std::uint64_t dice = random.below(8);
    if (transactions() && dice < 3) {
      if (pairs.size() == geometry_.entries && list.size() < kPlaces) {
        split_model(step);
      } else if (has_next && pairs.size() + list[at + 1].pairs.size() <= geometry_.entries) {
        step.what = What::kMerge;
        std::ranges::copy(list[at + 1].pairs, std::back_inserter(step.after[at].pairs));
        step.after.erase(step.after.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      } else if (has_next) {
        balance_model(step);
      }
      return step;
    }
    const bool erases = can_be_ordered(geometry_.layout, false) || transactions();
    if (erases && !pairs.empty() && (dice == 3 || pairs.size() == geometry_.entries)) {
      step.what = What::kErase;
      const std::size_t rank = random.below(pairs.size());
      step.pair = pairs[rank];
      step.after[at].pairs.erase(step.after[at].pairs.begin() + static_cast<std::ptrdiff_t>(rank));
      return step;
    }
    // Keys of a list ascend from node to node; those of nodes that never meet are their own affair.
    const std::uint64_t low = transactions() && at > 0 ? largest_before(list, at) + 1 : 1;
    const std::uint64_t high = transactions() && has_next ? smallest_behind(list, at) : kLargestKey;
    if (pairs.size() == geometry_.entries || low >= high)
      return step;
    step.pair = {low + random.below(high - low), {random.next(), random.next()}};
    std::vector<Pair>& into = step.after[at].pairs;
    const auto place = std::ranges::lower_bound(into, step.pair.key, {}, &Pair::key);
    if (place == into.end() || place->key != step.pair.key)
      into.insert(place, step.pair);
    return step;
  }

  [[nodiscard]] static std::uint64_t largest_before(const List& list, std::size_t at) {
    for (; at > 0; --at) {
      if (!list[at - 1].pairs.empty())
        return list[at - 1].pairs.back().key;
    }
    return 0;
  }
  [[nodiscard]] static std::uint64_t smallest_behind(const List& list, std::size_t at) {
    for (++at; at < list.size(); ++at) {
      if (!list[at].pairs.empty())
        return list[at].pairs.front().key;
    }
    return kLargestKey;
  }

  void split_model(Step& step) const {
    step.what = What::kSplit;
    for (std::size_t place = 0; place < kPlaces; ++place) {
      if (std::ranges::find(step.after, place, &Held::place) == step.after.end())
        step.place = place;
    }
    std::vector<Pair>& lower = step.after[step.at].pairs;
    const auto middle = lower.begin() + (geometry_.entries + 1) / 2;
    Held upper{step.place, {middle, lower.end()}};
    lower.erase(middle, lower.end());
    step.after.insert(step.after.begin() + static_cast<std::ptrdiff_t>(step.at) + 1, std::move(upper));
  }

  static void balance_model(Step& step) {
    step.what = What::kBalance;
    std::vector<Pair>& smaller = step.after[step.at].pairs;
    std::vector<Pair>& larger = step.after[step.at + 1].pairs;
    step.to_larger = smaller.size() > larger.size();
    const std::size_t stay = (smaller.size() + larger.size()) / 2;
    if (step.to_larger) {
      const auto from = smaller.begin() + static_cast<std::ptrdiff_t>(stay);
      larger.insert(larger.begin(), from, smaller.end());
      smaller.erase(from, smaller.end());
    } else {
      const auto to = larger.begin() + static_cast<std::ptrdiff_t>(larger.size() - stay);
      smaller.insert(smaller.end(), larger.begin(), to);
      larger.erase(larger.begin(), to);
    }
  }

  void execute(SimMemory& memory, Persistence<SimMemory>& persistence, const Step& step) {
    const auto node_at = [&](std::size_t at) {
      return SimNode(memory, geometry_, address(expected_[at].place), persistence.changes());
    };
    SimNode node = node_at(step.at);
    switch (step.what) {
      case What::kInsert: {
        const auto& pairs = expected_[step.at].pairs;
        const auto rank = static_cast<std::uint32_t>(
            std::ranges::lower_bound(pairs, step.pair.key, {}, &Pair::key) - pairs.begin());
        const std::uint32_t position = geometry_.layout == Layout::kSorted        ? rank
                                       : geometry_.layout == Layout::kIndirection ? rank + 1
                                       : has_bitmap(geometry_.layout)             ? free_place(node)
                                                                                  : 0;
        return insert(persistence, node, position, step.pair);
      }
      case What::kErase:
        return erase(persistence, node, search(node, step.pair.key, Branches::kLearnt));
      case What::kSplit: {
        const Address fresh = address(step.place);
        const std::array<std::byte, kStride> zeros{};
        log_->add_fresh(fresh, geometry_.end());
        memory.write(fresh, std::span(zeros).first(geometry_.prev + kPointerBytes));
        SimNode target(memory, geometry_, fresh, persistence.changes());
        const Split how = has_bitmap(geometry_.layout) && step.place == 2 ? Split::kCopy : Split::kMove;
        static_cast<void>(split(persistence, node, target, how));
        return;
      }
      case What::kBalance: {
        SimNode other = node_at(step.at + 1);
        return step.to_larger ? balance(persistence, node, other, true)
                              : balance(persistence, other, node, false);
      }
      case What::kMerge: {
        SimNode other = node_at(step.at + 1);
        return merge(persistence, node, other);
      }
    }
  }

  void read_list(SimMemory& memory, Found& found) const {
    if (!transactions()) {
      for (std::size_t place = 0; place < 2; ++place)
        read_node(memory, place, found);
      return;
    }
    Address before = 0;
    for (Address at = address(0); at != 0 && found.list.size() <= kPlaces;) {
      if (at < base_ || (at - base_) % kStride != 0 || (at - base_) / kStride >= kPlaces) {
        found.problem = "a node points to where no node is";
        return;
      }
      read_node(memory, (at - base_) / kStride, found);
      Changes none;
      const SimNode node(memory, geometry_, at, none);
      if (node.prev() != before)
        found.problem = "a node points back to another than the one before it";
      before = at;
      at = node.next();
    }
  }

  void read_node(SimMemory& memory, std::size_t place, Found& found) const {
    Changes none;
    const SimNode node(memory, geometry_, address(place), none);
    Held held{place, pairs_of(node)};
    const std::string who = "node " + std::to_string(place);
    if (std::ranges::adjacent_find(held.pairs, {}, &Pair::key) != held.pairs.end())
      found.problem = who + " holds a key twice";
    if (!has_bitmap(geometry_.layout) && node.count() > geometry_.entries)
      found.problem = who + " has an impossible count";
    if (geometry_.layout == Layout::kIndirection && node.slot(0) != held.pairs.size())
      found.problem = who + " has " + std::to_string(node.slot(0)) + " slots and " +
                      std::to_string(held.pairs.size()) + " pairs";
    found.list.push_back(std::move(held));
  }

  /// Every pair can be found, which is where the order of a sorted node, its slots or its hashes show.
  [[nodiscard]] std::string check_searches(const List& list, SimMemory& memory) const {
    Changes none;
    for (const Held& held : list) {
      const SimNode node(memory, geometry_, address(held.place), none);
      for (const Pair& pair : held.pairs) {
        const std::uint32_t found = search(node, pair.key, Branches::kLearnt);
        const bool slots = geometry_.layout == Layout::kIndirection;
        if (found >= geometry_.entries + (slots ? 1 : 0) || node.pair(slots ? node.slot(found) : found) != pair)
          return "key " + std::to_string(pair.key) + " is there but its search fails";
      }
    }
    return {};
  }

  Geometry geometry_;
  Persist persist_;
  std::uint64_t after_recovery_ = 0;  ///< seed of the operations after a recovery
  Address base_ = 0;
  blocks::undo::Place log_place_;
  std::optional<UndoLog> log_;
  List expected_;
  std::vector<Step> plan_;
  const Step* in_flight_ = nullptr;
};

template <Layout kLayout, Persist kPersist>
std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) {
  return std::make_unique<NodeSubject>(kLayout, kPersist, seed, scale);
}

/// Of a transaction that commits, and changes no word but its own at once.
std::span<const blocks::SiteInfo> transaction_sites() {
  static const std::vector<blocks::SiteInfo> sites = [] {
    std::vector<blocks::SiteInfo> all;
    std::ranges::copy_if(UndoLog::kSites, std::back_inserter(all), [](const blocks::SiteInfo& site) {
      return site.id < UndoLog::kAbortFlush || site.id > UndoLog::kAbortEndFence;
    });
    std::ranges::copy(blocks::undo::RedoLog::kWordSites, std::back_inserter(all));
    std::ranges::find(all, UndoLog::kFormatFence, &blocks::SiteInfo::id)->redundant =
        "no node changes before the first snapshot, whose fence waits for the log's header, too";
    return all;
  }();
  return sites;
}

}  // namespace

std::span<const SubjectKind> node_subjects();

std::span<const SubjectKind> node_subjects() {
  static constexpr std::span<const blocks::SiteInfo> kOrdered = Persistence<SimMemory>::kSites;
  static const std::span<const blocks::SiteInfo> transactions = transaction_sites();
  static const std::array kinds{
      SubjectKind{"node-unsorted", "unsorted nodes: inserts that a count publishes", kOrdered,
                  make<Layout::kUnsorted, Persist::kOrdered>},
      SubjectKind{"node-indirection", "nodes with slots: inserts and erases that a bit publishes", kOrdered,
                  make<Layout::kIndirection, Persist::kOrdered>},
      SubjectKind{"node-hashing", "nodes with hashes: inserts and erases that a bit publishes", kOrdered,
                  make<Layout::kHashing, Persist::kOrdered>},
      SubjectKind{"node-bitmap", "nodes with a bitmap: inserts and erases that a bit publishes", kOrdered,
                  make<Layout::kBitmap, Persist::kOrdered>},
      SubjectKind{"node-sorted-tx", "a list of sorted nodes: all changes in transactions", transactions,
                  make<Layout::kSorted, Persist::kTransaction>},
      SubjectKind{"node-unsorted-tx", "a list of unsorted nodes: all changes in transactions", transactions,
                  make<Layout::kUnsorted, Persist::kTransaction>},
      SubjectKind{"node-indirection-tx", "a list of nodes with slots: all changes in transactions",
                  transactions, make<Layout::kIndirection, Persist::kTransaction>},
      SubjectKind{"node-hashing-tx", "a list of nodes with hashes: all changes in transactions", transactions,
                  make<Layout::kHashing, Persist::kTransaction>},
  };
  return kinds;
}

}  // namespace pmsim::crash
