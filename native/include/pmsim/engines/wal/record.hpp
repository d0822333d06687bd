#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
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
[[nodiscard]] constexpr std::uint64_t footprint(std::uint32_t data) noexcept {
  return sizeof(RecordHead) + blocks::log::round_up(data, blocks::log::kWord);
}

/// A record as a reader sees it.
struct Record {
  RecordHead head;
  std::span<const std::byte> data;
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

/// Calls visit(offset in the batch, record) for the records of a batch, in order; false where they do not fill
/// it.
template <typename Visit>
bool for_each_record(std::span<const std::byte> batch, Visit&& visit) {
  std::uint64_t at = BatchHead::kBytes;
  while (at + sizeof(RecordHead) <= batch.size()) {
    Record record;
    std::memcpy(&record.head, batch.data() + at, sizeof record.head);
    const std::uint64_t end = at + footprint(data_bytes(record.head));
    if (end > batch.size())
      return false;
    record.data = batch.subspan(at + sizeof record.head, data_bytes(record.head));
    visit(at, record);
    at = end;
  }
  return at == batch.size();
}

}  // namespace pmsim::engines::wal
