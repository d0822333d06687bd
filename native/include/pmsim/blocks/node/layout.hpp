#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::node {

using memory::Address;

/// How a data node of a B+-tree finds its pairs (Götze et al., Data Structure Primitives on Persistent Memory,
/// DaMoN 2020, Fig. 2).
enum class Layout : std::uint8_t {
  kSorted,       ///< keys in order, a count
  kUnsorted,     ///< pairs in the order of their inserts, a count
  kIndirection,  ///< pairs anywhere, slots list their places in the order of the keys, a bitmap says which hold
                 ///< one
  kHashing,      ///< pairs anywhere, a one-byte hash each, a bitmap
  kBitmap,       ///< pairs anywhere, a bitmap
};

/// By name, in the order of the enumerators.
inline constexpr std::array<std::string_view, 5> kLayoutNames{"sorted", "unsorted", "indirection", "hashing",
                                                              "bitmap"};

/// Where the keys of a counted node (sorted, unsorted) begin. Nodes with a bitmap always begin them on a line.
enum class Header : std::uint8_t {
  kPadded,  ///< on the next line: "Aligned" of Table 4
  kPacked,  ///< right behind count and pointers: "Base" of Table 4
};

inline constexpr std::uint32_t kKeyBytes = 8;
inline constexpr std::uint32_t kValueBytes = 16;
inline constexpr std::uint32_t kPairBytes = kKeyBytes + kValueBytes;
/// A persistent pointer: pool and offset.
inline constexpr std::uint32_t kPointerBytes = 16;
inline constexpr std::uint32_t kWordBytes = 8;
/// Slots are bytes, and the first one is the count.
inline constexpr std::uint32_t kMostSlots = 255;
/// A node of the largest size has as many lines as Changes can note.
inline constexpr std::uint32_t kMostNodeBytes = 8192;

[[nodiscard]] constexpr bool has_bitmap(Layout layout) noexcept {
  return layout == Layout::kIndirection || layout == Layout::kHashing || layout == Layout::kBitmap;
}

/// Places of everything within a node [bytes from its begin]. A node begins on a line.
///
///   sorted, unsorted   count (8), next, prev (16 each), keys, values
///   indirection        slots (1 + M bytes), bitmap, next, prev, keys, values
///   hashing            hashes (M bytes) behind the bitmap, next, prev, keys, values
///   bitmap             bitmap, next, prev, keys, values
///
/// Keys and values are arrays of their own; bitmaps are whole 8-byte words, slots and hashes are rounded up to
/// such. That is how the authors' published program counts (bench/trees/common.hpp), and gives Table 4.
struct Geometry {
  Layout layout = Layout::kSorted;
  std::uint32_t bytes = 0;    ///< of the node, as asked for
  std::uint32_t entries = 0;  ///< pairs that fit: M
  std::uint32_t count = 0;    ///< sorted, unsorted
  std::uint32_t bitmap = 0;
  std::uint32_t bitmap_words = 0;
  std::uint32_t slots = 0;   ///< indirection; the first byte is the count
  std::uint32_t hashes = 0;  ///< hashing
  std::uint32_t next = 0;
  std::uint32_t prev = 0;
  std::uint32_t keys = 0;
  std::uint32_t values = 0;

  /// Bytes of count, slots, bitmap and hashes: what a change of the front part may touch.
  [[nodiscard]] constexpr std::uint32_t front_bytes() const noexcept { return next; }
  [[nodiscard]] constexpr std::uint32_t end() const noexcept { return values + entries * kValueBytes; }

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// The places of a node with `entries` pairs.
[[nodiscard]] constexpr Geometry places(Layout layout, std::uint32_t bytes, std::uint32_t entries,
                                        Header header = Header::kPadded) noexcept {
  constexpr auto up = [](std::uint32_t value, std::uint32_t unit) { return (value + unit - 1) / unit * unit; };
  constexpr auto line = static_cast<std::uint32_t>(memory::kLineBytes);
  Geometry places{.layout = layout, .bytes = bytes, .entries = entries};
  std::uint32_t front = kWordBytes;  // the count
  if (has_bitmap(layout)) {
    places.bitmap_words = (entries + 63) / 64;
    front = 0;
    if (layout == Layout::kIndirection)
      front += up(entries + 1, kWordBytes);
    places.bitmap = front;
    front += places.bitmap_words * kWordBytes;
    places.hashes = front;
    if (layout == Layout::kHashing)
      front += up(entries, kWordBytes);
  }
  places.next = front;
  places.prev = front + kPointerBytes;
  const std::uint32_t end = front + 2 * kPointerBytes;
  places.keys = header == Header::kPacked && !has_bitmap(layout) ? end : up(end, line);
  places.values = places.keys + entries * kKeyBytes;
  return places;
}

/// The places of a node of `bytes` bytes with as many pairs as fit, or with `entries` of them. Nothing where
/// they do not fit, or not even two pairs do; more than kMostSlots pairs have no indirection.
[[nodiscard]] constexpr std::optional<Geometry> geometry(Layout layout, std::uint32_t bytes,
                                                         Header header = Header::kPadded,
                                                         std::uint32_t entries = 0) noexcept {
  if (bytes > kMostNodeBytes)
    return std::nullopt;
  const auto fits = [&](std::uint32_t count) {
    return places(layout, bytes, count, header).end() <= bytes &&
           (layout != Layout::kIndirection || count <= kMostSlots);
  };
  if (entries == 0) {
    entries = bytes / kPairBytes;
    while (entries > 0 && !fits(entries))
      --entries;
  }
  if (entries < 2 || !fits(entries))
    return std::nullopt;
  return places(layout, bytes, entries, header);
}

// Table 4: pairs in a node, base, aligned and with a search structure.
static_assert(geometry(Layout::kSorted, 256, Header::kPacked)->entries == 9);
static_assert(geometry(Layout::kUnsorted, 4096)->entries == 168);
static_assert(geometry(Layout::kIndirection, 1024)->entries == 37);
static_assert(geometry(Layout::kHashing, 4096)->entries == 160);
static_assert(!geometry(Layout::kSorted, 64) && !geometry(Layout::kIndirection, 8192, Header::kPadded, 256));

}  // namespace pmsim::blocks::node
