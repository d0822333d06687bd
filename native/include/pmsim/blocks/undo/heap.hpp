#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pmsim/blocks/undo/heap_layout.hpp"
#include "pmsim/blocks/undo/undo_log.hpp"

namespace pmsim::blocks::undo {

/// allocate() has no object left. Nothing has been written.
class HeapFull : public CapacityError {
 public:
  explicit HeapFull(std::uint64_t objects)
      : CapacityError("the heap is full: all " + std::to_string(objects) +
                      " objects are allocated; free some or create it larger") {}
};

/// Objects of one size in persistent memory, allocated and freed in transactions, as PMDK's allocator does it
/// for an allocation class with compact headers (palloc.c, memblock.c). The nodes of the paper come from such a
/// class: units of 256 bytes, objects on lines (its program, PMem_DS: AllocClass).
///
/// What is durable is the bitmap. Which objects are free is known in DRAM alone, and open() finds it in the
/// bitmap.
/// - allocate() reserves an object in DRAM and writes its header back. Its bits are set by the commit.
/// - free() reads the object's header. Its bits are cleared by the commit; until then it is not used again.
/// - commit() and abort() take the log's place where a transaction has allocated or freed: a crash
///   leaves all of its allocations and frees, or none.
///
/// One run is used up before the next one, and what is freed is used when its turn comes again (PMDK: heap.c
/// keeps free blocks of one run in DRAM and looks for a run with free bits when they are gone).
class Heap {
 public:
  static constexpr Site kFormatOrder = 950, kFormatFlush = 951, kFormatFence = 952, kHeaderFlush = 953;
  /// The heap's own; a program has those of UndoLog and both lists of RedoLog besides.
  static constexpr std::array kSites{
      SiteInfo{kFormatOrder, "create heap: sizes before the format word of the same line"},
      SiteInfo{kFormatFlush, "create heap: write the header back"},
      SiteInfo{kFormatFence, "create heap: wait for the header"},
      SiteInfo{kHeaderFlush, "allocate: write the object's header back"},
  };

  /// A new heap in zeroed memory; durable on return. Throws ConfigError where no object fits.
  template <Memory M>
  [[nodiscard]] static Heap create(M& memory, const Place& place, std::uint64_t object_bytes,
                                   std::uint64_t run_bytes = HeapLayout::kRunBytes) {
    Heap heap(HeapLayout(place, object_bytes, run_bytes));
    memory.template store<std::uint64_t>(place.base + kObjectAt, object_bytes);
    memory.template store<std::uint64_t>(place.base + kRunAt, run_bytes);
    memory.order(kFormatOrder);
    memory.template store<std::uint64_t>(place.base, kFormat);
    memory.flush(place.base, kLineBytes, memory::FlushKind::kClwb, kFormatFlush);
    memory.sfence(kFormatFence);
    return heap;
  }

  /// Opens what create() has made, after the log's recovery; nothing where create() had not finished.
  template <Memory M>
  [[nodiscard]] static std::optional<Heap> open(M& memory, const Place& place, std::uint64_t object_bytes,
                                                std::uint64_t run_bytes = HeapLayout::kRunBytes) {
    const auto format = memory.template load<std::uint64_t>(place.base);
    if (format == 0)
      return std::nullopt;
    if (format != kFormat || memory.template load<std::uint64_t>(place.base + kObjectAt) != object_bytes ||
        memory.template load<std::uint64_t>(place.base + kRunAt) != run_bytes)
      throw ConfigError("heap: the place holds something else than a heap of objects of " +
                        std::to_string(object_bytes) + " bytes");
    Heap heap(HeapLayout(place, object_bytes, run_bytes));
    for (std::uint64_t slot = 0; slot < heap.slots(); ++slot) {
      const std::uint64_t mask = heap.layout_.mask(slot);
      const std::uint64_t bits = memory.template load<std::uint64_t>(heap.layout_.word(slot)) & mask;
      if (bits != 0 && bits != mask)
        throw ConfigError("heap: the bitmap is damaged: an object is allocated in part");
      heap.taken_[slot] = bits != 0;
    }
    return heap;
  }

  /// A new object on a line, whose bytes are arbitrary and count as fresh in the transaction. Throws HeapFull
  /// or UndoLogFull; nothing has been written then.
  template <Memory M>
  [[nodiscard]] Address allocate(M& memory, UndoLog& log) {
    join(log);
    UndoLog::require_words(reserved_.size() + freed_.size() + 1);
    const std::uint64_t slot = free_slot();
    log.library_call(memory);
    taken_[slot] = true;
    reserved_.push_back(slot);
    next_ = slot + 1;
    const Address object = layout_.object(slot);
    // memblock_header_compact_write: 16 bytes that do not begin a line are stored and flushed.
    memory.template store<std::uint64_t>(object - HeapLayout::kHeaderBytes, size_word());
    memory.template store<std::uint64_t>(object - kWord, 0);
    memory.flush(object - HeapLayout::kHeaderBytes, HeapLayout::kHeaderBytes, memory::FlushKind::kClwb,
                 kHeaderFlush);
    log.add_fresh(object, usable_bytes());
    return object;
  }

