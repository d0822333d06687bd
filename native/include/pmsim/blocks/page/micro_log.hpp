#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "pmsim/blocks/page/layout.hpp"
#include "pmsim/blocks/page/versioned_slots.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::page {

/// The micro logs of a page store, one for each writer (paper, sec. 3.2.3, Listing 1 right): the dirty lines of
/// a page go to the log and then, in place, to the page's slot. Four persistency barriers; each dirty line is
/// written twice.
///
/// Layout of a log: pid (8 bytes; page + 1, 0: invalid), pvn (8), slot (8), count (8), the numbers of the lines
/// in the order in which they were logged (a byte each, two for pages of more than 256 lines), and from the
/// next 256-byte block on the lines themselves. Count and numbers are kept where they lie, in PMem, line by
/// line, as the authors' published program does it (note 1 of the paper): the log's head, which the
/// invalidation has just written back, has to be read again before the first line can be logged.
///
/// What is durable when. The log is invalid before its content changes; the content is complete before it is
/// valid; it is valid before the slot changes; the slot is complete before flush() returns. The log stays valid
/// until the writer's next flush: recovery applies every valid log, whatever the state of its slot.
///
/// Two hazards that the paper does not state, both made impossible here:
///  - The page moves on by copy on write (hybrid) while its log is still valid: replayed, the log would put old
///    lines over a newer version. A log therefore names slot and pvn, and is applied only while the page lies
///    there with this version; a moved page has another.
///  - Another writer logs the page: two valid logs for one version, and recovery cannot know their order. The
///    later writer first invalidates the other log; the fence after the invalidation of its own covers both.
///    A page may change its writer only while the old one flushes nothing, other pages included: while it
///    flushes another one, its log may already be invalid for the program and yet come back after a crash, as
///    nothing has waited for that. Whoever logs a page while its old writer is at work is stopped.
class MicroLogs {
 public:
  static constexpr Site kInvalidFlush = 340;
  static constexpr Site kInvalidFence = 341;
  static constexpr Site kContentFlush = 342;
  static constexpr Site kHeadFlush = 343;
  static constexpr Site kContentFence = 344;
  static constexpr Site kValidFlush = 345;
  static constexpr Site kValidFence = 346;
  static constexpr Site kPageFlush = 347;
  static constexpr Site kPageFence = 348;
  static constexpr Site kForeignFlush = 349;
  static constexpr std::array kSites{
      SiteInfo{kInvalidFlush, "micro log: write back the invalid pid", {}},
      SiteInfo{kInvalidFence, "micro log: persist the invalid pid before the content changes", {}},
      SiteInfo{kHeadFlush, "micro log: write back version, slot and the set of lines",
               "where up to 32 lines are dirty they share the line of the pid that follows, whose write-back "
               "takes them "
               "along; with more it is needed (page_test.cpp)"},
      SiteInfo{kContentFence, "micro log: persist the content before the log is valid", {}},
      SiteInfo{kValidFlush, "micro log: write back the valid pid", {}},
      SiteInfo{kValidFence, "micro log: persist the valid pid before the page changes", {}},
      SiteInfo{kPageFence, "micro log: persist the page, in recovery too, before the log may be invalid", {}},
      SiteInfo{kForeignFlush, "micro log: write back the invalid pid of another writer's log of the page", {}},
  };
  static constexpr std::array kStoreSites{
      SiteInfo{kContentFlush, "micro log: write back a line of the content", {}},
      SiteInfo{kPageFlush, "micro log: write back a line of the page", {}},
      kSites[0],
      kSites[1],
      kSites[2],
      kSites[3],
      kSites[4],
      kSites[5],
      kSites[6],
      kSites[7]};

  template <memory::Memory M>
  MicroLogs(M& memory, const StoreOptions& options)
      : options_(options), logs_(options.writers), logged_by_(options.pages, 0) {
    base_ = memory.allocate(memory::Medium::kPmem, options.writers * stride(),
                            {.name = "micro logs", .alignment = 1 << 21});
  }

