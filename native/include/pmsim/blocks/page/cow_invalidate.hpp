#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pmsim/blocks/page/layout.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::page {

/// Copy on write without page version numbers (paper, sec. 3.2.2): three persistency barriers.
///
/// What is durable when. Every free slot is invalid (pid 0). The payload is durable before the pid; the pid
/// before the page's old slot is made invalid; that before flush() returns. Between the last two both slots
/// name the page, each whole, and the flush has not been acknowledged: recovery takes the first and invalidates
/// the other.
///
/// The paper invalidates an unused slot when it is about to be written again. Done that late, the slot that a
/// completed flush has left still names its page, nothing says which of the two is newer, and recovery may
/// return the old one: an acknowledged flush is lost. Invalidating it as the last step of the flush that leaves
/// it costs the same three barriers.
class CowInvalidate {
 public:
  static constexpr Site kPayloadFlush = 320;
  static constexpr Site kPayloadFence = 321;
  static constexpr Site kPidFlush = 322;
  static constexpr Site kPidFence = 323;
  static constexpr Site kOldFlush = 324;
  static constexpr Site kOldFence = 325;
  static constexpr std::array kSites{
      SiteInfo{kPayloadFence, "cow-invalidate: persist the payload before its pid", {}},
      SiteInfo{kPidFlush, "cow-invalidate: write back the pid", {}},
      SiteInfo{kPidFence, "cow-invalidate: persist the pid before the old slot is invalid", {}},
      SiteInfo{kOldFlush, "cow-invalidate: write back the old slot's invalid pid, or in recovery a twin's", {}},
      SiteInfo{kOldFence, "cow-invalidate: persist the old slot's invalid pid", {}},
  };
  static constexpr std::array kStoreSites{
      SiteInfo{kPayloadFlush, "cow-invalidate: write back a line of the payload", {}},
      kSites[0],
      kSites[1],
      kSites[2],
      kSites[3],
      kSites[4]};

  CowInvalidate(const SlotArea& area, const StoreOptions& options)
      : area_(area), options_(options), map_(options.pages, kNoSlot), free_(options.writers) {
    deal_free();
  }

  [[nodiscard]] const SlotArea& area() const noexcept { return area_; }
  [[nodiscard]] SlotId slot_of(PageId page) const { return map_.at(page); }

  template <memory::Memory M>
  void flush(M& memory, std::uint32_t writer, PageId page, const Frame& frame) {
    const SlotId old = map_.at(page);
    const SlotId slot = free_.take(writer);
    ensure(old != kNoSlot || frame.resident.count() == options_.lines(),
           "page flush: a new page must be in DRAM as a whole");
    copy_page(memory, area_.payload(slot), frame, old == kNoSlot ? frame.data : area_.payload(old),
              options_.lines(), options_.write, kPayloadFlush);
    fence(memory, kPayloadFence);
    set_pid(memory, slot, page + 1, kPidFlush, kPidFence);
    if (old != kNoSlot) {
      set_pid(memory, old, 0, kOldFlush, kOldFence);
      free_.give(writer, old);
    }
    map_[page] = slot;
  }

  /// Set-up of a database that is there already: see VersionedSlots::install().
  template <memory::Memory M>
  void install(M& memory, PageId page, SlotId slot) {
    memory.template store<std::uint64_t>(area_.pid(slot), page + 1);
    memory.flush(area_.header(slot), kLineBytes, memory::FlushKind::kClwb, memory::kNoSite);
    map_[page] = slot;
  }
  void deal_free() {
    std::vector<bool> used(area_.slots);
    for (const SlotId slot : map_) {
      if (slot != kNoSlot)
        used[slot] = true;
    }
    std::vector<SlotId> free;
    for (SlotId slot = 0; slot < area_.slots; ++slot) {
      if (!used[slot])
        free.push_back(slot);
    }
    free_.deal(free);
  }

  /// Rebuilds map and free slots from the headers. When it returns every page has one slot, durably.
  template <memory::Memory M>
  void recover(M& memory) {
    std::ranges::fill(map_, kNoSlot);
    for (SlotId slot = 0; slot < area_.slots; ++slot) {
      const auto pid = memory.template load<std::uint64_t>(area_.pid(slot));
      if (pid == 0)
        continue;
      if (pid > map_.size())
        throw ConfigError("page store: slot " + std::to_string(slot) + " names page " +
                          std::to_string(pid - 1) + " of " + std::to_string(map_.size()) +
                          "; recover with the options it was made with");
      if (map_[pid - 1] == kNoSlot) {
        map_[pid - 1] = slot;
      } else {
        set_pid(memory, slot, 0, kOldFlush, kOldFence);
      }
    }
    deal_free();
  }

 private:
  template <memory::Memory M>
  void set_pid(M& memory, SlotId slot, std::uint64_t pid, Site flush, Site fence_site) {
    memory.template store<std::uint64_t>(area_.pid(slot), pid);
    memory.flush(area_.header(slot), kLineBytes, memory::FlushKind::kClwb, flush);
    fence(memory, fence_site);
  }
  template <memory::Memory M>
  void fence(M& memory, Site site) const {
    if (options_.barriers)
      memory.sfence(site);
  }

  SlotArea area_;
  StoreOptions options_;
  std::vector<SlotId> map_;
  FreeSlots free_;
};

}  // namespace pmsim::blocks::page
