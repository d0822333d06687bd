#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/site.hpp"
#include "pmsim/core/crc32c.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/engines/pmem_pages.hpp"

namespace pmsim::engines {

/// Pages that are used and changed where they lie on PMem: the engine NVM Direct (van Renen et al. 2018,
/// section 2.1, after the in-place update engine of Arulraj et al. 2015).
///
/// A change first writes a log entry with the before and the after image and persists it, then changes the page
/// and persists that; when the transaction ends its log is truncated. Undo is physical. Pages need no LSN.
/// What the tree announces as one step (a row inserted or erased: the rows behind it move) is one change: the
/// before images of its ranges, one barrier, the changes, one barrier. Such a step and a move log no after
/// image: nobody reads one, and that of a moved row is where the row has come from.
///
///     meta: {transaction that ended last} | {number of pages, first free page + 1}     a line each
///     log:  entry entry ...        each from a line on; empty at the beginning of every transaction
///     Of several threads each has a log, and a line for its transaction that ended last. A restart ends one of
///     each thread: entries of a step may have survived without the first, and nobody can see them. (Of one
///     thread they only undo what nobody else can have changed.)
///     entry = {transaction, address, bytes of both images, previous entry, crc32c} before image, after image
///
/// Barriers: two per change, one per transaction (2 k + 1 for k changes; a field or a row is one change).
/// Changes to a page that the transaction has allocated itself need no entry, because its rollback frees the
/// page: they are flushed at once and share the next barrier.
///
/// What is durable when. A page changes only after its before image is durable. commit(): everything, on
/// return; the transaction counts from the moment when the number in the first line of meta is durable. What a
/// crash leaves: entries of the transaction with the next number (checked by their CRC; 2^-32 of torn ones are
/// taken for whole), which are the log of a loser; all others are dead. Undo may run any number of times.
/// Released pages join the free list when the transaction ends, so nobody can overwrite what undo needs.
template <memory::Memory M>
class NvmDirectStore : public PmemPages<M, NvmDirectStore<M>> {
  using Base = PmemPages<M, NvmDirectStore<M>>;
  friend Base;
  using Base::capacity_;
  using Base::check_room;
  using Base::free_at;
  using Base::is_fresh;
  using Base::kLinkOffset;
  using Base::moved_;
  using Base::page_at;
  using Base::page_bytes_;
  using Base::pages_;
  using Base::pages_at;
  using Base::place_;

 public:
  static constexpr bool kUndoesPhysically = true;
  using typename Base::Page;
  using typename Base::Site;
  static constexpr Site kEntryFlush = 1300, kEntryFence = 1301, kChangeFlush = 1302, kChangeFence = 1303;
  static constexpr Site kFreshFlush = 1304, kFreshFence = 1305, kEndFlush = 1306, kEndFence = 1307;
  static constexpr Site kUndoFlush = 1308, kUndoFence = 1309;
  static constexpr std::array<blocks::SiteInfo, 13> kSites{{
      {kEntryFlush, "change: write the log entry back"},
      {kEntryFence, "change: wait for the log entry before the page changes"},
      {kChangeFlush, "change: write the changed bytes back"},
      {kChangeFence, "change: wait for the changed bytes"},
      {kFreshFlush, "change of a new page: write the changed bytes back"},
      {kFreshFence, "commit: wait for the changes of new pages"},
      {kEndFlush, "end of transaction: write its number back, which truncates the log"},
      {kEndFence, "end of transaction: wait for its number"},
      {kUndoFlush, "undo: write the before image back"},
      {kUndoFence, "undo: wait for the before images before the log is truncated"},
      Base::kLoadSites[0],
      Base::kLoadSites[1],
      Base::kLoadSites[2],
  }};

