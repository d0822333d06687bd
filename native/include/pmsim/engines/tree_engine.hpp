#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/btree/btree.hpp"
#include "pmsim/engines/btree/bulk_loader.hpp"
#include "pmsim/engines/btree/check.hpp"
#include "pmsim/engines/buffer/counters.hpp"
#include "pmsim/engines/cpu_work.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/engines/rollback_room.hpp"

namespace pmsim::engines {

/// Throws ConfigError for what is no page size or leaf layout; returns the layout.
inline btree::NodeKind check_tree_options(const EngineOptions& options) {
  const std::uint32_t bytes = options.page_bytes;
  if (bytes < 4096 || bytes > 65536 || (bytes & (bytes - 1)) != 0) {
    throw ConfigError("engine " + options.engine + ": page_bytes = " + std::to_string(bytes) +
                      ": must be a power of two from 4096 to 65536");
  }
  if (options.leaf_layout != "sorted" && options.leaf_layout != "hash") {
    throw ConfigError("engine " + options.engine + ": leaf_layout = '" + options.leaf_layout +
                      "': unknown; known: sorted, hash");
  }
  return options.leaf_layout == "hash" ? btree::NodeKind::kHashLeaf : btree::NodeKind::kSortedLeaf;
}

/// A storage engine made of one store and one B+-tree per table.
///
/// Page 0 is the catalog: a row per table (root, sizes, leaf layout, name). load() builds the tree unlogged,
/// makes it durable, and then adds the row in a transaction of its own: a crash before leaves no table. (One
/// that comes between the two leaves its pages in use, by nobody.) Undo is logical: record by record through
/// the tree, latest first, unless Store::kUndoesPhysically. It has room whatever happens: pages are merged only
/// while a rollback that splits them again would find it, and what it needs is kept free until the end
/// (rollback_room.hpp). A restart's rollback, which does not know what has been merged, merges nothing.
template <memory::Memory M, typename Store>
  requires PageStore<Store, M>
class TreeEngine final : public Engine<M> {
 public:
  TreeEngine(M& memory, const EngineOptions& options)
      : leaf_kind_(check_tree_options(options)),
        cpu_cycles_(options.cpu_cycles),
        transaction_cycles_(options.transaction_cycles),
        latches_(memory, options, 0),
        store_(memory, options),
        place_(store_.place()),
        threads_(std::max(options.threads, 1U)),
        room_(options.threads) {
    place_.latches = latches_.base;
    place_.made_with = options;
    latch_store();
    const std::vector<std::byte> empty(store_.page_bytes());
    ensure(store_.load(memory, empty) == kCatalog, "the first page of a store is not page 0");
    store_.sync(memory);
  }
  TreeEngine(M& memory, const EngineOptions& options, const EnginePlace& place)
      : leaf_kind_(check_tree_options(options)),
        cpu_cycles_(options.cpu_cycles),
        transaction_cycles_(options.transaction_cycles),
        latches_(memory, options, place.latches),
        store_(memory, options, place),
        place_(place),
        threads_(std::max(options.threads, 1U)),
        room_(options.threads) {
    latch_store();
    open_tables(memory);
    restarting_ = true;
    store_.finish_restart(memory, [&](const UndoRecord& record) { undo(memory, record); });
    restarting_ = false;
    if constexpr (kUndoesPhysically)
      reopen(memory);
  }

  TableId load(M& memory, const TableSpec& spec, RowSource& rows, double fill) override {
    ensure(!is_any_open(), "load() inside of a transaction");
    check_new(spec);
    CatalogRow row{.root = kNoPage,
                   .key_bytes = spec.key_bytes,
                   .payload_bytes = spec.payload_bytes,
                   .leaf_kind = leaf_kind_,
                   .name = {}};
    std::copy(spec.name.begin(), spec.name.end(), row.name.begin());
    const auto layout = btree::Layout::of(spec, store_.page_bytes(), leaf_kind_);
    if (spec.key_bytes == 4) {
      row.root = btree::BulkLoader<Store, std::uint32_t, M>(memory, store_, layout, fill).load(rows);
    } else {
      row.root = btree::BulkLoader<Store, std::uint64_t, M>(memory, store_, layout, fill).load(rows);
    }
    store_.sync(memory);
    const auto table = static_cast<TableId>(tables_.size());
    store_.begin(memory);
    {
      btree::Node<Store, M> page = catalog(memory);
      page.template put<CatalogRow>(row_offset(table), row);
      page.template put<std::uint32_t>(btree::kCountOffset, std::uint32_t{table} + 1);
    }
    store_.commit(memory);
    add(memory, row);
    return table;
  }

