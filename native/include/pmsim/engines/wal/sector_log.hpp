#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/blocks/site.hpp"
#include "pmsim/core/crc32c.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines::wal {

using blocks::SiteInfo;
using blocks::log::Lsn;
using blocks::log::round_down;
using blocks::log::round_up;
using memory::Address;
using memory::kSectorBytes;
using memory::Memory;
using memory::Site;

/// A log on a block device, for engines without persistent memory.
///
///     sector 0: {magic, head, capacity, incarnation, least incarnation behind the head}
///     circular space of sectors: ... head: entry entry ... tail | free ...
///     entry = {lsn, length, crc32c of all this and payload, incarnation} payload, from a sector on
///
/// LSNs are positions in the endless stream of bytes, as in blocks/log. The caller builds an entry in DRAM, in
/// a staging buffer whose first kHeadBytes are left for the header: a commit is one or two block writes and one
/// flush of the device.
///
/// Group commit: gather() gives an entry its place and hands it over, commit() waits until it is durable, with
/// what others have handed over meanwhile. Who gathers must be alone; who commits need not.
///
/// What is durable when. append(): the entry, when it returns; commit(): that and all before it. truncate_to():
/// the new head, when it returns, so that no later append overwrites an entry that a crash could bring back. A
/// sector is written whole or not at all, so the header sector needs no second copy. A torn entry is one whose
/// checksum fails (2^-32 of them are missed, as in every log of this kind); an entry of an earlier pass has
/// another LSN. Of a group, an entry can be durable whose predecessor is not: nobody was told, recovery ends
/// before it, and its bytes stay. When the next append takes the place of the predecessor, it would be there
/// again. So every recovery begins another incarnation, durable before anything is appended, and what follows
/// an entry of a later incarnation is none.
class SectorLog {
 public:
  static constexpr Site kCreateFlush = 1110, kEntryFlush = 1111, kHeadFlush = 1112, kIncarnationFlush = 1116;
  static constexpr std::array<SiteInfo, 4> kSites{{
      {kCreateFlush, "log on SSD: flush the header of the new log"},
      {kEntryFlush, "log on SSD: flush the entry"},
      {kHeadFlush, "log on SSD: flush the new head before the space behind it is reused"},
      {kIncarnationFlush, "log on SSD: flush the new incarnation before an entry has it"},
  }};
  static constexpr std::uint64_t kHeadBytes = 32;
  /// Checksumming, per 8 bytes: crc32 with a memory operand, addition, compare-and-branch; and per line nothing
  /// more.
  static constexpr std::uint32_t kInstructionsPerWord = 3;

  /// What a staging buffer holds of the log, from its begin on. Whoever reads entry by entry keeps it from one
  /// to the next, and has the device read as much as the buffer takes; without one, an entry is read alone.
  struct Window {
    Lsn from = 0;
    Lsn end = 0;
  };

  /// `staging` has room for the largest entry and one sector more.
  template <Memory M>
  [[nodiscard]] static SectorLog create(M& memory, Address device, std::uint64_t bytes, Address staging,
                                        std::uint64_t staging_bytes) {
    SectorLog log(device, bytes, staging, staging_bytes);
    log.head_ = log.tail_ = log.began_ = log.capacity_;  // no LSN is 0
    log.incarnation_ = log.least_ = 1;
    log.write_head(memory, kCreateFlush);
    return log;
  }
  /// The log that create() has made, with every entry that is durable; nothing where that had not finished. A
  /// new incarnation, durable on return.
  template <Memory M>
  [[nodiscard]] static std::optional<SectorLog> recover(M& memory, Address device, std::uint64_t bytes,
                                                        Address staging, std::uint64_t staging_bytes) {
    SectorLog log(device, bytes, staging, staging_bytes);
    memory.block_read(device, log.head_sector(), kSectorBytes);
    if (memory.template load<std::uint64_t>(log.head_sector()) != kMagic)
      return std::nullopt;
    log.head_ = memory.template load<std::uint64_t>(log.head_sector() + 8);
    if (memory.template load<std::uint64_t>(log.head_sector() + 16) != log.capacity_ ||
        log.head_ < log.capacity_)
      throw ConfigError("log: the log on the SSD was made with another log_bytes");
    log.incarnation_ = memory.template load<std::uint64_t>(log.head_sector() + 24);
    log.least_ = memory.template load<std::uint64_t>(log.head_sector() + 32);
    log.tail_ = log.head_;
    std::uint64_t least = log.least_;
    Window window;
    while (const std::optional<std::uint64_t> length = log.fetch(memory, log.tail_, least, staging, &window)) {
      least = memory.template load<std::uint64_t>(staging + (log.tail_ - window.from) + 24);
      log.tail_ += log.footprint(*length);
    }
    ++log.incarnation_;
    log.began_ = log.tail_;
    log.set_head(log.head_);
    log.write_head(memory, kIncarnationFlush);
    return log;
  }

