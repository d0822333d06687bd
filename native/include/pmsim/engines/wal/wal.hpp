#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pmsim/blocks/log/any.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/wal/no_log.hpp"
#include "pmsim/engines/wal/record.hpp"
#include "pmsim/engines/wal/sector_log.hpp"
#include "pmsim/engines/wal/undo_list.hpp"

namespace pmsim::engines::wal {

/// Write-ahead log of a store with one transaction at a time (section 2.3 of the paper; ARIES, Mohan et al.
/// 1992): redo in terms of pages, undo in terms of the tree.
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
/// no-steal (pages of the open transaction stay in DRAM) this needs no action (durable_lsn() is for asserting
/// it).
///
/// Without a log (EngineOptions::log_device, NoLog) records go no further than the buffer, and nothing is
/// durable.
///
/// Several threads collect their transactions in buffers of their own, and append under the log's latch.
///
/// Restart: replay() repeats history, also of a transaction without end (analysis needs no pass of its own: the
/// only loser is the last transaction of the log), and remembers what that must take back; finish() does so.
/// Undo writes ordinary redo records (ARIES's CLRs) and, after each operation, how much is left (kUndone), so
/// that a crash during undo never undoes twice.
class Wal {
  using Log = std::variant<blocks::log::AnyLog, SectorLog, NoLog>;

  template <typename Question>
  [[nodiscard]] auto ask(Question question) const {
    return std::visit(question, *log_);
  }

 public:
  /// Its log's regions. The same places must be given after a restart.
  struct Place {
    Address log = 0;
    Address buffer = 0;  ///< DRAM
  };
  /// The DRAM buffer, in pages: unless options say something else, and at least (an operation may copy half a
  /// page on every level of the tree, and a root as a whole, into the half that early appends leave free).
  static constexpr std::uint64_t kBatchPages = 16, kLeastPages = 6;
  /// Writing a record, besides its stores: building its head, checking room, copying loop.
  static constexpr std::uint32_t kInstructionsPerRecord = 16;

  /// Allocates and creates an empty log; durable on return. Throws ConfigError where the options cannot be.
  template <Memory M>
  Wal(M& memory, const EngineOptions& options) : Wal(options) {
    const bool ssd = on_ssd();
    if (is_kept())
      place_.log = memory.allocate(ssd ? memory::Medium::kBlock : memory::Medium::kPmem, options.log_bytes,
                                   {.name = "write-ahead log"});
    place_.buffer =
        memory.allocate(memory::Medium::kDram, latch_offset() + latch_bytes(), {.name = "log buffer"});
    if (!is_kept())
      log_ = NoLog();
    else if (ssd)
      log_ = SectorLog::create(memory, place_.log, options.log_bytes, place_.buffer, buffer_bytes());
    else
      log_ = blocks::log::AnyLog::create(memory, options.log_algorithm, log_place(), log_options());
    check_size();
  }

  /// The log that the above has made, after a restart; nothing where it had not finished.
  template <Memory M>
  [[nodiscard]] static std::optional<Wal> recover(M& memory, const EngineOptions& options, const Place& place) {
    require_durable(options);
    Wal wal(options);
    wal.place_ = place;
    if (wal.on_ssd()) {
      auto log = SectorLog::recover(memory, place.log, options.log_bytes, place.buffer, wal.buffer_bytes());
      if (!log)
        return std::nullopt;
      wal.log_ = *log;
    } else {
      auto log =
          blocks::log::AnyLog::recover(memory, options.log_algorithm, wal.log_place(), wal.log_options());
      if (!log)
        return std::nullopt;
      wal.log_ = *std::move(log);
    }
    return wal;
  }

