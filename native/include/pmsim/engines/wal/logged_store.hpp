#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/engines/wal/wal.hpp"

namespace pmsim::engines::wal {

/// Transactions and checkpoints of a store whose pages stay dirty in DRAM under a write-ahead log (no-force):
/// what BufferedStore and LoggedMemoryStore share. `Store` derives from it and supplies
///  - write_back_before(memory, age, most): as BufferManager's; write_back_all(memory);
///    persist_allocation(memory); dirty_pages(), about;
///  - taking_back(record): an operation is about to be undone;
///  - end(memory, age): the transaction whose changes have that age (Wal::open_age) has ended, durably.
///
/// Checkpoints are incremental and fuzzy (ARIES, Mohan et al. 1992). From where on the log is needed is decided
/// by the page that has been dirty for longest. When a transaction begins, pages are written back, oldest
/// first, until no first change is further back in the log than a bound; a transaction pays for as many as its
/// predecessors' log has passed. When the log has filled up to its reserve, a 64th of it is truncated. So a
/// page that changes all the time is written once for almost every log's length of changes, one that was
/// written back by an eviction not again, and nobody waits for all dirty pages.
///
/// But pages that were all changed first at one time are due at one time, and so again and again. With
/// EngineOptions::cleaning = "paced" a transaction writes back, of the dirty pages, the share that its
/// predecessors have used of the log, due or not (adaptive flushing: MySQL 8.0 Reference Manual, "Configuring
/// Buffer Pool Flushing"), and the log is truncated by a 1024th at a time, although more could go.
///
/// What is durable when
///  - commit(), abort(): the transaction's records, in the log, on return.
///  - begin(): nothing, for anybody. Before it truncates, the pages' old changes, and the map of pages.
///  - checkpoint(): every change, below DRAM; the log is empty.
template <memory::Memory M, typename Store>
class LoggedStore {
 public:
  void work_as(std::uint32_t thread) {
    wal_->work_as(thread);
    if constexpr (requires { self().pages_work_as(thread); })
      self().pages_work_as(thread);
  }
  void begin(M& memory) {
    wal_->prepare(memory);
    make_room(memory);
    wal_->begin();
  }
  [[nodiscard]] bool commits_overlap() const noexcept { return wal_->commits_overlap(); }
  void on_placed(std::function<void()> placed) { wal_->on_placed(std::move(placed)); }
  void commit(M& memory) {
    const Lsn first = wal_->open_age();
    wal_->commit(memory);
    ended(memory, first);
  }
  template <typename Undo>
  void abort(M& memory, Undo&& undo) {
    const Lsn first = wal_->open_age();
    wal_->abort(memory, [&](const UndoRecord& record) { take_back(record, undo); });
    ended(memory, first);
  }
  template <typename Undo>
  void finish_restart(M& memory, Undo&& undo) {
    wal_->finish(
        memory, [&](const UndoRecord& record) { take_back(record, undo); },
        [&](Lsn age) { self().end(memory, age); });
  }

  /// Grows with every change.
  [[nodiscard]] std::uint64_t recorded() const noexcept { return wal_->recorded(); }

  void checkpoint(M& memory) {
    self().write_back_all(memory);
    self().persist_allocation(memory);
    wal_->truncate_all(memory);
    ++checkpoints_;
  }
  void shutdown(M& memory) { checkpoint(memory); }

 protected:
  void counters(std::map<std::string, double>& into) const {
    wal_->counters(into);
    into["checkpoints"] = static_cast<double>(checkpoints_);
    into["log_truncations"] = static_cast<double>(truncations_);
  }
  void open_log(M& memory, const EngineOptions& options, EnginePlace& place) {
    wal_.emplace(memory, options);
    paced_ = options.cleaning == "paced";
    place.log = wal_->place().log;
    place.log_buffer = wal_->place().buffer;
  }
  void reopen_log(M& memory, const EngineOptions& options, const EnginePlace& place) {
    wal_ = Wal::recover(memory, options, {.log = place.log, .buffer = place.log_buffer});
    if (!wal_)
      throw ConfigError("engine " + options.engine + ": there is no log: its creation had not finished");
    paced_ = options.cleaning == "paced";
    paced_to_ = wal_->recorded();
  }

  std::optional<Wal> wal_;

 private:
  [[nodiscard]] Store& self() noexcept { return static_cast<Store&>(*this); }

  void ended(M& memory, Lsn first) {
    if (paced_ && (pieces_.empty() || first >= pieces_.back() + wal_->piece()))
      pieces_.push_back(first);
    self().end(memory, first);
  }
  /// The first transaction behind `age` whose age is known; all of the log where none is.
  Lsn piece_behind(Lsn age) {
    while (!pieces_.empty() && pieces_.front() < age)
      pieces_.pop_front();
    return pieces_.empty() ? ~Lsn{0} : pieces_.front();
  }
  void pace(M& memory) {
    const std::uint64_t recorded = wal_->recorded();
    owed_ += self().dirty_pages() * (recorded - std::exchange(paced_to_, recorded));
    if (const std::uint64_t pages = owed_ / wal_->spread(); pages > 0) {
      owed_ -= pages * wal_->spread();
      static_cast<void>(self().write_back_before(memory, ~Lsn{0}, pages));
    }
  }
  void make_room(M& memory) {
    if (paced_)
      pace(memory);
    if (!wal_->cleaning_is_due())
      return;
    const Lsn due = wal_->due_age();
    const Lsn others = wal_->others_age();  // before anybody is waited for
    Lsn needed = std::min(self().write_back_before(memory, due), others);
    if (paced_)
      needed = std::min(needed, piece_behind(due));
    if (!wal_->is_at_reserve())
      return;
    wal_->settle(memory);  // allocations that are not durable must not come into the map
    self().persist_allocation(memory);
    wal_->truncate_to(memory, needed);
    ++truncations_;
  }
  template <typename Undo>
  void take_back(const UndoRecord& record, Undo& undo) {
    self().taking_back(record);
    undo(record);
  }

  bool paced_ = false;
  std::uint64_t paced_to_ = 0;  ///< Wal::recorded() then
  std::uint64_t owed_ = 0;      ///< pages that are to be written back, times the length of the logs
  std::deque<Lsn> pieces_;      ///< ages of transactions with a piece of the log between them
  std::uint64_t checkpoints_ = 0;
  std::uint64_t truncations_ = 0;  ///< the log's, by incremental checkpoints
};

}  // namespace pmsim::engines::wal
