#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/dram_frames.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/engines/rollback_room.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::engines {

/// Pages in DRAM, and nothing else: no log, no restart. The tree's reference, and the cost of a tree alone.
///
/// A page's id is its place in the region; a Page is its address. Released pages form a list through the
/// reserved word of their headers. Undo records are appended to a DRAM buffer, latest last.
/// NOTHING IS DURABLE, ever.
template <memory::Memory M>
class MemoryStore {
 public:
  using Page = Address;

  MemoryStore(M& memory, const EngineOptions& options)
      : page_bytes_(options.page_bytes), pages_(options.dram_bytes / options.page_bytes) {
    if (pages_ < 2) {
      throw CapacityError("engine " + options.engine + ": dram_bytes = " + std::to_string(options.dram_bytes) +
                          ": holds less than two pages of " + std::to_string(page_bytes_) + " bytes");
    }
    place_.dram = memory.allocate(memory::Medium::kDram, DramFrames::bytes_for(pages_, page_bytes_),
                                  {.name = "pages", .alignment = page_bytes_});
    frames_ = DramFrames(place_.dram, page_bytes_);
    place_.meta = memory.allocate(memory::Medium::kDram, kUndoBytes, {.name = "undo records"});
    zeros_.resize(page_bytes_);
  }
  MemoryStore(M&, const EngineOptions& options, const EnginePlace&) {
    throw ConfigError("engine " + options.engine + ": keeps nothing durable, so it cannot be restarted");
  }

  /// Without undo records, over a region that is there already: for what is rebuilt in DRAM at each start.
  MemoryStore(Address pages, std::uint64_t bytes, std::uint32_t page_bytes)
      : page_bytes_(page_bytes),
        pages_(DramFrames::pages_in(bytes, page_bytes)),
        frames_(pages, page_bytes),
        zeros_(page_bytes) {
    place_.dram = pages;
  }
  [[nodiscard]] FreeRoom room(std::uint32_t) const noexcept { return {.pages = free_pages()}; }
  [[nodiscard]] std::uint64_t free_pages() const noexcept { return pages_ - live_.size() + released_; }

  Page fix(M&, RootRef& root, Access) const noexcept { return address(root.id); }
  Page fix_child(M& memory, Page parent, std::uint32_t offset, Access) const {
    return address(memory.template load<Swip>(parent + offset));
  }
  Page fix_page(M&, PageId id, Access) const noexcept { return address(id); }
  void unfix(M&, Page) const noexcept {}
  Page allocate(M& memory) {
    PageId id = free_;
    if (id == kNoPage) {
      id = next_load();
      take_new();
    } else {
      free_ = memory.template load<std::uint64_t>(address(id) + offsetof(PageHeader, reserved));
      live_[id] = true;
      --released_;
    }
    memory.write(address(id), zeros_);
    memory.template store<PageHeader>(address(id), {.lsn = 0, .page_id = id, .reserved = 0});
    return address(id);
  }
  void release(M& memory, Page page) {
    memory.template store<std::uint64_t>(page + offsetof(PageHeader, reserved), free_);
    free_ = page_id(page);
    live_[free_] = false;
    ++released_;
  }
  [[nodiscard]] PageId page_id(Page page) const noexcept { return frames_.id(page); }
  [[nodiscard]] std::uint32_t page_bytes() const noexcept { return page_bytes_; }
  Address resident(M&, Page page, std::uint32_t offset, std::uint32_t) const noexcept { return page + offset; }
  void overwrite(M& memory, Page page, std::uint32_t offset, std::span<const std::byte> bytes) const {
    memory.write(page + offset, bytes);
  }
  void announce(M&, Page, std::span<const PageRange>) const noexcept {}
  void settle(M&, Page) const noexcept {}
  void move(M& memory, Page page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    const auto moved = std::span(zeros_).first(bytes);  // stands for registers
    memory.read(page + from, moved);
    memory.write(page + to, moved);
    std::fill(moved.begin(), moved.end(), std::byte{0});
  }
  void unswizzle_children(M&, Page, std::uint32_t, std::uint32_t) const noexcept {}

