#pragma once

#include <array>

#include "pmsim/blocks/log/base.hpp"
#include "pmsim/blocks/pmem_memcpy.hpp"

namespace pmsim::blocks::log {

/// libpmemlog of the PMDK with its lock switched off (section 3.3.2): Header without padding, dancing, or
/// entries. The log is one dense stretch of bytes and a write offset; callers find their boundaries themselves.
///
///     file header | {write offset} on a line | bytes
///
/// Two persistency barriers for each group, as in Header: the bytes, then the offset, one word. As in the PMDK
/// the log does not run in circles: truncate() (pmemlog_rewind) sets the offset to 0. Bytes behind the offset
/// are never looked at, so torn appends and stale bytes never matter.
///
/// Durable when append() fills the group or commit() returns: all bytes appended so far.
class PmemLog {
 public:
  static constexpr std::array kNames{
      Named{"pmemlog", "log as libpmemlog keeps it: dense bytes and a write offset"}};
  static constexpr bool kHasEntries = false;
  static constexpr std::uint8_t kFormat = 5;
  static constexpr Site kEntryFlush = 200, kEntryFence = 201, kOffsetFlush = 202, kOffsetFence = 203;
  static constexpr Site kRewindFlush = 204, kRewindFence = 205;
  static constexpr std::array<SiteInfo, 6> kSites{{
      {kEntryFlush, "append: write the bytes back"},
      {kEntryFence, "append: wait for the bytes"},
      {kOffsetFlush, "append: write the write offset back"},
      {kOffsetFence, "append: wait for the write offset"},
      {kRewindFlush, "rewind: write the write offset back"},
      {kRewindFence, "rewind: wait for the write offset"},
  }};

  /// The points that are executed. It has a rewind of its own, and neither key nor head.
  [[nodiscard]] static std::vector<SiteInfo> sites(Layout) {
    std::vector<SiteInfo> all(FileHeader::kSites.begin() + 1, FileHeader::kSites.begin() + 3);
    all.insert(all.end(), kSites.begin(), kSites.end());
    return all;
  }

  /// Creates an empty log in zeroed memory; it is durable on return. Only Layout::kNaive exists.
  template <Memory M>
  [[nodiscard]] static PmemLog create(M& memory, const Place& place, const Options& options) {
    const PmemLog log(place, options);
    log.file_.create(memory, kFormatWord);
    return log;
  }
  template <Memory M>
  [[nodiscard]] static std::optional<PmemLog> recover(M& memory, const Place& place, const Options& options) {
    PmemLog log(place, options);
    if (!log.file_.check(memory, kFormatWord))
      return std::nullopt;
    log.tail_ = log.durable_ = memory.template load<std::uint64_t>(log.offset_);
    if (log.tail_ > log.bytes_)
      throw ConfigError("log: the write offset is damaged: " + std::to_string(log.tail_) +
                        " bytes do not fit into the log");
    return log;
  }

  /// Returns where the bytes lie in the log. Throws LogFull where they do not fit; nothing has been written
  /// then.
  template <Memory M>
  Lsn append(M& memory, std::span<const std::byte> payload) {
    if (payload.size() > free())
      throw LogFull(payload.size(), free(), bytes_);
    const Lsn at = tail_;
    count_instructions(memory, payload.size(), 0, kCopyInstructionsPerLine);
    pmem_memcpy_nodrain(memory, base_ + at, payload, kEntryFlush);
    tail_ += payload.size();
    if (++pending_ == options_.group_commit)
      commit(memory);
    return at;
  }

  template <Memory M>
  void commit(M& memory) {
    pending_ = 0;
    if (tail_ == durable_)
      return;
    memory.sfence(kEntryFence);
    put_offset(memory, tail_, kOffsetFlush, kOffsetFence);
    durable_ = tail_;
  }

  /// All bytes are gone, durably, when it returns; a crash in it leaves all of them or none.
  template <Memory M>
  void truncate(M& memory) {
    put_offset(memory, 0, kRewindFlush, kRewindFence);
    tail_ = durable_ = 0;
    pending_ = 0;
  }

  /// Calls visit(0, all committed bytes) once, where there are any.
  template <Memory M, typename Visit>
  void for_each(M& memory, Visit&& visit) const {
    std::vector<std::byte> all(durable_);
    memory.read(base_, all);
    if (!all.empty())
      visit(Lsn{0}, std::span<const std::byte>(all));
  }

  [[nodiscard]] Lsn head() const noexcept { return 0; }
  [[nodiscard]] Lsn tail() const noexcept { return tail_; }
  [[nodiscard]] Lsn durable() const noexcept { return durable_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t footprint(std::uint64_t payload) const noexcept { return payload; }
  [[nodiscard]] std::uint64_t free() const noexcept { return bytes_ - tail_; }
  [[nodiscard]] bool fits(std::size_t payload) const noexcept { return payload <= free(); }

 private:
  static constexpr std::uint64_t kFormatWord = std::uint64_t{0x706d'6c6f} << 32 | std::uint64_t{kFormat} << 24;

  PmemLog(const Place& place, const Options& options) : file_(place.base), options_(options) {
    if (options.layout != Layout::kNaive)
      throw ConfigError("log: pmemlog is dense; choose layout naive");
    if (place.base % kLineBytes != 0 || place.bytes < 3 * kLineBytes)
      throw ConfigError("log: pmemlog needs a place on a line of at least 192 bytes");
    if (options.group_commit == 0)
      throw ConfigError("log: group_commit must be at least 1");
    offset_ = place.base + FileHeader::kBytes;
    base_ = offset_ + kLineBytes;
    bytes_ = place.bytes - FileHeader::kBytes - kLineBytes;
  }

  template <Memory M>
  void put_offset(M& memory, std::uint64_t value, Site flush, Site fence) const {
    memory.template store<std::uint64_t>(offset_, value);
    memory.flush(offset_, kWord, memory::FlushKind::kClwb, flush);
    memory.sfence(fence);
  }

  FileHeader file_;
  Options options_;
  Address offset_ = 0;
  Address base_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t durable_ = 0;
  std::uint32_t pending_ = 0;
};

}  // namespace pmsim::blocks::log
