#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/page/layout.hpp"
#include "pmsim/blocks/site.hpp"
#include "pmsim/core/crc32c.hpp"

namespace pmsim::blocks::page {

/// The CRC of a line, with its cost: eight crc32 instructions of 8 bytes, each waiting three cycles for the one
/// before (Intel optimization manual: latency 3, throughput 1). A count of the compiled loop, not a
/// calibration.
template <memory::Memory M>
[[nodiscard]] std::uint32_t line_checksum(M& memory, const Line& line, std::uint32_t before) {
  constexpr std::uint32_t kWords = kLineBytes / 8;
  memory.compute(3 * kWords, kWords);
  return crc32c_fast(line, before);
}

/// Pages validated by a checksum: optimistic, not failure atomic by itself, one persistency barrier (paper,
/// sec. 3.2.1, after Lersch et al. 2019).
///
/// A page is overwritten in its home slot, payload and header (pid, lsn, CRC-32C over both) together. A crash
/// may tear it; recovery then finds a wrong checksum and repairs the page from its snapshot and the log. So
/// this block keeps what the others do not need: a snapshot of every page, and a log of all changes since.
///
/// What is durable when. A change is in the log before update() returns. The home slot is complete before
/// flush() returns, and only then may snapshot() overwrite the page's snapshot; so one of the two is always
/// whole. The log holds every change that some snapshot lacks: truncate() goes no further, and a place of the
/// ring is reused only after the new start of the log is durable. Promise: after a crash each page is its last
/// update() that returned, or the one in flight; up to a collision of the CRC (2^-32 for a torn page).
/// recover() clears what a torn change has left behind the end of the log, durably, before the next change may
/// come.
class ChecksumStore {
 public:
  static constexpr Site kPageFlush = 360;
  static constexpr Site kPageFence = 361;
  static constexpr Site kSnapshotFlush = 362;
  static constexpr Site kSnapshotFence = 363;
  static constexpr Site kRecordFlush = 364;
  static constexpr Site kRecordFence = 365;
  static constexpr Site kStartFlush = 366;
  static constexpr Site kStartFence = 367;
  static constexpr Site kClearFlush = 368;
  static constexpr Site kClearFence = 369;
  static constexpr std::array kSites{
      SiteInfo{kPageFence, "checksum: persist the page before its snapshot may change", {}},
      // Not even the log's next fence replaces it: a change can be durable before that, and recovery from it,
      // cut short, leaves the page torn beside a snapshot that the recovery before it had not waited for.
      SiteInfo{kSnapshotFence, "checksum: persist the snapshot before the page may change", {}},
      SiteInfo{kRecordFence, "checksum: persist the change in the log before it is acknowledged", {}},
      SiteInfo{kStartFlush, "checksum: write back the start of the log", {}},
      SiteInfo{kStartFence, "checksum: persist the start of the log before its places are reused", {}},
      SiteInfo{kClearFence, "checksum: persist the end of the log before the next change", {}},
  };
  static constexpr std::array kStoreSites{
      SiteInfo{kPageFlush, "checksum: write back a line of the page", {}},
      SiteInfo{kSnapshotFlush, "checksum: write back a line of the snapshot", {}},
      SiteInfo{kRecordFlush, "checksum: write back a line of the log", {}},
      kSites[0],
      kSites[1],
      kSites[2],
      kSites[3],
      kSites[4],
      kSites[5],
      SiteInfo{kClearFlush, "checksum: write back the cleared end of the log", {}}};

  template <memory::Memory M>
  ChecksumStore(M& memory, const StoreOptions& options, std::uint64_t log_records)
      : options_((options.check(), options)),
        home_(SlotArea::allocate(memory, options.pages, options.page_bytes, "home slots")),
        snapshots_(SlotArea::allocate(memory, options.pages, options.page_bytes, "snapshots")),
        records_(log_records),
        lsn_of_(options.pages, 0),
        covered_(options.pages, 0) {
    if (records_ == 0)
      throw ConfigError("page store: its log needs room for at least one change");
    log_ = memory.allocate(memory::Medium::kPmem, kLogHeadBytes + records_ * kRecordBytes,
                           {.name = "page log", .alignment = 4096});
  }

  [[nodiscard]] const SlotArea& home() const noexcept { return home_; }

  /// True where update() would throw.
  [[nodiscard]] bool log_is_full() const noexcept { return last_lsn_ + 1 == start_ + records_; }

