#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/undo/undo_log.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/engines/pmem_pages.hpp"

namespace pmsim::engines {

/// Pages on PMem, changed in place in the transactions of libpmemobj: the engine nvm-undo. It is how Imamura et
/// al. (Evaluating a Trade-Off between DRAM and Persistent Memory, MinMove 2017, section 4.2) place the data of
/// an in-memory database on PM: the functions that update leaves run between TX_BEGIN and TX_END, name each
/// range before they change it (pmemobj_tx_add_range_direct), and the commit persists the ranges.
///
///     allocation (PmemPages)     the transactions' log: blocks/undo/undo_log.hpp
///
/// A transaction begins with its first change; lookups cost nothing of it. A change to a range is a snapshot,
/// DURABLE before the range changes, and plain stores; what the tree announces as one step is a snapshot of
/// each of its ranges. A page that the transaction has allocated is zeroed and flushed as a whole by the
/// commit, and nothing of it is snapshotted (pmemobj_tx_zalloc), but for the first line of one that was free:
/// its link must come back with a rollback. The numbers of pages are words that change like all others.
///
/// What is durable when. commit(): everything, on return; before, nothing that a restart would keep: the undo
/// log rolls it back. Undo is physical. Pages need no LSN.
template <memory::Memory M>
class UndoStore : public PmemPages<M, UndoStore<M>> {
  using Base = PmemPages<M, UndoStore<M>>;
  friend Base;
  using Base::check_room;
  using Base::engine_;
  using Base::free_at;
  using Base::is_fresh;
  using Base::kLinkOffset;
  using Base::moved_;
  using Base::page_at;
  using Base::page_bytes_;
  using Base::pages_;
  using Base::pages_at;
  using Base::place_;
  using Log = blocks::undo::UndoLog;

 public:
  static constexpr bool kUndoesPhysically = true;
  using typename Base::Page;

  UndoStore(M& memory, const EngineOptions& options) : UndoStore(options) {
    this->allocate_pages(memory);
    // Behind a line of its own: where the region lies behind that of the pages, what flushes the last page and
    // the allocation must not take them for one range.
    place_.meta = memory.allocate(memory::Medium::kPmem, 2 * memory::kLineBytes, {.name = "page allocation"});
    this->place_allocation(place_.meta + memory::kLineBytes);
    place_.log = memory.allocate(memory::Medium::kPmem, threads_ * log_bytes_, {.name = "undo log"});
    for (std::uint64_t thread = 0; thread < threads_; ++thread)
      logs_.push_back(Log::create(memory, log_place(thread), log_options_));
    log_ = logs_.data();
  }
  /// Rolls back what a crash has left of a transaction; durable on return.
  UndoStore(M& memory, const EngineOptions& options, const EnginePlace& place) : UndoStore(options) {
    place_ = place;
    this->place_allocation(place_.meta + memory::kLineBytes);
    for (std::uint64_t thread = 0; thread < threads_; ++thread) {
      std::optional<Log> log = Log::open(memory, log_place(thread), log_options_);
      if (!log)
        throw ConfigError("engine " + engine_ + ": there is no log: its creation had not finished");
      log->recover(memory);
      logs_.push_back(*std::move(log));
    }
    log_ = logs_.data();
    this->read_number_of_pages(memory);
  }

  UndoStore(const UndoStore&) = delete;
  UndoStore& operator=(const UndoStore&) = delete;

  void work_as(std::uint32_t thread) noexcept { log_ = &logs_[thread % threads_]; }
  Page allocate(M& memory) {
    Page fresh;
    std::uint32_t kept = 0;
    if (const auto free = memory.template load<std::uint64_t>(free_at()); free != 0) {
      fresh = page_at(free - 1);
      const auto next = memory.template load_dependent<std::uint64_t>(fresh.address + kLinkOffset);
      change_word(memory, free_at(), next);
      snapshot(memory, fresh.address, sizeof(PageHeader));
      kept = sizeof(PageHeader);
    } else {
      check_room();
      fresh = page_at(pages_);
      change_word(memory, pages_at(), pages_ + 1);
      ++pages_;
    }
    log_->library_call(memory);
    log_->add_fresh(fresh.address + kept, page_bytes_ - kept);
    this->add_fresh(fresh.id);
    memory.template store<PageHeader>(fresh.address, {.lsn = 0, .page_id = fresh.id, .reserved = 0});
    static constexpr std::array<std::byte, memory::kLineBytes> kZeros{};
    memory.write(fresh.address + sizeof(PageHeader), std::span(kZeros).subspan(sizeof(PageHeader)));
    for (std::uint32_t offset = memory::kLineBytes; offset < page_bytes_; offset += memory::kLineBytes)
      memory.write(fresh.address + offset, kZeros);
    return fresh;
  }

