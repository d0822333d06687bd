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
///     sector 0: {magic, head, capacity} | circular space of sectors: ... head: entry entry ... tail | free ...
///     entry = {lsn, length, crc32c of lsn, length and payload, 0} payload, from a sector on
///
/// LSNs are positions in the endless stream of bytes, as in blocks/log. The caller builds an entry in DRAM, in
/// a staging buffer whose first kHeadBytes are left for the header: a commit is one or two block writes and one
/// flush of the device.
///
/// What is durable when. append(): the entry, when it returns. truncate_to(): the new head, when it returns, so
/// that no later append overwrites an entry that a crash could bring back. A sector is written whole or not at
/// all, so the header sector needs no second copy. A torn entry is one whose checksum fails (2^-32 of them are
/// missed, as in every log of this kind); an entry of an earlier pass has another LSN.
class SectorLog {
 public:
  static constexpr Site kCreateFlush = 1110, kEntryFlush = 1111, kHeadFlush = 1112;
  static constexpr std::array<SiteInfo, 3> kSites{{
      {kCreateFlush, "log on SSD: flush the header of the new log"},
      {kEntryFlush, "log on SSD: flush the entry"},
      {kHeadFlush, "log on SSD: flush the new head before the space behind it is reused"},
  }};
  static constexpr std::uint64_t kHeadBytes = 32;
  /// Checksumming, per 8 bytes: crc32 with a memory operand, addition, compare-and-branch; and per line nothing
  /// more.
  static constexpr std::uint32_t kInstructionsPerWord = 3;

  /// `staging` has room for the largest entry and one sector more.
  template <Memory M>
  [[nodiscard]] static SectorLog create(M& memory, Address device, std::uint64_t bytes, Address staging,
                                        std::uint64_t staging_bytes) {
    SectorLog log(device, bytes, staging, staging_bytes);
    log.head_ = log.tail_ = log.capacity_;  // no LSN is 0
    log.write_head(memory, kCreateFlush);
    return log;
  }
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
    log.tail_ = log.head_;
    while (const std::optional<std::uint64_t> length = log.fetch(memory, log.tail_))
      log.tail_ += log.footprint(*length);
    return log;
  }

  [[nodiscard]] std::uint64_t footprint(std::uint64_t payload) const noexcept {
    return round_up(kHeadBytes + payload, kSectorBytes);
  }
  [[nodiscard]] bool fits(std::uint64_t payload) const noexcept {
    return footprint(payload) <= capacity_ - (tail_ - head_);
  }
  [[nodiscard]] Lsn head() const noexcept { return head_; }
  [[nodiscard]] Lsn tail() const noexcept { return tail_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }

  /// Appends the `payload` bytes that lie in the staging buffer behind the room for the header.
  template <Memory M>
  Lsn append(M& memory, std::uint64_t payload) {
    if (!fits(payload))
      throw blocks::log::LogFull(footprint(payload), capacity_ - (tail_ - head_), capacity_);
    const Lsn lsn = tail_;
    for (std::uint64_t done = 0; done < payload; done += memory::kLineBytes)
      memory.compute(0, kInstructionsPerWord * 8);
    const std::uint32_t check = checksum(memory, lsn, payload);
    memory.template store<std::uint64_t>(staging_, lsn);
    memory.template store<std::uint64_t>(staging_ + 8, payload);
    memory.template store<std::uint64_t>(staging_ + 16, check);
    memory.template store<std::uint64_t>(staging_ + 24, 0);
    const std::uint64_t bytes = footprint(payload);
    const std::uint64_t first = std::min(bytes, capacity_ - lsn % capacity_);
    memory.block_write(place(lsn), staging_, first);
    if (first < bytes)
      memory.block_write(place(lsn + first), staging_ + first, bytes - first);
    memory.block_flush(kEntryFlush);
    tail_ = lsn + bytes;
    return lsn;
  }

  /// `end` is the LSN of an entry or the tail.
  template <Memory M>
  void truncate_to(M& memory, Lsn end) {
    if (end == head_)
      return;
    head_ = end;
    write_head(memory, kHeadFlush);
  }

  /// The payload of the entry at `at`, and the LSN behind it; nothing at the tail. Uses the staging buffer.
  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read(M& memory, Lsn at, std::vector<std::byte>& payload) const {
    if (at >= tail_)
      return std::nullopt;
    const std::optional<std::uint64_t> length = fetch(memory, at);
    ensure(length.has_value(), "an entry of the log on SSD is damaged");
    payload.resize(*length);
    memory.read(staging_ + kHeadBytes, payload);
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

  [[nodiscard]] Address place(Lsn lsn) const noexcept { return device_ + kSectorBytes + lsn % capacity_; }
  [[nodiscard]] Address head_sector() const noexcept { return staging_ + staging_bytes_; }

  template <Memory M>
  void write_head(M& memory, Site flush) const {
    memory.template store<std::uint64_t>(head_sector(), kMagic);
    memory.template store<std::uint64_t>(head_sector() + 8, head_);
    memory.template store<std::uint64_t>(head_sector() + 16, capacity_);
    memory.block_write(device_, head_sector(), kSectorBytes);
    memory.block_flush(flush);
  }

  /// Of what the staging buffer holds.
  template <Memory M>
  [[nodiscard]] std::uint32_t checksum(M& memory, Lsn lsn, std::uint64_t payload) const {
    const std::array<std::uint64_t, 2> first{lsn, payload};
    std::uint32_t crc = crc32c_fast(std::as_bytes(std::span(first)));
    std::array<std::byte, 4096> piece;
    for (std::uint64_t done = 0; done < payload; done += piece.size()) {
      const auto part = std::span(piece).first(std::min<std::uint64_t>(piece.size(), payload - done));
      memory.read(staging_ + kHeadBytes + done, part);
      crc = crc32c_fast(part, crc);
    }
    return crc;
  }

  /// Reads the entry at `lsn` into the staging buffer; its length, where it is whole.
  template <Memory M>
  [[nodiscard]] std::optional<std::uint64_t> fetch(M& memory, Lsn lsn) const {
    const std::uint64_t free = capacity_ - (lsn - head_);
    if (free < kSectorBytes)
      return std::nullopt;
    memory.block_read(place(lsn), staging_, kSectorBytes);
    const auto length = memory.template load<std::uint64_t>(staging_ + 8);
    if (memory.template load<std::uint64_t>(staging_) != lsn || length > staging_bytes_ - kHeadBytes ||
        footprint(length) > free)
      return std::nullopt;
    const auto check = memory.template load<std::uint64_t>(staging_ + 16);
    const std::uint64_t bytes = footprint(length);
    const std::uint64_t first = std::min(bytes, capacity_ - lsn % capacity_);
    if (first > kSectorBytes)
      memory.block_read(place(lsn) + kSectorBytes, staging_ + kSectorBytes, first - kSectorBytes);
    if (first < bytes)
      memory.block_read(place(lsn + first), staging_ + first, bytes - first);
    return check == checksum(memory, lsn, length) ? std::optional(length) : std::nullopt;
  }

  Address device_;
  std::uint64_t capacity_;
  Address staging_;
  std::uint64_t staging_bytes_ = 0;  ///< for entries; a sector for the header follows
  Lsn head_ = 0;
  Lsn tail_ = 0;
};

}  // namespace pmsim::engines::wal
