#pragma once

#include "pmsim/engines/wal/wal.hpp"

namespace pmsim::engines::wal {

// What takes transactions back: rollback, and a restart, which repeats history first.

template <Memory M, typename Undo>
void Wal::abort(M& memory, Undo&& undo) {
  ensure(mine_->open, "wal: an abort without a transaction");
  if (mine_->used == 0 && mine_->first_part == 0) {
    close(memory, End::kAbort);
    return;
  }
  collect_undo(memory);
  take_back(memory, undo);
  ++aborts_;
}

template <Memory M>
void Wal::collect_undo(M& memory) {
  mine_->undo.clear();
  const auto note = [&](std::span<const std::byte> batch) {
    RecordReader records(batch, stamps_);
    while (const std::optional<Record> record = records.next()) {
      if (!is_redo(record->head.kind))
        mine_->undo.note(*record);
    }
  };
  std::vector<std::byte> bytes;
  if (mine_->first_part != 0) {
    // A log on SSD reads into the thread's buffer, as that of any other may wait to be written (commits in
    // groups): what is there goes first.
    if (regions_.on_ssd() && mine_->used > 0)
      append(memory, End::kPart);
    Lsn at = mine_->first_part;
    while (const std::optional<Lsn> behind = log().read(memory, at, bytes, batch() - LogFile::kHeadBytes)) {
      note(bytes);
      at = *behind;
    }
  }
  if (mine_->used == 0)
    return;
  bytes.resize(BatchHead::kBytes + mine_->used);
  memory.read(batch(), bytes);
  note(bytes);
}

template <Memory M, typename Undo>
void Wal::take_back(M& memory, Undo&& undo) {
  mine_->undoing = true;
  while (mine_->undo.size() > 0) {
    undo(mine_->undo.back());
    mine_->undo.shrink(mine_->undo.size() - 1);
    put(memory, {Kind::kUndone, 0, 0, 0, 0, mine_->undo.size()}, {});
    end_operation(memory);
  }
  mine_->undoing = false;
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
      begun_ = std::max(begun_, at->head().transaction);
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
    mine_->first_part = std::exchange(losers_[log].first_part, 0);
    prepare(memory);
    mine_->open = true;
    mine_->number = begun_;
    mine_->undo = std::move(losers_[log].undo);
    return;
  }
  losers_.clear();
}

template <Memory M, typename Undo, typename Ended>
void Wal::finish(M& memory, Undo&& undo, Ended ended) {
  while (mine_->open) {
    const Lsn age = open_age();
    take_back(memory, undo);
    ended(age);
    resume_loser(memory);
  }
  work_as(0);
}

}  // namespace pmsim::engines::wal
