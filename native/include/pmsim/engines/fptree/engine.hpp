#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/btree/btree.hpp"
#include "pmsim/engines/btree/bulk_loader.hpp"
#include "pmsim/engines/btree/check.hpp"
#include "pmsim/engines/cpu_work.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/fptree/layout.hpp"
#include "pmsim/engines/fptree/leaf_ops.hpp"
#include "pmsim/engines/fptree/leaf_space.hpp"
#include "pmsim/engines/fptree/undo_log.hpp"
#include "pmsim/engines/memory_store.hpp"

namespace pmsim::engines::fptree {

/// FP-tree (Oukid et al., SIGMOD 2016), as van Renen et al. 2018 compare with it (section 5.5): fingerprinted
/// leaves on PMem, inner nodes in DRAM that a restart builds anew. Keys and payloads have 8 bytes.
///
/// Inner nodes are the shared B+-tree over DRAM pages: from the lowest key that a leaf may hold to the leaf's
/// address. 64 KiB hold 4092 of these, the paper's 4096 less the page's header.
///
/// Every change of a leaf is failure-atomic and durable at once, by the leaf. What a transaction adds: the last
/// change is held back until the next operation or the commit. So a transaction with one change needs no log;
/// all others write each change's undo entry to PMem first. DURABLE when commit() returns; a restart takes back
/// what an unfinished transaction has done.
///
/// Leaves that become empty are unlinked by one 8-byte store and used again; others are never merged.
template <memory::Memory M, std::uint32_t kInnerNodeBytes = kInnerBytes>
class FpTreeEngine final : public Engine<M> {
 public:
  FpTreeEngine(M& memory, const EngineOptions& options)
      : FpTreeEngine(memory, options, allocate(memory, options)) {}

  /// On zero bytes: a new engine.
  FpTreeEngine(M& memory, const EngineOptions& options, const EnginePlace& place)
      : place_(place),
        cpu_cycles_(options.cpu_cycles),
        transaction_cycles_(options.transaction_cycles),
        store_(place.dram, inner_bytes(options), kInnerNodeBytes),
        space_(place.pmem, options.pmem_bytes, place.dram + inner_bytes(options)),
        log_(place.meta, options.log_bytes) {
    recover(memory);
  }

  TableId load(M& memory, const TableSpec& spec, RowSource& rows, double fill) override {
    ensure(!in_transaction_, "load() inside of a transaction");
    check_new(spec);
    Table table{spec.name, nullptr};
    const std::vector<Child> children = load_leaves(memory, rows, fill);
    const auto number = static_cast<TableId>(tables_.size());
    const Address row = Meta::row(place_.meta, number);
    std::array<std::byte, Meta::kNameBytes> name{};
    std::memcpy(name.data(), spec.name.data(), spec.name.size());
    memory.template store<std::uint64_t>(row, children.front().leaf);
    memory.write(row + 8, name);
    memory.flush(row, Meta::kRowBytes, memory::FlushKind::kClwb, kFlushTableRow);
    memory.sfence(kFenceLoaded);
    memory.template store<std::uint64_t>(place_.meta + Meta::kTables, std::uint64_t{number} + 1);
    memory.flush(place_.meta + Meta::kTables, 8, memory::FlushKind::kClwb, kFlushTables);
    memory.sfence(kFenceTables);
    table.inner = build_inner(memory, children, fill);
    tables_.push_back(std::move(table));
    return number;
  }

  void begin(M& memory) override {
    ensure(!in_transaction_, "begin() inside of a transaction");
    in_transaction_ = true;
    cpu_work(memory, transaction_cycles_);
  }
  void commit(M& memory) override {
    ensure(in_transaction_, "commit() outside of a transaction");
    if (held_back_ && log_.empty()) {
      apply(memory, *held_back_);
      held_back_.reset();
    }
    settle(memory);
    if (!log_.empty())
      log_.clear(memory);
    in_transaction_ = false;
  }
  void abort(M& memory) override {
    ensure(in_transaction_, "abort() outside of a transaction");
    held_back_.reset();
    undo_all(memory);
    in_transaction_ = false;
  }