  void work_as(std::uint32_t thread) override {
    ensure(!threads_[mine_].in_transaction || commits_overlap(), "work_as() inside of a transaction");
    mine_ = thread % threads_.size();
    room_.work_as(mine_);
    if constexpr (requires(Store& store) { store.work_as(thread); })
      store_.work_as(thread);
  }
  void begin(M& memory) override {
    require_whole();
    ensure(!threads_[mine_].in_transaction, "begin() inside of a transaction");
    cpu_work(memory, transaction_cycles_);
    store_.begin(memory);
    threads_[mine_].in_transaction = true;
  }
  void commit(M& memory) override {
    require_whole();
    ensure(threads_[mine_].in_transaction, "commit() outside of a transaction");
    require_room();
    try {
      store_.commit(memory);
    } catch (...) {
      threads_[mine_].must_abort = kUndoesPhysically;
      throw;
    }
    room_.end();
    threads_[mine_].in_transaction = false;
  }
  void on_placed(std::function<void()> placed) override {
    if constexpr (requires { store_.on_placed(std::move(placed)); })
      store_.on_placed(std::move(placed));
  }
  void abort(M& memory) override {
    require_whole();
    ensure(threads_[mine_].in_transaction, "abort() outside of a transaction");
    try {
      store_.abort(memory, [&](const UndoRecord& record) { undo(memory, record); });
    } catch (...) {
      half_done_ = true;
      throw;
    }
    if constexpr (kUndoesPhysically)
      reopen(memory);
    room_.end();
    threads_[mine_].in_transaction = threads_[mine_].must_abort = false;
  }

  bool read(M& memory, TableId table, std::uint64_t key, std::uint32_t offset,
            std::span<std::byte> into) override {
    return with(memory, table, key, offset, into.size(), [&](auto& tree, auto narrow) {
      if constexpr (!kCountsTransfers) {
        return tree.lookup(memory, store_, narrow, offset, into);
      } else {
        const buffer::BufferCounters& now = store_.manager().counts();
        const std::uint64_t misses = now.dram_misses;
        const std::uint64_t from_pmem = now.pages_loaded_pmem;
        const std::uint64_t lines = now.lines_loaded;
        const bool found = tree.lookup(memory, store_, narrow, offset, into);
        if (now.dram_misses == misses + 1 && now.pages_loaded_pmem == from_pmem + 1) {
          ++cold_reads_;
          cold_read_lines_ += now.lines_loaded - lines;
        }
        return found;
      }
    });
  }
  bool update(M& memory, TableId table, std::uint64_t key, std::uint32_t offset,
              std::span<const std::byte> bytes) override {
    keep_rollback_room(table, 0);
    return with(memory, table, key, offset, bytes.size(), [&](auto& tree, auto narrow) {
      return tree.update(memory, store_, narrow, offset, bytes, [&](std::span<const std::byte> before) {
        store_.note_undo(memory, {UndoRecord::Kind::kUpdate, table, key, offset, before});
      });
    });
  }
  bool insert(M& memory, TableId table, std::uint64_t key, std::span<const std::byte> payload) override {
    if (table < tables_.size() && payload.size() != payload_bytes(tables_[table]))
      throw ConfigError("insert: the payload has " + std::to_string(payload.size()) + " bytes, the table's " +
                        std::to_string(payload_bytes(tables_[table])));
    keep_rollback_room(table, 1);
    return with(memory, table, key, 0, payload.size(), [&](auto& tree, auto narrow) {
      return tree.insert(memory, store_, narrow, payload, [&] {
        store_.note_undo(memory, {UndoRecord::Kind::kInsert, table, key, 0, {}});
        room_.inserted(table);
      });
    });
  }
  bool erase(M& memory, TableId table, std::uint64_t key) override {
    keep_rollback_room(table, 0);
    return with(memory, table, key, 0, 0, [&](auto& tree, auto narrow) {
      return erase_in(memory, tree, table, narrow, [&](std::span<const std::byte> before) {
        store_.note_undo(memory, {UndoRecord::Kind::kErase, table, key, 0, before});
      });
    });
  }
  std::uint64_t scan(M& memory, TableId table, std::uint64_t from, std::uint64_t limit, std::uint32_t offset,
                     std::uint32_t bytes, ScanMode mode, const typename Engine<M>::Visit& visit) override {
    return with(memory, table, from, offset, bytes, [&](auto& tree, auto narrow) {
      return tree.scan(memory, store_, narrow, limit, offset, bytes, mode, visit);
    });
  }

