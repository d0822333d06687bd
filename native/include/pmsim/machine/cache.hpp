#pragma once

#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::machine {

/// Tags of one set-associative cache with true LRU. Time-free: it knows what is cached, not when it arrives.
///
/// A line is named by its address / 64; the upper bits of a tag word carry the line's flags. The set index is
/// hashed, as the slice hash of real last-level caches, so that lines which were written together leave in no
/// particular order (which is what costs plain stores their bandwidth on 256-byte blocks).
class Cache {
 public:
  static constexpr std::uint64_t kDirty = std::uint64_t{1} << 63;
  /// Brought in by the prefetcher and not asked for since: it may still be on its way.
  static constexpr std::uint64_t kPrefetched = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kFlags = kDirty | kPrefetched;
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0} & ~kFlags;

  Cache(std::int64_t size_bytes, std::int64_t ways, std::int64_t line_bytes = 64);

  [[nodiscard]] std::uint64_t* set_of(std::uint64_t line) noexcept {
    const std::uint64_t hash = (line * 0x9e3779b97f4a7c15ULL) ^ (line >> 17);
    const auto index = static_cast<std::uint64_t>(((hash >> 32) * sets_) >> 32);
    return &tags_[index * ways_];
  }

  void prefetch_set(std::uint64_t line) noexcept { __builtin_prefetch(set_of(line)); }

  /// Finds the line and makes it most recently used. Returns its tag word (now in the first way) or nullptr.
  [[nodiscard]] std::uint64_t* touch(std::uint64_t line) noexcept {
    std::uint64_t* set = set_of(line);
    if ((set[0] & ~kFlags) == line) {
      return set;
    }
    for (std::uint64_t way = 1; way < ways_; ++way) {
      if ((set[way] & ~kFlags) == line) {
        const std::uint64_t word = set[way];
        for (std::uint64_t moved = way; moved > 0; --moved) {
          set[moved] = set[moved - 1];
        }
        set[0] = word;
        return set;
      }
    }
    return nullptr;
  }

  /// Puts a line that is not cached in the first way. Returns the tag word that fell out, or kEmpty.
  std::uint64_t insert(std::uint64_t word) noexcept {
    std::uint64_t* set = set_of(word & ~kFlags);
    const std::uint64_t victim = set[ways_ - 1];
    for (std::uint64_t moved = ways_ - 1; moved > 0; --moved) {
      set[moved] = set[moved - 1];
    }
    set[0] = word;
    return victim;
  }

  /// Removes the line; returns its tag word or kEmpty where it was not cached.
  std::uint64_t remove(std::uint64_t line) noexcept {
    std::uint64_t* set = set_of(line);
    for (std::uint64_t way = 0; way < ways_; ++way) {
      if ((set[way] & ~kFlags) == line) {
        const std::uint64_t word = set[way];
        for (std::uint64_t moved = way; moved + 1 < ways_; ++moved) {
          set[moved] = set[moved + 1];
        }
        set[ways_ - 1] = kEmpty;
        return word;
      }
    }
    return kEmpty;
  }

  [[nodiscard]] std::uint64_t lines() const noexcept { return sets_ * ways_; }

 private:
  std::uint64_t ways_;
  std::uint64_t sets_;
  std::vector<std::uint64_t> tags_;
};

}  // namespace pmsim::machine
