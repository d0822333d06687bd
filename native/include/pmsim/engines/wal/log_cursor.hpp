#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/wal/log_file.hpp"
#include "pmsim/engines/wal/record.hpp"

namespace pmsim::engines::wal {

/// Reads a log record by record, for a restart that merges several.
class LogCursor {
 public:
  static constexpr Lsn kEnd = ~Lsn{0};

  template <Memory M>
  LogCursor(M& memory, const LogFile& log, Stamps stamps) : log_(&log), stamps_(stamps), behind_(log.head()) {
    fetch(memory);
  }

  /// When its turn is: a redo record's LSN; of what has none and goes with what has been read, 0. Behind the
  /// last record, kEnd.
  [[nodiscard]] Lsn turn() const noexcept { return turn_; }
  /// Nothing in a batch that only ends a transaction.
  [[nodiscard]] const std::optional<Record>& record() const noexcept { return record_; }
  /// Of the record's batch: its place in the log, what it begins with, and whether nothing precedes or follows
  /// the record in it.
  [[nodiscard]] Lsn batch() const noexcept { return at_; }
  [[nodiscard]] BatchHead head() const noexcept { return head_; }
  [[nodiscard]] bool is_first() const noexcept { return first_; }
  [[nodiscard]] bool is_last() const noexcept { return reader_.is_whole(); }

  template <Memory M>
  void advance(M& memory) {
    first_ = false;
    reader_.is_whole() ? fetch(memory) : next();
  }

 private:
  template <Memory M>
  void fetch(M& memory) {
    at_ = behind_;
    const std::optional<Lsn> behind = log_->read_ahead(memory, at_, bytes_, ahead_);
    if (!behind) {
      turn_ = kEnd;
      return;
    }
    behind_ = *behind;
    std::uint64_t word = 0;
    ensure(bytes_.size() >= sizeof word, "wal: an entry of the log is too short");
    std::memcpy(&word, bytes_.data(), sizeof word);
    head_ = BatchHead::of(word);
    reader_ = RecordReader(bytes_, stamps_);
    first_ = true;
    next();
  }
  void next() {
    const std::uint64_t offset = reader_.offset();
    record_ = reader_.next();
    ensure(record_ || reader_.is_whole(), "wal: a batch of the log is damaged");
    turn_ = !record_ || !is_redo(record_->head.kind) ? 0 : record_->stamp != 0 ? record_->stamp : at_ + offset;
  }

  const LogFile* log_;
  Stamps stamps_;
  Lsn at_ = 0;
  Lsn behind_;
  SectorLog::Window ahead_;
  std::vector<std::byte> bytes_;
  BatchHead head_;
  RecordReader reader_;
  std::optional<Record> record_;
  Lsn turn_ = 0;
  bool first_ = false;
};

}  // namespace pmsim::engines::wal
