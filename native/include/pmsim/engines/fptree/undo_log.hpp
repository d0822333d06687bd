#pragma once

#include <cstdint>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/fptree/layout.hpp"

namespace pmsim::engines::fptree {

/// One change of a transaction, and what takes it back.
struct Change {
  enum class Kind : std::uint8_t { kInsert = 1, kErase = 2, kUpdate = 3 };
  Kind kind = Kind::kInsert;
  std::uint16_t table = 0;
  std::uint64_t key = 0;
  std::uint64_t before = 0;  ///< kErase, kUpdate
  std::uint64_t after = 0;   ///< kInsert, kUpdate; not logged
  std::uint64_t leaf = 0;    ///< kErase: the leaf's number
};

/// The undo log of the transaction under way: entries of 32 bytes on PMem, each in one line, behind each other.
///
///   key  value before  generation | table | kind  number of the leaf (of an erased pair)      8 bytes each
///
/// An entry is valid when its tag names the current generation; the tag is stored last, and stores to one line
/// become durable in program order. DURABLE: an entry when append() returns, with one barrier; the end of all
/// entries when clear() returns, with one 8-byte store of the next generation.
template <memory::Memory M>
class UndoLog {
 public:
  UndoLog(Address meta, std::uint64_t bytes) : meta_(meta), capacity_(bytes / kEntryBytes) {}

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::uint64_t appended() const noexcept { return appended_; }

  void append(M& memory, const Change& change) {
    if (count_ == capacity_) {
      throw ConfigError("engine fptree: log_bytes = " + std::to_string(capacity_ * kEntryBytes) +
                        ": too small for a transaction of more than " + std::to_string(capacity_) + " changes");
    }
    const memory::InSection section(memory, memory::Section::kLog);
    const Address at = entry(count_);
    memory.template store<std::uint64_t>(at, change.key);
    memory.template store<std::uint64_t>(at + 8, change.before);
    if (change.kind == Change::Kind::kErase)
      memory.template store<std::uint64_t>(at + 24, change.leaf);
    memory.order(kOrderUndo);
    memory.template store<std::uint64_t>(at + 16, generation_ << kGenerationShift |
                                                      std::uint64_t{change.table} << 4 |
                                                      static_cast<std::uint64_t>(change.kind));
    memory.flush(at, kEntryBytes, memory::FlushKind::kClwb, kFlushUndo);
    memory.sfence(kFenceUndo);
    ++count_;
    ++appended_;
  }
  void clear(M& memory) {
    const memory::InSection section(memory, memory::Section::kLog);
    ++generation_;
    memory.template store<std::uint64_t>(meta_ + Meta::kGeneration, generation_);
    memory.flush(meta_ + Meta::kGeneration, 8, memory::FlushKind::kClwb, kFlushGeneration);
    memory.sfence(kFenceGeneration);
    count_ = 0;
  }
  /// Calls undo(change) for each entry, latest first. The entries stay until clear().
  template <typename Undo>
  void for_each_backwards(M& memory, Undo&& undo) {
    for (std::uint64_t index = count_; index > 0; --index) {
      const Address at = entry(index - 1);
      const auto tag = memory.template load<std::uint64_t>(at + 16);
      Change change{.kind = static_cast<Change::Kind>(tag & 15),
                    .table = static_cast<std::uint16_t>(tag >> 4),
                    .key = memory.template load<std::uint64_t>(at),
                    .before = memory.template load<std::uint64_t>(at + 8)};
      if (change.kind == Change::Kind::kErase)
        change.leaf = memory.template load<std::uint64_t>(at + 24);
      undo(change);
    }
  }
  /// After a restart: finds the entries of the transaction that was under way.
  void recover(M& memory) {
    generation_ = memory.template load<std::uint64_t>(meta_ + Meta::kGeneration);
    count_ = 0;
    while (count_ < capacity_) {
      const auto tag = memory.template load<std::uint64_t>(entry(count_) + 16);
      if ((tag & 15) == 0 || tag >> kGenerationShift != generation_)
        return;
      ++count_;
    }
  }

 private:
  static constexpr std::uint64_t kEntryBytes = 32;
  static constexpr int kGenerationShift = 20;

  [[nodiscard]] Address entry(std::uint64_t index) const noexcept {
    return meta_ + Meta::kUndo + index * kEntryBytes;
  }

  Address meta_;
  std::uint64_t capacity_;
  std::uint64_t generation_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t appended_ = 0;
};

}  // namespace pmsim::engines::fptree
