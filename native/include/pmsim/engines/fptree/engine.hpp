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
#include <unordered_map>
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
#include "pmsim/engines/latches.hpp"
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
/// Several threads latch inner nodes as those of other trees, and leaves by latches of their own: readers while
/// they search one, a writer while it changes one. (Oukid et al. have a hardware transaction for the former,
/// which costs what an optimistic latch does, and a byte in the leaf for the latter.) They share the undo log,
/// which transactions with one change do not need.
///
/// Leaves that become empty are unlinked by one 8-byte store and used again; others are never merged. A
/// transaction of several changes unlinks when it has ended, so that its rollback needs no leaf (restart.hpp).
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
        inner_latches_(latches_at(options, place)),
        leaf_latches_(place.latches + Latches::bytes_for(inner_nodes(options)),
                      place.latches == 0 ? 0 : options.pmem_bytes / LeafSpace<M>::kEach),
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
    unlink_emptied(memory);
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
    const Address leaf = leaf_of(memory, tree, key);
    const HeldLatch<M> latch = reading(memory, leaf);
    const auto found = LeafOps<M>::find(memory, leaf, key);
    if (found)
      std::memcpy(into.data(), reinterpret_cast<const std::byte*>(&found->value) + offset, into.size());
    return found.has_value();
  }
  bool update(M& memory, TableId table, std::uint64_t key, std::uint32_t offset,
              std::span<const std::byte> bytes) override {
    Table& tree = operation(memory, table, offset, bytes.size());
    const Address leaf = leaf_of(memory, tree, key);
    const HeldLatch<M> latch = reading(memory, leaf);
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
    const HeldLatch<M> latch = reading(memory, leaf);
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
    const HeldLatch<M> latch = reading(memory, leaf);
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
      const HeldLatch<M> latch = reading(memory, leaf);
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
  /// A leaf that is to be unlinked if it is still empty, by a key that belongs to it.
  struct Emptied {
    TableId table;
    std::uint64_t key;
  };
  using LowKeys = std::unordered_map<std::uint64_t, std::uint64_t>;  ///< by the number of a leaf
  /// The last change of the transaction, and where it will take place.
  struct HeldBack {
    Change change;
    Address leaf;
    std::uint32_t slot;
  };

  [[nodiscard]] static std::uint64_t inner_bytes(const EngineOptions& options) noexcept {
    return DramFrames::bytes_for(options.dram_bytes / kInnerNodeBytes, kInnerNodeBytes);
  }
  [[nodiscard]] static std::uint64_t inner_nodes(const EngineOptions& options) noexcept {
    return options.dram_bytes / kInnerNodeBytes;
  }
  [[nodiscard]] static PageLatches latches_at(const EngineOptions& options, const EnginePlace& place) noexcept {
    return {{place.latches, place.latches == 0 ? 0 : inner_nodes(options)},
            options.latches == "shared" ? LatchMode::kShared : LatchMode::kOptimistic};
  }
  [[nodiscard]] const PageLatches* inner_latches() const noexcept {
    return place_.latches == 0 ? nullptr : &inner_latches_;
  }
  [[nodiscard]] HeldLatch<M> reading(M& memory, Address leaf) const {
    return HeldLatch<M>(memory, leaf_latches_.of(space_.number(leaf)), inner_latches_.read);
  }
  [[nodiscard]] static EnginePlace allocate(M& memory, const EngineOptions& options) {
    if (options.leaf_layout != "sorted")
      throw ConfigError("engine fptree: leaf_layout = '" + options.leaf_layout +
                        "': its leaves are its own; leave the default");
    if (inner_bytes(options) == 0) {
      throw CapacityError("engine fptree: dram_bytes = " + std::to_string(options.dram_bytes) +
                          ": holds no inner node of " + std::to_string(kInnerNodeBytes) + " bytes; raise it");
    }
    const std::uint64_t leaves = options.pmem_bytes / LeafSpace<M>::kEach;
    if (leaves == 0)
      throw CapacityError("engine fptree: pmem_bytes = " + std::to_string(options.pmem_bytes) +
                          ": holds no leaf; raise it");
    if (leaves > std::numeric_limits<std::uint32_t>::max())
      throw ConfigError("engine fptree: pmem_bytes: more than 2^32 leaves");
    EnginePlace place;
    place.made_with = options;
    using memory::Medium;
    if (Latches::are_needed(options))
      place.latches = memory.allocate(Medium::kDram, Latches::bytes_for(inner_nodes(options) + leaves),
                                      {.name = "latches"});
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

  // loading.hpp
  void check_new(const TableSpec& spec) const;
  [[nodiscard]] std::vector<Child> load_leaves(M& memory, RowSource& rows, double fill);
  [[nodiscard]] std::unique_ptr<Inner> build_inner(M& memory, const std::vector<Child>& children, double fill);

  // restart.hpp
  void recover(M& memory);
  [[nodiscard]] LowKeys erased_lows(M& memory);
  [[nodiscard]] std::vector<Child> walk(M& memory, std::uint32_t table, const LowKeys& erased,
                                        std::vector<bool>& in_use);
  [[nodiscard]] double rebuild_fill(const std::vector<std::vector<Child>>& children) const;
  void undo_all(M& memory);
  void undo(M& memory, const Change& change);

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
    if (held_back_->change.kind == Change::Kind::kErase)
      held_back_->change.leaf = space_.number(held_back_->leaf);
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

  // changes.hpp
  void apply(M& memory, const HeldBack& held);
  void require_room(M& memory, const Table& table, Address leaf);
  [[nodiscard]] Address split(M& memory, Table& table, Address leaf, std::uint64_t key);
  void erase(M& memory, const Change& change, Address leaf, std::uint32_t slot);
  void unlink_emptied(M& memory);
  bool unlink(M& memory, TableId number, std::uint64_t key, Address leaf);
  void store_link(M& memory, Address link, Address next);

  /// Of walk()'s loop beside the load: tzcnt, shift, address, compare, cmov, blsr, compare-and-branch.
  static constexpr std::uint32_t kInstructionsPerKey = 7;
  static constexpr double kRebuildFill = 0.66;  ///< of inner nodes after a restart, as after loading, at least

  EnginePlace place_;
  std::uint32_t cpu_cycles_;
  std::uint32_t transaction_cycles_;
  PageLatches inner_latches_;
  Latches leaf_latches_;
  Store store_;
  LeafSpace<M> space_;
  UndoLog<M> log_;
  std::vector<Table> tables_;
  std::optional<HeldBack> held_back_;
  std::vector<Emptied> emptied_;  ///< by the open transaction, or found so by a restart
  bool in_transaction_ = false;
  std::uint64_t leaf_splits_ = 0;
  std::uint64_t leaf_unlinks_ = 0;
};

}  // namespace pmsim::engines::fptree

#include "pmsim/engines/fptree/changes.hpp"
#include "pmsim/engines/fptree/check.hpp"
#include "pmsim/engines/fptree/loading.hpp"
#include "pmsim/engines/fptree/restart.hpp"
