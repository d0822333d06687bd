#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/buffer/page_allocator.hpp"
#include "pmsim/engines/buffer/write_back.hpp"
#include "pmsim/engines/dram_frames.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/engines/rollback_room.hpp"
#include "pmsim/engines/wal/dirty_queue.hpp"
#include "pmsim/engines/wal/logged_store.hpp"
#include "pmsim/engines/wal/wal.hpp"

namespace pmsim::engines {

/// Pages in DRAM, without indirection, under the same write-ahead log as all engines (van Renen et al. 2018,
/// sections 2.3 and 5): the engine main-memory. Its data must fit into dram_bytes.
///
/// A page's id is its place; a Page is its address. A change stores the record's LSN, and since when the page
/// differs from its image, in the page's first line. Below lies a checkpoint image: a place per page on the SSD
/// where there is one (ssd_bytes), else on PMem. It is only ever read by a restart.
///
/// Checkpoint: pages that differ are written to the image (page_bytes and a journal slot each on the SSD; by
/// the micro log on PMem, both failure-atomic: buffer/write_back.hpp), then the map of ids, then the log is
/// truncated. They are incremental, as in wal/logged_store.hpp.
///
/// What is durable when. commit(), abort(): the transaction, in the log, on return. checkpoint(), shutdown():
/// the image, on return. sync(): the loaded pages, in the image. Restart: the image is read as a whole, then
/// the log is redone onto it, each record above its page's LSN.
template <memory::Memory M>
class LoggedMemoryStore : public wal::LoggedStore<M, LoggedMemoryStore<M>> {
  using Base = wal::LoggedStore<M, LoggedMemoryStore<M>>;
  friend Base;
  using Base::wal_;

 public:
  using Page = Address;

  LoggedMemoryStore(M& memory, const EngineOptions& options)
      : LoggedMemoryStore(memory, options, EnginePlace{}, true) {
    this->open_log(memory, options, place_);
  }
  LoggedMemoryStore(M& memory, const EngineOptions& options, const EnginePlace& place)
      : LoggedMemoryStore(memory, options, place, false) {
    this->reopen_log(memory, options, place);
    read_image(memory);
    wal_->replay(
        memory, [&](const wal::Record& record, wal::Lsn lsn, wal::Lsn age) { redo(memory, record, lsn, age); });
  }

  Page fix(M&, RootRef& root, Access) const noexcept { return address(root.id); }
  Page fix_child(M& memory, Page parent, std::uint32_t offset, Access) const {
    return address(memory.template load<Swip>(parent + offset));
  }
  Page fix_page(M&, PageId id, Access) const noexcept { return address(id); }
  void unfix(M&, Page) const noexcept {}
  [[nodiscard]] PageId page_id(Page page) const noexcept { return frames_.id(page); }
  [[nodiscard]] std::uint32_t page_bytes() const noexcept { return page_bytes_; }
  Address resident(M&, Page page, std::uint32_t offset, std::uint32_t) const noexcept { return page + offset; }
  void unswizzle_children(M&, Page, std::uint32_t, std::uint32_t) const noexcept {}

  Page allocate(M& memory) {
    const PageId id = take(memory, false);
    format(memory, id, wal_->allocate(memory, id), wal_->open_age());
    return address(id);
  }
  /// The id is free when the transaction has ended.
  void release(M& memory, Page page) {
    const PageId id = page_id(page);
    follow(memory, page);
    wal_->release(memory, id);
    released_[thread_].push_back(id);
  }
  void overwrite(M& memory, Page page, std::uint32_t offset, std::span<const std::byte> bytes) {
    if (bytes.empty())
      return;
    follow(memory, page);
    const wal::Lsn lsn = wal_->overwrite(memory, page_id(page), offset, bytes);
    memory.write(page + offset, bytes);
    mark(memory, page, lsn, wal_->open_age());
  }
  void announce(M&, Page, std::span<const PageRange>) const noexcept {}
  void settle(M&, Page) const noexcept {}
  void move(M& memory, Page page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    if (bytes == 0 || to == from)
      return;
    follow(memory, page);
    const wal::Lsn lsn = wal_->move(memory, page_id(page), to, from, bytes);
    move_bytes(memory, page, to, from, bytes);
    mark(memory, page, lsn, wal_->open_age());
  }

