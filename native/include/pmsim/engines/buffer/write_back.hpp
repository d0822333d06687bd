#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "pmsim/blocks/page/layout.hpp"
#include "pmsim/core/crc32c.hpp"
#include "pmsim/engines/buffer/sites.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::buffer {

using blocks::page::Line;
using blocks::page::LineMask;
using blocks::page::Write;
using memory::FlushKind;
using memory::kLineBytes;
using memory::kSectorBytes;

/// PageHeader::reserved of a page on PMem: that the frame holds a whole page, and flags: whether the SSD lacks
/// it. Memory that was never written says: nothing here.
inline constexpr std::uint64_t kPageMark = 0x5047'4544'4154'4100;  // "PGEDATA", and a byte of flags
inline constexpr std::uint64_t kNewerThanSsd = 1;
inline constexpr std::uint64_t kLoaded = 2;  ///< in bulk, and not written since
[[nodiscard]] constexpr bool is_page_mark(std::uint64_t reserved) noexcept {
  return (reserved & ~std::uint64_t{0xff}) == kPageMark;
}
inline constexpr Address kLsnAt = offsetof(PageHeader, lsn);
inline constexpr Address kIdAt = offsetof(PageHeader, page_id);
inline constexpr Address kMarkAt = offsetof(PageHeader, reserved);
static_assert(kLsnAt == 0 && kIdAt == 8 && kMarkAt == 16);

/// EngineOptions::page_write. Throws ConfigError.
[[nodiscard]] inline Write page_write_named(const std::string& name) {
  if (name == "ntstore")
    return Write::kStream;
  if (name == "store+clwb")
    return Write::kStoreFlush;
  throw ConfigError("page_write = '" + name + "': unknown; known: ntstore, store+clwb");
}

/// How pages reach PMem. Lines are written by non-temporal stores (the dissertation's chapter 3 finds them
/// faster) or by ordinary ones and clwb (which read each line first; HyMem, section 5.1), a page's first line
/// always by the latter: its last word to change is a promise about all others.
///
/// What is durable when
///  - in_place(): lines other than the first are durable before the first line changes, and that line's LSN is
///    its last word to change. So as long as the LSN on PMem is old, lines may be torn, but only in bytes whose
///    overwriting the log has, behind that LSN; once it is new, the page is that version. Durable on return.
///    Right for pages that were only overwritten, and for pages formatted since the last write-back (redo
///    begins with the format).
///  - replace(): for other changes. The lines go to the micro log, then in place; its four barriers are those
///    of blocks/page/micro_log.hpp. The page is always of one version, after recover(). Durable on return.
///  - install(): a page in a frame that holds none: all lines are durable before the mark that validates them,
///    the last word of the first line to change. Durable on return.
///  - invalidate(): the frame holds no page any more. Durable on return.
///
/// The micro log stays valid until its next use. recover() applies it where the frame still holds the page, and
/// no later version: a later version has a higher LSN, unless its write-back was torn, and then going back to
/// the logged version is right, because the log redoes the rest.
class PmemWriter {
 public:
  PmemWriter() = default;
  /// `micro_log`: micro_log_bytes(page_bytes) of PMem. `homes`: frames are homes, which hold one page each for
  /// ever.
  PmemWriter(Address micro_log, std::uint32_t page_bytes, bool homes, Write write)
      : log_(micro_log), page_bytes_(page_bytes), homes_(homes), write_(write) {}
  [[nodiscard]] static std::uint64_t micro_log_bytes(std::uint32_t page_bytes) noexcept {
    return kContent + page_bytes;
  }