  bool read(M& memory, TableId table, std::uint64_t key, std::uint32_t offset,
            std::span<std::byte> into) override {
    Table& tree = operation(memory, table, offset, into.size());
    const auto found = LeafOps<M>::find(memory, leaf_of(memory, tree, key), key);
    if (found)
      std::memcpy(into.data(), reinterpret_cast<const std::byte*>(&found->value) + offset, into.size());
    return found.has_value();
  }
  bool update(M& memory, TableId table, std::uint64_t key, std::uint32_t offset,
              std::span<const std::byte> bytes) override {
    Table& tree = operation(memory, table, offset, bytes.size());
    const Address leaf = leaf_of(memory, tree, key);
    const auto found = LeafOps<M>::find(memory, leaf, key);
    if (!found)
      return false;
    std::uint64_t value = found->value;
    std::memcpy(reinterpret_cast<std::byte*>(&value) + offset, bytes.data(), bytes.size());
    hold_back({Change::Kind::kUpdate, table, key, found->value, value}, leaf, found->slot);
    return true;
  }
  bool insert(M& memory, TableId table, std::uint64_t key, std::span<const std::byte> payload) override {
    Table& tree = operation(memory, table, 0, payload.size());
    if (payload.size() != sizeof(std::uint64_t))
      throw ConfigError("insert: the payload has " + std::to_string(payload.size()) + " bytes, the table's 8");
    const Address leaf = leaf_of(memory, tree, key);
    if (LeafOps<M>::find(memory, leaf, key))
      return false;
    std::uint64_t value = 0;
    std::memcpy(&value, payload.data(), sizeof value);
    hold_back({Change::Kind::kInsert, table, key, 0, value}, leaf, 0);
    return true;
  }
  bool erase(M& memory, TableId table, std::uint64_t key) override {
    Table& tree = operation(memory, table, 0, 0);
    const Address leaf = leaf_of(memory, tree, key);
    const auto found = LeafOps<M>::find(memory, leaf, key);
    if (!found)
      return false;
    hold_back({Change::Kind::kErase, table, key, found->value, 0}, leaf, found->slot);
    return true;
  }
  /// Along the links of the leaves; each leaf is sorted just in time.
  std::uint64_t scan(M& memory, TableId table, std::uint64_t from, std::uint64_t limit, std::uint32_t offset,
                     std::uint32_t bytes, ScanMode, const typename Engine<M>::Visit& visit) override {
    Table& tree = operation(memory, table, offset, bytes);
    std::uint64_t visited = 0;
    typename LeafOps<M>::Entries entries;
    for (Address leaf = limit == 0 ? 0 : leaf_of(memory, tree, from); leaf != 0; leaf = next_of(memory, leaf)) {
      for (const auto& entry : LeafOps<M>::sorted(memory, leaf, from, entries)) {
        const auto value = memory.template load<std::uint64_t>(Leaf::pair(leaf, entry.slot) + 8);
        ++visited;
        if (!visit(entry.key, std::as_bytes(std::span(&value, 1)).subspan(offset, bytes)) || visited == limit)
          return visited;
      }
    }
    return visited;
  }

  void checkpoint(M&) override { ensure(!in_transaction_, "checkpoint() inside of a transaction"); }
  void shutdown(M&) override { ensure(!in_transaction_, "shutdown() inside of a transaction"); }

  [[nodiscard]] std::map<std::string, double> counters() const override {
    std::map<std::string, double> all;
    all["leaves"] = static_cast<double>(space_.used());
    all["leaf_splits"] = static_cast<double>(leaf_splits_);
    all["leaf_unlinks"] = static_cast<double>(leaf_unlinks_);
    all["undo_entries"] = static_cast<double>(log_.appended());
    all["splits"] = all["merges"] = 0;
    for (const Table& table : tables_) {
      all["splits"] += static_cast<double>(table.inner->counters().splits);
      all["merges"] += static_cast<double>(table.inner->counters().merges);
    }
    return all;
  }
  [[nodiscard]] std::string check(M& memory) override;
  [[nodiscard]] const EnginePlace& place() const override { return place_; }

 private:
  using Store = MemoryStore<M>;
  using Inner = btree::BTree<Store, std::uint64_t, M>;
  struct Table {
    std::string name;
    std::unique_ptr<Inner> inner;
  };
  struct Child {
    std::uint64_t low;  ///< lowest key that the leaf may hold
    Address leaf;
  };
  class ChildSource final : public RowSource {
   public:
    explicit ChildSource(const std::vector<Child>& children) : children_(children) {}
    [[nodiscard]] std::uint64_t rows() const override { return children_.size(); }
    std::uint64_t next(std::span<std::byte> payload) override {
      std::memcpy(payload.data(), &children_[next_].leaf, sizeof(Address));
      return children_[next_++].low;
    }

