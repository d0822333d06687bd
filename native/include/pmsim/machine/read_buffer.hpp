#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// The blocks that a module holds for reads, each with the time from which on it can be read, and an index of
/// them: open addressing with linear probing and deletion by moving back what follows. It is nearly empty, so
/// that the first look decides: whether a second one follows nobody could predict.
///
/// Invariant: each block that a place holds is in the index once, by the number of its place.
class ReadBuffer {
 public:
  static constexpr std::size_t kNotFound = ~std::size_t{0};

  explicit ReadBuffer(std::size_t blocks)
      : entries_(blocks, Entry{kNoBlock, 0}),
        index_(std::bit_ceil(blocks * kSlotsPerBlock), kFree),
        mask_(index_.size() - 1) {}

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] Picoseconds available(std::size_t place) const noexcept { return entries_[place].available; }

  /// The place that holds the block.
  [[nodiscard]] std::size_t find(std::uint64_t block) const noexcept {
    for (std::size_t at = home(block); index_[at] != kFree; at = (at + 1) & mask_) {
      if (entries_[index_[at]].block == block) {
        return index_[at];
      }
    }
    return kNotFound;
  }

  /// Puts a block, which no other place may hold, in place of what is there.
  void put(std::size_t place, std::uint64_t block, Picoseconds available) noexcept {
    if (entries_[place].block != kNoBlock) {
      erase(place);
    }
    entries_[place] = Entry{block, available};
    std::size_t at = home(block);
    while (index_[at] != kFree) {
      at = (at + 1) & mask_;
    }
    index_[at] = static_cast<std::uint32_t>(place);
  }

 private:
  static constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};
  static constexpr std::size_t kSlotsPerBlock = 16;
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};
  struct Entry {
    std::uint64_t block;
    Picoseconds available;
  };

  [[nodiscard]] std::size_t home(std::uint64_t block) const noexcept {
    return static_cast<std::size_t>((block * 0x9e3779b97f4a7c15ULL) >> 40) & mask_;
  }

  void erase(std::size_t place) noexcept {
    std::size_t hole = home(entries_[place].block);
    while (index_[hole] != place) {
      hole = (hole + 1) & mask_;
    }
    for (std::size_t at = (hole + 1) & mask_; index_[at] != kFree; at = (at + 1) & mask_) {
      // An entry may move back into the hole unless its home lies behind the hole.
      if (((at - home(entries_[index_[at]].block)) & mask_) >= ((at - hole) & mask_)) {
        index_[hole] = index_[at];
        hole = at;
      }
    }
    index_[hole] = kFree;
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> index_;
  std::size_t mask_;
};

}  // namespace pmsim::machine