  /// Throws ConfigError where options say that nothing is.
  static void require_durable(const EngineOptions& options) {
    if (drops(options))
      throw ConfigError("log_device = \"" + options.log_device +
                        "\": nothing is durable, so there is nothing to restart; choose pmem or ssd");
  }

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] std::uint64_t capacity() const {
    return ask([](const auto& log) { return log.capacity(); });
  }
  /// Bytes of the log in use.
  [[nodiscard]] std::uint64_t used() const { return tail() - head(); }
  /// Everything before it is durable.
  [[nodiscard]] Lsn durable_lsn() const { return tail(); }
  /// Where the batch that is being collected will lie: what a page remembers when it becomes dirty, because the
  /// log can be truncated to the beginning of a batch.
  [[nodiscard]] Lsn batch_lsn() const { return tail(); }
  /// The log must not be truncated beyond it: where the open transaction begins.
  [[nodiscard]] Lsn open_lsn() const { return first_part_ != 0 ? first_part_ : tail(); }
  /// What a transaction finds free when it begins: a quarter of the log, and in a small one as much as two full
  /// batch buffers take (at most half: check_size()).
  [[nodiscard]] std::uint64_t reserve() const { return std::max(capacity() / 4, 2 * capacity_); }
  /// The log is filled up to the reserve: it has to be truncated before a transaction begins.
  [[nodiscard]] bool is_at_reserve() const { return used() > capacity() - reserve(); }
  /// The log reaches further back than changes of dirty pages should.
  [[nodiscard]] bool cleaning_is_due() const { return used() > kept(); }
  /// Pages whose first change lies before it are to be written back now; then the log can be truncated to it.
  [[nodiscard]] Lsn due_lsn() const { return tail() - std::min(kept(), used()); }
  [[nodiscard]] bool is_open() const noexcept { return open_; }

  /// The thread whose transactions run from now on: it collects them in a buffer of its own.
  void work_as(std::uint32_t thread) noexcept { buffer_ = thread % buffers(); }

  void begin() {
    ensure(!open_, "wal: a transaction inside of another");
    open_ = true;
    ++transaction_;
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
    return put(memory, {Kind::kAllocate, 0, 0, 0, 0, page}, {});
  }
  template <Memory M>
  Lsn release(M& memory, PageId page) {
    return put(memory, {Kind::kRelease, 0, 0, 0, 0, page}, {});
  }

  /// Begins an operation of the tree. Ignored while undoing: undo is not undone.
  template <Memory M>
  void note_undo(M& memory, const UndoRecord& record) {
    if (undoing_)
      return;
    end_operation(memory);
    const Kind kind = record.kind == UndoRecord::Kind::kUpdate   ? Kind::kUpdate
                      : record.kind == UndoRecord::Kind::kInsert ? Kind::kInsert
                                                                 : Kind::kErase;
    put(memory, {kind, 0, record.table, narrow(record.offset), narrow(record.before.size()), record.key},
        record.before);
  }

  /// Makes the log durable up to `lsn`, also in the middle of a transaction: before a change in place (steal).
  /// What has been collected must be whole operations of the tree.
  template <Memory M>
  void force(M& memory, Lsn lsn) {
    if (lsn >= tail() && used_ > 0)
      append_part(memory);
  }

  /// Whether anything had to be appended.
  template <Memory M>
  bool commit(M& memory) {
    ensure(open_, "wal: a commit without a transaction");
    return close(memory, End::kCommit);
  }

  /// undo(record) takes back one operation, through this log; its records are redo records like all others.
  template <Memory M, typename Undo>
  void abort(M& memory, Undo&& undo) {
    ensure(open_, "wal: an abort without a transaction");
    if (used_ == 0 && first_part_ == 0) {
      open_ = false;
      return;
    }
    collect_undo(memory);
    take_back(memory, undo);
    ++aborts_;
  }

  /// Durable on return: the records before `end`, a batch_lsn() of a page, are gone.
  template <Memory M>
  void truncate_to(M& memory, Lsn end) {
    end = std::min(end, open_lsn());
    if (end <= head())
      return;
    const memory::InSection section(memory, memory::Section::kLog);
    const HeldLatch<M> alone = latch(memory);
    std::visit([&](auto& log) { log.truncate_to(memory, end); }, *log_);
  }

