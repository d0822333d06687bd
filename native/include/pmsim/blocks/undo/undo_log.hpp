#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/blocks/pmem_memcpy.hpp"
#include "pmsim/blocks/undo/checksum.hpp"
#include "pmsim/blocks/undo/range_set.hpp"
#include "pmsim/blocks/undo/redo_log.hpp"

namespace pmsim::blocks::undo {

/// A transaction of PMDK: what is to be changed in place is copied to an undo log first.
///
///     line 0: format, capacity, -, generation | redo log, 704 bytes | entries
///     entry: operation and target, checksum, size, 40 bytes of data | data, whole lines
///
/// - begin() writes nothing. add_range() returns when a snapshot of the range is DURABLE; from then on the
/// caller
///   may store to it. Overlaps of ranges are snapshotted once. add_fresh() is for bytes that nobody sees unless
///   the transaction commits (a new object): no snapshot.
/// - commit() returns when everything stored to the ranges is DURABLE and nothing will roll it back.
/// - abort() returns when the ranges are as before. What add_fresh() named is arbitrary then.
/// - recover() rolls an unfinished transaction back, or completes a commit that had begun. Idempotent.
///
/// Whether an entry counts. Its checksum covers the generation number of the log; commit, abort and rollback
/// add one to it, and all entries are old with that one word. Where a commit changes other words besides (the
/// heap's), the redo log makes them change together.
///
/// The steps are those of PMDK 1.8: an entry is streamed, its first line last, and its successor's header is
/// streamed over with zeros and fenced before (operation_add_buffer, ulog_entry_buf_create); commit flushes all
/// ranges and fences, once for itself and once for the headers of objects (pmemobj_tx_commit,
/// palloc_exec_actions). A log of PMDK begins with 2 KiB and goes on in ulogs of 32 KiB that it allocates, and
/// frees at the end of the transaction but for the first (lane_undo_extend, ulog_clobber_data). Here they are
/// adjacent: an entry ends where a ulog ends, and each that PMDK would allocate and free costs the cycles of
/// two calls. What these calls write (some ten lines for 512 of snapshots) is left out.
class UndoLog {
 public:
  static constexpr std::uint64_t kHeaderBytes = kLineBytes + RedoLog::kBytes;
  static constexpr std::uint64_t kFirstUlogBytes = 2048;  ///< LANE_UNDO_SIZE
  static constexpr std::uint64_t kNextUlogBytes = 32768;  ///< TX_DEFAULT_RANGE_CACHE_SIZE

  static constexpr Site kFormatOrder = 900, kFormatFlush = 901, kFormatFence = 902;
  static constexpr Site kClobberFence = 903, kSnapshotFence = 904;
  static constexpr Site kCommitFlush = 905, kCommitFence = 906;  // 907, 908: RedoLog::kWordSites
  static constexpr Site kAbortFlush = 909, kAbortFence = 910, kAbortEndFlush = 911, kAbortEndFence = 912;
  static constexpr Site kRecoverFlush = 913, kRecoverFence = 914, kRecoverEndFlush = 915,
                        kRecoverEndFence = 916;
  /// The log's own; a program has RedoLog::kWordSites besides, and kLogSites where commits change several
  /// words.
  static constexpr std::array kSites{
      SiteInfo{kFormatOrder, "create: capacity and generation before the format word of the same line"},
      SiteInfo{kFormatFlush, "create: write the header back"},
      SiteInfo{kFormatFence, "create: wait for the header"},
      SiteInfo{
          kClobberFence, "add range: wait until no entry follows",
          "entries of other transactions have another generation; only data made to look like an entry of this "
          "one could follow"},
      SiteInfo{kSnapshotFence, "add range: wait for the snapshot before anything is stored to the range"},
      SiteInfo{kCommitFlush, "commit: write the ranges back"},
      SiteInfo{kCommitFence, "commit: wait for the ranges before the snapshots get old (both fences of PMDK)"},
      SiteInfo{kAbortFlush, "abort: write the restored ranges back"},
      SiteInfo{kAbortFence, "abort: wait for a restored range before the snapshots get old"},
      SiteInfo{kAbortEndFlush, "abort: write the generation back"},
      SiteInfo{
          kAbortEndFence, "abort: wait for the generation",
          "rolling back once more changes nothing before the next snapshot, whose fence waits for it as well"},
      SiteInfo{kRecoverFlush, "recovery: write the restored ranges back"},
      SiteInfo{kRecoverFence, "recovery: wait for the restored ranges before the snapshots get old"},
      SiteInfo{kRecoverEndFlush, "recovery: write the generation back"},
      SiteInfo{
          kRecoverEndFence, "recovery: wait for the generation",
          "rolling back once more changes nothing before the next snapshot, whose fence waits for it as well"},
  };