  PageId load(M& memory, std::span<const std::byte> image) {
    ensure(image.size() == page_bytes_, "a loaded image has the size of a page");
    const PageId id = take(memory, true);
    memory.write(address(id), image);
    memory.template store<PageHeader>(address(id), {.lsn = 0, .page_id = id, .reserved = buffer::kPageMark});
    if (on_ssd_) {
      memory.block_write(ssd_.home(id), address(id), page_bytes_);
    } else {
      for (std::uint32_t byte = 0; byte < page_bytes_; byte += memory::kLineBytes)
        blocks::page::copy_line(memory, home(id) + byte, address(id) + byte, blocks::page::Write::kStream,
                                memory::kNoSite);
    }
    memory.template store<std::uint64_t>(address(id) + offsetof(PageHeader, reserved), 0);
    return id;
  }
  [[nodiscard]] PageId next_load() const noexcept { return allocator_.next(); }
  [[nodiscard]] FreeRoom room(std::uint32_t) const noexcept { return {.pages = pages_ - allocator_.used()}; }
  void sync(M& memory) {
    if (on_ssd_)
      memory.block_flush(buffer::site::kLoadFlush);
    else
      memory.sfence(buffer::site::kLoadFence);
    allocator_.persist(memory);
  }

  void note_undo(M& memory, const UndoRecord& record) { wal_->note_undo(memory, record); }
  [[nodiscard]] const EnginePlace& place() const noexcept { return place_; }
  void counters(std::map<std::string, double>& into) const {
    Base::counters(into);
    into["pages"] = static_cast<double>(allocator_.used());
    into["pages_cleaned"] = static_cast<double>(cleaned_);
    into[on_ssd_ ? "pages_written_ssd" : "pages_written_pmem"] = static_cast<double>(written_);
  }
  [[nodiscard]] std::string check(M& memory, std::span<const PageId> owned) {
    std::size_t next = 0;
    for (PageId id = 0; id < allocator_.next(); ++id) {
      const bool is_owned = next < owned.size() && owned[next] == id;
      next += is_owned ? 1 : 0;
      if (is_owned != allocator_.taken(memory, id))
        return "page " + std::to_string(id) + (is_owned ? " is free and has an owner" : " is lost");
      const auto there = memory.template load<std::uint64_t>(address(id) + offsetof(PageHeader, page_id));
      if (is_owned && there != id)
        return "page " + std::to_string(id) + " says that it is page " + std::to_string(there);
    }
    return next == owned.size() ? "" : "page " + std::to_string(owned[next]) + " does not exist";
  }

 private:
  /// PageHeader::reserved of a page in DRAM: from where the log must be redone for it; 0: it is as its image.
  static constexpr Address kFirstChange = offsetof(PageHeader, reserved);
  static constexpr std::uint32_t kJournalSlots = 8;  ///< on the SSD; flushed once per round