  /// Changes one line of a page in DRAM, write-ahead: durable in the log when it returns. Throws ConfigError
  /// when the log is full: then some page needs a snapshot.
  template <memory::Memory M>
  void update(M& memory, PageId page, std::uint32_t line, const Line& content, Frame& frame) {
    if (log_is_full())
      throw ConfigError("page store: the log of " + std::to_string(records_) +
                        " changes is full; make it larger, or renew snapshots and truncate it");
    const std::uint64_t lsn = ++last_lsn_;
    Record record{.lsn = lsn, .pid = page + 1, .line = line, .checksum = 0, .content = content};
    record.checksum = record_checksum(record);
    std::array<std::byte, sizeof(Record)> bytes;
    std::memcpy(bytes.data(), &record, sizeof record);
    const Address to = place_of(lsn);
    for (std::size_t done = 0; done < bytes.size(); done += kLineBytes) {
      Line part;
      std::memcpy(part.data(), bytes.data() + done, kLineBytes);
      put(memory, to + done, part, kRecordFlush);
    }
    fence(memory, kRecordFence);
    memory.write(frame.data + line * kLineBytes, content);
    frame.mark_dirty(line * kLineBytes, kLineBytes);
    lsn_of_[page] = lsn;
  }

  /// Overwrites the page in its home slot with the frame, which holds all of its lines.
  template <memory::Memory M>
  void flush(M& memory, PageId page, Frame& frame) {
    write_page(memory, home_, page, frame, kPageFlush, kPageFence);
    frame.dirty.clear();
  }

  /// Renews the page's snapshot from its frame, which must have been flushed.
  template <memory::Memory M>
  void snapshot(M& memory, PageId page, const Frame& frame) {
    ensure(frame.dirty.count() == 0, "checksum store: flush a page before its snapshot is renewed");
    write_page(memory, snapshots_, page, frame, kSnapshotFlush, kSnapshotFence);
    covered_[page] = last_lsn_;
  }

  /// Drops the changes that all snapshots have.
  template <memory::Memory M>
  void truncate(M& memory) {
    start_ = *std::ranges::min_element(covered_) + 1;
    memory.template store<std::uint64_t>(log_, start_);
    memory.flush(log_, kLineBytes, memory::FlushKind::kClwb, kStartFlush);
    fence(memory, kStartFence);
  }

  /// Reads each page into its frame: the valid one of home slot and snapshot with the higher lsn, and on top
  /// the log's later changes. A page that was never written is zero. What differs from the home slot is written
  /// there, durably; then a torn snapshot is renewed, unless the log still has all changes: one of the two must
  /// be whole when the other is written again. Idempotent. Throws ConfigError where neither copy of a page is
  /// whole.
  template <memory::Memory M>
  void recover(M& memory, std::span<Frame> frames) {
    const auto start = memory.template load<std::uint64_t>(log_);
    start_ = start == 0 ? 1 : start;
    std::vector<std::uint64_t> have(options_.pages, 0);
    std::vector<bool> repair(options_.pages, false);
    std::vector<bool> renew(options_.pages, false);
    for (PageId page = 0; page < options_.pages; ++page) {
      const Whole whole = load_page(memory, page, frames[page], have[page]);
      repair[page] = !whole.home_is_best;
      renew[page] = !whole.snapshot && start_ > 1;
    }
    last_lsn_ = start_ - 1;
    for (Record record{}; last_lsn_ + 1 < start_ + records_ && read_record(memory, last_lsn_ + 1, record);) {
      last_lsn_ = record.lsn;
      const PageId page = record.pid - 1;
      if (record.lsn > have[page]) {
        memory.write(frames[page].data + record.line * kLineBytes, record.content);
        have[page] = record.lsn;
        repair[page] = true;
      }
    }
    clear_end(memory);
    for (PageId page = 0; page < options_.pages; ++page) {
      lsn_of_[page] = have[page];
      covered_[page] = start_ - 1;
      frames[page].dirty.clear();
      frames[page].resident.set_first(options_.lines());
      if (repair[page])
        flush(memory, page, frames[page]);
      if (renew[page])
        write_page(memory, snapshots_, page, frames[page], kSnapshotFlush, kSnapshotFence);
    }
  }

 private:
  /// One change of one line. All of it is covered by the checksum.
  struct Record {
    std::uint64_t lsn;
    std::uint64_t pid;
    std::uint32_t line;
    std::uint32_t checksum;
    std::array<std::uint64_t, 5> unused{};
    Line content;
  };
  static constexpr std::uint64_t kRecordBytes = sizeof(Record);
  static_assert(kRecordBytes == 2 * kLineBytes);
  static constexpr std::uint64_t kLogHeadBytes = 256;  ///< the lsn that the log starts with; 0: with the first

  [[nodiscard]] Address place_of(std::uint64_t lsn) const noexcept {
    return log_ + kLogHeadBytes + (lsn - 1) % records_ * kRecordBytes;
  }

  /// Behind the last change may lie a torn one. The next change has its number and its place: a crash that
  /// tears that one, too, could leave words of both that make the old one whole, although nobody had it
  /// acknowledged and recovery has already said that it is not there. Without its header, which holds its
  /// checksum, it cannot be.
  template <memory::Memory M>
  void clear_end(M& memory) {
    if (log_is_full())
      return;
    const Address to = place_of(last_lsn_ + 1);
    Line header;
    memory.read(to, header);
    if (header == Line{})
      return;
    put(memory, to, Line{}, kClearFlush);
    fence(memory, kClearFence);
  }