  /// Throws UndoLogFull; nothing has been written then.
  template <Memory M>
  void free(M& memory, UndoLog& log, Address object) {
    join(log);
    UndoLog::require_words(reserved_.size() + freed_.size() + 1);
    log.library_call(memory);
    check_header(memory, object);  // memblock_from_offset
    const std::uint64_t slot = layout_.slot(object);
    if (!taken_[slot] || std::ranges::find(freed_, slot) != freed_.end())
      throw ConfigError("heap: the object at " + std::to_string(object) + " is not allocated");
    if (const auto own = std::ranges::find(reserved_, slot); own != reserved_.end()) {
      reserved_.erase(own);  // pmemobj_tx_free of an object of this transaction
      taken_[slot] = false;
    } else {
      freed_.push_back(slot);
    }
  }

  template <Memory M>
  void commit(M& memory, UndoLog& log) {
    join(log);
    for (const std::uint64_t slot : reserved_)
      log.at_commit(Operation::kOr, layout_.word(slot), layout_.mask(slot));
    for (const std::uint64_t slot : freed_)
      log.at_commit(Operation::kAnd, layout_.word(slot), ~layout_.mask(slot));
    log.commit(memory);
    leave(freed_);
  }

  template <Memory M>
  void abort(M& memory, UndoLog& log) {
    join(log);
    log.abort(memory);
    leave(reserved_);
  }

  /// Calls visit(object) for each that is allocated, in order of their addresses.
  template <Memory M, typename Visit>
  void for_each(M& memory, Visit&& visit) const {
    for (std::uint64_t slot = 0; slot < slots(); ++slot) {
      if (!taken_[slot])
        continue;
      check_header(memory, layout_.object(slot));
      visit(layout_.object(slot));
    }
  }

  [[nodiscard]] std::uint64_t slots() const noexcept { return layout_.slots(); }
  /// Bytes of an object's units behind its header, all of which commit() flushes (palloc_usable_size).
  [[nodiscard]] std::uint64_t usable_bytes() const noexcept { return size_word() - HeapLayout::kHeaderBytes; }
  /// Bytes of a place with room for so many objects.
  [[nodiscard]] static std::uint64_t place_bytes(std::uint64_t objects, std::uint64_t object_bytes,
                                                 std::uint64_t run_bytes = HeapLayout::kRunBytes) {
    return HeapLayout::place_bytes(objects, object_bytes, run_bytes);
  }

 private:
  static constexpr std::uint64_t kFormat = 0x706d'6865'6170'0001;
  static constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  static constexpr std::uint64_t kObjectAt = kWord, kRunAt = 2 * kWord;

  explicit Heap(const HeapLayout& layout) : layout_(layout), taken_(layout.slots()) {}

  [[nodiscard]] std::uint64_t size_word() const noexcept {
    return layout_.object_units() * HeapLayout::kUnitBytes;
  }
  template <Memory M>
  void check_header(M& memory, Address object) const {
    if (memory.template load<std::uint64_t>(object - HeapLayout::kHeaderBytes) != size_word())
      throw ConfigError("heap: the object at " + std::to_string(object) + " has no header");
  }

  /// The object after the last one that was allocated, or the next one that is free.
  [[nodiscard]] std::uint64_t free_slot() const {
    const auto begin = taken_.begin();
    const auto from = begin + static_cast<std::ptrdiff_t>(next_ == slots() ? 0 : next_);
    auto found = std::find(from, taken_.end(), false);
    if (found == taken_.end() && (found = std::find(begin, from, false)) == from)
      throw HeapFull(slots());
    return static_cast<std::uint64_t>(found - begin);
  }

  /// What a transaction has reserved and freed is settled by commit() or abort() of the heap.
  void join(const UndoLog& log) {
    ensure(log.active(), "the heap was used outside of a transaction");
    ensure((reserved_.empty() && freed_.empty()) || serial_ == log.serial(),
           "a transaction that used a heap did not end through the heap");
    serial_ = log.serial();
  }
  /// These are free from now on.
  void leave(const std::vector<std::uint64_t>& free) {
    for (const std::uint64_t slot : free)
      taken_[slot] = false;
    reserved_.clear();
    freed_.clear();
  }

  HeapLayout layout_;
  std::vector<bool> taken_;  ///< by slot; also what is reserved, or freed but not yet committed
  std::vector<std::uint64_t> reserved_;
  std::vector<std::uint64_t> freed_;
  std::uint64_t next_ = 0;
  std::uint64_t serial_ = 0;
};

}  // namespace pmsim::blocks::undo