   private:
    const std::vector<Child>& children_;
    std::size_t next_ = 0;
  };
  /// The last change of the transaction, and where it will take place.
  struct HeldBack {
    Change change;
    Address leaf;
    std::uint32_t slot;
  };

  [[nodiscard]] static std::uint64_t inner_bytes(const EngineOptions& options) noexcept {
    return options.dram_bytes / kInnerNodeBytes * kInnerNodeBytes;
  }
  [[nodiscard]] static EnginePlace allocate(M& memory, const EngineOptions& options) {
    const auto refuse = [](const std::string& what) { throw ConfigError("engine fptree: " + what); };
    if (options.leaf_layout != "sorted")
      refuse("leaf_layout = '" + options.leaf_layout + "': its leaves are its own; leave the default");
    if (inner_bytes(options) == 0) {
      refuse("dram_bytes = " + std::to_string(options.dram_bytes) + ": holds no inner node of " +
             std::to_string(kInnerNodeBytes) + " bytes");
    }
    const std::uint64_t leaves = options.pmem_bytes / LeafSpace<M>::kEach;
    if (leaves == 0)
      refuse("pmem_bytes = " + std::to_string(options.pmem_bytes) + ": holds no leaf");
    if (leaves > std::numeric_limits<std::uint32_t>::max())
      refuse("pmem_bytes: more than 2^32 leaves");
    EnginePlace place;
    using memory::Medium;
    place.dram = memory.allocate(Medium::kDram, inner_bytes(options) + leaves * sizeof(std::uint32_t),
                                 {.name = "inner nodes"});
    place.meta = memory.allocate(Medium::kPmem, Meta::kUndo + options.log_bytes, {.name = "fptree meta"});
    // Last, so that the memory finds it at the first try.
    place.pmem = memory.allocate(Medium::kPmem, options.pmem_bytes, {.name = "leaves"});
    return place;
  }
  [[nodiscard]] static btree::Layout inner_layout() {
    return btree::Layout::of({"inner nodes", 8, 8}, kInnerNodeBytes, btree::NodeKind::kSortedLeaf);
  }

  void check_new(const TableSpec& spec) const {
    const auto refuse = [&spec](const std::string& what) {
      throw ConfigError("table '" + spec.name + "': " + what);
    };
    if (spec.key_bytes != 8 || spec.payload_bytes != 8) {
      refuse("key_bytes = " + std::to_string(spec.key_bytes) + ", payload_bytes = " +
             std::to_string(spec.payload_bytes) + ": engine fptree holds tables with 8 and 8 only");
    }
    if (spec.name.empty() || spec.name.size() >= Meta::kNameBytes)
      refuse("a name has 1 to 55 bytes");
    if (std::any_of(tables_.begin(), tables_.end(),
                    [&](const Table& table) { return table.name == spec.name; }))
      refuse("it exists already");
    if (tables_.size() == Meta::kMaxTables)
      refuse("engine fptree holds at most " + std::to_string(Meta::kMaxTables) + " tables");
  }
  [[nodiscard]] std::vector<Child> load_leaves(M& memory, RowSource& rows, double fill) {
    if (!(fill > 0 && fill <= 1))
      throw ConfigError("fill = " + std::to_string(fill) + ": must be above 0 and at most 1");
    const double each = fill * Leaf::kSlots;
    std::vector<Child> children;
    std::array<std::byte, Leaf::kBytes> image;
    std::uint64_t left = rows.rows();
    std::optional<std::uint64_t> previous;
    Address next = space_.take(memory);
    do {
      const auto before = static_cast<double>(children.size());
      const auto share =
          static_cast<std::uint64_t>(std::floor(each * (before + 1) + 1e-6) - std::floor(each * before + 1e-6));
      const std::uint64_t count = std::min(left, std::clamp<std::uint64_t>(share, 1, Leaf::kSlots));
      left -= count;
      image.fill(std::byte{0});
      Bitmap used = 0;
      std::uint64_t low = 0;
      for (std::uint32_t slot = 0; slot < count; ++slot) {
        const std::span<std::byte> pair = std::span(image).subspan(Leaf::pair(0, slot), Leaf::kPairBytes);
        const std::uint64_t key = rows.next(pair.subspan(8));
        if (previous && key <= *previous)
          throw ConfigError("row with key " + std::to_string(key) + ": keys must ascend");
        previous = key;
        std::memcpy(pair.data(), &key, sizeof key);
        image[Leaf::kFingerprints + slot] = std::byte{Leaf::fingerprint(key)};
        used |= Bitmap{1} << slot;
        low = slot == 0 && !children.empty() ? key : low;
      }
      std::memcpy(image.data(), &used, sizeof used);
      const Address leaf = next;
      next = left > 0 ? space_.take(memory) : 0;
      memory.write(leaf, image);
      memory.template store<std::uint64_t>(space_.link(leaf), next);
      memory.flush(leaf, Leaf::kBytes, memory::FlushKind::kClwb, kFlushLoadedLeaf);
      memory.flush(space_.link(leaf), 8, memory::FlushKind::kClwb, kFlushLoadedLinks);
      children.push_back({low, leaf});
    } while (left > 0);
    return children;
  }
  [[nodiscard]] std::unique_ptr<Inner> build_inner(M& memory, const std::vector<Child>& children, double fill) {
    const btree::Layout layout = inner_layout();
    ChildSource source(children);
    const PageId root = btree::BulkLoader<Store, std::uint64_t, M>(memory, store_, layout, fill).load(source);
    return std::make_unique<Inner>(memory, store_, layout, root);
  }

