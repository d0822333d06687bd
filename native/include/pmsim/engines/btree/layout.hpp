#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::btree {

/// What a node is; the values are stored in pages.
enum class NodeKind : std::uint8_t { kSortedLeaf = 1, kHashLeaf = 2, kInner = 3 };

/// The tree's part of a page's first line, behind the store's PageHeader.
///
///   0   PageHeader (the store's)
///   24  count   keys in the node
///   28  level   0: leaf
///   30  kind
///   31  flags   bit 0: a hash leaf holds the key that its empty slots are marked with
///   32  next    leaves: PageId of the leaf to the right, or kNoPage
///   64  keys, then payloads of a leaf or swips of an inner node; each array begins on 8 bytes
struct NodeHeader {
  std::uint32_t count = 0;
  std::uint16_t level = 0;
  NodeKind kind = NodeKind::kSortedLeaf;
  std::uint8_t flags = 0;
  PageId next = kNoPage;
};
inline constexpr std::uint32_t kCountOffset = kPageHeaderBytes;
inline constexpr std::uint32_t kLevelOffset = kCountOffset + 4;
inline constexpr std::uint32_t kFlagsOffset = kCountOffset + 7;
inline constexpr std::uint32_t kNextOffset = kCountOffset + 8;
inline constexpr std::uint32_t kKeysOffset = 64;
static_assert(sizeof(NodeHeader) == 16 && offsetof(NodeHeader, level) == 4 &&
              offsetof(NodeHeader, flags) == 7 && offsetof(NodeHeader, next) == 8 &&
              kCountOffset + sizeof(NodeHeader) <= kKeysOffset);

/// Where the arrays of a tree's nodes lie. Sorted keys and payloads are in separate arrays (van Renen et al.
/// 2018, section 5.1).
///
/// A hash leaf (section 5.5) has as many slots as a sorted leaf has entries, and one more behind them for the
/// key that marks empty slots; at most seven eighths of the slots are used (one is always empty), past which
/// linear probing finds long runs.
struct Layout {
  std::uint32_t page_bytes = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t payload_bytes = 0;
  NodeKind leaf_kind = NodeKind::kSortedLeaf;
  std::uint32_t leaf_slots = 0;      ///< room of the arrays
  std::uint32_t leaf_capacity = 0;   ///< entries of a full leaf
  std::uint32_t payloads = 0;        ///< offset of a leaf's payloads
  std::uint32_t inner_capacity = 0;  ///< keys of a full inner node; it has one child more
  std::uint32_t children = 0;        ///< offset of an inner node's swips

  [[nodiscard]] std::uint32_t key(std::uint32_t slot) const noexcept { return kKeysOffset + slot * key_bytes; }
  [[nodiscard]] std::uint32_t payload(std::uint32_t slot) const noexcept {
    return payloads + slot * payload_bytes;
  }
  [[nodiscard]] std::uint32_t child(std::uint32_t slot) const noexcept { return children + slot * 8; }
  [[nodiscard]] bool hashed() const noexcept { return leaf_kind == NodeKind::kHashLeaf; }

  /// Throws ConfigError where fewer than two rows fit into a leaf.
  [[nodiscard]] static Layout of(const TableSpec& spec, std::uint32_t page_bytes, NodeKind leaf_kind) {
    const auto refuse = [&spec](const std::string& what) {
      throw ConfigError("table '" + spec.name + "': " + what);
    };
    if (spec.key_bytes != 4 && spec.key_bytes != 8)
      refuse("key_bytes = " + std::to_string(spec.key_bytes) + ": must be 4 or 8");
    if (spec.payload_bytes == 0)
      refuse("payload_bytes = 0: a row needs a payload");
    Layout layout{.page_bytes = page_bytes,
                  .key_bytes = spec.key_bytes,
                  .payload_bytes = spec.payload_bytes,
                  .leaf_kind = leaf_kind};
    const std::uint32_t room = page_bytes - kKeysOffset;
    const auto aligned = [](std::uint32_t offset) { return (offset + 7) / 8 * 8; };
    const std::uint64_t row = std::uint64_t{spec.key_bytes} + spec.payload_bytes;
    auto slots = static_cast<std::uint32_t>(room / row);
    if (slots > 0 && aligned(kKeysOffset + slots * spec.key_bytes) + slots * spec.payload_bytes > page_bytes)
      --slots;
    layout.payloads = aligned(kKeysOffset + slots * spec.key_bytes);
    layout.leaf_slots = layout.leaf_capacity = slots;
    if (layout.hashed()) {
      layout.leaf_slots = slots == 0 ? 0 : slots - 1;
      layout.leaf_capacity =
          layout.leaf_slots - std::min(layout.leaf_slots, std::max(layout.leaf_slots / 8, 1U));
    }
    if (layout.leaf_capacity < 2)
      refuse("payload_bytes = " + std::to_string(spec.payload_bytes) + ": two rows do not fit into a page of " +
             std::to_string(page_bytes) + " bytes; raise page_bytes");
    layout.inner_capacity = (room - 8 - 4) / (spec.key_bytes + 8);
    layout.children = aligned(kKeysOffset + layout.inner_capacity * spec.key_bytes);
    return layout;
  }
};

}  // namespace pmsim::engines::btree