  /// `source(line)` is the address in DRAM of each line in `lines`, which has the first one.
  template <memory::Memory M, typename Source>
  void in_place(M& memory, Address frame, const LineMask& lines, std::uint64_t mark, Source&& source) const {
    bool others = false;
    lines.for_each([&](std::uint32_t line) {
      if (line == 0)
        return;
      copy_line(memory, frame + line * kLineBytes, source(line), write_, site::kInPlaceLineFlush);
      others = true;
    });
    if (others)
      memory.sfence(site::kInPlaceFence);
    ensure(lines.test(0), "a page is written back without its LSN");
    Line first = first_line(memory, source(0), mark);
    memory.write(frame + kIdAt, std::span(first).subspan(kIdAt));
    memory.order(site::kInPlaceOrder);
    memory.template store<std::uint64_t>(frame + kLsnAt, word(first, kLsnAt));
    memory.flush(frame, kLineBytes, FlushKind::kClwb, site::kInPlaceFlush);
    memory.sfence(site::kInPlaceEnd);
  }

  template <memory::Memory M, typename Source>
  void replace(M& memory, Address frame, const LineMask& lines, std::uint64_t mark, Source&& source) const {
    ensure(lines.test(0), "a page is written back without its LSN");
    memory.template store<std::uint64_t>(log_ + kName, 0);
    memory.flush(log_, kLineBytes, FlushKind::kClwb, site::kMicroInvalidFlush);
    memory.sfence(site::kMicroInvalidFence);

    Line first = first_line(memory, source(0), mark);
    memory.template store<std::uint64_t>(log_ + kLsn, word(first, kLsnAt));
    memory.template store<std::uint64_t>(log_ + kId, word(first, kIdAt));
    for (std::uint32_t index = 0; index < mask_words(); ++index)
      memory.template store<std::uint64_t>(log_ + kMask + index * 8, lines.word(index));
    Address to = log_ + kContent;
    std::uint64_t logged = 0;
    lines.for_each([&](std::uint32_t line) {
      if (line == 0)
        write_line(memory, to, first, write_, site::kMicroContentFlush);
      else
        copy_line(memory, to, source(line), write_, site::kMicroContentFlush);
      to += kLineBytes;
      ++logged;
    });
    memory.flush(log_, kMask + mask_words() * 8, FlushKind::kClwb, site::kMicroHeadFlush);
    memory.sfence(site::kMicroContentFence);

    memory.template store<std::uint64_t>(log_ + kName, frame);
    memory.flush(log_, kLineBytes, FlushKind::kClwb, site::kMicroValidFlush);
    memory.sfence(site::kMicroValidFence);

    lines.for_each([&](std::uint32_t line) {
      if (line == 0)
        write_line(memory, frame, first, write_, site::kMicroPageFlush);
      else
        copy_line(memory, frame + line * kLineBytes, source(line), write_, site::kMicroPageFlush);
    });
    memory.sfence(site::kMicroPageFence);
  }

  /// `data`: the whole page, in DRAM.
  template <memory::Memory M>
  void install(M& memory, Address frame, Address data, std::uint64_t mark) const {
    for (std::uint32_t byte = kLineBytes; byte < page_bytes_; byte += kLineBytes)
      copy_line(memory, frame + byte, data + byte, write_, site::kInstallLineFlush);
    memory.sfence(site::kInstallFence);
    Line first = first_line(memory, data, mark);
    memory.write(frame, std::span(first).first(kMarkAt));
    memory.write(frame + kMarkAt + 8, std::span(first).subspan(kMarkAt + 8));
    memory.order(site::kInstallOrder);
    memory.template store<std::uint64_t>(frame + kMarkAt, mark);
    memory.flush(frame, kLineBytes, FlushKind::kClwb, site::kInstallFlush);
    memory.sfence(site::kInstallEnd);
  }

  template <memory::Memory M>
  void invalidate(M& memory, Address frame) const {
    memory.template store<std::uint64_t>(frame + kMarkAt, 0);
    memory.flush(frame, kLineBytes, FlushKind::kClwb, site::kInvalidFlush);
    memory.sfence(site::kInvalidFence);
  }

