#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "pmsim/blocks/page/line_mask.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::blocks::page {

using memory::Address;
using memory::kLineBytes;
using memory::Site;

using PageId = std::uint64_t;  ///< logical page, 0 .. pages - 1
using SlotId = std::uint32_t;  ///< physical place on PMem
inline constexpr SlotId kNoSlot = ~SlotId{0};

/// How lines reach PMem: non-temporal stores, which the paper found faster (sec. 3.2.4), or stores and clwb.
enum class Write : std::uint8_t { kStream, kStoreFlush };

/// What a page store holds and who writes it.
struct StoreOptions {
  std::uint32_t page_bytes = 16384;  ///< multiple of 64, at most 64 KiB (paper: 16 kB, 256 lines)
  std::uint64_t pages = 1;           ///< logical pages
  std::uint32_t writers = 1;         ///< threads that flush, each with its own free slots and micro log
  std::uint32_t spare_slots = 1;     ///< slots beyond the pages, of each writer
  Write write = Write::kStream;
  bool barriers = true;  ///< false: an experiment that measures what the fences cost; recovers nothing

  [[nodiscard]] std::uint32_t lines() const noexcept { return page_bytes / kLineBytes; }
  void check() const {
    if (page_bytes == 0 || page_bytes % kLineBytes != 0 || lines() > kMaxLines)
      throw ConfigError("page_size: must be a multiple of 64 bytes, at most 64 KiB");
    if (pages == 0 || writers == 0 || spare_slots == 0)
      throw ConfigError("pages, threads, spare_slots: each must be at least 1");
  }
};

/// The slots of a page store on PMem. A slot is one PMem block (256 bytes) whose first line is the header, and
/// the payload, which so begins at a block and fills whole blocks (guideline 1 of the paper's conclusion).
///
/// Header line: pid (8 bytes; page + 1, 0: no page), pvn (8 bytes), checksum (8 bytes, blocks that use one).
/// Memory that was never written is zero: a region of empty slots needs no formatting.
struct SlotArea {
  static constexpr std::uint64_t kHeaderBytes = 256;

  Address base = 0;
  std::uint64_t slots = 0;
  std::uint32_t page_bytes = 0;

  [[nodiscard]] std::uint64_t stride() const noexcept {
    return kHeaderBytes + (page_bytes + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
  }
  [[nodiscard]] Address header(SlotId slot) const noexcept { return base + slot * stride(); }
  [[nodiscard]] Address pid(SlotId slot) const noexcept { return header(slot); }
  [[nodiscard]] Address pvn(SlotId slot) const noexcept { return header(slot) + 8; }
  [[nodiscard]] Address checksum(SlotId slot) const noexcept { return header(slot) + 16; }
  [[nodiscard]] Address payload(SlotId slot) const noexcept { return header(slot) + kHeaderBytes; }

  template <memory::Memory M>
  [[nodiscard]] static SlotArea allocate(M& memory, std::uint64_t slots, std::uint32_t page_bytes,
                                         const std::string& name = "page slots") {
    SlotArea area{.slots = slots, .page_bytes = page_bytes};
    area.base =
        memory.allocate(memory::Medium::kPmem, slots * area.stride(), {.name = name, .alignment = 1 << 21});
    return area;
  }
};

/// A page in DRAM: its content and what is known about it. `dirty` is what differs from PMem, `resident` what
/// the frame holds at all; dirty lines are resident.
struct Frame {
  Address data = 0;
  LineMask dirty;
  LineMask resident;

  /// The lines that [offset, offset + bytes) touches have been written.
  void mark_dirty(std::uint32_t offset, std::uint32_t bytes) noexcept {
    for (std::uint32_t line = offset / kLineBytes; line * kLineBytes < offset + bytes; ++line) {
      dirty.set(line);
      resident.set(line);
    }
  }
};

/// One cache line, as an AVX-512 register holds it.
using Line = std::array<std::byte, kLineBytes>;

/// Writes one line. Durable after the thread's next fence; `flush_site` names the clwb of Write::kStoreFlush.
template <memory::Memory M>
void write_line(M& memory, Address to, const Line& line, Write write, Site flush_site) {
  if (write == Write::kStream) {
    memory.stream(to, line);
  } else {
    memory.write(to, line);
    memory.flush(to, kLineBytes, memory::FlushKind::kClwb, flush_site);
  }
}

/// Copies one line, as write_line().
template <memory::Memory M>
void copy_line(M& memory, Address to, Address from, Write write, Site flush_site) {
  Line line;
  memory.read(from, line);
  write_line(memory, to, line, write, flush_site);
}

/// Copies a whole page: what the frame holds from there, the rest from `before`, the page's last version ("only
/// the dirty lines in DRAM", sec. 3.2.4). A choice of addresses, not of ways: nothing to predict.
template <memory::Memory M>
void copy_page(M& memory, Address to, const Frame& frame, Address before, std::uint32_t lines, Write write,
               Site flush_site) {
  for (std::uint32_t line = 0; line < lines; ++line) {
    const Address from = frame.resident.test(line) ? frame.data : before;
    copy_line(memory, to + line * kLineBytes, from + line * kLineBytes, write, flush_site);
  }
}

/// The store before this point and the store after it go to one line and must become durable in this order. x86
/// keeps it; the compiler must be told, and the paper's listing says sfence(), which with nothing to wait for
/// is cheap (sec. 3.2.2). One site names both, as they are one point of the algorithm.
template <memory::Memory M>
void store_order(M& memory, Site site) {
  if constexpr (requires { memory.order(site); })
    memory.order(site);
  memory.sfence(site);
}

/// Free slots of each writer. A flush takes one and gives the page's old slot back to the same list, so lists
/// keep their lengths, writers share nothing, and no lock is needed as long as a page has one writer at a time.
/// Only who creates pages may run out, and then takes from the longest list: creating pages needs a lock.
class FreeSlots {
 public:
  explicit FreeSlots(std::uint32_t writers) : free_(writers) {}

  [[nodiscard]] SlotId take(std::uint32_t writer) {
    std::deque<SlotId>* list = &free_[writer];
    if (list->empty())
      list = &*std::ranges::max_element(free_, {}, &std::deque<SlotId>::size);
    if (list->empty())
      throw ConfigError("page store: no free slot is left; raise spare_slots");
    const SlotId slot = list->front();
    list->pop_front();
    return slot;
  }
  void give(std::uint32_t writer, SlotId slot) { free_[writer].push_back(slot); }
  /// Deals slots to the writers in equal contiguous shares, in place of what they had.
  void deal(const std::vector<SlotId>& slots) {
    for (std::deque<SlotId>& list : free_)
      list.clear();
    for (std::size_t index = 0; index < slots.size(); ++index)
      free_[index * free_.size() / slots.size()].push_back(slots[index]);
  }

 private:
  std::vector<std::deque<SlotId>> free_;  ///< first in, first out
};

/// Where the newest version of a page lies.
struct Mapping {
  SlotId slot = kNoSlot;
  std::uint64_t pvn = 0;
};

}  // namespace pmsim::blocks::page
