#pragma once

#include <array>
#include <cstdint>

#include "pmsim/blocks/page/cost_model.hpp"
#include "pmsim/blocks/page/cow.hpp"
#include "pmsim/blocks/page/micro_log.hpp"

namespace pmsim::blocks::page {

/// Which of the two techniques a store uses.
enum class Choice : std::uint8_t { kCow, kMicroLog, kByCost };

/// A failure-atomic page store: copy on write, micro log, or per page whichever the cost model expects to be
/// faster (paper, sec. 3.2.4).
///
/// Promise: after a crash each page is, as a whole, its last acknowledged version or the one in flight. A page
/// has one writer at a time (the caller's page latch); different pages are flushed in parallel without locks.
/// With micro logs a page may change its writer only while the old one flushes nothing, other pages included:
/// the first flush by the new writer must not overlap with any by the old one (MicroLogs says why).
class PageStore {
 public:
  template <memory::Memory M>
  PageStore(M& memory, const StoreOptions& options, Choice choice, const CostModel& costs = {})
      : options_((options.check(), options)),
        choice_(choice),
        costs_(costs),
        slots_(SlotArea::allocate(memory, options.pages + options.writers * options.spare_slots,
                                  options.page_bytes),
               options),
        cow_(options),
        logs_(memory, options) {}

  [[nodiscard]] VersionedSlots& slots() noexcept { return slots_; }
  [[nodiscard]] const VersionedSlots& slots() const noexcept { return slots_; }

  /// Makes the frame's content the page's, durably, and clears the frame's dirty set. Returns whether it took
  /// the micro log.
  template <memory::Memory M>
  bool flush(M& memory, std::uint32_t writer, PageId page, Frame& frame) {
    if (frame.dirty.count() == 0 && slots_.at(page).slot != kNoSlot)
      return false;
    const bool logged = uses_micro_log(page, frame);
    if (logged) {
      logs_.flush(memory, writer, slots_, page, frame);
    } else {
      cow_.flush(memory, writer, slots_, page, frame);
      logs_.moved(page);
    }
    frame.dirty.clear();
    return logged;
  }

  /// Whether flush() would take the micro log. A page that has no slot yet is always copied.
  [[nodiscard]] bool uses_micro_log(PageId page, const Frame& frame) const {
    if (choice_ == Choice::kCow || slots_.at(page).slot == kNoSlot)
      return false;
    return choice_ == Choice::kMicroLog ||
           costs_.prefers_micro_log(frame.dirty, options_.lines(), options_.writers);
  }

  /// Rebuilds map and free slots and applies the valid micro logs. Idempotent; when it returns, what the map
  /// names is durable.
  template <memory::Memory M>
  void recover(M& memory) {
    slots_.recover(memory);
    logs_.recover(memory, slots_);
  }

 private:
  StoreOptions options_;
  Choice choice_;
  CostModel costs_;
  VersionedSlots slots_;
  Cow cow_;
  MicroLogs logs_;
};

}  // namespace pmsim::blocks::page