  LoggedMemoryStore(M& memory, const EngineOptions& options, const EnginePlace& place, bool fresh)
      : page_bytes_(options.page_bytes),
        pages_(options.dram_bytes / options.page_bytes),
        on_ssd_(options.ssd_bytes != 0),
        place_(place),
        released_(std::max(options.threads, 1U)) {
    if (pages_ < 2)
      throw CapacityError("engine " + options.engine + ": dram_bytes = " + std::to_string(options.dram_bytes) +
                          ": holds less than two pages of " + std::to_string(page_bytes_) + " bytes; raise it");
    if (on_ssd_ && options.ssd_bytes < pages_ * page_bytes_)
      throw CapacityError("engine " + options.engine + ": ssd_bytes = " + std::to_string(options.ssd_bytes) +
                          ": the checkpoint image needs as much as dram_bytes; raise it, or set it to 0 for an "
                          "image on PMem");
    using memory::Medium;
    // On the log's device, where the image is on the SSD too: an engine without PMem uses none.
    const bool meta_on_ssd = on_ssd_ && options.meta_on_ssd();
    const std::uint64_t journal =
        blocks::log::round_up(on_ssd_ ? buffer::SsdWriter::journal_bytes(kJournalSlots, page_bytes_)
                                      : buffer::PmemWriter::micro_log_bytes(page_bytes_),
                              memory::kSectorBytes);
    const std::uint64_t pages_end =
        blocks::log::round_up(DramFrames::bytes_for(pages_, page_bytes_), memory::kSectorBytes);
    const std::uint64_t map = buffer::PageAllocator::map_bytes(pages_);
    const std::uint64_t scratch = pages_end + map;
    const std::uint64_t dirty = scratch + memory::kSectorBytes + page_bytes_;
    if (fresh) {
      place_.dram = memory.allocate(Medium::kDram, dirty + wal::DirtyQueue::bytes_for(pages_),
                                    {.name = "pages", .alignment = std::uint64_t{1} << 21});
      (on_ssd_ ? place_.ssd : place_.pmem) =
          memory.allocate(on_ssd_ ? Medium::kBlock : Medium::kPmem, pages_ * page_bytes_,
                          {.name = "checkpoint image", .alignment = std::uint64_t{1} << 21});
      place_.meta =
          memory.allocate(meta_on_ssd ? Medium::kBlock : Medium::kPmem,
                          journal + buffer::PageAllocator::copies_bytes(pages_), {.name = "page journal"});
    }
    frames_ = DramFrames(place_.dram, page_bytes_);
    dirty_ = wal::DirtyQueue(place_.dram + dirty, pages_);
    const Address sector = place_.dram + scratch;
    allocator_ = buffer::PageAllocator(place_.dram + pages_end, place_.meta + journal, pages_, sector);
    if (on_ssd_)
      ssd_ = buffer::SsdWriter(place_.meta, kJournalSlots, place_.ssd, page_bytes_, sector,
                               sector + memory::kSectorBytes);
    else
      pmem_ = buffer::PmemWriter(place_.meta, page_bytes_, true, buffer::page_write_named(options.page_write));
    moved_.resize(page_bytes_);
  }

  [[nodiscard]] Address address(PageId id) const noexcept { return frames_.address(id); }
  [[nodiscard]] Address home(PageId id) const noexcept { return place_.pmem + id * page_bytes_; }

  PageId take(M& memory, bool consecutive) {
    if (allocator_.used() == pages_ || (consecutive && allocator_.next() == pages_))
      throw CapacityError("the data do not fit into dram_bytes = " + std::to_string(pages_ * page_bytes_) +
                          "; raise it");
    return consecutive ? allocator_.take_next(memory) : allocator_.take(memory);
  }
  [[nodiscard]] bool is_dirty(M& memory, const wal::DirtyQueue::Entry& entry) const {
    return memory.template load<std::uint64_t>(address(entry.id) + kFirstChange) == entry.first &&
           allocator_.taken(memory, entry.id);
  }
  void note_first_change(M& memory, PageId id, wal::Lsn first) {
    dirty_.push(memory, {id, first},
                [&](const wal::DirtyQueue::Entry& entry) { return is_dirty(memory, entry); });
  }
  /// Before a record of the page.
  void follow(M& memory, Page page) {
    if (wal_->follows_pages()) [[unlikely]]
      wal_->follow(memory.template load<std::uint64_t>(page + offsetof(PageHeader, lsn)));
  }
  /// `first`: the age of the change (Wal::open_age).
  void mark(M& memory, Page page, wal::Lsn lsn, wal::Lsn first) {
    memory.template store<std::uint64_t>(page + offsetof(PageHeader, lsn), lsn);
    if (memory.template load<std::uint64_t>(page + kFirstChange) != 0)
      return;
    memory.template store<std::uint64_t>(page + kFirstChange, first);
    note_first_change(memory, page_id(page), first);
  }
  void format(M& memory, PageId id, wal::Lsn lsn, wal::Lsn first) {
    static constexpr std::array<std::byte, memory::kLineBytes> kZeros{};
    for (std::uint32_t byte = 0; byte < page_bytes_; byte += memory::kLineBytes)
      memory.write(address(id) + byte, kZeros);
    memory.template store<PageHeader>(address(id), {.lsn = lsn, .page_id = id, .reserved = first});
    note_first_change(memory, id, first);
  }
  void move_bytes(M& memory, Page page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    const auto moved = std::span(moved_).first(bytes);  // stands for registers
    memory.read(page + from, moved);
    memory.write(page + to, moved);
  }

