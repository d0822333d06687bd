#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/buffer/buffer_manager.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/engines/wal/logged_store.hpp"
#include "pmsim/engines/wal/wal.hpp"

namespace pmsim::engines {

/// Pages of a buffer manager under a write-ahead log: the store of basic-nvm-bm, ssd-bm, three-tier and
/// spitfire, which differ in the buffer manager's configuration only (section 5: "the only difference is the
/// way DRAM, NVM, or/and SSD are accessed").
///
/// What is durable when
///  - commit(), abort(): the transaction's records, in the log (no-force: its pages stay dirty in DRAM).
///  - No page of the open transaction leaves DRAM (no-steal: each change pins its page until the end); where
///    spitfire changes a page in place on PMem, the log is forced first. It does so for updates of rows alone:
///    they are one overwrite, so that the log never ends within an operation, whose redo would leave half of
///    it.
///  - checkpoint(): every change, at its page's home or on PMem; then the log is empty. Before a transaction
///    begins the pages with the oldest changes are written back, so that a part of the log is always free:
///    wal/logged_store.hpp.
/// Restart: the buffer manager repairs torn pages and rebuilds its page table, the log repeats history (each
/// record above its page's LSN), the tree takes back what a transaction without end did.
template <memory::Memory M>
class BufferedStore : public wal::LoggedStore<M, BufferedStore<M>> {
  using Base = wal::LoggedStore<M, BufferedStore<M>>;
  friend Base;
  using Base::wal_;
  using Manager = buffer::BufferManager<M>;

 public:
  using Page = typename Manager::Page;

  BufferedStore(M& memory, const EngineOptions& options)
      : manager_(memory, buffer::BufferConfig::from(options)) {
    place_ = manager_.place();
    this->open_log(memory, options, place_);
    hook();
  }
  BufferedStore(M& memory, const EngineOptions& options, const EnginePlace& place)
      : place_(place), manager_(memory, buffer::BufferConfig::from(options), place) {
    manager_.recover(memory);
    this->reopen_log(memory, options, place);
    hook();
    wal_->replay(
        memory, [&](const wal::Record& record, wal::Lsn lsn, wal::Lsn age) { redo(memory, record, lsn, age); });
  }
  // The buffer manager's hook points here.
  BufferedStore(const BufferedStore&) = delete;
  BufferedStore& operator=(const BufferedStore&) = delete;

  Page fix(M& memory, RootRef& root, Access access) { return manager_.fix(memory, root, access); }
  Page fix_child(M& memory, Page& parent, std::uint32_t offset, Access access) {
    return manager_.fix_child(memory, parent, offset, access);
  }
  Page fix_page(M& memory, PageId id, Access access) { return manager_.fix_page(memory, id, access); }
  void unfix(M& memory, Page& page) { manager_.unfix(memory, page); }
  [[nodiscard]] PageId page_id(const Page& page) const noexcept { return manager_.page_id(page); }
  [[nodiscard]] std::uint32_t page_bytes() const noexcept { return manager_.page_bytes(); }
  Address resident(M& memory, Page& page, std::uint32_t offset, std::uint32_t bytes) {
    return manager_.resident(memory, page, offset, bytes);
  }
  void unswizzle_children(M& memory, Page& page, std::uint32_t offset, std::uint32_t count) {
    manager_.unswizzle_children(memory, page, offset, count);
  }

  Page allocate(M& memory) {
    Page page = manager_.allocate(memory);
    const wal::Lsn lsn = wal_->allocate(memory, page.id);
    manager_.pin(memory, page);
    manager_.set_lsn(memory, page, lsn);
    return page;
  }
  void release(M& memory, Page& page) {
    follow(memory, page);
    wal_->release(memory, page.id);
    manager_.release(memory, page);
  }
  void overwrite(M& memory, Page& page, std::uint32_t offset, std::span<const std::byte> bytes) {
    const bool updates = std::exchange(updating_, false);  // what follows may be half of the next operation
    if (bytes.empty())
      return;
    follow(memory, page);
    const wal::Lsn lsn = wal_->overwrite(memory, page.id, offset, bytes);
    if (!updates && buffer::on_pmem(page.frame)) [[unlikely]] {
      // To DRAM: only an update may be forced into the log here.
      static_cast<void>(manager_.writable(memory, page, offset, static_cast<std::uint32_t>(bytes.size()),
                                          buffer::Change::kOverwrite));
    }
    manager_.overwrite(memory, page, offset, bytes, lsn);
  }
  void announce(M&, const Page&, std::span<const PageRange>) const noexcept {}
  void settle(M&, const Page&) const noexcept {}
  void move(M& memory, Page& page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    if (bytes == 0)
      return;
    follow(memory, page);
    const wal::Lsn lsn = wal_->move(memory, page.id, to, from, bytes);
    manager_.move(memory, page, to, from, bytes, lsn);
  }