  /// Zeroed memory is an empty store: nothing has to be made durable.
  NvmDirectStore(M& memory, const EngineOptions& options) : NvmDirectStore(options) {
    this->allocate_pages(memory);
    place_.meta = memory.allocate(memory::Medium::kPmem, (1 + ended_.size()) * memory::kLineBytes,
                                  {.name = "page allocation"});
    this->place_allocation(place_.meta + ended_.size() * memory::kLineBytes);
    place_.log = memory.allocate(memory::Medium::kPmem, ended_.size() * log_bytes_, {.name = "undo log"});
  }
  /// Undoes what a crash has left of a transaction; durable on return.
  NvmDirectStore(M& memory, const EngineOptions& options, const EnginePlace& place) : NvmDirectStore(options) {
    place_ = place;
    this->place_allocation(place_.meta + ended_.size() * memory::kLineBytes);
    for (thread_ = 0; thread_ < ended_.size(); ++thread_) {
      ended_[thread_] = memory.template load<std::uint64_t>(ended_at());
      tail_ = 0;
      last_ = kNoEntry;
      while (const std::optional<Entry> entry = read_entry(memory, tail_)) {
        last_ = static_cast<std::uint32_t>(tail_ / memory::kLineBytes);
        tail_ += footprint(*entry);
      }
      undo(memory, ended_.size() > 1);
    }
    thread_ = 0;
    this->read_number_of_pages(memory);
  }

  Page allocate(M& memory) {
    Page fresh;
    const auto free = memory.template load<std::uint64_t>(free_at());
    if (free != 0) {
      fresh = page_at(free - 1);
      const auto next = memory.template load_dependent<std::uint64_t>(fresh.address + kLinkOffset);
      change_word(memory, free_at(), next);
      // The link must come back when the page is free again.
      const std::array<std::uint64_t, 3> header{0, fresh.id, 0};
      change(memory, fresh.address, std::as_bytes(std::span(header)));
    } else {
      check_room();
      fresh = page_at(pages_);
      change_word(memory, pages_at(), ++pages_);
      memory.template store<PageHeader>(fresh.address, {.lsn = 0, .page_id = fresh.id, .reserved = 0});
      memory.flush(fresh.address, sizeof(PageHeader), memory::FlushKind::kClwb, kFreshFlush);
    }
    // An earlier loser may have left something. The rest of the first line, then whole lines.
    static constexpr std::array<std::byte, memory::kLineBytes> kZeros{};
    memory.stream(fresh.address + sizeof(PageHeader), std::span(kZeros).subspan(sizeof(PageHeader)));
    for (std::uint32_t offset = memory::kLineBytes; offset < page_bytes_; offset += memory::kLineBytes)
      memory.stream(fresh.address + offset, kZeros);
    this->add_fresh(fresh.id);
    unfenced_ = true;
    return fresh;
  }
  void overwrite(M& memory, const Page& page, std::uint32_t offset, std::span<const std::byte> bytes) {
    if (stepping_ || is_fresh(page.id))
      return write(memory, page.address + offset, bytes, is_fresh(page.id) ? kFreshFlush : kChangeFlush);
    change(memory, page.address + offset, bytes);
  }
  void move(M& memory, const Page& page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    if (bytes == 0)
      return;
    const auto moved = std::span(moved_).first(bytes);  // stands for registers
    memory.read(page.address + from, moved);
    if (stepping_ || is_fresh(page.id))
      return write(memory, page.address + to, moved, is_fresh(page.id) ? kFreshFlush : kChangeFlush);
    const Range range{page.address + to, bytes};
    log(memory, std::span(&range, 1), {});
    write(memory, range.address, moved, kChangeFlush);
    fence(memory, kChangeFence);
  }
  void announce(M& memory, const Page& page, std::span<const PageRange> ranges) {
    if (is_fresh(page.id))
      return;
    step_.clear();
    for (const PageRange& range : ranges) {
      if (range.bytes != 0)
        step_.push_back({page.address + range.offset, range.bytes});
    }
    log(memory, step_, {});
    stepping_ = true;
  }
  void settle(M& memory, const Page&) {
    if (stepping_)
      fence(memory, kChangeFence);
    stepping_ = false;
  }

  void work_as(std::uint32_t thread) noexcept { thread_ = thread % ended_.size(); }
  void begin(M&) const noexcept {}
  void note_undo(M&, const UndoRecord&) const noexcept {}
  void commit(M& memory) {
    this->free_released(memory);
    if (unfenced_)
      fence(memory, kFreshFence);
    end(memory);
  }
  template <typename Undo>
  void abort(M& memory, Undo&&) {
    undo(memory);
    this->read_number_of_pages(memory);
  }

