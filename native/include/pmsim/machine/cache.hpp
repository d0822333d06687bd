#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "pmsim/machine/host_prefetch.hpp"
#include "pmsim/machine/recency_set.hpp"

namespace pmsim::machine {

/// A line (or page) and a hash of its number, which says in which slice of a cache it belongs.
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
/// A line is named by its address / 64; the upper bits of a tag word carry the line's flags. Within a slice the
/// low bits of a line's number are its set, so lines that are a multiple of the slice's sets apart compete for
/// the same ways. A hash chooses the slice, so that in a last-level cache, which has many, lines that were
/// written together leave in no particular order (which is what costs plain stores their bandwidth on 256-byte
/// blocks).
class Cache {
 public:
  static constexpr std::uint64_t kDirty = std::uint64_t{1} << 63;
  /// Brought in by a prefetch and not asked for since: it may still be on its way.
  static constexpr std::uint64_t kPrefetched = std::uint64_t{1} << 62;
  /// Another core may have it, too: a store has to take it away from there.
  static constexpr std::uint64_t kShared = std::uint64_t{1} << 61;
  /// Brought from memory by the prefetcher and not asked for since: nobody may have read it, since a machine
  /// drops prefetches.
  static constexpr std::uint64_t kUnread = std::uint64_t{1} << 60;
  static constexpr std::uint64_t kFlags = kDirty | kPrefetched | kShared | kUnread;
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0} & ~kFlags;

  /// Sets of a slice are a power of two: where `size_bytes` does not allow that there are more slices.
  Cache(std::int64_t size_bytes, std::int64_t ways, std::int64_t line_bytes = 64, std::int64_t slices = 1);

  /// Where a line belongs in one cache. Whoever looks for a line and then puts it in computes it once.
  struct Place {
    std::byte* set;      ///< its memory
    std::uint8_t* held;  ///< lines that it holds
    std::uint8_t partial;
  };
  [[nodiscard]] Place place_of(HashedLine line) const noexcept {
    std::uint64_t set = line.line() & slice_mask_;
    if (slices_ != 1) {  // each cache is asked in code of its own: easily predicted
      set |= ((line.hash() >> 32) * slices_) >> 32 << slice_bits_;
    }
    return Place{memory_.get() + set * stride_, held_.get() + set,
                 static_cast<std::uint8_t>(line.hash() >> 24)};
  }

  /// Asks the host for the set of a line that will be looked up soon.
  void prefetch_set(const Place& place) const noexcept { host_prefetch(&set_to_read(place).order); }
  /// The same for a line that will be put in: the words that a set uses first lie next to its order, and of a
  /// full set any one may have to go.
  void prefetch_fill(const Place& place) const noexcept {
    host_prefetch(place.set);
    if (*place.held == ways_) {
      host_prefetch(place.set + kHostLine);
      host_prefetch(place.set + stride_ - kHostLine);
    }
  }

  /// The tag word that inserting a line there would push out now.
  [[nodiscard]] std::uint64_t victim(const Place& place) const noexcept {
    const Set set = set_at(place.set);
    return *place.held == ways_ ? set.words[set.order.way[ways_ - 1]] : kEmpty;
  }
  /// False: the line is not cached. True: it may be.
  [[nodiscard]] bool may_hold(const Place& place) const noexcept { return matches(place) != 0; }

  /// Finds the line and makes it most recently used. Returns its tag word or nullptr.
  [[nodiscard]] std::uint64_t* touch(const Place& place, std::uint64_t line) noexcept {
    for (std::uint32_t found = matches(place); found != 0; found &= found - 1) {
      const Set set = set_at(place.set);
      const auto at = static_cast<std::uint32_t>(std::countr_zero(found));
      std::uint64_t& word = set.words[set.order.way[at]];
      if ((word & ~kFlags) == line) [[likely]] {
        if (at != 0) {
          set.order.to_front(at, place.partial);
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
    const Set set = set_at(place.set);
    const std::uint64_t ways = ways_;
    const std::uint8_t held = *place.held;
    // Whether a set of a cache that fills up holds something nobody can predict: no branch.
    std::uint64_t& slot =
        set.words[set.order.last_to_front(held == 0 ? empty_ : set.order, ways, place.partial)];
    if (held == ways) [[likely]] {
      return std::exchange(slot, word);
    }
    *place.held = static_cast<std::uint8_t>(held + 1);
    ++lines_held_;
    slot = word;
    return kEmpty;
  }
  std::uint64_t insert(std::uint64_t word) noexcept {
    return insert(place_of(HashedLine(word & ~kFlags)), word);
  }

  /// Removes the line; returns its tag word or kEmpty where it was not cached.
  std::uint64_t remove(const Place& place, std::uint64_t line) noexcept {
    if (lines_held_ == 0) {
      return kEmpty;
    }
    const std::uint32_t held = (std::uint32_t{1} << *place.held) - 1;
    std::uint32_t found = set_to_read(place).order.matches(place.partial) & held;
    for (; found != 0; found &= found - 1) {
      const Set set = set_at(place.set);
      const auto at = static_cast<std::uint32_t>(std::countr_zero(found));
      const std::uint64_t word = set.words[set.order.way[at]];
      if ((word & ~kFlags) == line) [[likely]] {
        set.order.to_back(at, ways_);
        --*place.held;
        --lines_held_;
        return word;
      }
    }
    return kEmpty;
  }
  std::uint64_t remove(std::uint64_t line) noexcept { return remove(place_of(HashedLine(line)), line); }

  [[nodiscard]] std::uint64_t lines() const noexcept { return set_count_ * ways_; }

 private:
  static constexpr std::size_t kHostLine = 64;

  /// One set where it lies: the order of its ways, and their tag words in no order.
  struct Set {
    RecencySet& order;
    std::uint64_t* words;
  };
  [[nodiscard]] static Set set_at(std::byte* memory) noexcept {
    return Set{*reinterpret_cast<RecencySet*>(memory),
               reinterpret_cast<std::uint64_t*>(memory + sizeof(RecencySet))};
  }
  /// Any other set in place of one that holds nothing, whose memory nobody has touched. No branch, as in
  /// insert().
  [[nodiscard]] Set set_to_read(const Place& place) const noexcept {
    std::byte* const first = memory_.get();
    const std::size_t holds = std::size_t{0} - static_cast<std::size_t>(*place.held != 0);
    return set_at(first + (static_cast<std::size_t>(place.set - first) & holds));
  }
  [[nodiscard]] std::uint32_t matches(const Place& place) const noexcept {
    const std::uint32_t held = *place.held;
    return held == 0 ? 0 : set_at(place.set).order.matches(place.partial) & ((std::uint32_t{1} << held) - 1);
  }

  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };

  std::uint64_t ways_;
  std::uint64_t set_count_;
  int slice_bits_;            ///< of the number of a set within its slice
  std::uint64_t slice_mask_;  ///< these bits
  std::uint64_t slices_;
  std::size_t stride_;  ///< bytes of a set: whole lines of the host
  /// Lines that a set holds: they are the first ones in the order of its RecencySet. The memory of what it does
  /// not hold has no content yet, or no longer.
  std::unique_ptr<std::uint8_t[]> held_;
  std::uint64_t lines_held_ = 0;  ///< over all sets
  /// Per set its RecencySet, and behind it the tag words of its ways, in no order.
  std::unique_ptr<std::byte[], Free> memory_;
  RecencySet empty_;  ///< what a set that holds nothing begins with
};

}  // namespace pmsim::machine
