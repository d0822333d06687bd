#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/wal/commit_order.hpp"
#include "pmsim/engines/wal/epochs.hpp"
#include "pmsim/engines/wal/log_cursor.hpp"
#include "pmsim/engines/wal/log_file.hpp"
#include "pmsim/engines/wal/log_regions.hpp"
#include "pmsim/engines/wal/record.hpp"
#include "pmsim/engines/wal/transaction.hpp"
#include "pmsim/engines/wal/undo_list.hpp"

namespace pmsim::engines::wal {

/// Write-ahead log of a store with one transaction of each thread at a time (section 2.3 of the paper; ARIES,
/// Mohan et al. 1992): redo in terms of pages, undo in terms of the tree.
///
/// A transaction's records are collected in a DRAM buffer and appended as one entry at commit(): one barrier
/// (of poplog; section A.5: "bundles many small writes into one large sequential write at the end of the
/// transaction"). A transaction that outgrows half of the buffer is appended in parts. A part ends where an
/// operation of the tree ends (at the next note_undo()): what a crash leaves is a sequence of whole operations,
/// so the tree is sound after redo and logical undo can run.
///
/// The LSN of a record is the position of its batch in the log plus its offset in the batch: it is known when
/// the record is written, because nothing else can be appended in between.
///
/// What is durable when. commit() and abort(): everything the transaction has logged, when they return.
/// note_undo(): nothing, or everything before. truncate_to(): the records before `end` are gone, when it
/// returns. A store must not write a page to a lower tier before the log contains the page's changes; with
/// no-steal (pages of the open transaction stay in DRAM) this needs no action; otherwise there is force().
///
/// Without a log (EngineOptions::log_device, NoLog) records go no further than the buffer, and nothing is
/// durable.
///
/// Several threads collect their transactions in buffers of their own. They append to one log under its latch,
/// or each to a log of its own (EngineOptions::logs). Then LSNs are those of CommitOrder, redo records carry
/// them, and since when a page is dirty is a time of Epochs ("age"), which in a single log is the LSN of a
/// batch. A transaction waits for those that have changed its pages before it when it ends, not before, because
/// it has latches of pages in hand until then: parts, and what is forced, wait for nobody in virtual time, but
/// for who has not ended in the order of execution.
///
/// While a commit is under way, other threads may run transactions where threads have logs of their own, or
/// commit in groups: what a thread's transaction has is its own (Transaction), force() and settle() wait for
/// those that have not ended, and others_age() says what they need. With one log on PMem they may not, as an
/// LSN is a place in the log, and known before it is taken.
///
/// Restart: replay() repeats history, also of transactions without end (analysis needs no pass of its own: the
/// only loser of a log is its last transaction), and remembers what they must take back; finish() does so.
/// Undo writes ordinary redo records (ARIES's CLRs) and, after each operation, how much is left (kUndone), so
/// that a crash during undo never undoes twice.
class Wal {
 public:
  using Place = LogPlace;
  /// Writing a record, besides its stores: building its head, checking room, copying loop.
  static constexpr std::uint32_t kInstructionsPerRecord = 16;

  /// Allocates and creates empty logs; durable on return. Throws ConfigError where the options cannot be.
  template <Memory M>
  Wal(M& memory, const EngineOptions& options) : Wal(options) {
    place_ = regions_.allocate(memory);
    for (std::uint32_t log = 0; log < logs(); ++log)
      logs_.push_back(LogFile::create(memory, options, regions_.log(place_, log)));
    regions_.check_room(capacity());
    start(memory);
  }

  Wal(Wal&&) noexcept = default;
  Wal& operator=(Wal&&) noexcept = default;