  void checkpoint(M& memory) override {
    require_whole();
    ensure(!is_any_open(), "checkpoint() inside of a transaction");
    store_.checkpoint(memory);
  }
  void shutdown(M& memory) override {
    require_whole();
    ensure(!is_any_open(), "shutdown() inside of a transaction");
    store_.shutdown(memory);
  }

  [[nodiscard]] std::map<std::string, double> counters() const override {
    std::map<std::string, double> all;
    store_.counters(all);
    if constexpr (kCountsTransfers) {
      all["cold_reads"] = static_cast<double>(cold_reads_);
      all["cold_read_lines"] = static_cast<double>(cold_read_lines_);
    }
    for (const Table& table : tables_) {
      const btree::TreeCounters& tree = table.narrow ? table.narrow->counters() : table.wide->counters();
      all["splits"] += static_cast<double>(tree.splits);
      all["merges"] += static_cast<double>(tree.merges);
    }
    return all;
  }
  [[nodiscard]] std::string check(M& memory) override {
    std::vector<PageId> owned{kCatalog};
    for (Table& table : tables_) {
      const std::string problem =
          table.narrow ? check_tree(memory, *table.narrow, owned) : check_tree(memory, *table.wide, owned);
      if (!problem.empty())
        return "table '" + table.name + "': " + problem;
    }
    std::sort(owned.begin(), owned.end());
    if (const auto twice = std::adjacent_find(owned.begin(), owned.end()); twice != owned.end())
      return "page " + std::to_string(*twice) + " has two owners";
    return store_.check(memory, owned);
  }
  [[nodiscard]] const EnginePlace& place() const override { return place_; }

  [[nodiscard]] Store& store() noexcept { return store_; }

 private:
  template <typename Key>
  using Tree = btree::BTree<Store, Key, M>;

  struct CatalogRow {
    PageId root;
    std::uint32_t key_bytes;
    std::uint32_t payload_bytes;
    btree::NodeKind leaf_kind;
    std::array<char, 47> name;  ///< ends with a zero
  };
  static_assert(sizeof(CatalogRow) == 64);
  /// One of the two is there.
  struct Table {
    std::string name;
    std::unique_ptr<Tree<std::uint32_t>> narrow;
    std::unique_ptr<Tree<std::uint64_t>> wide;
  };
  /// Before the store: a memory finds the regions fastest that are made last.
  struct TreeLatches {
    TreeLatches(M& memory, const EngineOptions& options, Address place) : base(place) {
      if (!Latches::are_needed(options))
        return;
      const std::uint64_t pages =
          std::max({options.dram_bytes, options.pmem_bytes, options.ssd_bytes}) / options.page_bytes + 1;
      if (base == 0)
        base = memory.allocate(memory::Medium::kDram, Latches::bytes_for(pages), {.name = "page latches"});
      of_pages = {{base, pages}, options.latches == "shared" ? LatchMode::kShared : LatchMode::kOptimistic};
    }
    [[nodiscard]] const PageLatches* get() const noexcept { return base == 0 ? nullptr : &of_pages; }
    Address base;
    PageLatches of_pages;
  };
  static constexpr PageId kCatalog = 0;
  static constexpr bool kUndoesPhysically = [] {
    if constexpr (requires { Store::kUndoesPhysically; })
      return Store::kUndoesPhysically;
    return false;
  }();
  static constexpr bool kCountsTransfers = requires(const Store& store) { store.manager().counts(); };

  [[nodiscard]] static std::uint32_t row_offset(std::uint32_t table) noexcept {
    return btree::kKeysOffset + table * static_cast<std::uint32_t>(sizeof(CatalogRow));
  }
  [[nodiscard]] btree::Node<Store, M> catalog(M& memory) {
    return btree::Node<Store, M>(memory, store_, store_.fix(memory, catalog_, Access::kFull), Access::kFull);
  }