  /// A new log in zeroed memory; durable on return. Throws ConfigError where the place is too small.
  template <Memory M>
  [[nodiscard]] static UndoLog create(M& memory, const Place& place, const Options& options = {}) {
    UndoLog log(place, options);
    memory.template store<std::uint64_t>(place.base + kCapacityAt, log.capacity_);
    memory.template store<std::uint64_t>(log.generation_address(), log.generation_);
    memory.order(kFormatOrder);
    memory.template store<std::uint64_t>(place.base, kFormat);
    memory.flush(place.base, kLineBytes, memory::FlushKind::kClwb, kFormatFlush);
    memory.sfence(kFormatFence);
    log.recovered_ = true;
    return log;
  }

  /// Opens what create() has made; nothing where it had not finished. recover() comes next.
  template <Memory M>
  [[nodiscard]] static std::optional<UndoLog> open(M& memory, const Place& place, const Options& options = {}) {
    UndoLog log(place, options);
    const auto format = memory.template load<std::uint64_t>(place.base);
    if (format == 0)
      return std::nullopt;
    if (format != kFormat)
      throw ConfigError("undo log: the place holds something else");
    const auto capacity = memory.template load<std::uint64_t>(place.base + kCapacityAt);
    if (capacity != log.capacity_)
      throw ConfigError("undo log: it was created with room for " + std::to_string(capacity) +
                        " bytes of entries, not " + std::to_string(log.capacity_));
    return log;
  }

  /// Durable on return. Returns how many entries were rolled back. Objects of a heap are right after it, too.
  template <Memory M>
  std::uint64_t recover(M& memory) {
    redo_.recover(
        memory);  // first: it may say that the undo log's entries are old (lane_recover_and_section_boot)
    generation_ = memory.template load<std::uint64_t>(generation_address());
    std::uint64_t restored = 0;
    for_each_entry(memory, [&](Address target, std::span<const std::byte> data) {
      put_back(memory, target, data, kRecoverFlush);
      ++restored;
    });
    if (restored > 0)
      memory.sfence(kRecoverFence);
    // A first entry that a crash has torn gets old as well. Transactions without a snapshot leave the
    // generation as it is, and after them the first entry of another one may be torn so that it brings just
    // what this one lacks.
    if (restored > 0 || !is_first_place_zero(memory))
      end_generation(memory, kRecoverEndFlush, kRecoverEndFence);
    recovered_ = true;
    return restored;
  }

  template <Memory M>
  void begin(M& memory) {
    ensure(recovered_ && !active_, "a transaction began before recovery, or inside of another one");
    library_call(memory);
    active_ = true;
    ++serial_;
    tail_ = 0;
  }

  /// Throws UndoLogFull where the snapshot does not fit; nothing has been written then.
  template <Memory M>
  void add_range(M& memory, Address address, std::uint64_t bytes) {
    ensure(active_, "add_range() outside of a transaction");
    library_call(memory);
    const std::vector<Range> gaps = ranges_.gaps(address, bytes);
    std::uint64_t end = tail_;
    for (const Range& gap : gaps)
      end = end_of(end, gap.bytes);
    if (end > capacity_)
      throw UndoLogFull(end - tail_, capacity_ - tail_, capacity_);
    if (!gaps.empty() && tail_ == 0)  // pmemobj_tx_add_snapshot
      redo_.add(Operation::kSet, generation_address(), generation_ + 1);
    for (const Range& gap : gaps)
      snapshot(memory, gap);
    ranges_.add(address, bytes);
  }

  /// Bytes that no one sees unless the transaction commits: not snapshotted, durable by commit().
  void add_fresh(Address address, std::uint64_t bytes) {
    ensure(active_, "add_fresh() outside of a transaction");
    ranges_.add(address, bytes);
  }

  template <Memory M>
  void commit(M& memory) {
    ensure(active_, "commit() outside of a transaction");
    library_call(memory);
    ranges_.for_each([&](Address begin, std::uint64_t bytes) {  // tx_pre_commit
      memory.flush(begin, bytes, memory::FlushKind::kClwb, kCommitFlush);
    });
    memory.sfence(kCommitFence);
    memory.sfence(kCommitFence);
    redo_.process(memory);
    generation_ += tail_ > 0 ? 1 : 0;
    end_transaction(memory);
  }

  /// tx_abort: the ranges are put back, each with a fence.
  template <Memory M>
  void abort(M& memory) {
    ensure(active_, "abort() outside of a transaction");
    library_call(memory);
    redo_.clear();
    if (tail_ > 0) {
      for_each_entry(memory, [&](Address target, std::span<const std::byte> data) {
        put_back(memory, target, data, kAbortFlush);
        memory.sfence(kAbortFence);
      });
      end_generation(memory, kAbortEndFlush, kAbortEndFence);
    }
    end_transaction(memory);
  }

