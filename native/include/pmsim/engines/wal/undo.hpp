#pragma once

#include "pmsim/engines/wal/wal.hpp"

namespace pmsim::engines::wal {

// What takes transactions back: rollback, and a restart, which repeats history first.

template <Memory M, typename Undo>
void Wal::abort(M& memory, Undo&& undo) {
  ensure(open_, "wal: an abort without a transaction");
  if (used_ == 0 && first_part_ == 0) {
    open_ = false;
    return;
  }
  collect_undo(memory);
  take_back(memory, undo);
  ++aborts_;
}

template <Memory M>
void Wal::collect_undo(M& memory) {
  undo_.clear();
  const auto note = [&](std::span<const std::byte> batch) {
    RecordReader records(batch, stamps_);
    while (const std::optional<Record> record = records.next()) {
      if (!is_redo(record->head.kind))
        undo_.note(*record);
    }
  };
  std::vector<std::byte> bytes;
  if (first_part_ != 0) {
    // A log on SSD reads into the batch buffer: what is there goes first.
    if (regions_.on_ssd() && used_ > 0)
      append(memory, End::kPart);
    Lsn at = first_part_;
    while (const std::optional<Lsn> behind = log().read(memory, at, bytes)) {
      note(bytes);
      at = *behind;
    }
  }
  if (used_ == 0)
    return;
  bytes.resize(BatchHead::kBytes + used_);
  memory.read(batch(), bytes);
  note(bytes);
}

template <Memory M, typename Undo>
void Wal::take_back(M& memory, Undo&& undo) {
  undoing_ = true;
  while (undo_.size() > 0) {
    undo(undo_.back());
    undo_.shrink(undo_.size() - 1);
    put(memory, {Kind::kUndone, 0, 0, 0, 0, undo_.size()}, {});
    end_operation(memory);
  }
  undoing_ = false;
  close(memory, End::kAbort);
}

template <Memory M, typename Redo>
void Wal::replay(M& memory, Redo&& redo) {
  std::vector<LogCursor> cursors;
  for (const LogFile& file : logs_)
    cursors.emplace_back(memory, file, stamps_);
  losers_.assign(logs(), {});
  for (std::uint64_t batches = 0;;) {
    const auto at = std::ranges::min_element(cursors, {}, &LogCursor::turn);
    if (at->turn() == LogCursor::kEnd)
      break;
    Loser& loser = losers_[static_cast<std::size_t>(at - cursors.begin())];
    if (at->is_first()) {
      ++batches;
      transaction_ = std::max(transaction_, at->head().transaction);
      if (loser.first_part == 0)
        loser.first_part = at->batch();
    }
    if (const std::optional<Record>& record = at->record(); record && is_redo(record->head.kind)) {
      if (at->turn() >= horizon_)
        // The age of all that a transaction has changed is where it begins: while a page of it is dirty, all
        // of it stays in the log, with what its undo records count.
        redo(*record, at->turn(), order_ ? age_of(Epochs::kFirst) + batches : loser.first_part);
    } else if (record) {
      loser.undo.note(*record);
    }
    if (at->is_last() && at->head().end != End::kPart)
      loser = {};
    at->advance(memory);
  }
  resume_loser(memory);
}

template <Memory M>
void Wal::resume_loser(M& memory) {
  for (std::uint32_t log = 0; log < losers_.size(); ++log) {
    if (losers_[log].first_part == 0)
      continue;
    work_as(log);
    first_part_ = std::exchange(losers_[log].first_part, 0);
    prepare(memory);
    open_ = true;
    undo_ = std::move(losers_[log].undo);
    return;
  }
  losers_.clear();
}

template <Memory M, typename Undo, typename Ended>
void Wal::finish(M& memory, Undo&& undo, Ended ended) {
  while (open_) {
    const Lsn age = open_age();
    take_back(memory, undo);
    ended(age);
    resume_loser(memory);
  }
  work_as(0);
}

}  // namespace pmsim::engines::wal