  void latch_store() {
    if constexpr (requires { store_.latch_pages(latches_.of_pages.latches); }) {
      if (latches_.get() != nullptr && latches_.of_pages.read == LatchMode::kOptimistic)
        store_.latch_pages(latches_.of_pages.latches);
    }
  }
  void check_new(const TableSpec& spec) const {
    if (spec.name.empty() || spec.name.size() >= sizeof(CatalogRow::name))
      throw ConfigError("table '" + spec.name + "': a name has 1 to 46 bytes");
    for (const Table& table : tables_) {
      if (table.name == spec.name)
        throw ConfigError("table '" + spec.name + "' exists already");
    }
    if (row_offset(static_cast<std::uint32_t>(tables_.size()) + 1) > store_.page_bytes())
      throw ConfigError("table '" + spec.name + "': the catalog page is full");
  }
  void open_tables(M& memory) {
    btree::Node<Store, M> page = catalog(memory);
    const auto count = page.template load<std::uint32_t>(btree::kCountOffset);
    for (std::uint32_t table = 0; table < count; ++table)
      add(memory, page.template load<CatalogRow>(row_offset(table)));
  }
  void add(M& memory, const CatalogRow& row) {
    const TableSpec spec{row.name.data(), row.key_bytes, row.payload_bytes};
    const auto layout = btree::Layout::of(spec, store_.page_bytes(), row.leaf_kind);
    Table table{spec.name, nullptr, nullptr};
    if (row.key_bytes == 4) {
      table.narrow = std::make_unique<Tree<std::uint32_t>>(memory, store_, layout, row.root, latches_.get());
    } else {
      table.wide = std::make_unique<Tree<std::uint64_t>>(memory, store_, layout, row.root, latches_.get());
    }
    tables_.push_back(std::move(table));
  }
  void reopen(M& memory) {
    for (Table& table : tables_)
      table.narrow ? table.narrow->reopen(memory, store_) : table.wide->reopen(memory, store_);
  }

  [[nodiscard]] static std::uint32_t payload_bytes(const Table& table) {
    return table.narrow ? table.narrow->layout().payload_bytes : table.wide->layout().payload_bytes;
  }
  /// The tree of the table, for an operation on [offset, offset + bytes) of a payload.
  template <typename Operation>
  auto with(M& memory, TableId table, std::uint64_t key, std::uint32_t offset, std::size_t bytes,
            Operation&& operation) {
    require_whole();
    ensure(threads_[mine_].in_transaction, "an operation outside of a transaction");
    require_room();
    if (table >= tables_.size()) [[unlikely]]
      throw ConfigError("table " + std::to_string(table) + " does not exist");
    cpu_work(memory, cpu_cycles_);
    const Table& entry = tables_[table];
    const std::uint32_t payload = payload_bytes(entry);
    if (offset > payload || bytes > payload - offset) [[unlikely]] {
      throw ConfigError("table '" + entry.name + "': " + std::to_string(bytes) + " bytes at offset " +
                        std::to_string(offset) + " leave the payload of " + std::to_string(payload));
    }
    if (entry.narrow && key > std::numeric_limits<std::uint32_t>::max()) [[unlikely]]
      throw ConfigError("table '" + entry.name + "': key " + std::to_string(key) + " has more than 4 bytes");
    const std::uint64_t before = recorded();
    try {
      return entry.narrow ? operation(*entry.narrow, static_cast<std::uint32_t>(key))
                          : operation(*entry.wide, key);
    } catch (...) {
      half_done_ = recorded() != before || latches_.get() != nullptr;
      threads_[mine_].must_abort = kUndoesPhysically;
      throw;
    }
  }
  [[nodiscard]] std::uint64_t recorded() const noexcept {
    if constexpr (requires { store_.recorded(); })
      return store_.recorded();
    return 0;  // undone physically, byte by byte
  }
  /// Whether other threads may run while one commits.
  [[nodiscard]] bool commits_overlap() const noexcept {
    if constexpr (requires { store_.commits_overlap(); })
      return store_.commits_overlap();
    return false;
  }
  [[nodiscard]] bool is_any_open() const noexcept {
    return std::ranges::any_of(threads_, &Thread::in_transaction);
  }
  /// An operation that stops in the middle, for want of room, has left a tree that no operation can take back;
  /// where there are latches it has left them, too.
  void require_whole() const {
    if (half_done_) [[unlikely]]
      throw ConfigError(
          "the engine has run out of room in the middle of an operation; what is durable is sound: restart it, "
          "and make transactions smaller; one with more room is made anew");
  }

