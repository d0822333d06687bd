#pragma once

#include <array>
#include <cstdint>

#include "pmsim/blocks/page/layout.hpp"
#include "pmsim/blocks/page/versioned_slots.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::page {

/// Copy on write with page version numbers (paper, sec. 3.2.2, Listing 1 left): two persistency barriers and
/// one bare sfence.
///
/// What is durable when. A free slot holds an outdated version of some page, or nothing. The payload is durable
/// before the header changes; the pid before the pvn. So a slot is, in this order: stale B, stale B with
/// another payload, A with B's old version (newest A if that is higher, else outdated), newest A. flush()
/// returns when the last is durable; only then may the old slot of A be written.
class Cow {
 public:
  static constexpr Site kPayloadFlush = 300;
  static constexpr Site kPayloadFence = 301;
  static constexpr Site kPidBeforePvn = 302;
  static constexpr Site kHeaderFlush = 303;
  static constexpr Site kHeaderFence = 304;
  /// With Write::kStream.
  static constexpr std::array kSites{
      SiteInfo{kPayloadFence, "cow: persist the payload before its header", {}},
      SiteInfo{kPidBeforePvn, "cow: pid before pvn", {}},
      SiteInfo{kHeaderFlush, "cow: write back pid and pvn", {}},
      SiteInfo{kHeaderFence, "cow: persist pid and pvn before the flush returns", {}},
  };
  /// With Write::kStoreFlush.
  static constexpr std::array kStoreSites{SiteInfo{kPayloadFlush, "cow: write back a line of the payload", {}},
                                          kSites[0], kSites[1], kSites[2], kSites[3]};

  explicit Cow(const StoreOptions& options) : write_(options.write), barriers_(options.barriers) {}

  /// Writes the page. Lines that the frame does not hold are loaded from the page's old slot. The dirty set of
  /// the frame is the caller's to clear.
  template <memory::Memory M>
  void flush(M& memory, std::uint32_t writer, VersionedSlots& slots, PageId page, const Frame& frame) const {
    const SlotArea& area = slots.area();
    const SlotId old = slots.at(page).slot;
    const SlotId slot = slots.take_free(writer);
    const std::uint64_t pvn = slots.next_version(writer, page);
    const std::uint32_t lines = area.page_bytes / kLineBytes;
    ensure(old != kNoSlot || frame.resident.count() == lines,
           "page flush: a new page must be in DRAM as a whole");
    copy_page(memory, area.payload(slot), frame, old == kNoSlot ? frame.data : area.payload(old), lines, write_,
              kPayloadFlush);
    fence(memory, kPayloadFence);
    memory.template store<std::uint64_t>(area.pid(slot), page + 1);
    if (barriers_)
      store_order(memory, kPidBeforePvn);
    memory.template store<std::uint64_t>(area.pvn(slot), pvn);
    memory.flush(area.header(slot), kLineBytes, memory::FlushKind::kClwb, kHeaderFlush);
    fence(memory, kHeaderFence);
    slots.move(writer, page, slot, pvn);
  }

 private:
  template <memory::Memory M>
  void fence(M& memory, Site site) const {
    if (barriers_)
      memory.sfence(site);
  }

  Write write_;
  bool barriers_;
};

}  // namespace pmsim::blocks::page