  /// Applies the micro log where it must be. Idempotent: the log stays valid.
  template <memory::Memory M>
  void recover(M& memory) const {
    const auto frame = memory.template load<std::uint64_t>(log_ + kName);
    if (frame == 0)
      return;
    const auto lsn = memory.template load<std::uint64_t>(log_ + kLsn);
    const auto id = memory.template load<std::uint64_t>(log_ + kId);
    if (memory.template load<std::uint64_t>(frame + kLsnAt) > lsn)
      return;
    if (!homes_ && (!is_page_mark(memory.template load<std::uint64_t>(frame + kMarkAt)) ||
                    memory.template load<std::uint64_t>(frame + kIdAt) != id))
      return;
    LineMask lines;
    for (std::uint32_t index = 0; index < mask_words(); ++index)
      lines.set_word(index, memory.template load<std::uint64_t>(log_ + kMask + index * 8));
    Address from = log_ + kContent;
    lines.for_each([&](std::uint32_t line) {
      copy_line(memory, frame + line * kLineBytes, from, write_, site::kMicroPageFlush);
      from += kLineBytes;
    });
    memory.sfence(site::kMicroPageFence);
  }

 private:
  static constexpr Address kName = 0;  ///< the frame's address; 0: the log is invalid
  static constexpr Address kLsn = 8;
  static constexpr Address kId = 16;
  static constexpr Address kMask = 24;
  static constexpr Address kContent = 256;

  [[nodiscard]] std::uint32_t mask_words() const noexcept { return (page_bytes_ / kLineBytes + 63) / 64; }
  [[nodiscard]] static std::uint64_t word(const Line& line, std::size_t at) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, line.data() + at, sizeof value);
    return value;
  }
  /// The page's first line as PMem will hold it.
  template <memory::Memory M>
  [[nodiscard]] static Line first_line(M& memory, Address from, std::uint64_t mark) {
    Line line;
    memory.read(from, line);
    std::memcpy(line.data() + kMarkAt, &mark, sizeof mark);
    return line;
  }

  Address log_ = 0;
  std::uint32_t page_bytes_ = 0;
  bool homes_ = false;
  Write write_ = Write::kStream;
};

/// How pages reach their home on the SSD, which writes 512-byte sectors atomically but not pages: the image
/// goes to a slot of the journal first (a double write). Slots are used in turn.
///
/// What is durable when: write() returns when the journal has the image, durably; the home follows at its own
/// pace. A slot is used again only after the homes of all slots have been flushed. So after recover() the home
/// has the last image that write() has taken. A torn slot is known by its checksum; its home was not touched.
class SsdWriter {
 public:
  SsdWriter() = default;
  /// `journal`: journal_bytes(slots, page_bytes) of PMem, or of the SSD. `homes` + id * page_bytes is a page's
  /// home. `sector`: 512 bytes of DRAM; `page`: page_bytes of DRAM, both scratch.
  SsdWriter(Address journal, std::uint32_t slots, Address homes, std::uint32_t page_bytes, Address sector,
            Address page)
      : journal_(journal),
        slots_(slots),
        homes_(homes),
        page_bytes_(page_bytes),
        sector_(sector),
        page_(page),
        on_ssd_(memory::medium_of(journal) == memory::Medium::kBlock) {}
  [[nodiscard]] static std::uint64_t journal_bytes(std::uint32_t slots, std::uint32_t page_bytes) noexcept {
    return slots * (kSectorBytes + std::uint64_t{page_bytes});
  }
  [[nodiscard]] Address home(PageId id) const noexcept { return homes_ + id * page_bytes_; }