  /// The logs that the above has made, after a restart; nothing where it had not finished.
  template <Memory M>
  [[nodiscard]] static std::optional<Wal> recover(M& memory, const EngineOptions& options, const Place& place) {
    require_durable(options);
    Wal wal(options);
    wal.place_ = place;
    for (std::uint32_t log = 0; log < wal.logs(); ++log) {
      std::optional<LogFile> found = LogFile::recover(memory, options, wal.regions_.log(place, log));
      if (!found)
        return std::nullopt;
      wal.logs_.push_back(*std::move(found));
    }
    wal.start(memory);
    return wal;
  }

  /// Throws ConfigError where options say that nothing is.
  static void require_durable(const EngineOptions& options) {
    if (!LogFile::is_kept(options))
      throw ConfigError("log_device = \"" + options.log_device +
                        "\": nothing is durable, so there is nothing to restart; choose pmem or ssd");
  }

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  /// Of the thread's log, as all that follow.
  [[nodiscard]] std::uint64_t capacity() const { return log().capacity(); }
  /// Bytes of the log in use.
  [[nodiscard]] std::uint64_t used() const { return log().used(); }
  /// The age of a change that the open transaction makes: the log must not be truncated beyond it.
  [[nodiscard]] Lsn open_age() const {
    return order_ ? mine_->age : mine_->first_part != 0 ? mine_->first_part : tail();
  }
  /// The same, of the transactions that other threads have not ended yet: kNoAge where nothing of them is in
  /// the log.
  [[nodiscard]] Lsn others_age() const noexcept {
    Lsn age = kNoAge;
    for (const Transaction& transaction : transactions_) {
      if (&transaction != mine_ && transaction.open)
        age = std::min(age, transaction.age);
    }
    return age;
  }
  static constexpr Lsn kNoAge = ~Lsn{0};
  /// What a transaction finds free when it begins: a quarter of the log, and in a small one as much as one
  /// takes that fills a batch buffer, with its rollback (at most half).
  [[nodiscard]] std::uint64_t reserve() const {
    return std::max(capacity() / 4, std::min(5 * capacity_, capacity() / 2));
  }
  /// The log is filled up to the reserve: it has to be truncated before a transaction begins.
  [[nodiscard]] bool is_at_reserve() const { return used() > capacity() - reserve(); }
  /// The log reaches further back than changes of dirty pages should.
  [[nodiscard]] bool cleaning_is_due() const { return used() > kept(); }
  /// Older pages are to be written back now; then the log can be truncated to it.
  [[nodiscard]] Lsn due_age() const {
    return order_ ? age_of(epochs_->within(mine_->log, kept(), tail())) : tail() - std::min(kept(), used());
  }
  /// What a truncation frees, at least.
  [[nodiscard]] std::uint64_t piece() const { return capacity() / pieces_; }
  /// Length of all logs together that changes of dirty pages may be spread over.
  [[nodiscard]] std::uint64_t spread() const { return kept() * logs(); }
  [[nodiscard]] bool is_open() const noexcept { return mine_->open; }
  /// Grows with every record.
  [[nodiscard]] std::uint64_t recorded() const noexcept { return bytes_ + mine_->used; }

  /// The thread whose transactions run from now on: it collects them in a buffer of its own.
  void work_as(std::uint32_t thread) noexcept {
    mine_ = &transactions_[thread % transactions_.size()];
    if (order_)
      order_->work_as(mine_->log);
  }

  /// Whether other threads may run transactions while one commits.
  [[nodiscard]] bool commits_overlap() const noexcept { return order_ || LogFile::gathers(regions_.options()); }
  /// Whether threads have logs of their own: then whoever changes a page first says what LSN it has.
  [[nodiscard]] bool follows_pages() const noexcept { return order_.has_value(); }
  void follow(Lsn page) { order_->follow(page); }