  /// Calls redo(record, lsn, batch lsn) for every redo record of the log, oldest first. Afterwards finish() is
  /// due.
  template <Memory M, typename Redo>
  void replay(M& memory, Redo&& redo) {
    undo_.clear();
    first_part_ = 0;
    const auto visit = [&](Lsn lsn, std::span<const std::byte> batch) {
      std::uint64_t word = 0;
      ensure(batch.size() >= sizeof word, "wal: an entry of the log is too short");
      std::memcpy(&word, batch.data(), sizeof word);
      const BatchHead head = BatchHead::of(word);
      transaction_ = std::max(transaction_, head.transaction);
      if (first_part_ == 0)
        first_part_ = lsn;
      const bool whole = for_each_record(batch, [&](std::uint64_t offset, const Record& record) {
        if (is_redo(record.head.kind))
          redo(record, lsn + offset, lsn);
        else
          undo_.note(record);
      });
      ensure(whole, "wal: a batch of the log is damaged");
      if (head.end != End::kPart) {
        first_part_ = 0;
        undo_.clear();
      }
    };
    std::visit([&](const auto& log) { log.for_each(memory, visit); }, *log_);
    open_ = first_part_ != 0;
  }
  /// Takes back what the transaction without end did, if there is one.
  template <Memory M, typename Undo>
  void finish(M& memory, Undo&& undo) {
    if (open_)
      take_back(memory, undo);
  }

  void counters(std::map<std::string, double>& into) const {
    into["log_batches"] = static_cast<double>(batches_);
    into["log_bytes"] = static_cast<double>(bytes_);
    into["log_early_appends"] = static_cast<double>(early_);
    into["log_aborts"] = static_cast<double>(aborts_);
  }

 private:
  explicit Wal(const EngineOptions& options)
      : options_(options), makes_redo_(options.log_device != "none"), latched_(Latches::are_needed(options)) {
    if (options.log_device != "pmem" && options.log_device != "ssd" && is_kept())
      throw ConfigError("log_device = \"" + options.log_device + "\": must be pmem, ssd, unwritten or none");
    const auto& known = blocks::log::kAlgorithms;
    if (is_kept() && !on_ssd() && std::ranges::find(known, options.log_algorithm) != known.end() &&
        !blocks::log::has_entries(options.log_algorithm))
      throw ConfigError("log_algorithm = \"" + options.log_algorithm +
                        "\": it keeps no entries, so a restart could not tell transactions apart; choose " +
                        blocks::log::known_algorithms(true));
    capacity_ = options.log_buffer_bytes != 0
                    ? options.log_buffer_bytes
                    : std::max(std::min(kBatchPages * options.page_bytes, options.log_bytes / 5),
                               kLeastPages * options.page_bytes);
    capacity_ = blocks::log::round_up(capacity_, kSectorBytes);
    if (capacity_ < kLeastPages * options.page_bytes)
      throw ConfigError("log_buffer_bytes = " + std::to_string(options.log_buffer_bytes) +
                        ": an operation that splits a page must fit into half of it; at least " +
                        std::to_string(kLeastPages * options.page_bytes) + " (six pages) are needed");
    if (is_kept() && !on_ssd())
      scratch_.resize(BatchHead::kBytes + capacity_);
  }

