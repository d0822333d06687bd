#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "pmsim/machine/host_prefetch.hpp"
#include "pmsim/machine/recency_set.hpp"

namespace pmsim::machine {

/// A line (or page) and the hash of its number by which all caches place it.
class HashedLine {
 public:
  constexpr HashedLine() noexcept = default;
  explicit constexpr HashedLine(std::uint64_t line) noexcept
      : line_(line), hash_(line * 0x9e3779b97f4a7c15ULL) {}
  [[nodiscard]] constexpr std::uint64_t line() const noexcept { return line_; }
  [[nodiscard]] constexpr std::uint64_t hash() const noexcept { return hash_; }

 private:
  std::uint64_t line_ = 0;
  std::uint64_t hash_ = 0;
};

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

  /// Where a line belongs in one cache. Whoever looks for a line and then puts it in computes it once.
  struct Place {
    std::size_t set;
    std::uint8_t partial;
  };
  [[nodiscard]] Place place_of(HashedLine line) const noexcept {
    return Place{static_cast<std::size_t>(((line.hash() >> 32) * set_count_) >> 32),
                 static_cast<std::uint8_t>(line.hash() >> 24)};
  }

  /// Asks the host for the set of a line that will be looked up soon.
  void prefetch_set(HashedLine line) const noexcept {
    if (const std::size_t set = place_of(line).set; held_[set] != 0) {
      host_prefetch(&set_at(set));
    }
  }
  /// The same for a line that will be put in: the words that a set uses first lie next to its order.
  void prefetch_fill(HashedLine line) const noexcept {
    const std::size_t set = place_of(line).set;
    host_prefetch(&set_at(set));
    if (held_[set] == ways_) {
      host_prefetch(memory_.get() + (set + 1) * stride_ - kHostLine);
    }
  }

  /// The tag word that inserting this line would push out now.
  [[nodiscard]] std::uint64_t victim(HashedLine line) const noexcept {
    const std::size_t set = place_of(line).set;
    return held_[set] == ways_ ? words_of(set)[set_at(set).way[ways_ - 1]] : kEmpty;
  }
  /// False: the line is not cached. True: it may be.
  [[nodiscard]] bool may_hold(HashedLine line) const noexcept { return matches(place_of(line)) != 0; }

  /// Finds the line and makes it most recently used. Returns its tag word or nullptr.
  [[nodiscard]] std::uint64_t* touch(const Place& place, std::uint64_t line) noexcept {
    for (std::uint32_t found = matches(place); found != 0; found &= found - 1) {
      RecencySet& set = set_at(place.set);
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
  [[nodiscard]] std::uint64_t* touch(std::uint64_t line) noexcept {
    return touch(place_of(HashedLine(line)), line);
  }

  /// Puts a line that is not cached in the first place. Returns the tag word that fell out, or kEmpty.
  std::uint64_t insert(const Place& place, std::uint64_t word) noexcept {
    RecencySet& set = set_at(place.set);
    const std::uint8_t held = held_[place.set];
    if (held == 0) [[unlikely]] {
      set.reset(ways_);
    }
    set.last_to_front(ways_, place.partial);
    std::uint64_t& slot = words_of(place.set)[set.way[0]];
    if (held == ways_) [[likely]] {
      return std::exchange(slot, word);
    }
    held_[place.set] = static_cast<std::uint8_t>(held + 1);
    slot = word;
    return kEmpty;
  }
  std::uint64_t insert(std::uint64_t word) noexcept {
    return insert(place_of(HashedLine(word & ~kFlags)), word);
  }

  /// Removes the line; returns its tag word or kEmpty where it was not cached.
  std::uint64_t remove(const Place& place, std::uint64_t line) noexcept {
    for (std::uint32_t found = matches(place); found != 0; found &= found - 1) {
      RecencySet& set = set_at(place.set);
      const auto at = static_cast<std::uint32_t>(std::countr_zero(found));
      const std::uint64_t word = words_of(place.set)[set.way[at]];
      if ((word & ~kFlags) == line) [[likely]] {
        set.to_back(at, ways_);
        --held_[place.set];
        return word;
      }
    }
    return kEmpty;
  }
  std::uint64_t remove(std::uint64_t line) noexcept { return remove(place_of(HashedLine(line)), line); }

  [[nodiscard]] std::uint64_t lines() const noexcept { return set_count_ * ways_; }

 private:
  static constexpr std::size_t kHostLine = 64;

  [[nodiscard]] std::uint32_t matches(const Place& place) const noexcept {
    const std::uint32_t held = held_[place.set];
    return held == 0 ? 0 : set_at(place.set).matches(place.partial) & ((std::uint32_t{1} << held) - 1);
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
  std::size_t stride_;  ///< bytes of a set: whole lines of the host
  /// Lines that a set holds: they are the first ones in the order of its RecencySet. The memory of what it does
  /// not hold has no content yet, or no longer.
  std::vector<std::uint8_t> held_;
  /// Per set its RecencySet, and behind it the tag words of its ways, in no order.
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace pmsim::machine
