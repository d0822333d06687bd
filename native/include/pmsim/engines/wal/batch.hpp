#pragma once

#include "pmsim/engines/wal/wal.hpp"

namespace pmsim::engines::wal {

// The batch of a thread's transaction: records are collected in its buffer, and appended at the end or in
// parts.

template <Memory M>
Lsn Wal::put(M& memory, const RecordHead& head, std::span<const std::byte> data) {
  ensure(mine_->open, "wal: a change outside of a transaction");
  if (!makes_redo_ && is_redo(head.kind))
    return tail() + BatchHead::kBytes + mine_->used;
  const memory::InSection section(memory, memory::Section::kLog);
  const std::uint64_t bytes = footprint(head, stamps_);
  if (mine_->used + bytes > capacity_)
    throw ConfigError("one operation logs more than " + std::to_string(capacity_) +
                      " bytes, the log buffer; raise log_buffer_bytes");
  const std::uint64_t at = BatchHead::kBytes + mine_->used;
  memory.compute(0, kInstructionsPerRecord);
  memory.write(batch() + at, std::as_bytes(std::span(&head, 1)));
  const Lsn lsn = order_ ? stamp(memory, head.kind, at) : tail() + at;
  if (!data.empty()) {
    const std::uint64_t from = at + data_offset(head.kind, stamps_);
    memory.write(batch() + from, data);
    if (const std::size_t rest = at + bytes - from - data.size(); rest > 0) {
      static constexpr std::array<std::byte, blocks::log::kWord> kZeros{};
      memory.write(batch() + from + data.size(), std::span(kZeros).first(rest));
    }
  }
  mine_->used += bytes;
  mine_->rollback.add(bytes);
  return lsn;
}

template <Memory M>
Lsn Wal::stamp(M& memory, Kind kind, std::uint64_t at) {
  if (!mine_->entered) {
    order_->enter(memory);
    mine_->entered = true;
  }
  if (!is_redo(kind))
    return 0;
  const Lsn lsn = order_->stamp();
  if (mine_->first_lsn == 0)
    mine_->first_lsn = lsn;
  memory.template store<Lsn>(batch() + at + sizeof(RecordHead), lsn);
  return lsn;
}

inline bool Wal::is_collected(Lsn lsn) const {
  if (!order_)
    return lsn >= tail();
  return CommitOrder::log_of(lsn) == mine_->log && mine_->first_lsn != 0 && lsn >= mine_->first_lsn;
}

template <Memory M>
void Wal::end_operation(M& memory) {
  if (!mine_->undoing && regions_.is_kept())
    require_rollback();
  if (mine_->used > capacity_ / 2)
    append_part(memory);
}

inline void Wal::require_rollback() const {
  const std::uint64_t both = 2 * BatchHead::kBytes + mine_->used + mine_->rollback.bytes();
  const std::uint64_t needed = both + std::min(capacity_ + capacity_ / 2, reserve() / 2);
  // They go into the log in parts of half a buffer and more, each with a head.
  if (log().has_room(both, capacity_ / 2) && log().has_room(needed, needed))
    return;
  throw ConfigError("a transaction with more than " + std::to_string(mine_->parts_bytes + mine_->used) +
                    " bytes of log does not fit into the log, in which it must leave room for its rollback (" +
                    std::to_string(mine_->rollback.bytes()) + " bytes): " + std::to_string(used()) + " of " +
                    std::to_string(capacity()) +
                    " bytes are in use; raise log_bytes or make the transaction smaller");
}

template <Memory M>
void Wal::append_part(M& memory) {
  if (!regions_.is_kept() && !mine_->undoing)
    throw ConfigError("a transaction makes more than " + std::to_string(capacity_ / 2) +
                      " bytes of log, which could not be rolled back with log_device = \"" +
                      regions_.options().log_device +
                      "\"; choose pmem or ssd, or make the transaction smaller");
  mine_->parts_bytes += mine_->used;
  if (mine_->first_part == 0)
    mine_->first_part = tail();
  append(memory, End::kPart);
  ++early_;
}

template <Memory M>
bool Wal::close(M& memory, End end) {
  const bool anything = mine_->used > 0 || mine_->first_part != 0;
  if (anything)
    append(memory, end);
  if (std::exchange(mine_->entered, false))
    order_->leave(memory);
  mine_->open = false;
  mine_->placed = {};
  mine_->first_part = 0;
  mine_->parts_bytes = 0;
  mine_->rollback.clear();
  return anything;
}

template <Memory M>
void Wal::append(M& memory, End end) {
  const memory::InSection section(memory, memory::Section::kLog);
  if (!order_)
    mine_->age = open_age();
  else if (end != End::kPart)
    order_->await(memory);
  else
    order_->await_open(memory);
  memory.template store<std::uint64_t>(batch(), BatchHead{mine_->number, end}.word());
  bytes_ += logs_[mine_->log].append(
      memory, BatchHead::kBytes + mine_->used, batch(), [&] { return latch(memory); },
      [&] {
        // Several logs have no order of their own.
        if (end == End::kCommit && !order_ && mine_->placed)
          mine_->placed();
      });
  mine_->used = 0;
  mine_->first_lsn = 0;
  ++batches_;
}

}  // namespace pmsim::engines::wal