  void counters(std::map<std::string, double>& into) const {
    into["pages"] = static_cast<double>(pages_);
    into["log_batches"] = static_cast<double>(entries_);
    into["log_bytes"] = static_cast<double>(logged_bytes_);
    into["barriers"] = static_cast<double>(barriers_);
    into["pages_allocated"] = static_cast<double>(this->allocated());
  }

 private:
  struct Entry {
    std::uint64_t transaction = 0;
    Address address = 0;
    std::uint32_t before = 0;    ///< bytes of the before image
    std::uint32_t after = 0;     ///< bytes of the after image: as many, or none
    std::uint32_t previous = 0;  ///< the line where the entry before it begins, or kNoEntry
    std::uint32_t check = 0;     ///< crc32c of the rest of the entry
  };
  static_assert(sizeof(Entry) == 32);
  static constexpr std::uint32_t kNoEntry = ~std::uint32_t{0};
  /// Bytes on PMem.
  struct Range {
    Address address;
    std::uint32_t bytes;
  };
  /// Of the checksum, per 8 bytes: crc32 with a memory operand, addition, compare-and-branch.
  static constexpr std::uint32_t kInstructionsPerWord = 3;
  static constexpr std::uint32_t kInstructionsPerEntry = 20;

  explicit NvmDirectStore(const EngineOptions& options)
      : Base(options),
        log_bytes_(options.log_bytes / memory::kLineBytes * memory::kLineBytes),
        ended_(Latches::are_needed(options) ? options.threads : 1) {
    if (log_bytes_ < 4 * std::uint64_t{page_bytes_})
      throw ConfigError("engine nvm-direct: log_bytes = " + std::to_string(options.log_bytes) +
                        ": too small; choose at least " + std::to_string(4 * std::uint64_t{page_bytes_}) +
                        ", four pages, for the images of a split");
    before_.resize(page_bytes_);
  }

  [[nodiscard]] Address ended_at() const noexcept { return place_.meta + thread_ * memory::kLineBytes; }
  [[nodiscard]] Address log_at() const noexcept { return place_.log + thread_ * log_bytes_; }
  /// From the beginning of an entry: its after image, and what comes behind that.
  [[nodiscard]] static std::uint64_t after_at(const Entry& entry) noexcept {
    return sizeof(Entry) + (std::uint64_t{entry.before} + 7) / 8 * 8;
  }
  [[nodiscard]] static std::uint64_t footprint(const Entry& entry) noexcept {
    return (after_at(entry) + entry.after + memory::kLineBytes - 1) / memory::kLineBytes * memory::kLineBytes;
  }
  [[nodiscard]] static std::uint32_t checksum(Entry entry, std::span<const std::byte> before,
                                              std::span<const std::byte> after) noexcept {
    entry.check = 0;
    return crc32c_fast(after, crc32c_fast(before, crc32c_fast(std::as_bytes(std::span(&entry, 1)))));
  }

  template <typename Word>
  void change_word(M& memory, Address address, Word value) {
    change(memory, address, std::as_bytes(std::span(&value, 1)));
  }

  /// One logged change in place.
  void change(M& memory, Address address, std::span<const std::byte> after) {
    if (after.empty())
      return;
    const Range range{address, static_cast<std::uint32_t>(after.size())};
    log(memory, std::span(&range, 1), after);
    write(memory, address, after, kChangeFlush);
    fence(memory, kChangeFence);
  }
  /// The before images of ranges, and an after image of the only one. Durable on return.
  void log(M& memory, std::span<const Range> ranges, std::span<const std::byte> after) {
    const memory::InSection section(memory, memory::Section::kLog);
    for (const Range& range : ranges) {
      Entry entry{.transaction = ended_[thread_] + 1,
                  .address = range.address,
                  .before = range.bytes,
                  .after = static_cast<std::uint32_t>(after.size()),
                  .previous = last_};
      const std::uint64_t size = footprint(entry);
      if (tail_ + size > log_bytes_)
        throw ConfigError("engine nvm-direct: a transaction changes more than fits into log_bytes = " +
                          std::to_string(log_bytes_) + "; raise it");
      const auto before = std::span(before_).first(range.bytes);
      memory.read(range.address, before);
      entry.check = checksum(entry, before, after);
      memory.compute(0, kInstructionsPerEntry);
      for (std::uint64_t done = 0; done < size; done += memory::kLineBytes)
        memory.compute(0, kInstructionsPerWord * 8);
      const Address at = log_at() + tail_;
      memory.write(at, std::as_bytes(std::span(&entry, 1)));
      memory.write(at + sizeof entry, before);
      if (!after.empty())
        memory.write(at + after_at(entry), after);
      memory.flush(at, after_at(entry) + entry.after, memory::FlushKind::kClwb, kEntryFlush);
      last_ = static_cast<std::uint32_t>(tail_ / memory::kLineBytes);
      tail_ += size;
      logged_bytes_ += size;
    }
    fence(memory, kEntryFence);
    ++entries_;
  }
  /// To be fenced.
  void write(M& memory, Address address, std::span<const std::byte> bytes, Site flush) {
    memory.write(address, bytes);
    memory.flush(address, bytes.size(), memory::FlushKind::kClwb, flush);
    unfenced_ = true;
  }
  void fence(M& memory, Site site) {
    memory.sfence(site);
    unfenced_ = false;
    ++barriers_;
  }

