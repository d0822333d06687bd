#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pmsim::machine {

/// The ways of one cache set in order of recency, and 8 bits of the tag of what each holds: half a host cache
/// line that answers most lookups without looking at any full tag.
///
/// Invariant: way[0..ways) is a permutation of 0..ways-1, most recently used first; partial[i] belongs to
/// way[i].
struct alignas(32) RecencySet {
  static constexpr std::uint64_t kMaxWays = 16;

  std::array<std::uint8_t, kMaxWays> partial;
  std::array<std::uint8_t, kMaxWays> way;

  /// Of an empty set. The words that lie next to this come into use first: a short run touches few of the
  /// others.
  [[nodiscard]] static RecencySet empty(std::uint64_t ways) noexcept {
    RecencySet set{};
    std::memcpy(set.way.data(), kDescending.data() + kMaxWays - ways, kMaxWays);
    return set;
  }

  /// Bit i is set where place i has this partial tag; the caller masks the places that exist.
  [[nodiscard]] std::uint32_t matches(std::uint8_t wanted) const noexcept {
#if defined(__SSE2__)
    const __m128i equal = _mm_cmpeq_epi8(load(partial), _mm_set1_epi8(static_cast<char>(wanted)));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(equal));
#else
    std::uint32_t found = 0;
    for (std::uint32_t place = 0; place < kMaxWays; ++place) {
      found |= static_cast<std::uint32_t>(partial[place] == wanted) << place;
    }
    return found;
#endif
  }

  /// Moves what is at `place` to the front and gives it the partial tag `tag`.
  void to_front(std::uint32_t place, std::uint8_t tag) noexcept {
    rotate_right(partial, place, tag);
    rotate_right(way, place, way[place]);
  }

  /// What is at the last of `ways` places makes room: it comes to the front and gets the partial tag `tag`.
  /// What is behind that place has no meaning, so nothing is masked. `before` is the set as it was: this one,
  /// or an empty one in place of memory without content. Returns which way has made room.
  std::uint8_t last_to_front(const RecencySet& before, std::uint64_t ways, std::uint8_t tag) noexcept {
    const std::uint8_t last = before.way[ways - 1];
    push_front(partial, before.partial, tag);
    push_front(way, before.way, last);
    return last;
  }

  /// Moves what is at `place` behind the last of `ways` places.
  void to_back(std::uint32_t place, std::uint64_t ways) noexcept {
    const std::uint8_t moved = way[place];
    std::memmove(&partial[place], &partial[place] + 1, ways - 1 - place);
    std::memmove(&way[place], &way[place] + 1, ways - 1 - place);
    way[ways - 1] = moved;
  }

 private:
#if defined(__SSE2__)
  [[nodiscard]] static __m128i load(const std::array<std::uint8_t, kMaxWays>& bytes) noexcept {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes.data()));
  }
#endif

  using Bytes = std::array<std::uint8_t, kMaxWays>;

  /// `bytes` are those `before`, moved up by one, behind `first`.
  static void push_front(Bytes& bytes, const Bytes& before, std::uint8_t first) noexcept {
#if defined(__SSE2__)
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes.data()),
                    _mm_or_si128(_mm_slli_si128(load(before), 1), _mm_cvtsi32_si128(first)));
#else
    std::memmove(&bytes[1], before.data(), kMaxWays - 1);
    bytes[0] = first;
#endif
  }

  /// Bytes 0..place-1 move up by one; `first` enters at the front.
  static void rotate_right(std::array<std::uint8_t, kMaxWays>& bytes, std::uint32_t place,
                           std::uint8_t first) noexcept {
#if defined(__SSE2__)
    const __m128i old = load(bytes);
    const __m128i moved = _mm_or_si128(_mm_slli_si128(old, 1), _mm_cvtsi32_si128(first));
    const __m128i upper =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(kAbove.data() + kMaxWays - 1 - place));
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes.data()),
                    _mm_or_si128(_mm_and_si128(upper, old), _mm_andnot_si128(upper, moved)));
#else
    for (std::uint32_t at = place; at > 0; --at) {
      bytes[at] = bytes[at - 1];
    }
    bytes[0] = first;
#endif
  }

  /// 15 to 0, and what has no meaning: from element 16 - n on, the numbers of n ways in falling order.
  static constexpr std::array<std::uint8_t, 2 * kMaxWays> kDescending = [] {
    std::array<std::uint8_t, 2 * kMaxWays> ways{};
    for (std::size_t at = 0; at < kMaxWays; ++at) {
      ways[at] = static_cast<std::uint8_t>(kMaxWays - 1 - at);
    }
    return ways;
  }();

  /// 16 bytes from element 15 - p on: all ones at the places above p.
  static constexpr std::array<std::uint8_t, 2 * kMaxWays> kAbove = [] {
    std::array<std::uint8_t, 2 * kMaxWays> mask{};
    for (std::size_t at = kMaxWays; at < mask.size(); ++at) {
      mask[at] = 0xff;
    }
    return mask;
  }();
};
static_assert(sizeof(RecencySet) == 32);

}  // namespace pmsim::machine