  PageId load(M& memory, std::span<const std::byte> image) { return manager_.load(memory, image); }
  [[nodiscard]] PageId next_load() const noexcept { return manager_.next_load(); }
  /// Of trees with so many levels.
  [[nodiscard]] FreeRoom room(std::uint32_t levels) const noexcept { return manager_.room(levels); }
  void sync(M& memory) { manager_.sync(memory); }

  void note_undo(M& memory, const UndoRecord& record) {
    wal_->note_undo(memory, record);
    updating_ = record.kind == UndoRecord::Kind::kUpdate;
  }

  [[nodiscard]] const EnginePlace& place() const noexcept { return place_; }
  void counters(std::map<std::string, double>& into) const {
    manager_.counters(into);
    Base::counters(into);
  }
  [[nodiscard]] std::string check(M& memory, std::span<const PageId> owned) {
    return manager_.check(memory, owned);
  }
  [[nodiscard]] const Manager& manager() const noexcept { return manager_; }
  /// The tree's, which readers hold optimistically.
  void latch_pages(const Latches& latches) noexcept { manager_.latch_pages(latches); }

 private:
  void hook() {
    manager_.before_write_back([this](M& memory, std::uint64_t lsn) { wal_->force(memory, lsn); });
  }

  /// Before a record of the page.
  void follow(M& memory, Page& page) {
    if (wal_->follows_pages()) [[unlikely]]
      wal_->follow(manager_.lsn(memory, page));
  }

  // Of LoggedStore.
  void pages_work_as(std::uint32_t thread) noexcept { manager_.work_as(thread); }
  [[nodiscard]] std::uint64_t dirty_pages() const noexcept { return manager_.dirty_pages(); }
  wal::Lsn write_back_before(M& memory, wal::Lsn age, std::uint64_t most = ~std::uint64_t{0}) {
    return manager_.write_back_before(memory, age, most);
  }
  void write_back_all(M& memory) { manager_.write_back_all(memory); }
  void persist_allocation(M& memory) { manager_.persist_allocation(memory); }
  void taking_back(const UndoRecord& record) noexcept { updating_ = record.kind == UndoRecord::Kind::kUpdate; }
  void end(M& memory, wal::Lsn age) {
    manager_.unpin_all(memory, age);
    updating_ = false;
  }

  /// Repeats history. What is redone is in the log already, so pages need not stay in DRAM.
  void redo(M& memory, const wal::Record& record, wal::Lsn lsn, wal::Lsn age) {
    const wal::RecordHead& head = record.head;
    if (head.kind == wal::Kind::kRelease) {
      manager_.redo_release(memory, head.name);
      return;
    }
    const bool allocation = head.kind == wal::Kind::kAllocate;
    if (allocation)
      manager_.redo_allocate(memory, head.name);
    Page page = manager_.fix_page(memory, head.name, allocation ? Access::kFull : Access::kGrained);
    if (manager_.lsn(memory, page) < lsn) {
      if (allocation)
        manager_.format(memory, page, lsn);
      else if (head.kind == wal::Kind::kMove)
        manager_.move(memory, page, head.a, head.b, head.bytes, lsn);
      else
        manager_.overwrite(memory, page, head.a, record.data, lsn);
    }
    manager_.unfix(memory, page);
    manager_.unpin_all(memory, age);
  }

  EnginePlace place_;
  Manager manager_;
  bool updating_ = false;  ///< the next change is the only one of an update of one row
};

}  // namespace pmsim::engines