  /// `from`: the page, in DRAM or on PMem.
  template <memory::Memory M>
  void write(M& memory, PageId id, Address from) {
    if (unflushed_ == slots_) {
      memory.block_flush(site::kHomeFlush);
      unflushed_ = 0;
    }
    const Address to = journal_ + sequence_ % slots_ * (kSectorBytes + page_bytes_);
    std::uint32_t checksum = 0;
    for (std::uint32_t byte = 0; byte < page_bytes_; byte += kLineBytes) {
      Line line;
      memory.read(from + byte, line);
      checksum = crc32c_fast(line, checksum);
      if (!on_ssd_)
        memory.stream(to + kSectorBytes + byte, line);
    }
    // Three interleaved streams of crc32 hide its latency: one 8-byte word a cycle.
    memory.compute(page_bytes_ / 8, page_bytes_ / 8);
    ++sequence_;
    const std::array<std::uint64_t, 8> words{sequence_, id, head_checksum(sequence_, id, checksum), checksum};
    Line head;
    std::memcpy(head.data(), words.data(), sizeof head);
    if (on_ssd_) {
      memory.write(sector_, head);
      memory.block_write(to, sector_, kSectorBytes);
      memory.block_write(to + kSectorBytes, from, page_bytes_);
      memory.block_flush(site::kJournalFlush);
      unflushed_ = 0;
    } else {
      memory.stream(to, head);
      memory.sfence(site::kJournalFence);
    }
    memory.block_write(home(id), from, page_bytes_);
    ++unflushed_;
  }
  template <memory::Memory M>
  void read(M& memory, PageId id, Address into) const {
    memory.block_read(home(id), into, page_bytes_);
  }

  /// Writes every whole image of the journal home, oldest first. Idempotent.
  template <memory::Memory M>
  void recover(M& memory) {
    struct Image {
      std::uint64_t sequence;
      PageId id;
      std::uint32_t slot;
    };
    std::vector<Image> images(slots_);
    std::size_t found = 0;
    for (std::uint32_t slot = 0; slot < slots_; ++slot) {
      std::array<std::uint64_t, 4> words{};
      read_slot(memory, slot, words);
      if (words[0] == 0 || words[2] != head_checksum(words[0], words[1], words[3]))
        continue;
      std::uint32_t checksum = 0;
      for (std::uint32_t byte = 0; byte < page_bytes_; byte += kLineBytes) {
        Line line;
        memory.read(page_ + byte, line);
        checksum = crc32c_fast(line, checksum);
      }
      if (checksum != words[3])
        continue;  // torn: its home was not touched, and its number is given again, to the same slot
      sequence_ = std::max(sequence_, words[0]);
      images[found++] = {words[0], words[1], slot};
    }
    std::sort(images.begin(), images.begin() + static_cast<std::ptrdiff_t>(found),
              [](const Image& left, const Image& right) { return left.sequence < right.sequence; });
    for (std::size_t index = 0; index < found; ++index) {
      std::array<std::uint64_t, 4> words{};
      read_slot(memory, images[index].slot, words);
      memory.block_write(home(images[index].id), page_, page_bytes_);
    }
    if (found != 0)
      memory.block_flush(site::kReplayFlush);
    unflushed_ = 0;
  }

 private:
  [[nodiscard]] static std::uint64_t head_checksum(std::uint64_t sequence, PageId id, std::uint64_t content) {
    const std::array<std::uint64_t, 3> words{sequence, id, content};
    return crc32c_fast(std::as_bytes(std::span(words)));
  }
  /// Head into `words`, content into the scratch page.
  template <memory::Memory M>
  void read_slot(M& memory, std::uint32_t slot, std::array<std::uint64_t, 4>& words) const {
    const Address from = journal_ + slot * (kSectorBytes + page_bytes_);
    if (on_ssd_) {
      memory.block_read(from, sector_, kSectorBytes);
      memory.read(sector_, std::as_writable_bytes(std::span(words)));
      memory.block_read(from + kSectorBytes, page_, page_bytes_);
      return;
    }
    memory.read(from, std::as_writable_bytes(std::span(words)));
    for (std::uint32_t byte = 0; byte < page_bytes_; byte += kLineBytes) {
      Line line;
      memory.read(from + kSectorBytes + byte, line);
      memory.write(page_ + byte, line);
    }
  }

  Address journal_ = 0;
  std::uint32_t slots_ = 1;
  Address homes_ = 0;
  std::uint32_t page_bytes_ = 0;
  Address sector_ = 0;
  Address page_ = 0;
  bool on_ssd_ = false;
  std::uint64_t sequence_ = 0;  ///< of the latest image
  std::uint32_t unflushed_ = 0;
};

}  // namespace pmsim::engines::buffer