  /// Before begin(), and before the log's room is asked for.
  template <Memory M>
  void prepare(M& memory) {
    if (!order_) [[likely]]
      return;
    // Of a transaction that a restart takes back, parts are in the log already.
    epochs_->enter(memory, mine_->log, mine_->first_part != 0 ? mine_->first_part : tail(),
                   [&] { return order_->next(); });
    order_->raise(epochs_->first_lsn(epochs_->now()));
    mine_->age = age_of(epochs_->now()) + static_cast<std::uint32_t>(begun_ + 1);
  }
  void begin() {
    ensure(!mine_->open, "wal: a transaction inside of another");
    mine_->open = true;
    mine_->number = ++begun_;
    if (!order_)
      mine_->age = kNoAge;
  }

  /// Redo records; each returns its LSN, for the page.
  template <Memory M>
  Lsn overwrite(M& memory, PageId page, std::uint32_t offset, std::span<const std::byte> bytes) {
    return put(memory, {Kind::kOverwrite, 0, narrow(offset), 0, narrow(bytes.size()), page}, bytes);
  }
  template <Memory M>
  Lsn move(M& memory, PageId page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    return put(memory, {Kind::kMove, 0, narrow(to), narrow(from), narrow(bytes), page}, {});
  }
  template <Memory M>
  Lsn allocate(M& memory, PageId page) {
    if (order_)
      order_->follow_allocator();
    return put(memory, {Kind::kAllocate, 0, 0, 0, 0, page}, {});
  }
  template <Memory M>
  Lsn release(M& memory, PageId page) {
    const Lsn lsn = put(memory, {Kind::kRelease, 0, 0, 0, 0, page}, {});
    if (order_)
      order_->note_release(lsn);
    return lsn;
  }

  /// Begins an operation of the tree. Ignored while undoing: undo is not undone.
  template <Memory M>
  void note_undo(M& memory, const UndoRecord& record) {
    if (mine_->undoing)
      return;
    end_operation(memory);
    mine_->rollback.begin_operation(record.kind);
    const Kind kind = record.kind == UndoRecord::Kind::kUpdate   ? Kind::kUpdate
                      : record.kind == UndoRecord::Kind::kInsert ? Kind::kInsert
                                                                 : Kind::kErase;
    put(memory, {kind, 0, record.table, narrow(record.offset), narrow(record.before.size()), record.key},
        record.before);
  }

  /// Makes the logs durable up to `lsn`, that of a page, also in the middle of a transaction: before a change
  /// in place (steal). What has been collected must be whole operations of the tree where the LSN is among it.
  /// Where no log is kept, nothing is.
  template <Memory M>
  void force(M& memory, Lsn lsn) {
    if (!regions_.is_kept())
      return;
    if (mine_->used > 0 && is_collected(lsn))
      append_part(memory);
    else if (order_)
      order_->await_open(memory, lsn);
    else
      logs_[mine_->log].make_durable(memory, lsn + 1);
  }
  /// Returns when what other threads have appended, or are appending, is durable. No latch is in hand.
  template <Memory M>
  void settle(M& memory) {
    if (!order_)
      return logs_[mine_->log].make_durable(memory, tail());
    for (const Transaction& transaction : transactions_) {
      if (&transaction != mine_ && transaction.open)
        order_->await_log(memory, transaction.log);
    }
  }

  /// As Engine::on_placed.
  void on_placed(std::function<void()> placed) { mine_->placed = std::move(placed); }
  /// Whether anything had to be appended.
  template <Memory M>
  bool commit(M& memory) {
    ensure(mine_->open, "wal: a commit without a transaction");
    return close(memory, End::kCommit);
  }

  /// undo(record) takes back one operation, through this log; its records are redo records like all others.
  template <Memory M, typename Undo>
  void abort(M& memory, Undo&& undo);