  /// Writes the dirty lines of a page that lies in a slot, in place.
  template <memory::Memory M>
  void flush(M& memory, std::uint32_t writer, const VersionedSlots& slots, PageId page, const Frame& frame) {
    const Mapping& mapping = slots.at(page);
    ensure(mapping.slot != kNoSlot, "micro log: a page that was never written has no slot to change");
    const std::uint32_t other = logged_by_[page];
    if (other != 0 && other != writer + 1) {
      ensure(!logs_[other - 1].flushing, "micro log: a page changes its writer while the old one is flushing");
      if (logs_[other - 1].names == page + 1)
        invalidate(memory, other - 1, kForeignFlush);
    }
    const Flushing alone(logs_[writer]);

    const Address log = head(writer);
    invalidate(memory, writer, kInvalidFlush);
    fence(memory, kInvalidFence);

    std::uint64_t count = 0;  // the program's loads of it are forwarded from the store before
    frame.dirty.scan(memory, options_.lines(), kLogTest, [&](std::uint32_t line) {
      memory.compute(0, kLogLine);
      copy_line(memory, log + content() + count * kLineBytes, frame.data + line * kLineBytes, options_.write,
                kContentFlush);
      store_number(memory, log + kNumbers + count * number_bytes(), line);
      memory.template store<std::uint64_t>(log + kCount, ++count);
    });
    memory.template store<std::uint64_t>(log + kPvn, mapping.pvn);
    memory.template store<std::uint64_t>(log + kSlot, mapping.slot);
    memory.flush(log, kNumbers + frame.dirty.count() * number_bytes(), memory::FlushKind::kClwb, kHeadFlush);
    fence(memory, kContentFence);

    memory.template store<std::uint64_t>(log + kPid, page + 1);
    memory.flush(log, kLineBytes, memory::FlushKind::kClwb, kValidFlush);
    fence(memory, kValidFence);
    logs_[writer].names = page + 1;
    logged_by_[page] = writer + 1;

    const Address payload = slots.area().payload(mapping.slot);
    frame.dirty.scan(memory, options_.lines(), kPageTest, [&](std::uint32_t line) {
      memory.compute(0, kPageLine);
      copy_line(memory, payload + line * kLineBytes, frame.data + line * kLineBytes, options_.write,
                kPageFlush);
    });
    fence(memory, kPageFence);
  }

  /// The page lies in another slot now, so the log that names it no longer counts, and its writer is free.
  void moved(PageId page) noexcept { logged_by_[page] = 0; }

  /// Applies every valid log to the slot that it names, where that is the page's and has the same version. When
  /// it returns, what it applied is durable. The logs stay valid; doing it again changes nothing.
  ///
  /// It is not enough that the slot's header says the same: a copy on write that was cut short between pid and
  /// pvn gives a free slot a page and the version that it had before, and a log may name just these. Such a log
  /// would pass for the one that the page's next writer has to invalidate.
  template <memory::Memory M>
  void recover(M& memory, const VersionedSlots& slots) {
    const SlotArea& area = slots.area();
    std::ranges::fill(logged_by_, 0);
    for (std::uint32_t writer = 0; writer < options_.writers; ++writer) {
      const Address log = head(writer);
      const auto pid = memory.template load<std::uint64_t>(log + kPid);
      logs_[writer] = {.names = pid};
      if (pid == 0)
        continue;
      const auto slot = memory.template load<std::uint64_t>(log + kSlot);
      if (pid > options_.pages || slot >= area.slots)
        throw ConfigError("page store: a micro log names page " + std::to_string(pid - 1) + " in slot " +
                          std::to_string(slot) + "; recover with the options it was made with");
      const auto place = static_cast<SlotId>(slot);
      const Mapping& mapping = slots.at(pid - 1);
      if (mapping.slot != place || mapping.pvn != memory.template load<std::uint64_t>(log + kPvn)) {
        logs_[writer].names = 0;  // the page has moved on
        continue;
      }
      logged_by_[pid - 1] = writer + 1;
      const auto count = memory.template load<std::uint64_t>(log + kCount);
      for (std::uint64_t index = 0; index < count; ++index) {
        const std::uint32_t line = load_number(memory, log + kNumbers + index * number_bytes());
        if (count > options_.lines() || line >= options_.lines())
          throw ConfigError(
              "page store: a micro log names a line that its page has not; recover with the options "
              "it was made with");
        copy_line(memory, area.payload(place) + line * kLineBytes, log + content() + index * kLineBytes,
                  options_.write, kPageFlush);
      }
      fence(memory, kPageFence);
    }
  }