  /// Undone byte by byte it can be taken back, and nothing else can be done with it.
  void require_room() const {
    if (threads_[mine_].must_abort) [[unlikely]]
      throw ConfigError(
          "the transaction has run out of room in the middle of an operation: abort the transaction, and make "
          "it smaller, or give it more room");
  }

  [[nodiscard]] TreeShape shape(std::size_t table) const {
    const auto of = [](const auto& tree) {
      return TreeShape{tree.layout().leaf_capacity, tree.layout().inner_capacity, tree.root_level()};
    };
    return tables_[table].narrow ? of(*tables_[table].narrow) : of(*tables_[table].wide);
  }
  /// For a rollback, after so many merges and inserts more in the table. A merge leaves half of DRAM besides: a
  /// transaction that uses much of a small pool is not to be refused for pages that it need not have merged.
  [[nodiscard]] bool has_room(TableId table, std::uint64_t merges, std::uint64_t inserts) {
    if constexpr (requires { store_.room(0U); }) {
      const std::uint32_t levels = shape(table).root_level + 2;
      const FreeRoom room = store_.room(levels);
      const std::uint64_t needed =
          room_.pages(table, merges, inserts, [this](std::size_t of) { return shape(of); });
      return room.pages >= needed + inserts * levels &&
             room.frames >= needed + 2 * levels + (merges > 0 ? room.all_frames / 2 : 0);
    }
    return true;
  }
  /// Before a change: refused where it might take what the rollback needs, which it does not yet.
  void keep_rollback_room(TableId table, std::uint64_t inserts) {
    if (!room_.is_needed() || table >= tables_.size()) [[likely]]
      return;
    if (!has_room(table, 0, inserts))
      throw CapacityError(
          "the pages that are free are kept for the rollback of the open transaction, which has merged pages; "
          "make transactions smaller, or make dram_bytes, pmem_bytes or ssd_bytes larger");
  }
  template <typename Key, typename Note>
  bool erase_in(M& memory, Tree<Key>& tree, TableId table, Key key, Note&& note) {
    const std::uint64_t merges = tree.counters().merges;
    const bool erased = tree.erase(memory, store_, key, note, [&] {
      return kUndoesPhysically || (!restarting_ && has_room(table, 1, 0));
    });
    if (!kUndoesPhysically && tree.counters().merges != merges)
      room_.merged(table);
    return erased;
  }

  void undo(M& memory, const UndoRecord& record) {
    const Table& table = tables_.at(record.table);
    const bool undone =
        table.narrow ? undo_in(memory, *table.narrow, record) : undo_in(memory, *table.wide, record);
    ensure(undone, "an undo record does not fit the tree");
  }
  template <typename Key>
  bool undo_in(M& memory, Tree<Key>& tree, const UndoRecord& record) {
    const Key key = static_cast<Key>(record.key);
    switch (record.kind) {
      case UndoRecord::Kind::kUpdate:
        return tree.update(memory, store_, key, record.offset, record.before,
                           [](std::span<const std::byte>) {});
      case UndoRecord::Kind::kInsert:
        return erase_in(memory, tree, record.table, key, [](std::span<const std::byte>) {});
      case UndoRecord::Kind::kErase:
        return tree.insert(memory, store_, key, record.before, [] {});
    }
    return false;
  }
  template <typename Key>
  [[nodiscard]] std::string check_tree(M& memory, Tree<Key>& tree, std::vector<PageId>& owned) {
    return btree::TreeCheck<Store, Key, M>(tree, owned).run(memory, store_);
  }

  btree::NodeKind leaf_kind_;
  std::uint32_t cpu_cycles_;
  std::uint32_t transaction_cycles_;
  TreeLatches latches_;
  Store store_;
  EnginePlace place_;
  RootRef catalog_{.id = kCatalog};
  std::vector<Table> tables_;
  struct Thread {
    bool in_transaction = false;
    bool must_abort = false;
  };
  std::vector<Thread> threads_;
  std::size_t mine_ = 0;
  RollbackRoom room_;
  bool restarting_ = false;
  bool half_done_ = false;
  /// Point reads that missed one page, which came from PMem, and the lines that they loaded: since such a page
  /// comes without any line, these are the lines that a lookup accesses (section 3.1). One from the SSD comes
  /// whole.
  std::uint64_t cold_reads_ = 0;
  std::uint64_t cold_read_lines_ = 0;
};

}  // namespace pmsim::engines
