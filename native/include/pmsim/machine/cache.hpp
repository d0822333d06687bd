#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "pmsim/machine/recency_set.hpp"

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

  /// Asks the host for the set of a line that will be looked up soon.
  void prefetch_set(std::uint64_t line) const noexcept {
    if (const std::size_t set = place_of(line).set; used(set)) {
      __builtin_prefetch(&set_at(set));
    }
  }
  /// The same for a line that will be put in.
  void prefetch_fill(std::uint64_t line) const noexcept {
    if (const std::size_t set = place_of(line).set; used(set)) {
      for (std::size_t at = 0; at < stride_; at += kHostLine) {
        __builtin_prefetch(memory_.get() + set * stride_ + at);
      }
    }
  }

  /// Asks the host for the tag word that inserting this line will push out; its set should have arrived.
  void prefetch_victim(std::uint64_t line) const noexcept {
    if (const std::size_t set = place_of(line).set; used(set)) {
      __builtin_prefetch(&words_of(set)[set_at(set).way[ways_ - 1]]);
    }
  }
  /// The tag word that inserting this line would push out now.
  [[nodiscard]] std::uint64_t victim(std::uint64_t line) const noexcept {
    const std::size_t set = place_of(line).set;
    return used(set) ? words_of(set)[set_at(set).way[ways_ - 1]] : kEmpty;
  }
  /// False: the line is not cached. True: it may be.
  [[nodiscard]] bool may_hold(std::uint64_t line) const noexcept {
    const Place place = place_of(line);
    return matches(place) != 0;
  }

  /// Finds the line and makes it most recently used. Returns its tag word or nullptr.
  [[nodiscard]] std::uint64_t* touch(std::uint64_t line) noexcept {
    const Place place = place_of(line);
    RecencySet& set = set_at(place.set);
    for (std::uint32_t found = matches(place); found != 0; found &= found - 1) {
      const auto at = static_cast<std::uint32_t>(std::countr_zero(found));
      std::uint64_t& word = words_of(place.set)[set.way[at]];
      if ((word & ~kFlags) == line) [[likely]] {
        if (at != 0) {
          set.to_front(at, place.partial);
        }
        return &word;
      }
    }
    return nullptr;
  }

  /// Puts a line that is not cached in the first place. Returns the tag word that fell out, or kEmpty.
  std::uint64_t insert(std::uint64_t word) noexcept {
    const Place place = place_of(word & ~kFlags);
    RecencySet& set = set_to_fill(place.set);
    std::uint64_t& slot = words_of(place.set)[set.way[ways_ - 1]];
    set.to_front(static_cast<std::uint32_t>(ways_ - 1), place.partial);
    return std::exchange(slot, word);
  }

  /// Removes the line; returns its tag word or kEmpty where it was not cached.
  std::uint64_t remove(std::uint64_t line) noexcept {
    const Place place = place_of(line);
    RecencySet& set = set_at(place.set);
    for (std::uint32_t found = matches(place); found != 0; found &= found - 1) {
      const auto at = static_cast<std::uint32_t>(std::countr_zero(found));
      std::uint64_t& word = words_of(place.set)[set.way[at]];
      if ((word & ~kFlags) == line) [[likely]] {
        set.to_back(at, ways_);
        return std::exchange(word, kEmpty);
      }
    }
    return kEmpty;
  }

  [[nodiscard]] std::uint64_t lines() const noexcept { return set_count_ * ways_; }

 private:
  static constexpr std::size_t kHostLine = 64;

  struct Place {
    std::size_t set;
    std::uint8_t partial;
  };
  [[nodiscard]] Place place_of(std::uint64_t line) const noexcept {
    const std::uint64_t hash = line * 0x9e3779b97f4a7c15ULL;
    return Place{static_cast<std::size_t>(((hash >> 32) * set_count_) >> 32),
                 static_cast<std::uint8_t>(hash >> 24)};
  }

  /// Nothing has been put into a set that is not used: its memory has no content yet.
  [[nodiscard]] bool used(std::size_t set) const noexcept { return ((used_[set / 64] >> (set % 64)) & 1) != 0; }
  [[nodiscard]] std::uint32_t matches(const Place& place) const noexcept {
    return used(place.set) ? set_at(place.set).matches(place.partial) & ways_mask_ : 0;
  }
  [[nodiscard]] RecencySet& set_to_fill(std::size_t set) noexcept {
    if (!used(set)) [[unlikely]] {
      used_[set / 64] |= std::uint64_t{1} << (set % 64);
      set_at(set).reset();
      std::fill_n(words_of(set), ways_, kEmpty);
    }
    return set_at(set);
  }

  [[nodiscard]] RecencySet& set_at(std::size_t set) const noexcept {
    return *reinterpret_cast<RecencySet*>(memory_.get() + set * stride_);
  }
  [[nodiscard]] std::uint64_t* words_of(std::size_t set) const noexcept {
    return reinterpret_cast<std::uint64_t*>(memory_.get() + set * stride_ + sizeof(RecencySet));
  }
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };

  std::uint64_t ways_;
  std::uint64_t set_count_;
  std::uint32_t ways_mask_;
  std::size_t stride_;               ///< bytes of a set: whole lines of the host
  std::vector<std::uint64_t> used_;  ///< bit per set
  /// Per set its RecencySet, and behind it the tag words of its ways, in no order.
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace pmsim::machine