  // For what commits together with the transaction.

  [[nodiscard]] bool active() const noexcept { return active_; }
  /// Tells transactions apart; it grows with every begin().
  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  /// Throws UndoLogFull where commit() could not change so many words besides its own.
  static void require_words(std::uint64_t words) {
    if (words + 1 > RedoLog::kMostEntries)
      throw UndoLogFull(RedoLog::kMostEntries - 1);
  }
  /// A word that commit() changes, together with all others and with the end of the transaction.
  void at_commit(Operation operation, Address target, std::uint64_t value) {
    ensure(active_, "at_commit() outside of a transaction");
    redo_.add(operation, target, value);
  }
  /// One instruction for each cycle: code of trees, locks and tables. In pieces, because the core's window
  /// holds only a few hundred: nothing of a long call runs ahead of a fence that waits.
  template <Memory M>
  void library_call(M& memory) const {
    for (std::uint32_t left = options_.library_cycles; left > 0;) {
      const std::uint32_t piece = std::min(left, kCallPiece);
      memory.compute(piece, piece);
      left -= piece;
    }
  }

  /// Bytes of a place that has room for one snapshot of so many bytes, or for several of as many together if
  /// each takes whole lines but for 24 bytes.
  [[nodiscard]] static constexpr std::uint64_t place_bytes(std::uint64_t snapshot_bytes) noexcept {
    return kHeaderBytes + std::max<std::uint64_t>(end_of(0, snapshot_bytes), kFirstUlogBytes);
  }

 private:
  static constexpr std::uint64_t kFormat = 0x706d'756e'646f'0001;
  static constexpr std::uint64_t kCapacityAt = 8, kGenerationAt = 24;
  struct EntryHeader {
    std::uint64_t target;
    std::uint64_t checksum;
    std::uint64_t size;
  };
  static constexpr std::uint32_t kCallPiece = 64;  ///< cycles
  static constexpr std::uint64_t kFirstDataBytes = kLineBytes - sizeof(EntryHeader);

  UndoLog(const Place& place, const Options& options)
      : base_(place.base), options_(options), redo_(base_ + kLineBytes) {
    if (place.base % kLineBytes != 0 || place.bytes < kHeaderBytes + 2 * kLineBytes)
      throw ConfigError("undo log: a place of " + std::to_string(place.bytes) +
                        " bytes is too small or not on a line; at least " +
                        std::to_string(kHeaderBytes + 2 * kLineBytes) + " are needed");
    capacity_ = log::round_down(place.bytes - kHeaderBytes, kLineBytes);
  }

  [[nodiscard]] Address generation_address() const noexcept { return base_ + kGenerationAt; }
  [[nodiscard]] Address entry_address(std::uint64_t offset) const noexcept {
    return base_ + kHeaderBytes + offset;
  }

  /// Number and end of the ulog that a byte lies in.
  [[nodiscard]] static constexpr std::uint64_t ulog_of(std::uint64_t offset) noexcept {
    return offset < kFirstUlogBytes ? 0 : 1 + (offset - kFirstUlogBytes) / kNextUlogBytes;
  }
  [[nodiscard]] static constexpr std::uint64_t ulog_end(std::uint64_t offset) noexcept {
    return kFirstUlogBytes + ulog_of(offset) * kNextUlogBytes;
  }
  /// Data of an entry at `offset` of which `bytes` are left, and where it ends.
  [[nodiscard]] static constexpr std::uint64_t piece(std::uint64_t offset, std::uint64_t bytes) noexcept {
    return std::min(bytes, ulog_end(offset) - offset - sizeof(EntryHeader));
  }
  [[nodiscard]] static constexpr std::uint64_t entry_bytes(std::uint64_t data) noexcept {
    return log::round_up(sizeof(EntryHeader) + data, kLineBytes);
  }
  /// Where the entries of a snapshot end that begin at `offset`.
  [[nodiscard]] static constexpr std::uint64_t end_of(std::uint64_t offset, std::uint64_t bytes) noexcept {
    while (bytes > 0) {
      const std::uint64_t data = piece(offset, bytes);
      offset += entry_bytes(data);
      bytes -= data;
    }
    return offset;
  }

  /// operation_add_buffer.
  template <Memory M>
  void snapshot(M& memory, Range range) {
    while (range.bytes > 0) {
      const std::uint64_t data = piece(tail_, range.bytes);
      if (ulog_of(tail_) > 1 && tail_ == ulog_end(tail_) - kNextUlogBytes)
        library_call(memory);  // lane_undo_extend
      const std::uint64_t next = tail_ + entry_bytes(data);
      if (next + kLineBytes <= capacity_) {
        static constexpr std::array<std::byte, kLineBytes> kZeros{};
        memory.stream(entry_address(next), kZeros);
        memory.sfence(kClobberFence);
      }
      write_entry(memory, range.begin, data);
      tail_ = next;
      range.begin += data;
      range.bytes -= data;
    }
  }