  /// False where the record with this lsn was never completed.
  template <memory::Memory M>
  [[nodiscard]] bool read_record(M& memory, std::uint64_t lsn, Record& record) const {
    std::array<std::byte, sizeof(Record)> bytes;
    memory.read(place_of(lsn), bytes);
    std::memcpy(&record, bytes.data(), sizeof record);
    return record.lsn == lsn && record.pid >= 1 && record.pid <= options_.pages &&
           record.line < options_.lines() && record.checksum == record_checksum(record);
  }

  [[nodiscard]] static std::uint32_t record_checksum(Record record) {
    record.checksum = 0;
    return crc32c_fast(std::as_bytes(std::span(&record, 1)));
  }

  /// The checksum begins with page and lsn, so that a header of one version does not fit the payload of
  /// another.
  [[nodiscard]] static std::uint32_t seed_checksum(PageId page, std::uint64_t lsn) {
    const std::array<std::uint64_t, 2> words{page + 1, lsn};
    return crc32c_fast(std::as_bytes(std::span(words)));
  }

  template <memory::Memory M>
  void write_page(M& memory, const SlotArea& area, PageId page, const Frame& frame, Site flush_site,
                  Site fence_site) {
    const auto slot = static_cast<SlotId>(page);
    std::uint32_t checksum = seed_checksum(page, lsn_of_[page]);
    for (std::uint32_t line = 0; line < options_.lines(); ++line) {
      Line content;
      memory.read(frame.data + line * kLineBytes, content);
      checksum = line_checksum(memory, content, checksum);
      put(memory, area.payload(slot) + line * kLineBytes, content, flush_site);
    }
    const std::array<std::uint64_t, 8> words{page + 1, lsn_of_[page], checksum};
    Line header;
    std::memcpy(header.data(), words.data(), sizeof header);
    put(memory, area.header(slot), header, flush_site);
    fence(memory, fence_site);
  }

  struct Whole {
    bool home_is_best = false;
    bool snapshot = false;
  };

  /// Loads the better of the page's two copies.
  template <memory::Memory M>
  [[nodiscard]] Whole load_page(M& memory, PageId page, Frame& frame, std::uint64_t& lsn) {
    const SlotArea* best = nullptr;
    Whole whole;
    for (const SlotArea* area : {&home_, &snapshots_}) {
      std::uint64_t found = 0;
      if (!valid(memory, *area, page, found))
        continue;
      whole.snapshot = area == &snapshots_;
      if (best == nullptr || found > lsn) {
        best = area;
        lsn = found;
      }
    }
    if (best == nullptr && start_ > 1)
      throw ConfigError("page store: page " + std::to_string(page) +
                        ": neither its slot nor its snapshot is whole");
    for (std::uint32_t line = 0; line < options_.lines(); ++line) {
      Line content{};
      if (best != nullptr)
        memory.read(best->payload(static_cast<SlotId>(page)) + line * kLineBytes, content);
      memory.write(frame.data + line * kLineBytes, content);
    }
    whole.home_is_best = best == &home_;
    return whole;
  }

  template <memory::Memory M>
  [[nodiscard]] bool valid(M& memory, const SlotArea& area, PageId page, std::uint64_t& lsn) const {
    const auto slot = static_cast<SlotId>(page);
    if (memory.template load<std::uint64_t>(area.pid(slot)) != page + 1)
      return false;
    lsn = memory.template load<std::uint64_t>(area.pvn(slot));
    std::uint32_t checksum = seed_checksum(page, lsn);
    for (std::uint32_t line = 0; line < options_.lines(); ++line) {
      Line content;
      memory.read(area.payload(slot) + line * kLineBytes, content);
      checksum = line_checksum(memory, content, checksum);
    }
    return memory.template load<std::uint64_t>(area.checksum(slot)) == checksum;
  }

  template <memory::Memory M>
  void put(M& memory, Address to, const Line& line, Site flush_site) const {
    if (options_.write == Write::kStream) {
      memory.stream(to, line);
    } else {
      memory.write(to, line);
      memory.flush(to, kLineBytes, memory::FlushKind::kClwb, flush_site);
    }
  }
  template <memory::Memory M>
  void fence(M& memory, Site site) const {
    if (options_.barriers)
      memory.sfence(site);
  }

  StoreOptions options_;
  SlotArea home_;
  SlotArea snapshots_;
  Address log_ = 0;
  std::uint64_t records_;
  std::uint64_t last_lsn_ = 0;
  std::uint64_t start_ = 1;
  std::vector<std::uint64_t> lsn_of_;   ///< of the last change in each page's frame
  std::vector<std::uint64_t> covered_;  ///< each page's snapshot has its changes up to this lsn
};

}  // namespace pmsim::blocks::page