  /// Durable on return: what is older than `age` in the thread's log is gone. Changes that are older must be
  /// durable in the pages, and in their map.
  template <Memory M>
  void truncate_to(M& memory, Lsn age) {
    age = std::min(age, open_age());
    if (!order_)
      return cut(memory, mine_->log, age);
    const std::uint64_t epoch = age >> kAgeBits;
    const Lsn end = epochs_->since(mine_->log, epoch, tail());
    if (end <= log().head())
      return;
    move_horizon(memory, epochs_->first_lsn(epoch));
    cut(memory, mine_->log, end);
    epochs_->forget(mine_->log, end, epoch);
  }
  /// Durable on return: the logs are empty. All changes must be durable in the pages, and in their map.
  template <Memory M>
  void truncate_all(M& memory) {
    ensure(!mine_->open, "wal: all of the log is truncated inside of a transaction");
    if (order_) {
      epochs_->end(memory, order_->next());
      move_horizon(memory, epochs_->first_lsn(epochs_->now()));
    }
    for (std::uint32_t log = 0; log < logs(); ++log) {
      cut(memory, log, logs_[log].tail());
      if (order_)
        epochs_->forget(log, logs_[log].tail(), epochs_->now());
    }
  }

  /// Calls redo(record, lsn, age) for every redo record of the logs, in the order of LSNs. Afterwards finish()
  /// is due.
  template <Memory M, typename Redo>
  void replay(M& memory, Redo&& redo);
  /// Takes back what the transactions without end did, if there are any, and calls ended(age) for each.
  template <Memory M, typename Undo, typename Ended = void (*)(Lsn)>
  void finish(M& memory, Undo&& undo, Ended ended = [](Lsn) {});

  void counters(std::map<std::string, double>& into) const {
    into["log_batches"] = static_cast<double>(batches_);
    into["log_bytes"] = static_cast<double>(bytes_);
    into["log_early_appends"] = static_cast<double>(early_);
    into["log_aborts"] = static_cast<double>(aborts_);
  }

 private:
  /// Of a log, that a truncation frees; nobody waits for long while PopLog zeroes a small one.
  static constexpr std::uint64_t kPieces = 64;
  static constexpr std::uint64_t kSmallPieces = 1024;
  /// An age of several logs is an epoch and, so that it differs from transaction to transaction, a number.
  static constexpr int kAgeBits = 32;
  [[nodiscard]] static constexpr Lsn age_of(std::uint64_t epoch) noexcept { return epoch << kAgeBits; }

  /// What a restart finds of a transaction without end: its log's last.
  struct Loser {
    Lsn first_part = 0;  ///< 0: there is none
    UndoList undo;
  };

  explicit Wal(const EngineOptions& options)
      : regions_(options),
        makes_redo_(options.log_device != "none"),
        stamps_(regions_.stamps()),
        pieces_(options.cleaning == "paced" ? kSmallPieces : kPieces),
        capacity_(regions_.batch_capacity()) {
    for (std::uint32_t thread = 0; thread < std::max(options.threads, 1U); ++thread) {
      const std::uint64_t buffer = thread % regions_.buffers();
      transactions_.push_back({.buffer = buffer,
                               .log = regions_.per_thread() ? static_cast<std::uint32_t>(buffer) : 0,
                               .rollback = RollbackBound(options.leaf_layout == "hash")});
    }
    mine_ = transactions_.data();
  }

  [[nodiscard]] std::uint32_t logs() const noexcept { return regions_.logs(); }
  template <Memory M>
  [[nodiscard]] HeldLatch<M> latch(M& memory) const {
    return HeldLatch<M>(memory, regions_.append_latch(place_), LatchMode::kExclusive);
  }
  /// Of several logs. Their times count records, and one for each move of the horizon: behind that there are no
  /// more than the logs have bytes.
  template <Memory M>
  void start(M& memory) {
    if (!regions_.per_thread())
      return;
    horizon_ = regions_.horizon(place_).load(memory);
    std::vector<Lsn> heads;
    Lsn next = horizon_ + CommitOrder::at_time(1);
    for (const LogFile& file : logs_) {
      heads.push_back(file.head());
      next += CommitOrder::at_time(file.tail());
    }
    order_.emplace(logs(), next - 1, regions_.commit_latches(place_));
    epochs_.emplace(memory, regions_.epoch_word(place_), std::max<std::uint64_t>(capacity() / 128, 1), heads,
                    horizon_, next);
    work_as(0);
  }

