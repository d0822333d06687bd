#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "pmsim/blocks/page/layout.hpp"

namespace pmsim::blocks::page {

/// Slots whose headers carry a page version number: of the slots that name a page, the highest pvn is the page
/// (paper, sec. 3.2.2). The volatile page map and the free slots, and the scan that rebuilds them.
///
/// The paper lets the pvn grow per page. That is not enough: a slot of stale B with version v, whose pid has
/// just become A (state 3 of Fig. 6), ties with the current version of A when that is v as well. After a crash
/// there nothing tells them apart, and the one taken for free is overwritten while its header still claims to
/// be the page. Here a version is used once in the whole store (writer w takes numbers w, w + W, w + 2W ...),
/// so a tie cannot be, and it still grows per page.
class VersionedSlots {
 public:
  VersionedSlots(const SlotArea& area, const StoreOptions& options)
      : area_(area), map_(options.pages), free_(options.writers), last_(options.writers, 0) {
    deal_free();
  }

  [[nodiscard]] const SlotArea& area() const noexcept { return area_; }
  [[nodiscard]] const Mapping& at(PageId page) const { return map_.at(page); }
  [[nodiscard]] std::uint64_t pages() const noexcept { return map_.size(); }

  [[nodiscard]] SlotId take_free(std::uint32_t writer) { return free_.take(writer); }

  /// The version that this writer gives the page next: above the page's and above all of the writer's own.
  [[nodiscard]] std::uint64_t next_version(std::uint32_t writer, PageId page) {
    const std::uint64_t writers = last_.size();
    const std::uint64_t above = std::max(map_[page].pvn, last_[writer]) + 1;
    last_[writer] = above + (writer + writers - above % writers) % writers;
    return last_[writer];
  }

  /// The page lies in `slot` from now on; its old slot is free, for this writer.
  void move(std::uint32_t writer, PageId page, SlotId slot, std::uint64_t pvn) {
    Mapping& mapping = map_[page];
    if (mapping.slot != kNoSlot)
      free_.give(writer, mapping.slot);
    mapping = {slot, pvn};
  }

  /// Set-up of a database that is there already: writes the header of `slot` and believes its payload. Durable
  /// after the caller's fence.
  template <memory::Memory M>
  void install(M& memory, PageId page, SlotId slot) {
    memory.template store<std::uint64_t>(area_.pvn(slot), page + 1);
    memory.template store<std::uint64_t>(area_.pid(slot), page + 1);
    memory.flush(area_.header(slot), kLineBytes, memory::FlushKind::kClwb, memory::kNoSite);
    map_[page] = {slot, page + 1};
  }
  /// After install(): what no page lies in is free, dealt to the writers in ascending order.
  void deal_free() {
    std::vector<bool> used(area_.slots);
    for (const Mapping& mapping : map_) {
      if (mapping.slot != kNoSlot)
        used[mapping.slot] = true;
    }
    std::uint64_t highest = 0;
    for (const Mapping& mapping : map_)
      highest = std::max(highest, mapping.pvn);
    std::ranges::fill(last_, highest);
    std::vector<SlotId> free;
    for (SlotId slot = 0; slot < area_.slots; ++slot) {
      if (!used[slot])
        free.push_back(slot);
    }
    free_.deal(free);
  }

  /// Rebuilds map and free slots from the headers. Writes nothing.
  template <memory::Memory M>
  void recover(M& memory) {
    std::ranges::fill(map_, Mapping{});
    std::uint64_t highest = 0;
    for (SlotId slot = 0; slot < area_.slots; ++slot) {
      const auto pid = memory.template load<std::uint64_t>(area_.pid(slot));
      const auto pvn = memory.template load<std::uint64_t>(area_.pvn(slot));
      highest = std::max(highest, pvn);  // stale versions count too: none may be used twice
      if (pid == 0)
        continue;
      if (pid > map_.size())
        throw ConfigError("page store: slot " + std::to_string(slot) + " names page " +
                          std::to_string(pid - 1) + " of " + std::to_string(map_.size()) +
                          "; recover with the options it was made with");
      Mapping& mapping = map_[pid - 1];
      if (mapping.slot == kNoSlot || pvn > mapping.pvn)
        mapping = {slot, pvn};
    }
    deal_free();
    std::ranges::fill(last_, highest);
  }

 private:
  SlotArea area_;
  std::vector<Mapping> map_;
  FreeSlots free_;
  std::vector<std::uint64_t> last_;  ///< highest version that each writer has used
};

}  // namespace pmsim::blocks::page
