#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pmsim/blocks/inplace/chained_read.hpp"
#include "pmsim/blocks/inplace/record.hpp"
#include "pmsim/blocks/inplace/redo_log.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::inplace {

/// Log-based in-place updates: the value goes to a redo log, then into the record (van Renen et al., Building
/// blocks for persistent memory, VLDB Journal 29, 2020, sec. 3.4.2). The record is the plain value; one log
/// serves all records of a writer.
///
/// Durable when:
///  - The first barrier (of the log) makes the update durable: from then on recovery completes it.
///  - The second one makes the record durable. So of all entries only the last one may still be needed, and
///  recover()
///    replays that one alone.
///  - A full log is cleared by the update that finds no room: all of its entries are history then.
///  - Fresh zero bytes are records of zeros and an empty log.
///
/// Each record has one log: two logs would not say whose entry is the younger. One writer per log.
class Logged {
 public:
  static constexpr memory::Site kRecordFlush = 530;
  static constexpr memory::Site kRecordFence = 531;
  static constexpr memory::Site kReplayFlush = 532;
  static constexpr memory::Site kReplayFence = 533;
  static constexpr std::array kOwnSites{
      SiteInfo{kRecordFlush, "log update: write the record back"},
      SiteInfo{kRecordFence, "log update: barrier before the next entry"},
      SiteInfo{kReplayFlush, "log recovery: write the replayed record back"},
      SiteInfo{kReplayFence, "log recovery: barrier before the log is cleared"},
  };
  /// The block's own and the log's.
  static constexpr auto kSites = [] {
    std::array<SiteInfo, RedoLog::kSites.size() + kOwnSites.size()> sites{};
    std::size_t next = 0;
    for (const SiteInfo& site : RedoLog::kSites)
      sites[next++] = site;
    for (const SiteInfo& site : kOwnSites)
      sites[next++] = site;
    return sites;
  }();

  /// `bytes` of user data, a multiple of 8 up to 1024; the log lies in [log, log + log_bytes), zeros. Throws
  /// ConfigError for a bad size of either.
  Logged(std::size_t bytes, memory::Address log, std::uint64_t log_bytes)
      : bytes_(bytes), log_(log, log_bytes, bytes) {
    require_record_bytes(bytes);
  }

  [[nodiscard]] std::size_t value_bytes() const noexcept { return bytes_; }
  /// Bytes that a record occupies (Table 3: n, beside its share of the log).
  [[nodiscard]] std::size_t record_bytes() const noexcept { return bytes_; }
  /// From one record to the next: whole lines.
  [[nodiscard]] std::size_t stride() const noexcept { return whole_lines(bytes_); }

  template <memory::Memory M>
  void update(M& memory, memory::Address record, std::span<const std::byte> value) {
    ensure(value.size() == bytes_ && record % memory::kLineBytes == 0, "a logged record or value is misplaced");
    if (!log_.has_room(bytes_))
      log_.clear(memory);
    log_.append(memory, record, value);
    memory.write(record, value);
    memory.flush(record, bytes_, memory::FlushKind::kClwb, kRecordFlush);
    memory.sfence(kRecordFence);
  }

  template <memory::Memory M>
  void read(M& memory, memory::Address record, std::span<std::byte> into,
            Reads reads = Reads::kIndependent) const {
    ensure(into.size() == bytes_, "a logged value has another size");
    read_bytes(memory, record, into, reads);
  }

  /// Completes the last update whose entry is whole and clears the log; again after a crash in it. Returns
  /// whether there was one. Runs before the first update after a restart.
  template <memory::Memory M>
  bool recover(M& memory) {
    const RedoLog::Entry entry = log_.last(memory);
    if (entry.bytes != 0) {
      memory.write(entry.target, std::span(entry.value).first(entry.bytes));
      memory.flush(entry.target, entry.bytes, memory::FlushKind::kClwb, kReplayFlush);
      memory.sfence(kReplayFence);
    }
    log_.clear_all(memory);
    return entry.bytes != 0;
  }

 private:
  std::size_t bytes_;
  RedoLog log_;
};

}  // namespace pmsim::blocks::inplace