  PageId load(M& memory, std::span<const std::byte> image) {
    const PageId id = next_load();
    take_new();
    memory.write(address(id), image);
    memory.template store<PageHeader>(address(id), {.lsn = 0, .page_id = id, .reserved = 0});
    return id;
  }
  [[nodiscard]] PageId next_load() const noexcept { return live_.size(); }
  void sync(M&) const noexcept {}

  void begin(M&) {
    undo_.clear();
    undo_used_ = 0;
  }
  void note_undo(M& memory, const UndoRecord& record) {
    const auto bytes = static_cast<std::uint32_t>(record.before.size());
    if (undo_used_ + sizeof(Head) + bytes > kUndoBytes)
      throw ConfigError("a transaction has more than " + std::to_string(kUndoBytes) + " bytes to undo");
    const Address at = place_.meta + undo_used_;
    memory.template store<Head>(
        at, {record.key, record.offset, bytes, record.table, static_cast<std::uint16_t>(record.kind), 0});
    memory.write(at + sizeof(Head), record.before);
    undo_.push_back(undo_used_);
    undo_used_ += (sizeof(Head) + bytes + 7) / 8 * 8;
  }
  void commit(M& memory) { begin(memory); }
  template <typename Undo>
  void abort(M& memory, Undo&& undo) {
    for (; !undo_.empty(); undo_.pop_back()) {
      const Address at = place_.meta + undo_.back();
      const Head head = memory.template load<Head>(at);
      before_.resize(head.bytes);
      memory.read(at + sizeof(Head), before_);
      undo(UndoRecord{static_cast<UndoRecord::Kind>(head.kind), head.table, head.key, head.offset, before_});
    }
    undo_used_ = 0;
  }

  template <typename Undo>
  void finish_restart(M&, Undo&&) const noexcept {}
  void checkpoint(M&) const noexcept {}
  void shutdown(M&) const noexcept {}
  [[nodiscard]] const EnginePlace& place() const noexcept { return place_; }
  void counters(std::map<std::string, double>& into) const {
    into["pages"] = static_cast<double>(live_.size());
  }
  [[nodiscard]] std::string check(M& memory, std::span<const PageId> owned) {
    std::size_t next = 0;
    for (PageId id = 0; id < live_.size(); ++id) {
      const bool is_owned = next < owned.size() && owned[next] == id;
      next += is_owned ? 1 : 0;
      if (is_owned != live_[id])
        return "page " + std::to_string(id) + (is_owned ? " is free and has an owner" : " is lost");
      const auto there = memory.template load<std::uint64_t>(address(id) + offsetof(PageHeader, page_id));
      if (there != id)
        return "page " + std::to_string(id) + " says that it is page " + std::to_string(there);
    }
    return next == owned.size() ? "" : "page " + std::to_string(owned[next]) + " does not exist";
  }

 private:
  struct Head {
    std::uint64_t key;
    std::uint32_t offset;
    std::uint32_t bytes;
    std::uint16_t table;
    std::uint16_t kind;
    std::uint32_t unused;
  };
  static constexpr std::uint64_t kUndoBytes = std::uint64_t{4} << 20;

  [[nodiscard]] Address address(PageId id) const noexcept { return frames_.address(id); }
  void take_new() {
    if (live_.size() == pages_) {
      throw CapacityError("the data do not fit into dram_bytes = " + std::to_string(pages_ * page_bytes_) +
                          "; raise it");
    }
    live_.push_back(true);
  }

  std::uint32_t page_bytes_ = 0;
  std::uint64_t pages_ = 0;
  DramFrames frames_;
  EnginePlace place_;
  PageId free_ = kNoPage;
  std::uint64_t released_ = 0;  ///< length of that list
  std::vector<bool> live_;      ///< shadow for check(): pages that have been given out and not released
  std::vector<std::byte> zeros_;
  std::vector<std::uint64_t> undo_;  ///< where the records lie; a real engine links them
  std::uint64_t undo_used_ = 0;
  std::vector<std::byte> before_;
};

}  // namespace pmsim::engines