  void overwrite(M& memory, const Page& page, std::uint32_t offset, std::span<const std::byte> bytes) {
    if (bytes.empty())
      return;
    if (!stepping_ && !is_fresh(page.id))
      snapshot(memory, page.address + offset, bytes.size());
    memory.write(page.address + offset, bytes);
  }
  void move(M& memory, const Page& page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    if (bytes == 0)
      return;
    const auto moved = std::span(moved_).first(bytes);  // stands for registers
    memory.read(page.address + from, moved);
    overwrite(memory, page, to, moved);
  }
  void announce(M& memory, const Page& page, std::span<const PageRange> ranges) {
    if (is_fresh(page.id))
      return;
    for (const PageRange& range : ranges) {
      if (range.bytes != 0)
        snapshot(memory, page.address + range.offset, range.bytes);
    }
    stepping_ = true;
  }
  void settle(M&, const Page&) { stepping_ = false; }

  void begin(M&) const noexcept {}
  void note_undo(M&, const UndoRecord&) const noexcept {}
  void commit(M& memory) {
    this->free_released(memory);
    if (log_->active()) {
      const memory::InSection section(memory, memory::Section::kLog);
      log_->commit(memory);
    }
    end();
  }
  template <typename Undo>
  void abort(M& memory, Undo&&) {
    if (log_->active())
      log_->abort(memory);
    this->read_number_of_pages(memory);
    end();
  }

  void counters(std::map<std::string, double>& into) const {
    into["pages"] = static_cast<double>(pages_);
    into["log_batches"] = static_cast<double>(snapshots_);
    into["log_bytes"] = static_cast<double>(snapshot_bytes_);
    into["pages_allocated"] = static_cast<double>(this->allocated());
  }

 private:
  explicit UndoStore(const EngineOptions& options)
      : Base(options),
        log_bytes_(options.log_bytes / memory::kLineBytes * memory::kLineBytes),
        log_options_{.library_cycles = options.library_cycles},
        threads_(Latches::are_needed(options) ? options.threads : 1) {
    // A split moves rows of one page, and the nodes above it change by as much at most.
    const std::uint64_t least = Log::place_bytes(4 * std::uint64_t{page_bytes_});
    if (log_bytes_ < least)
      throw ConfigError("engine " + engine_ + ": log_bytes = " + std::to_string(options.log_bytes) +
                        ": too small; choose at least " + std::to_string(least) +
                        ", for snapshots of four pages");
  }

  [[nodiscard]] blocks::undo::Place log_place(std::uint64_t thread) const noexcept {
    return {place_.log + thread * log_bytes_, log_bytes_};
  }
  /// Before the range changes: DURABLE on return.
  void snapshot(M& memory, Address address, std::uint64_t bytes) {
    const memory::InSection section(memory, memory::Section::kLog);
    if (!log_->active())
      log_->begin(memory);
    try {
      log_->add_range(memory, address, bytes);
    } catch (const blocks::undo::UndoLogFull&) {
      throw ConfigError("engine " + engine_ + ": a transaction changes more than fits into log_bytes = " +
                        std::to_string(log_bytes_) + "; raise it");
    }
    ++snapshots_;
    snapshot_bytes_ += bytes;
  }
  void change_word(M& memory, Address address, std::uint64_t value) {
    snapshot(memory, address, sizeof value);
    memory.template store<std::uint64_t>(address, value);
  }
  void end() {
    this->forget_transaction();
    stepping_ = false;
  }

  std::uint64_t log_bytes_;
  blocks::undo::Options log_options_;
  std::uint64_t threads_;  ///< that have a log each ("lanes")
  std::vector<Log> logs_;
  Log* log_ = nullptr;     ///< of the thread that works
  bool stepping_ = false;  ///< between announce() and settle() of a page that is not fresh
  std::uint64_t snapshots_ = 0;
  std::uint64_t snapshot_bytes_ = 0;
};

}  // namespace pmsim::engines