  [[nodiscard]] std::uint64_t footprint(std::uint64_t payload) const noexcept {
    return round_up(kHeadBytes + payload, kSectorBytes);
  }
  [[nodiscard]] std::uint64_t free() const noexcept { return capacity_ - (tail_ - head_); }
  [[nodiscard]] bool fits(std::uint64_t payload) const noexcept { return footprint(payload) <= free(); }
  [[nodiscard]] Lsn head() const noexcept { return head_; }
  [[nodiscard]] Lsn tail() const noexcept { return tail_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }

  /// Appends the `payload` bytes that lie in the staging buffer behind the room for the header.
  template <Memory M>
  void append(M& memory, std::uint64_t payload) {
    place(memory, payload, staging_,
          [&](Address device, Address from, std::uint64_t bytes) { memory.block_write(device, from, bytes); });
    memory.block_flush(kEntryFlush);
  }
  /// The same from any staging buffer, to be written with what others append: a number for commit(). The buffer
  /// must stay as it is until then.
  template <Memory M>
  [[nodiscard]] std::uint64_t gather(M& memory, std::uint64_t payload, Address staging) {
    std::uint64_t gathered = 0;
    place(memory, payload, staging, [&](Address device, Address from, std::uint64_t bytes) {
      gathered = memory.block_gather(device, from, bytes);
    });
    return gathered;
  }
  template <Memory M>
  static void commit(M& memory, std::uint64_t gathered) {
    memory.block_commit(gathered, kEntryFlush);
  }

  /// `end` is the LSN of an entry or the tail.
  template <Memory M>
  void truncate_to(M& memory, Lsn end) {
    if (end == head_)
      return;
    set_head(end);
    write_head(memory, kHeadFlush);
  }

  /// The payload of the entry at `at`, and the LSN behind it; nothing at the tail. Overwrites a staging buffer,
  /// which must not be one that waits for commit().
  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read(M& memory, Lsn at, std::vector<std::byte>& payload, Address staging,
                                        Window* ahead = nullptr) const {
    if (at >= tail_)
      return std::nullopt;
    const std::optional<std::uint64_t> length = fetch(memory, at, least_, staging, ahead);
    ensure(length.has_value(), "an entry of the log on SSD is damaged");
    payload.resize(*length);
    memory.read(staging + (ahead != nullptr ? at - ahead->from : 0) + kHeadBytes, payload);
    return at + footprint(*length);
  }

 private:
  static constexpr std::uint64_t kMagic = 0x676f'6c5f'6473'7370;  // "pssd_log"

  SectorLog(Address device, std::uint64_t bytes, Address staging, std::uint64_t staging_bytes)
      : device_(device), capacity_(round_down(bytes, kSectorBytes)), staging_(staging) {
    if (capacity_ < 4 * kSectorBytes)
      throw ConfigError("log_bytes = " + std::to_string(bytes) + ": a log on SSD needs at least 2 KiB");
    capacity_ -= kSectorBytes;
    staging_bytes_ = round_down(staging_bytes, kSectorBytes) - kSectorBytes;
  }

  [[nodiscard]] Address sector(Lsn lsn) const noexcept { return device_ + kSectorBytes + lsn % capacity_; }
  [[nodiscard]] Address head_sector() const noexcept { return staging_ + staging_bytes_; }

  /// Where the head is the tail, bytes behind it may be of any incarnation before this one.
  void set_head(Lsn head) noexcept {
    head_ = head;
    least_ = head >= began_ ? incarnation_ : least_;
  }
  template <Memory M>
  void write_head(M& memory, Site flush) const {
    memory.template store<std::uint64_t>(head_sector(), kMagic);
    memory.template store<std::uint64_t>(head_sector() + 8, head_);
    memory.template store<std::uint64_t>(head_sector() + 16, capacity_);
    memory.template store<std::uint64_t>(head_sector() + 24, incarnation_);
    memory.template store<std::uint64_t>(head_sector() + 32, least_);
    memory.block_write(device_, head_sector(), kSectorBytes);
    memory.block_flush(flush);
  }