  // Of LoggedStore.
  void pages_work_as(std::uint32_t thread) noexcept { thread_ = thread % released_.size(); }
  [[nodiscard]] std::uint64_t dirty_pages() const noexcept { return dirty_.size(); }
  wal::Lsn write_back_before(M& memory, wal::Lsn age, std::uint64_t most = ~std::uint64_t{0}) {
    for (; !dirty_.empty(); dirty_.pop()) {
      const wal::DirtyQueue::Entry oldest = dirty_.front(memory);
      if (oldest.first >= age || most == 0)
        return oldest.first;
      if (!is_dirty(memory, oldest))
        continue;
      if (wal_->others_age() != wal::Wal::kNoAge) [[unlikely]] {
        wal_->force(memory,
                    memory.template load<std::uint64_t>(address(oldest.id) + offsetof(PageHeader, lsn)));
        if (!is_dirty(memory, oldest))
          continue;
      }
      write_back(memory, oldest.id);
      ++cleaned_;
      --most;
    }
    return ~wal::Lsn{0};
  }
  void write_back_all(M& memory) {
    for (PageId id = 0; id < allocator_.next(); ++id) {
      if (memory.template load<std::uint64_t>(address(id) + kFirstChange) != 0 && allocator_.taken(memory, id))
        write_back(memory, id);
    }
    dirty_.clear();
  }
  void write_back(M& memory, PageId id) {
    const memory::InSection section(memory, memory::Section::kPages);
    const Address page = address(id);
    memory.template store<std::uint64_t>(page + kFirstChange, 0);
    if (on_ssd_) {
      ssd_.write(memory, id, page);
    } else {
      blocks::page::LineMask all;
      all.set_first(page_bytes_ / memory::kLineBytes);
      pmem_.replace(memory, home(id), all, buffer::kPageMark,
                    [&](std::uint32_t line) { return page + line * memory::kLineBytes; });
    }
    ++written_;
  }
  void persist_allocation(M& memory) { allocator_.persist(memory); }
  void taking_back(const UndoRecord&) const noexcept {}
  void end(M& memory, wal::Lsn) {
    for (const PageId id : released_[thread_])
      allocator_.set(memory, id, false);
    released_[thread_].clear();
  }

  void read_image(M& memory) {
    on_ssd_ ? ssd_.recover(memory) : pmem_.recover(memory);
    allocator_.recover(memory);
    blocks::page::Line line;
    for (PageId id = 0; id < pages_; ++id) {
      const Address page = address(id);
      if (!allocator_.taken(memory, id)) {
        // Not what an earlier life has left in DRAM: redo of its allocation must see that it is old.
        memory.template store<PageHeader>(page, {.lsn = 0, .page_id = id, .reserved = 0});
        continue;
      }
      if (on_ssd_) {
        ssd_.read(memory, id, page);
      } else {
        for (std::uint32_t byte = 0; byte < page_bytes_; byte += memory::kLineBytes) {
          memory.read(home(id) + byte, line);
          memory.write(page + byte, line);
        }
      }
      memory.template store<std::uint64_t>(page + offsetof(PageHeader, reserved), 0);
    }
  }
  void redo(M& memory, const wal::Record& record, wal::Lsn lsn, wal::Lsn age) {
    const wal::RecordHead& head = record.head;
    if (head.kind == wal::Kind::kRelease || head.kind == wal::Kind::kAllocate)
      allocator_.set(memory, head.name, head.kind == wal::Kind::kAllocate);
    const Page page = address(head.name);
    if (head.kind == wal::Kind::kRelease || memory.template load<std::uint64_t>(page) >= lsn)
      return;
    if (head.kind == wal::Kind::kAllocate)
      return format(memory, head.name, lsn, age);
    if (head.kind == wal::Kind::kOverwrite)
      memory.write(page + head.a, record.data);
    else
      move_bytes(memory, page, head.a, head.b, head.bytes);
    mark(memory, page, lsn, age);
  }

  std::uint32_t page_bytes_;
  std::uint64_t pages_;
  bool on_ssd_;
  EnginePlace place_;
  DramFrames frames_;
  buffer::PageAllocator allocator_;
  buffer::PmemWriter pmem_;
  buffer::SsdWriter ssd_;
  wal::DirtyQueue dirty_;
  std::vector<std::vector<PageId>> released_;  ///< by each thread's open transaction
  std::size_t thread_ = 0;
  std::vector<std::byte> moved_;
  std::uint64_t written_ = 0;
  std::uint64_t cleaned_ = 0;
};

}  // namespace pmsim::engines