  /// The entry at `at`, where it is a whole one of the transaction that has not ended. Fills before_.
  [[nodiscard]] std::optional<Entry> read_entry(M& memory, std::uint64_t at) {
    if (at + sizeof(Entry) > log_bytes_)
      return std::nullopt;
    Entry entry;
    memory.read(log_at() + at, std::as_writable_bytes(std::span(&entry, 1)));
    if (entry.transaction != ended_[thread_] + 1 || entry.previous != last_ || entry.before > page_bytes_ ||
        (entry.after != 0 && entry.after != entry.before) || footprint(entry) > log_bytes_ - at)
      return std::nullopt;
    const auto before = std::span(before_).first(entry.before);
    const auto after = std::span(moved_).first(entry.after);
    memory.read(log_at() + at + sizeof entry, before);
    if (!after.empty())
      memory.read(log_at() + at + after_at(entry), after);
    return checksum(entry, before, after) == entry.check ? std::optional(entry) : std::nullopt;
  }

  /// Puts back the before images, latest first, and truncates the log; `always`: also where it seems to be
  /// empty.
  void undo(M& memory, bool always = false) {
    const bool anything = last_ != kNoEntry;
    while (last_ != kNoEntry) {
      const Address at = log_at() + std::uint64_t{last_} * memory::kLineBytes;
      Entry entry;
      memory.read(at, std::as_writable_bytes(std::span(&entry, 1)));
      const auto before = std::span(before_).first(entry.before);
      memory.read(at + sizeof entry, before);
      memory.write(entry.address, before);
      memory.flush(entry.address, entry.before, memory::FlushKind::kClwb, kUndoFlush);
      last_ = entry.previous;
    }
    if (anything)
      fence(memory, kUndoFence);
    end(memory, always);
  }
  /// The transaction's number is what truncates its log: its entries are dead when it is durable.
  void end(M& memory, bool always = false) {
    if (tail_ != 0 || always) {
      const memory::InSection section(memory, memory::Section::kLog);
      memory.template store<std::uint64_t>(ended_at(), ++ended_[thread_]);
      memory.flush(ended_at(), sizeof(std::uint64_t), memory::FlushKind::kClwb, kEndFlush);
      fence(memory, kEndFence);
    }
    this->forget_transaction();
    tail_ = 0;
    last_ = kNoEntry;
    unfenced_ = false;
    stepping_ = false;
  }

  std::uint64_t log_bytes_;
  std::vector<std::uint64_t> ended_;  ///< of each thread that has a log: shadow of its word on PMem
  std::uint64_t thread_ = 0;          ///< that works
  std::uint64_t tail_ = 0;            ///< of the log
  std::uint32_t last_ = kNoEntry;     ///< entry: its line in the log
  bool unfenced_ = false;
  bool stepping_ = false;          ///< between announce() and settle() of a page that is not fresh
  std::vector<Range> step_;        ///< what was announced
  std::vector<std::byte> before_;  ///< stands for registers
  std::uint64_t entries_ = 0;
  std::uint64_t logged_bytes_ = 0;
  std::uint64_t barriers_ = 0;
};

}  // namespace pmsim::engines