  /// Makes an entry of the payload in `staging`, at the tail; write(device, from, bytes) for each of its parts.
  template <Memory M, typename Write>
  void place(M& memory, std::uint64_t payload, Address staging, Write&& write) {
    if (!fits(payload))
      throw blocks::log::LogFull(footprint(payload), free(), capacity_);
    const Lsn lsn = tail_;
    for (std::uint64_t done = 0; done < payload; done += memory::kLineBytes)
      memory.compute(0, kInstructionsPerWord * 8);
    const std::uint32_t check = checksum(memory, lsn, payload, incarnation_, staging);
    memory.template store<std::uint64_t>(staging, lsn);
    memory.template store<std::uint64_t>(staging + 8, payload);
    memory.template store<std::uint64_t>(staging + 16, check);
    memory.template store<std::uint64_t>(staging + 24, incarnation_);
    const std::uint64_t bytes = footprint(payload);
    const std::uint64_t first = std::min(bytes, capacity_ - lsn % capacity_);
    write(sector(lsn), staging, first);
    if (first < bytes)
      write(sector(lsn + first), staging + first, bytes - first);
    tail_ = lsn + bytes;
  }

  /// Of the entry at `entry` in a staging buffer.
  template <Memory M>
  [[nodiscard]] static std::uint32_t checksum(M& memory, Lsn lsn, std::uint64_t payload,
                                              std::uint64_t incarnation, Address entry) {
    const std::array<std::uint64_t, 3> first{lsn, payload, incarnation};
    std::uint32_t crc = crc32c_fast(std::as_bytes(std::span(first)));
    std::array<std::byte, 4096> piece;
    for (std::uint64_t done = 0; done < payload; done += piece.size()) {
      const auto part = std::span(piece).first(std::min<std::uint64_t>(piece.size(), payload - done));
      memory.read(entry + kHeadBytes + done, part);
      crc = crc32c_fast(part, crc);
    }
    return crc;
  }

  /// Reads `bytes` of the log from `lsn` on.
  template <Memory M>
  [[nodiscard]] Window load(M& memory, Lsn lsn, std::uint64_t bytes, Address staging) const {
    const std::uint64_t first = std::min(bytes, capacity_ - lsn % capacity_);
    memory.block_read(sector(lsn), staging, first);
    if (first < bytes)
      memory.block_read(sector(lsn + first), staging + first, bytes - first);
    return {lsn, lsn + bytes};
  }

  /// Has the entry at `lsn` in a staging buffer; its length, where it is whole, and of an incarnation from
  /// `least` on.
  template <Memory M>
  [[nodiscard]] std::optional<std::uint64_t> fetch(M& memory, Lsn lsn, std::uint64_t least, Address staging,
                                                   Window* ahead) const {
    const std::uint64_t free = capacity_ - (lsn - head_);
    if (free < kSectorBytes)
      return std::nullopt;
    const std::uint64_t most = lsn < tail_ ? tail_ - lsn : free;  // recover() has yet to find the tail
    Window alone;
    Window& window = ahead != nullptr ? *ahead : alone;
    const auto have = [&](std::uint64_t bytes) {
      if (lsn < window.from || lsn + bytes > window.end)
        window = load(memory, lsn, ahead != nullptr ? std::min(staging_bytes_, most) : bytes, staging);
      return staging + (lsn - window.from);
    };
    Address entry = have(kSectorBytes);
    const auto length = memory.template load<std::uint64_t>(entry + 8);
    if (memory.template load<std::uint64_t>(entry) != lsn || length > staging_bytes_ - kHeadBytes ||
        footprint(length) > free)
      return std::nullopt;
    const auto check = memory.template load<std::uint64_t>(entry + 16);
    const auto incarnation = memory.template load<std::uint64_t>(entry + 24);
    if (incarnation < least)
      return std::nullopt;
    entry = have(footprint(length));
    return check == checksum(memory, lsn, length, incarnation, entry) ? std::optional(length) : std::nullopt;
  }

  Address device_;
  std::uint64_t capacity_;
  Address staging_;
  std::uint64_t staging_bytes_ = 0;  ///< for entries; a sector for the header follows
  Lsn head_ = 0;
  Lsn tail_ = 0;
  std::uint64_t incarnation_ = 0;  ///< of what is appended
  Lsn began_ = 0;                  ///< it did, with the entry there
  std::uint64_t least_ = 0;        ///< of the entry at the head
};

}  // namespace pmsim::engines::wal
