#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::machine {

/// Finds the place of a block in a small buffer: open addressing with linear probing, a quarter full at most,
/// and deletion by moving back what follows.
class BlockIndex {
 public:
  static constexpr std::size_t kNotFound = ~std::size_t{0};

  explicit BlockIndex(std::size_t capacity)
      : entries_(std::bit_ceil(capacity * 4)), mask_(entries_.size() - 1) {}

  [[nodiscard]] std::size_t find(std::uint64_t block) const noexcept {
    for (std::size_t at = home(block); entries_[at].place != kNotFound; at = (at + 1) & mask_) {
      if (entries_[at].block == block) {
        return entries_[at].place;
      }
    }
    return kNotFound;
  }

  /// The block must not be there.
  void insert(std::uint64_t block, std::size_t place) noexcept {
    std::size_t at = home(block);
    while (entries_[at].place != kNotFound) {
      at = (at + 1) & mask_;
    }
    entries_[at] = Entry{block, place};
  }

  /// The block must be there.
  void erase(std::uint64_t block) noexcept {
    std::size_t hole = home(block);
    while (entries_[hole].block != block || entries_[hole].place == kNotFound) {
      hole = (hole + 1) & mask_;
    }
    for (std::size_t at = (hole + 1) & mask_; entries_[at].place != kNotFound; at = (at + 1) & mask_) {
      // An entry may move back into the hole unless its home lies behind the hole.
      if (((at - home(entries_[at].block)) & mask_) >= ((at - hole) & mask_)) {
        entries_[hole] = entries_[at];
        hole = at;
      }
    }
    entries_[hole].place = kNotFound;
  }

 private:
  struct Entry {
    std::uint64_t block = 0;
    std::size_t place = kNotFound;
  };
  [[nodiscard]] std::size_t home(std::uint64_t block) const noexcept {
    return static_cast<std::size_t>((block * 0x9e3779b97f4a7c15ULL) >> 40) & mask_;
  }

  std::vector<Entry> entries_;
  std::size_t mask_;
};

}  // namespace pmsim::machine