  void recover(M& memory) {
    LeafOps<M>::recover_split(memory, space_, place_.meta);
    const auto tables = memory.template load<std::uint64_t>(place_.meta + Meta::kTables);
    std::vector<bool> in_use;
    std::vector<std::vector<Child>> children(tables);
    for (std::uint32_t number = 0; number < tables; ++number) {
      std::array<char, Meta::kNameBytes> name;
      memory.read(Meta::row(place_.meta, number) + 8, std::as_writable_bytes(std::span(name)));
      tables_.push_back({name.data(), nullptr});
      children[number] = walk(memory, number, in_use);
    }
    space_.rebuild(memory, in_use);
    for (std::uint32_t number = 0; number < tables; ++number)
      tables_[number].inner = build_inner(memory, children[number], kRebuildFill);
    log_.recover(memory);
    undo_all(memory);
  }
  /// Reads all leaves of a table in the order of their links, as the paper's recovery does. The lowest key is
  /// the discriminator of an unsorted leaf, so all of its keys are read. Which pairs these are the bitmap says,
  /// and where the loop over its bits ends no predictor knows (37 iterations at a load factor of 0.66): nothing
  /// of the pairs, and nothing of the next leaf, is asked for before the bitmap is there.
  [[nodiscard]] std::vector<Child> walk(M& memory, std::uint32_t table, std::vector<bool>& in_use) {
    std::vector<Child> children;
    Address leaf = memory.template load<std::uint64_t>(Meta::row(place_.meta, table));
    while (leaf != 0) {
      const std::uint64_t number = space_.number(leaf);
      in_use.resize(std::max<std::uint64_t>(in_use.size(), number + 1));
      ensure(!in_use[number], "fptree: a leaf is linked twice");
      in_use[number] = true;
      std::uint64_t low = std::numeric_limits<std::uint64_t>::max();
      auto used = memory.template load_dependent<Bitmap>(leaf);
      memory.mispredict();
      ensure(used != 0 || (children.empty() && next_of(memory, leaf) == 0), "fptree: an empty leaf is linked");
      memory.compute(0, static_cast<std::uint32_t>(std::popcount(used)) * kInstructionsPerKey);
      for (; used != 0; used &= used - 1) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(used));
        low = std::min(low, memory.template load<std::uint64_t>(Leaf::pair(leaf, slot)));
      }
      children.push_back({children.empty() ? 0 : low, leaf});
      leaf = next_of(memory, leaf);
    }
    return children;
  }
  void undo_all(M& memory) {
    if (log_.empty())
      return;
    log_.for_each_backwards(memory, [&](const Change& change) { undo(memory, change); });
    log_.clear(memory);
  }
  /// A change that was logged need not have happened, and a crash may have come after its undoing.
  void undo(M& memory, const Change& change) {
    Table& table = tables_.at(change.table);
    const Address leaf = leaf_of(memory, table, change.key);
    const auto found = LeafOps<M>::find(memory, leaf, change.key);
    Change inverse = change;
    inverse.after = change.before;
    inverse.kind = found ? Change::Kind::kUpdate : Change::Kind::kInsert;
    if (change.kind == Change::Kind::kInsert) {
      if (!found)
        return;
      inverse.kind = Change::Kind::kErase;
    }
    apply(memory, {inverse, leaf, found ? found->slot : 0});
  }

  [[nodiscard]] Table& operation(M& memory, TableId table, std::uint32_t offset, std::size_t bytes) {
    ensure(in_transaction_, "an operation outside of a transaction");
    if (table >= tables_.size()) [[unlikely]]
      throw ConfigError("table " + std::to_string(table) + " does not exist");
    if (offset > 8 || bytes > 8 - offset) [[unlikely]] {
      throw ConfigError("table '" + tables_[table].name + "': " + std::to_string(bytes) + " bytes at offset " +
                        std::to_string(offset) + " leave the payload of 8");
    }
    cpu_work(memory, cpu_cycles_);
    settle(memory);
    return tables_[table];
  }
  void hold_back(const Change& change, Address leaf, std::uint32_t slot) { held_back_ = {change, leaf, slot}; }
  /// Makes the change that was held back, with its undo entry.
  void settle(M& memory) {
    if (!held_back_)
      return;
    log_.append(memory, held_back_->change);
    apply(memory, *held_back_);
    held_back_.reset();
  }

  [[nodiscard]] Address leaf_of(M& memory, Table& table, std::uint64_t key) {
    Address leaf = 0;
    const auto low = table.inner->floor(memory, store_, key, std::as_writable_bytes(std::span(&leaf, 1)));
    ensure(low.has_value(), "fptree: no leaf for a key");
    return leaf;
  }
  [[nodiscard]] Address next_of(M& memory, Address leaf) {
    return memory.template load<std::uint64_t>(space_.link(leaf));
  }

  /// DURABLE on return.
  void apply(M& memory, const HeldBack& held) {
    const Change& change = held.change;
    Table& table = tables_[change.table];
    switch (change.kind) {
      case Change::Kind::kUpdate:
        return LeafOps<M>::update(memory, held.leaf, held.slot, change.after);
      case Change::Kind::kInsert:
        if (!Leaf::insert(memory, held.leaf, change.key, change.after)) {
          const Address leaf = split(memory, table, held.leaf, change.key);
          ensure(Leaf::insert(memory, leaf, change.key, change.after), "fptree: half a leaf is full");
        }
        return;
      case Change::Kind::kErase:
        if (!unlink_before_last(memory, table, change, held.leaf))
          LeafOps<M>::erase(memory, held.leaf, held.slot);
        return;
    }
  }
  /// Returns the half that `key` belongs to.
  [[nodiscard]] Address split(M& memory, Table& table, Address leaf, std::uint64_t key) {
    // Nothing may fail once the leaf has been split: a new inner node per level, and a new root.
    if (store_.free_pages() < table.inner->root_level() + 2) {
      throw ConfigError("engine fptree: dram_bytes: its inner nodes are full; raise it");
    }
    ++leaf_splits_;
    const Address fresh = space_.take(memory);
    const std::uint64_t low = LeafOps<M>::split(memory, space_, place_.meta, leaf, fresh);
    table.inner->insert(memory, store_, low, std::as_bytes(std::span(&fresh, 1)), [] {});
    return key < low ? leaf : fresh;
  }
  /// Erases the only entry of a leaf by unlinking the leaf, in one store. False: it has others, or the table
  /// has no other leaf.
  bool unlink_before_last(M& memory, Table& table, const Change& change, Address leaf) {
    if (!std::has_single_bit(memory.template load<Bitmap>(leaf)))
      return false;
    const Address next = next_of(memory, leaf);
    Address self = 0;
    const auto into = std::as_writable_bytes(std::span(&self, 1));
    const std::uint64_t low = *table.inner->floor(memory, store_, change.key, into);
    Address link = Meta::row(place_.meta, change.table);
    if (low > 0) {
      Address before = 0;
      table.inner->floor(memory, store_, low - 1, std::as_writable_bytes(std::span(&before, 1)));
      link = space_.link(before);
    } else if (next == 0) {
      return false;
    }
    ++leaf_unlinks_;
    memory.template store<std::uint64_t>(link, next);
    memory.flush(link, 8, memory::FlushKind::kClwb, kFlushUnlinked);
    memory.sfence(kFenceUnlinked);
    const auto ignore = [](std::span<const std::byte>) {};
    if (low > 0) {
      table.inner->erase(memory, store_, low, ignore);
    } else {
      // The next leaf is the first one now: it gets all keys from 0 on.
      std::uint64_t next_low = 0;
      table.inner->scan(memory, store_, 1, 1, 0, 8, ScanMode::kGrained,
                        [&](std::uint64_t key, std::span<const std::byte>) {
                          next_low = key;
                          return false;
                        });
      table.inner->erase(memory, store_, next_low, ignore);
      table.inner->update(memory, store_, 0, 0, std::as_bytes(std::span(&next, 1)), ignore);
    }
    space_.give(memory, leaf);
    return true;
  }

  /// Of walk()'s loop beside the load: tzcnt, shift, address, compare, cmov, blsr, compare-and-branch.
  static constexpr std::uint32_t kInstructionsPerKey = 7;
  static constexpr double kRebuildFill = 0.66;  ///< of inner nodes after a restart, as after loading

  EnginePlace place_;
  std::uint32_t cpu_cycles_;
  std::uint32_t transaction_cycles_;
  Store store_;
  LeafSpace<M> space_;
  UndoLog<M> log_;
  std::vector<Table> tables_;
  std::optional<HeldBack> held_back_;
  bool in_transaction_ = false;
  std::uint64_t leaf_splits_ = 0;
  std::uint64_t leaf_unlinks_ = 0;
};

