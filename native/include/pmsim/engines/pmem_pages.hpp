#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/site.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines {

/// Pages that are used and changed where they lie on PMem: what stores without a copy of them have in common. A
/// page's id is its place.
///
///     allocation: {number of pages, first free page + 1}, a line of PMem
///
/// Free pages are a list through PageHeader::reserved. How a change becomes failure-atomic is for the `Store`
/// that derives from this and supplies overwrite() and change_word(memory, address, value); nothing here is
/// logged.
///
/// What is durable when. sync(): the loaded pages and their number, on return.
template <memory::Memory M, typename Store>
class PmemPages {
 public:
  using Site = memory::Site;
  static constexpr Site kLoadFence = 1310, kPagesFlush = 1311, kPagesFence = 1312;
  static constexpr std::array<blocks::SiteInfo, 3> kLoadSites{{
      {kLoadFence, "bulk loading: wait for the pages",
       "the catalog names the table in a transaction, whose first barrier comes before"},
      {kPagesFlush, "bulk loading: write the number of pages back"},
      {kPagesFence, "bulk loading: wait for the number of pages",
       "the catalog names the table in a transaction, whose first barrier comes before"},
  }};

  struct Page {
    Address address = 0;
    PageId id = kNoPage;
  };

  Page fix(M&, RootRef& root, Access) const noexcept { return page_at(root.id); }
  Page fix_child(M& memory, const Page& parent, std::uint32_t offset, Access) const {
    return page_at(memory.template load<Swip>(parent.address + offset));
  }
  Page fix_page(M&, PageId id, Access) const noexcept { return page_at(id); }
  void unfix(M&, const Page&) const noexcept {}
  [[nodiscard]] PageId page_id(const Page& page) const noexcept { return page.id; }
  [[nodiscard]] std::uint32_t page_bytes() const noexcept { return page_bytes_; }
  Address resident(M&, const Page& page, std::uint32_t offset, std::uint32_t) const noexcept {
    return page.address + offset;
  }
  void unswizzle_children(M&, const Page&, std::uint32_t, std::uint32_t) const noexcept {}

  /// Free when the transaction ends: a rollback needs what is in it.
  void release(M&, const Page& page) { released_.push_back(page.id); }

  /// Streams the image to its place.
  PageId load(M& memory, std::span<const std::byte> image) {
    ensure(image.size() == page_bytes_, "a loaded image has the size of a page");
    check_room();
    const Page fresh = page_at(pages_++);
    std::memcpy(moved_.data(), image.data(), page_bytes_);
    const PageHeader header{.lsn = 0, .page_id = fresh.id, .reserved = 0};
    std::memcpy(moved_.data(), &header, sizeof header);
    memory.stream(fresh.address, moved_);
    return fresh.id;
  }
  [[nodiscard]] PageId next_load() const noexcept { return pages_; }
  void sync(M& memory) {
    memory.sfence(kLoadFence);
    memory.template store<std::uint64_t>(pages_at(), pages_);
    memory.flush(pages_at(), sizeof(std::uint64_t), memory::FlushKind::kClwb, kPagesFlush);
    memory.sfence(kPagesFence);
  }

  template <typename Undo>
  void finish_restart(M&, Undo&&) const noexcept {}
  /// Nothing is ever anywhere else than where it belongs.
  void checkpoint(M&) const noexcept {}
  void shutdown(M&) const noexcept {}
  [[nodiscard]] const EnginePlace& place() const noexcept { return place_; }

  [[nodiscard]] std::string check(M& memory, std::span<const PageId> owned) {
    std::vector<bool> free(pages_);
    for (auto next = memory.template load<std::uint64_t>(free_at()); next != 0;) {
      if (next > pages_)
        return "the free list leaves the pages";
      if (free[next - 1])
        return "page " + std::to_string(next - 1) + " is in the free list twice";
      free[next - 1] = true;
      next = memory.template load<std::uint64_t>(page_at(next - 1).address + kLinkOffset);
    }
    if (memory.template load<std::uint64_t>(pages_at()) != pages_)
      return "the number of pages on PMem is not the one in use";
    std::size_t at = 0;
    for (PageId id = 0; id < pages_; ++id) {
      const bool is_owned = at < owned.size() && owned[at] == id;
      at += is_owned ? 1 : 0;
      if (is_owned == free[id])
        return "page " + std::to_string(id) + (is_owned ? " is free and has an owner" : " is lost");
      const auto there =
          memory.template load<std::uint64_t>(page_at(id).address + offsetof(PageHeader, page_id));
      if (there != id)
        return "page " + std::to_string(id) + " says that it is page " + std::to_string(there);
    }
    return at == owned.size() ? "" : "page " + std::to_string(owned[at]) + " does not exist";
  }

 protected:
  static constexpr std::uint32_t kLinkOffset = offsetof(PageHeader, reserved);

  explicit PmemPages(const EngineOptions& options)
      : engine_(options.engine),
        page_bytes_(options.page_bytes),
        capacity_(options.pmem_bytes / options.page_bytes),
        moved_(options.page_bytes) {
    if (capacity_ < 2)
      throw CapacityError("engine " + engine_ + ": pmem_bytes = " + std::to_string(options.pmem_bytes) +
                          ": holds less than two pages of " + std::to_string(page_bytes_) + " bytes; raise it");
  }

  void allocate_pages(M& memory) {
    place_.pmem = memory.allocate(memory::Medium::kPmem, capacity_ * page_bytes_,
                                  {.name = "pages", .alignment = page_bytes_});
  }
  /// `allocation`: where the line above is. Nothing is read of it.
  void place_allocation(Address allocation) noexcept { allocation_ = allocation; }
  void read_number_of_pages(M& memory) { pages_ = memory.template load<std::uint64_t>(pages_at()); }

  [[nodiscard]] Page page_at(PageId id) const noexcept { return {place_.pmem + id * page_bytes_, id}; }
  [[nodiscard]] Address pages_at() const noexcept { return allocation_; }
  [[nodiscard]] Address free_at() const noexcept { return allocation_ + 8; }
  /// Allocated by the open transaction.
  [[nodiscard]] bool is_fresh(PageId id) const noexcept {
    return std::find(fresh_.begin(), fresh_.end(), id) != fresh_.end();
  }
  void add_fresh(PageId id) { fresh_.push_back(id); }
  /// Part of a commit: what the transaction has released joins the free list.
  void free_released(M& memory) {
    auto& store = static_cast<Store&>(*this);
    for (const PageId id : released_) {
      const std::array<std::uint64_t, 1> link{memory.template load<std::uint64_t>(free_at())};
      store.overwrite(memory, page_at(id), kLinkOffset, std::as_bytes(std::span(link)));
      store.change_word(memory, free_at(), id + 1);
    }
  }
  void forget_transaction() {
    allocated_ += fresh_.size();
    fresh_.clear();
    released_.clear();
  }
  [[nodiscard]] std::uint64_t allocated() const noexcept { return allocated_; }

  void check_room() const {
    if (pages_ == capacity_)
      throw CapacityError("engine " + engine_ + ": the data do not fit into pmem_bytes = " +
                          std::to_string(capacity_ * page_bytes_) + "; raise it");
  }

  std::string engine_;
  std::uint32_t page_bytes_;
  std::uint64_t capacity_;  ///< pages
  std::uint64_t pages_ = 0;
  EnginePlace place_;
  std::vector<std::byte> moved_;  ///< a page: stands for registers

 private:
  Address allocation_ = 0;
  std::vector<PageId> fresh_;  ///< a handful
  std::vector<PageId> released_;
  std::uint64_t allocated_ = 0;
};

}  // namespace pmsim::engines
