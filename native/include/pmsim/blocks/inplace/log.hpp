#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "pmsim/blocks/inplace/chained_read.hpp"
#include "pmsim/blocks/inplace/record.hpp"
#include "pmsim/blocks/log/poplog.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::inplace {

/// Log-based in-place updates: the value goes to a PopLog, then into the record (van Renen et al., Building
/// blocks for persistent memory, VLDB Journal 29, 2020, sec. 3.4.2). The record is the plain value; one log
/// serves all records of a writer.
///
/// An entry is the address of its record and the value. The paper's entry holds the new bytes alone; with one
/// log for all records recovery could not know where they belong. With the address, in a log whose entries
/// begin on lines, 64 bytes take two lines of it, as Table 3 says.
///
/// Durable when:
///  - The first barrier (of the log) makes the update durable: from then on recovery completes it.
///  - The second one makes the record durable. So of all entries only the last one may still be needed, and
///  recover()
///    replays that one alone.
///  - A full log is truncated by the update that finds no room: all of its entries are history then. Truncation
///  is
///    atomic; a log that lost its younger entries first would replay an old value over a newer one.
///  - recover() makes the replayed record durable before it truncates the log.
///  - Fresh zero bytes are records of zeros.
///
/// Each record has one log: two logs would not say whose entry is the younger. One writer per log.
class Logged {
 public:
  static constexpr std::array kNames{Named{"log", "in-place updates by a redo log: PopLog, then the record"}};
  static constexpr std::array<std::size_t, 3> kCheckedSizes{16, 32, 64};
  static constexpr memory::Site kRecordFlush = 530;
  static constexpr memory::Site kRecordFence = 531;
  static constexpr memory::Site kReplayFlush = 532;
  static constexpr memory::Site kReplayFence = 533;
  /// The block's own; a program has those of its PopLog and of the log's file header besides.
  static constexpr std::array kSites{
      SiteInfo{kRecordFlush, "log update: write the record back"},
      SiteInfo{kRecordFence, "log update: barrier before the next entry"},
      SiteInfo{kReplayFlush, "log recovery: write the replayed record back"},
      SiteInfo{kReplayFence, "log recovery: barrier before the log is truncated"},
  };

  /// A new log in zeroed memory; durable on return. `bytes` of user data, a multiple of 8 up to 1024. Throws
  /// ConfigError for a bad size, or a place without room for one entry.
  template <memory::Memory M>
  [[nodiscard]] static Logged create(M& memory, std::size_t bytes, const log::Place& place) {
    require_place(bytes, place);
    return Logged(bytes, log::PopLog::create(memory, place, {}));
  }

  /// Opens what create() has made, completes the last update whose entry is whole and empties the log; nothing
  /// where create() had not finished. Idempotent, also when it is cut short.
  template <memory::Memory M>
  [[nodiscard]] static std::optional<Logged> recover(M& memory, std::size_t bytes, const log::Place& place) {
    require_place(bytes, place);
    std::optional<log::PopLog> log = log::PopLog::recover(memory, place, {});
    if (!log)
      return std::nullopt;
    Entry last;
    log->for_each(memory, [&](log::Lsn, std::span<const std::byte> payload) {
      ensure(payload.size() == kAddressBytes + bytes, "a redo entry has another size");
      std::memcpy(last.data(), payload.data(), payload.size());
    });
    if (log->head() != log->tail()) {
      memory::Address record;
      std::memcpy(&record, last.data(), kAddressBytes);
      memory.write(record, std::span(last).subspan(kAddressBytes, bytes));
      memory.flush(record, bytes, memory::FlushKind::kClwb, kReplayFlush);
      memory.sfence(kReplayFence);
      log->truncate(memory);
    }
    return Logged(bytes, *log);
  }

  [[nodiscard]] std::size_t value_bytes() const noexcept { return bytes_; }
  /// Bytes that a record occupies (Table 3: n, beside its share of the log).
  [[nodiscard]] std::size_t record_bytes() const noexcept { return bytes_; }
  /// From one record to the next: whole lines.
  [[nodiscard]] std::size_t stride() const noexcept { return whole_lines(bytes_); }
  /// The same before there is a log. Throws ConfigError for a bad size.
  [[nodiscard]] static std::size_t stride_of(std::size_t bytes) {
    require_record_bytes(bytes);
    return whole_lines(bytes);
  }
  /// Bytes of log space for `updates` updates of `bytes` bytes.
  [[nodiscard]] static constexpr std::uint64_t log_bytes(std::size_t bytes, std::uint64_t updates) noexcept {
    return log::FileHeader::kBytes +
           std::max<std::uint64_t>(updates, 2) * whole_lines(log::EntryHeader::kBytes + kAddressBytes + bytes);
  }

  template <memory::Memory M>
  void update(M& memory, memory::Address record, std::span<const std::byte> value) {
    ensure(value.size() == bytes_ && record % memory::kLineBytes == 0, "a logged record or value is misplaced");
    Entry entry;
    std::memcpy(entry.data(), &record, kAddressBytes);
    std::memcpy(entry.data() + kAddressBytes, value.data(), bytes_);
    if (!log_.fits(kAddressBytes + bytes_))
      log_.truncate(memory);
    log_.append(memory, std::span(entry).first(kAddressBytes + bytes_));
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

 private:
  static constexpr std::size_t kAddressBytes = sizeof(memory::Address);
  using Entry = std::array<std::byte, kAddressBytes + kMostBytes>;

  Logged(std::size_t bytes, log::PopLog log) : bytes_(bytes), log_(log) {}

  static void require_place(std::size_t bytes, const log::Place& place) {
    require_record_bytes(bytes);
    if (place.bytes < log_bytes(bytes, 1)) {
      throw ConfigError("log of " + std::to_string(place.bytes) + " bytes: too small for updates of " +
                        std::to_string(bytes) + " bytes; give it at least " +
                        std::to_string(log_bytes(bytes, 1)));
    }
  }

  std::size_t bytes_;
  log::PopLog log_;
};

}  // namespace pmsim::blocks::inplace