  [[nodiscard]] bool on_ssd() const noexcept { return options_.log_device == "ssd"; }
  [[nodiscard]] static bool drops(const EngineOptions& options) noexcept {
    return options.log_device == "unwritten" || options.log_device == "none";
  }
  [[nodiscard]] bool is_kept() const noexcept { return !drops(options_); }
  /// Room for an entry's header, the batch, and a sector (SectorLog).
  [[nodiscard]] std::uint64_t buffer_bytes() const noexcept {
    return blocks::log::round_up(SectorLog::kHeadBytes + BatchHead::kBytes + capacity_, kSectorBytes) +
           kSectorBytes;
  }
  /// Of Layout::kDramTail: the largest entry of any algorithm, and the line that it begins in.
  [[nodiscard]] std::uint64_t tail_bytes() const {
    return is_kept() && !on_ssd() && options_.log_layout == "dram-tail"
               ? blocks::log::round_up(capacity_ + capacity_ / 32 + 1024, memory::kLineBytes)
               : 0;
  }
  /// One for each thread; on SSD the log reads it from where it was made.
  [[nodiscard]] std::uint64_t buffers() const noexcept { return latched_ && !on_ssd() ? options_.threads : 1; }
  /// The log's latch, in the region of the buffers: an entry is appended by one thread at a time.
  [[nodiscard]] std::uint64_t latch_offset() const {
    return blocks::log::round_up(buffers() * buffer_bytes() + tail_bytes(), memory::kLineBytes);
  }
  [[nodiscard]] std::uint64_t latch_bytes() const noexcept { return latched_ ? memory::kLineBytes : 0; }
  template <Memory M>
  [[nodiscard]] HeldLatch<M> latch(M& memory) const {
    return HeldLatch<M>(memory, latched_ ? place_.buffer + latch_offset() : 0, LatchMode::kExclusive);
  }
  [[nodiscard]] blocks::log::Place log_place() const {
    return {place_.log, options_.log_bytes, tail_bytes() == 0 ? 0 : place_.buffer + buffers() * buffer_bytes(),
            tail_bytes()};
  }
  [[nodiscard]] blocks::log::Options log_options() const {
    return {.layout = blocks::log::layout_named(options_.log_layout), .fields = 64};
  }
  void check_size() const {
    if (capacity() < 4 * capacity_)
      throw ConfigError("log_bytes = " + std::to_string(options_.log_bytes) + ": too small; choose at least " +
                        std::to_string(5 * capacity_) +
                        ", for four batches of log records and the log's own header");
  }

  /// Length of log that changes of dirty pages may be spread over. A 64th less than may be in use, so that a
  /// truncation, which has a price of its own, frees that much.
  [[nodiscard]] std::uint64_t kept() const { return capacity() - reserve() - capacity() / 64; }
  [[nodiscard]] Lsn head() const {
    return ask([](const auto& log) { return log.head(); });
  }
  [[nodiscard]] Lsn tail() const {
    return ask([](const auto& log) { return log.tail(); });
  }