 private:
  /// What its writer, and whoever takes a page over from it, knows of a log. On a line of its own: on real
  /// memory the writers run in parallel.
  struct alignas(kLineBytes) Log {
    std::uint64_t names = 0;  ///< its pid; 0: invalid or out of date
    bool flushing = false;
  };
  /// Also where an exception ends the flush.
  class Flushing {
   public:
    explicit Flushing(Log& log) noexcept : log_(log) { log_.flushing = true; }
    ~Flushing() { log_.flushing = false; }
    Flushing(const Flushing&) = delete;
    Flushing& operator=(const Flushing&) = delete;

   private:
    Log& log_;
  };

  static constexpr Address kPid = 0;
  static constexpr Address kPvn = 8;
  static constexpr Address kSlot = 16;
  static constexpr Address kCount = 24;
  static constexpr Address kNumbers = 32;
  // Counted in the loops as compiled (GCC 12, -O3, for AVX-512): a turn, and what a dirty line adds to it
  // beside the accesses themselves.
  static constexpr std::uint32_t kLogTest = 8;
  static constexpr std::uint32_t kLogLine = 4;
  static constexpr std::uint32_t kPageTest = 9;
  static constexpr std::uint32_t kPageLine = 2;

  [[nodiscard]] std::uint64_t number_bytes() const noexcept { return options_.lines() <= 256 ? 1 : 2; }
  [[nodiscard]] Address content() const noexcept {
    return (kNumbers + options_.lines() * number_bytes() + 255) / 256 * 256;
  }
  [[nodiscard]] std::uint64_t stride() const noexcept {
    return content() + (options_.page_bytes + 255) / 256 * 256;
  }
  template <memory::Memory M>
  void store_number(M& memory, Address at, std::uint32_t line) const {
    if (number_bytes() == 1)
      memory.template store<std::uint8_t>(at, static_cast<std::uint8_t>(line));
    else
      memory.template store<std::uint16_t>(at, static_cast<std::uint16_t>(line));
  }
  template <memory::Memory M>
  [[nodiscard]] std::uint32_t load_number(M& memory, Address at) const {
    return number_bytes() == 1 ? memory.template load<std::uint8_t>(at)
                               : memory.template load<std::uint16_t>(at);
  }
  [[nodiscard]] Address head(std::uint32_t writer) const noexcept { return base_ + writer * stride(); }

  template <memory::Memory M>
  void invalidate(M& memory, std::uint32_t writer, Site flush) {
    memory.template store<std::uint64_t>(head(writer) + kPid, 0);
    memory.template store<std::uint64_t>(head(writer) + kCount, 0);
    memory.flush(head(writer), kLineBytes, memory::FlushKind::kClwb, flush);
    logs_[writer].names = 0;
  }
  template <memory::Memory M>
  void fence(M& memory, Site site) const {
    if (options_.barriers)
      memory.sfence(site);
  }

  StoreOptions options_;
  Address base_ = 0;
  std::vector<Log> logs_;
  std::vector<std::uint32_t> logged_by_;  ///< 1 + writer whose log named the page last; 0: none
};

}  // namespace pmsim::blocks::page