template <memory::Memory M, std::uint32_t kInnerNodeBytes>
std::string FpTreeEngine<M, kInnerNodeBytes>::check(M& memory) {
  ensure(!in_transaction_ && log_.empty(), "check() inside of a transaction");
  std::vector<PageId> owned;
  std::uint64_t leaves = 0;
  for (std::uint32_t number = 0; number < tables_.size(); ++number) {
    const auto fail = [&](const std::string& what) { return "table '" + tables_[number].name + "': " + what; };
    btree::TreeCheck<Store, std::uint64_t, M> inner_check(*tables_[number].inner, owned);
    if (const std::string problem = inner_check.run(memory, store_); !problem.empty())
      return fail("inner nodes: " + problem);
    std::vector<Child> children;
    tables_[number].inner->scan(memory, store_, 0, ~std::uint64_t{0}, 0, 8, ScanMode::kFullPages,
                                [&](std::uint64_t low, std::span<const std::byte> payload) {
                                  children.push_back({low, 0});
                                  std::memcpy(&children.back().leaf, payload.data(), sizeof(Address));
                                  return true;
                                });
    Address leaf = memory.template load<std::uint64_t>(Meta::row(place_.meta, number));
    for (std::size_t at = 0; at < children.size(); ++at, leaf = next_of(memory, leaf)) {
      if (leaf != children[at].leaf)
        return fail("the links and the inner nodes disagree about leaf " + std::to_string(at));
      const auto contents = Leaf::recover(memory, leaf);
      if (contents.count == 0 && children.size() > 1)
        return fail("leaf " + std::to_string(at) + " is empty");
      if (contents.wrong_fingerprints > 0)
        return fail("leaf " + std::to_string(at) + " has a wrong fingerprint");
      std::vector<std::uint64_t> keys;
      for (std::uint32_t entry = 0; entry < contents.count; ++entry)
        keys.push_back(contents.entries[entry].key);
      std::sort(keys.begin(), keys.end());
      if (std::adjacent_find(keys.begin(), keys.end()) != keys.end())
        return fail("leaf " + std::to_string(at) + " has a key twice");
      if (!keys.empty() && (keys.front() < children[at].low ||
                            (at + 1 < children.size() && keys.back() >= children[at + 1].low)))
        return fail("leaf " + std::to_string(at) + " has a key that belongs to another one");
    }
    if (leaf != 0)
      return fail("the last leaf names a next one");
    leaves += children.size();
  }
  if (leaves != space_.used())
    return std::to_string(space_.used()) + " leaves are in use, " + std::to_string(leaves) + " have an owner";
  std::sort(owned.begin(), owned.end());
  return store_.check(memory, owned);
}

}  // namespace pmsim::engines::fptree