  /// Length of log that changes of dirty pages may be spread over. A piece less than may be in use, so that a
  /// truncation, which has a price of its own, frees that much.
  [[nodiscard]] std::uint64_t kept() const { return capacity() - reserve() - piece(); }
  [[nodiscard]] const LogFile& log() const { return logs_[mine_->log]; }
  [[nodiscard]] Lsn tail() const { return log().tail(); }
  template <Memory M>
  void cut(M& memory, std::uint32_t log, Lsn end) {
    if (end <= logs_[log].head())
      return;
    const memory::InSection section(memory, memory::Section::kLog);
    const HeldLatch<M> alone = latch(memory);
    logs_[log].truncate_to(memory, end);
  }
  template <Memory M>
  void move_horizon(M& memory, Lsn lsn) {
    if (lsn <= horizon_)
      return;
    const memory::InSection section(memory, memory::Section::kLog);
    regions_.horizon(place_).move_to(memory, lsn);
    horizon_ = lsn;
  }

  [[nodiscard]] static std::uint16_t narrow(std::uint64_t value) {
    ensure(value < 0x1'0000, "wal: a record of more than 64 KiB");
    return static_cast<std::uint16_t>(value);
  }
  /// Of the batch, in the thread's buffer.
  [[nodiscard]] Address batch() const noexcept {
    return regions_.staging(place_, mine_->buffer) + LogFile::kHeadBytes;
  }

  // batch.hpp
  template <Memory M>
  Lsn put(M& memory, const RecordHead& head, std::span<const std::byte> data);
  /// Of a record of several logs, whose head is at `at` in the batch.
  template <Memory M>
  Lsn stamp(M& memory, Kind kind, std::uint64_t at);
  /// In the batch buffer. What other threads have changed has been durable since their transactions ended.
  [[nodiscard]] bool is_collected(Lsn lsn) const;
  /// The tree is sound here: what has been collected may be appended.
  template <Memory M>
  void end_operation(M& memory);
  /// A transaction that leaves no room for its rollback must not go on. It is asked before an operation begins,
  /// so with room for one: a split that writes two pages anew, in a log that has it.
  void require_rollback() const;
  template <Memory M>
  void append_part(M& memory);
  template <Memory M>
  bool close(M& memory, End end);
  template <Memory M>
  void append(M& memory, End end);

  // undo.hpp
  /// Fills the list of undo with the records of the open transaction, from the log and from the buffer.
  template <Memory M>
  void collect_undo(M& memory);

  template <Memory M, typename Undo>
  void take_back(M& memory, Undo&& undo);

  /// Opens the transaction of the next log whose last one has no end.
  template <Memory M>
  void resume_loser(M& memory);

  LogRegions regions_;
  bool makes_redo_;
  Stamps stamps_;
  std::uint64_t pieces_;    ///< of a log, of which a truncation frees one
  std::uint64_t capacity_;  ///< of the batch buffer, for records
  Place place_;
  std::vector<LogFile> logs_;
  std::optional<CommitOrder> order_;  ///< of several logs, as epochs_
  std::optional<Epochs> epochs_;
  Lsn horizon_ = 0;                        ///< nothing before it is redone
  std::vector<Transaction> transactions_;  ///< by thread
  Transaction* mine_ = nullptr;            ///< of the thread that works
  std::uint64_t begun_ = 0;                ///< transactions
  std::vector<Loser> losers_;              ///< by log, from replay() to finish()
  std::uint64_t batches_ = 0;
  std::uint64_t bytes_ = 0;  ///< with the entries' headers and padding
  std::uint64_t early_ = 0;
  std::uint64_t aborts_ = 0;
};

}  // namespace pmsim::engines::wal

#include "pmsim/engines/wal/batch.hpp"
#include "pmsim/engines/wal/undo.hpp"
