#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// The blocks that a module holds for reads, each with the time from which on it can be read. Searched by 32
/// bits of the block's number, four at a time: only where these agree does anybody look at the whole.
class ReadBuffer {
 public:
  static constexpr std::size_t kNotFound = ~std::size_t{0};

  explicit ReadBuffer(std::size_t blocks)
      : keys_((blocks + kStep - 1) / kStep * kStep, static_cast<std::uint32_t>(kNoBlock)),
        entries_(blocks, Entry{kNoBlock, 0}) {}

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] Picoseconds available(std::size_t place) const noexcept { return entries_[place].available; }

  /// The first place that holds the block.
  [[nodiscard]] std::size_t find(std::uint64_t block) const noexcept {
    const auto key = static_cast<std::uint32_t>(block);
    for (std::size_t first = 0; first < keys_.size(); first += kTogether) {
      // All of them before a look at any: where the block is, nobody can predict.
      const std::size_t end = std::min(keys_.size(), first + kTogether);
      std::uint64_t found = 0;
      for (std::size_t step = first; step < end; step += kStep) {
        found |= std::uint64_t{matches(&keys_[step], key)} << (step - first);
      }
      for (; found != 0; found &= found - 1) {
        const std::size_t place = first + static_cast<std::size_t>(std::countr_zero(found));
        if (place < entries_.size() && entries_[place].block == block) [[likely]] {
          return place;
        }
      }
    }
    return kNotFound;
  }

  void put(std::size_t place, std::uint64_t block, Picoseconds available) noexcept {
    keys_[place] = static_cast<std::uint32_t>(block);
    entries_[place] = Entry{block, available};
  }

 private:
  static constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};
  static constexpr std::size_t kStep = 8;
  static constexpr std::size_t kTogether = 64;
  struct Entry {
    std::uint64_t block;
    Picoseconds available;
  };

  /// Bit i is set where keys[i] is the key, for kStep keys.
  [[nodiscard]] static std::uint32_t matches(const std::uint32_t* keys, std::uint32_t key) noexcept {
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(key));
    const __m128i low = _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(keys)), wanted);
    const __m128i high = _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(keys + 4)), wanted);
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(low))) |
           static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(high))) << 4;
#else
    std::uint32_t found = 0;
    for (std::uint32_t index = 0; index < kStep; ++index) {
      found |= static_cast<std::uint32_t>(keys[index] == key) << index;
    }
    return found;
#endif
  }

  std::vector<std::uint32_t> keys_;
  std::vector<Entry> entries_;
};

}  // namespace pmsim::machine
