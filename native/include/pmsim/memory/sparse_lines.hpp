#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "pmsim/core/host_room.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::memory {

/// Bytes of a large region of which single lines are touched here and there: zeros, and 64 bytes for each line
/// that has been written. A mapping would pay a page fault and 4 KiB for each; this is a hash table with linear
/// probing.
class SparseLines {
 public:
  void read(std::uint64_t offset, std::span<std::byte> into) const noexcept {
    while (!into.empty()) {
      const std::span<std::byte> part = into.first(in_line(offset, into.size()));
      if (const Line* line = find(offset / kLineBytes); line != nullptr) {
        std::memcpy(part.data(), line->data() + offset % kLineBytes, part.size());
      } else {
        std::memset(part.data(), 0, part.size());
      }
      offset += part.size();
      into = into.subspan(part.size());
    }
  }
  void write(std::uint64_t offset, std::span<const std::byte> from) {
    while (!from.empty()) {
      const std::span<const std::byte> part = from.first(in_line(offset, from.size()));
      std::memcpy(find_or_add(offset / kLineBytes).data() + offset % kLineBytes, part.data(), part.size());
      offset += part.size();
      from = from.subspan(part.size());
    }
  }
  /// That have been written to.
  [[nodiscard]] std::size_t lines() const noexcept { return used_; }

 private:
  using Line = std::array<std::byte, kLineBytes>;
  static constexpr std::size_t kChunkLines = 4096;

  struct Entry {
    std::uint64_t key = 0;  ///< number of the line plus one; 0: free
    std::uint64_t place = 0;
  };

  [[nodiscard]] static std::size_t in_line(std::uint64_t offset, std::size_t bytes) noexcept {
    const std::size_t left = kLineBytes - offset % kLineBytes;
    return bytes < left ? bytes : left;
  }
  /// The entry of the line, or the free one where it would be.
  [[nodiscard]] std::size_t slot(std::uint64_t line) const noexcept {
    // Fibonacci hashing: neighbours, which are touched one after the other, spread.
    std::size_t at = static_cast<std::size_t>(line * 0x9e3779b97f4a7c15ULL >> shift_);
    while (entries_[at].key != 0 && entries_[at].key != line + 1)
      at = at + 1 == entries_.size() ? 0 : at + 1;
    return at;
  }
  [[nodiscard]] const Line* find(std::uint64_t line) const noexcept {
    if (used_ == 0)
      return nullptr;
    const Entry& entry = entries_[slot(line)];
    return entry.key == 0 ? nullptr : &(*chunks_[entry.place / kChunkLines])[entry.place % kChunkLines];
  }
  [[nodiscard]] Line& find_or_add(std::uint64_t line) {
    if (2 * used_ >= entries_.size())
      grow();
    Entry& entry = entries_[slot(line)];
    if (entry.key == 0) {
      if (used_ % kChunkLines == 0) {
        HostMemoryWatch::taken(sizeof(Chunk));
        chunks_.push_back(std::make_unique<Chunk>());
      }
      entry = {line + 1, used_++};
    }
    return (*chunks_[entry.place / kChunkLines])[entry.place % kChunkLines];
  }
  void grow() {
    // It is zeroed at once.
    if (const std::uint64_t bytes = 2 * entries_.size() * sizeof(Entry); bytes >= HostMemoryWatch::kStride)
      require_host_memory(bytes);
    std::vector<Entry> before(entries_.empty() ? std::size_t{1} << (64 - kFirstShift) : 2 * entries_.size());
    shift_ = entries_.empty() ? kFirstShift : shift_ - 1;
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (entry.key != 0)
        entries_[slot(entry.key - 1)] = entry;
    }
  }

  using Chunk = std::array<Line, kChunkLines>;
  static constexpr int kFirstShift = 64 - 12;

  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::uint64_t used_ = 0;
  int shift_ = kFirstShift;
};

}  // namespace pmsim::memory