  [[nodiscard]] static std::uint16_t narrow(std::uint64_t value) {
    ensure(value < 0x1'0000, "wal: a record of more than 64 KiB");
    return static_cast<std::uint16_t>(value);
  }
  /// Of the batch, in the buffer: behind the room for the header of an entry on SSD.
  [[nodiscard]] Address batch() const noexcept {
    return place_.buffer + buffer_ * buffer_bytes() + SectorLog::kHeadBytes;
  }

  template <Memory M>
  Lsn put(M& memory, const RecordHead& head, std::span<const std::byte> data) {
    ensure(open_, "wal: a change outside of a transaction");
    if (!makes_redo_ && is_redo(head.kind))
      return tail() + BatchHead::kBytes + used_;
    const memory::InSection section(memory, memory::Section::kLog);
    const std::uint64_t bytes = footprint(data_bytes(head));
    if (used_ + bytes > capacity_)
      throw ConfigError("one operation logs more than " + std::to_string(capacity_) +
                        " bytes, the log buffer; raise log_buffer_bytes");
    const std::uint64_t at = BatchHead::kBytes + used_;
    memory.compute(0, kInstructionsPerRecord);
    memory.write(batch() + at, std::as_bytes(std::span(&head, 1)));
    if (!data.empty()) {
      memory.write(batch() + at + sizeof head, data);
      if (const std::size_t rest = bytes - sizeof head - data.size(); rest > 0) {
        static constexpr std::array<std::byte, blocks::log::kWord> kZeros{};
        memory.write(batch() + at + sizeof head + data.size(), std::span(kZeros).first(rest));
      }
    }
    used_ += bytes;
    return tail() + at;
  }

  /// The tree is sound here: what has been collected may be appended.
  template <Memory M>
  void end_operation(M& memory) {
    if (used_ > capacity_ / 2)
      append_part(memory);
  }

  template <Memory M>
  void append_part(M& memory) {
    if (!is_kept() && !undoing_)
      throw ConfigError("a transaction makes more than " + std::to_string(capacity_ / 2) +
                        " bytes of log, which could not be rolled back with log_device = \"" +
                        options_.log_device + "\"; choose pmem or ssd, or make the transaction smaller");
    // Rolling back writes about as much again; a transaction that leaves no room for it must not go on.
    parts_bytes_ += used_;
    const bool fits = ask([&](const auto& log) {
      return log.fits(undoing_ ? BatchHead::kBytes + used_
                               : 2 * BatchHead::kBytes + 2 * parts_bytes_ + capacity_);
    });
    if (!fits)
      throw ConfigError(
          "a transaction with more than " + std::to_string(parts_bytes_) +
          " bytes of log does not fit into the log, of which it must leave half for its rollback: " +
          std::to_string(used()) + " of " + std::to_string(capacity()) +
          " bytes are in use; raise log_bytes or make the transaction smaller");
    if (first_part_ == 0)
      first_part_ = tail();
    append(memory, End::kPart);
    ++early_;
  }

  template <Memory M>
  bool close(M& memory, End end) {
    const bool anything = used_ > 0 || first_part_ != 0;
    if (anything)
      append(memory, end);
    open_ = false;
    first_part_ = 0;
    parts_bytes_ = 0;
    return anything;
  }

  template <Memory M>
  void append(M& memory, End end) {
    const memory::InSection section(memory, memory::Section::kLog);
    memory.template store<std::uint64_t>(batch(), BatchHead{transaction_, end}.word());
    const std::uint64_t bytes = BatchHead::kBytes + used_;
    const Lsn before = tail();
    if (auto* log = std::get_if<SectorLog>(&*log_)) {
      const HeldLatch<M> alone = latch(memory);
      log->append(memory, bytes);
    } else if (auto* dropped = std::get_if<NoLog>(&*log_)) {
      dropped->append(bytes);
    } else {
      const auto payload = std::span(scratch_).first(bytes);
      memory.read(batch(), payload);
      const HeldLatch<M> alone = latch(memory);
      std::get<blocks::log::AnyLog>(*log_).append(memory, payload);
    }
    used_ = 0;
    ++batches_;
    bytes_ += tail() - before;
  }

  /// Fills undo_ with the records of the open transaction, from the log and from the buffer.
  template <Memory M>
  void collect_undo(M& memory) {
    undo_.clear();
    const auto note = [&](std::uint64_t, const Record& record) {
      if (!is_redo(record.head.kind))
        undo_.note(record);
    };
    if (first_part_ != 0) {
      // for_each of a log on SSD reads into the batch buffer: what is there goes first.
      if (on_ssd() && used_ > 0)
        append(memory, End::kPart);
      const auto visit = [&](Lsn, std::span<const std::byte> batch) { for_each_record(batch, note); };
      std::visit([&](const auto& log) { log.for_each(memory, visit, first_part_); }, *log_);
    }
    if (used_ == 0)
      return;
    std::vector<std::byte>& bytes = scratch_;
    bytes.resize(BatchHead::kBytes + capacity_);
    memory.read(batch(), std::span(bytes).first(BatchHead::kBytes + used_));
    for_each_record(std::span<const std::byte>(bytes).first(BatchHead::kBytes + used_), note);
  }

  template <Memory M, typename Undo>
  void take_back(M& memory, Undo&& undo) {
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

  EngineOptions options_;
  bool makes_redo_;
  bool latched_;
  std::uint64_t buffer_ = 0;  ///< of the thread that works
  Place place_;
  std::optional<Log> log_;
  std::uint64_t capacity_ = 0;  ///< of the batch buffer, for records
  std::uint64_t used_ = 0;      ///< of it
  bool open_ = false;
  bool undoing_ = false;
  std::uint64_t transaction_ = 0;
  Lsn first_part_ = 0;             ///< of the open transaction, where parts of it are in the log already; or 0
  std::uint64_t parts_bytes_ = 0;  ///< in these
  UndoList undo_;
  std::vector<std::byte> scratch_;  ///< the registers through which a batch is copied to the log
  std::uint64_t batches_ = 0;
  std::uint64_t bytes_ = 0;  ///< with the entries' headers and padding
  std::uint64_t early_ = 0;
  std::uint64_t aborts_ = 0;
};

}  // namespace pmsim::engines::wal