  /// ulog_entry_buf_create: the data are read twice, to be copied and to be summed.
  template <Memory M>
  void write_entry(M& memory, Address source, std::uint64_t data) {
    std::vector<std::byte> entry(entry_bytes(data));
    EntryHeader header{target_word(Operation::kRestore, source), 0, data};
    std::memcpy(entry.data(), &header, sizeof header);
    memory.read(source, std::span(entry).subspan(sizeof header, data));
    const Address to = entry_address(tail_);
    const std::span<const std::byte> lines(entry);
    copy_instructions(memory, data);
    if (lines.size() > kLineBytes) {
      memory.stream(to + kLineBytes, lines.subspan(kLineBytes));
      memory.read(source + kFirstDataBytes, std::span(entry).subspan(kLineBytes, data - kFirstDataBytes));
    }
    header.checksum = checksum_of(memory, lines);
    std::memcpy(entry.data(), &header, sizeof header);
    memory.stream(to, lines.first(kLineBytes));
    memory.sfence(kSnapshotFence);
  }

  /// The checksum word of `lines` is zero. Its generation follows them.
  template <Memory M>
  [[nodiscard]] std::uint64_t checksum_of(M& memory, std::span<const std::byte> lines) const {
    log::count_instructions(memory, lines.size(), 0, kFletcherInstructionsPerLine);
    return entry_checksum(std::as_bytes(std::span(&generation_, 1)), entry_checksum(lines));
  }
  template <Memory M>
  static void copy_instructions(M& memory, std::uint64_t bytes) {
    log::count_instructions(memory, bytes, 0, log::kCopyInstructionsPerLine);
  }

  template <Memory M>
  [[nodiscard]] bool is_first_place_zero(M& memory) const {
    std::array<std::uint64_t, kLineBytes / sizeof(std::uint64_t)> words;
    memory.read(entry_address(0), std::as_writable_bytes(std::span(words)));
    return std::ranges::all_of(words, [](std::uint64_t word) { return word == 0; });
  }

  /// Calls visit(target, data) for each entry of this generation, in order (ulog_foreach_entry).
  template <Memory M, typename Visit>
  void for_each_entry(M& memory, Visit&& visit) const {
    std::vector<std::byte> lines;
    for (std::uint64_t offset = 0; offset + kLineBytes <= capacity_; offset += lines.size()) {
      lines.assign(kLineBytes, {});
      memory.read(entry_address(offset), lines);
      EntryHeader header;
      std::memcpy(&header, lines.data(), sizeof header);
      if (operation_of(header.target) != Operation::kRestore || header.size == 0 ||
          header.size > piece(offset, header.size) || offset + entry_bytes(header.size) > capacity_)
        return;
      lines.resize(entry_bytes(header.size));
      if (lines.size() > kLineBytes)
        memory.read(entry_address(offset) + kLineBytes, std::span(lines).subspan(kLineBytes));
      const std::uint64_t checksum = std::exchange(header.checksum, 0);
      std::memcpy(lines.data(), &header, sizeof header);
      if (checksum != checksum_of(memory, lines))
        return;
      visit(target_of(header.target), std::span<const std::byte>(lines).subspan(sizeof header, header.size));
    }
  }

  template <Memory M>
  static void put_back(M& memory, Address target, std::span<const std::byte> data, Site flush) {
    copy_instructions(memory, data.size());
    pmem_memcpy_nodrain(memory, target, data, flush);
  }

  /// ulog_inc_gen_num.
  template <Memory M>
  void end_generation(M& memory, Site flush, Site fence) {
    memory.template store<std::uint64_t>(generation_address(), ++generation_);
    memory.flush(generation_address(), sizeof generation_, memory::FlushKind::kClwb, flush);
    memory.sfence(fence);
  }
  template <Memory M>
  void end_transaction(M& memory) {
    for (std::uint64_t ulog = tail_ > 0 ? ulog_of(tail_ - 1) : 0; ulog > 1; --ulog)
      library_call(memory);  // ulog_free_next
    ranges_.clear();
    tail_ = 0;
    active_ = false;
  }

  Address base_;
  std::uint64_t capacity_ = 0;
  Options options_;
  RedoLog redo_;
  RangeSet ranges_;
  std::uint64_t generation_ = 1;
  std::uint64_t serial_ = 0;
  std::uint64_t tail_ = 0;  ///< behind the entries of this transaction
  bool recovered_ = false;
  bool active_ = false;
};

}  // namespace pmsim::blocks::undo
