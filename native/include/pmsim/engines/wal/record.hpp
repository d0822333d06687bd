#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/engines/page_store.hpp"

/// The write-ahead log of the engines (van Renen et al. 2018, section 2.3): redo of pages, undo of the tree's
/// operations.
namespace pmsim::engines::wal {

using blocks::log::Lsn;
using memory::Memory;

/// What a record says. The values are part of the log's format.
enum class Kind : std::uint8_t {
  // Redo, in terms of one page. All are guarded by the page's LSN.
  kOverwrite = 1,  ///< bytes [a, a + bytes) become the data: the after-image
  kMove = 2,       ///< bytes [a, a + bytes) become those of [b, b + bytes)
  kAllocate = 3,   ///< the page comes into being, zero behind its header
  kRelease = 4,    ///< the page is gone
  // Undo, in terms of the tree: what a transaction must be able to take back.
  kUpdate = 8,   ///< of row `name` of table a, payload bytes [b, b + bytes) were the data
  kInsert = 9,   ///< row `name` of table a was not there
  kErase = 10,   ///< row `name` of table a was there, with the data as its payload
  kUndone = 11,  ///< of the transaction's undo records only the first `name` are still to be taken back
};
[[nodiscard]] constexpr bool is_redo(Kind kind) noexcept { return kind <= Kind::kRelease; }

/// Head of a record; `bytes` of data follow (not of a move), padded to words.
struct RecordHead {
  Kind kind = Kind::kOverwrite;
  std::uint8_t unused = 0;
  std::uint16_t a = 0;
  std::uint16_t b = 0;
  std::uint16_t bytes = 0;
  std::uint64_t name = 0;  ///< the page, or the row's key
};
static_assert(sizeof(RecordHead) == 16);

[[nodiscard]] constexpr std::uint32_t data_bytes(const RecordHead& head) noexcept {
  return head.kind == Kind::kMove ? 0 : head.bytes;
}

/// Whether redo records have their LSN with them, a word behind the head. In a single log their place says it.
enum class Stamps : std::uint8_t { kNone, kOnRedo };

[[nodiscard]] constexpr bool is_stamped(Kind kind, Stamps stamps) noexcept {
  return stamps == Stamps::kOnRedo && is_redo(kind);
}
[[nodiscard]] constexpr std::uint64_t data_offset(Kind kind, Stamps stamps) noexcept {
  return sizeof(RecordHead) + (is_stamped(kind, stamps) ? sizeof(Lsn) : 0);
}
[[nodiscard]] constexpr std::uint64_t footprint(const RecordHead& head, Stamps stamps) noexcept {
  return data_offset(head.kind, stamps) + blocks::log::round_up(data_bytes(head), blocks::log::kWord);
}

/// A record as a reader sees it.
struct Record {
  RecordHead head;
  std::span<const std::byte> data;
  Lsn stamp = 0;  ///< where it has one
};

/// How the transaction goes on behind a batch.
enum class End : std::uint8_t { kPart = 1, kCommit = 2, kAbort = 3 };

/// First word of a batch, which is one entry of the log: transaction number << 8 | End.
struct BatchHead {
  std::uint64_t transaction = 0;
  End end = End::kPart;

  static constexpr std::uint64_t kBytes = 8;
  [[nodiscard]] constexpr std::uint64_t word() const noexcept {
    return transaction << 8 | static_cast<std::uint64_t>(end);
  }
  [[nodiscard]] static constexpr BatchHead of(std::uint64_t word) noexcept {
    return {word >> 8, static_cast<End>(word & 0xff)};
  }
};

/// The records of a batch, in order.
class RecordReader {
 public:
  RecordReader() = default;
  RecordReader(std::span<const std::byte> batch, Stamps stamps) noexcept : batch_(batch), stamps_(stamps) {}

  /// Offset of the next record in the batch.
  [[nodiscard]] std::uint64_t offset() const noexcept { return at_; }
  /// Nothing behind the last one, and where what follows is no record.
  [[nodiscard]] std::optional<Record> next() {
    Record record;
    if (at_ + sizeof record.head > batch_.size())
      return std::nullopt;
    std::memcpy(&record.head, batch_.data() + at_, sizeof record.head);
    if (at_ + footprint(record.head, stamps_) > batch_.size())
      return std::nullopt;
    if (is_stamped(record.head.kind, stamps_))
      std::memcpy(&record.stamp, batch_.data() + at_ + sizeof record.head, sizeof record.stamp);
    record.data = batch_.subspan(at_ + data_offset(record.head.kind, stamps_), data_bytes(record.head));
    at_ += footprint(record.head, stamps_);
    return record;
  }
  /// All of the batch has been read.
  [[nodiscard]] bool is_whole() const noexcept { return at_ == batch_.size(); }

 private:
  std::span<const std::byte> batch_;
  Stamps stamps_ = Stamps::kNone;
  std::uint64_t at_ = BatchHead::kBytes;
};

}  // namespace pmsim::engines::wal
