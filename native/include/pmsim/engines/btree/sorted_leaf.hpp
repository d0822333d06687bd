#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "pmsim/engines/btree/node.hpp"
#include "pmsim/engines/btree/search.hpp"

namespace pmsim::engines::btree {

/// Where a key is in a leaf, or would go.
struct Located {
  bool found = false;
  std::uint32_t slot = 0;
};

/// Leaves with keys in ascending order, and payloads in the same order.
template <typename Key>
struct SortedLeaf {
  template <typename Node>
  [[nodiscard]] static Located locate(Node& leaf, const Layout& layout, Key key) {
    const std::uint32_t count = leaf.count();
    const std::uint32_t slot = lower_bound(leaf, layout, count, key);
    return {slot < count && leaf.template load<Key>(layout.key(slot)) == key, slot};
  }
  template <typename Node>
  [[nodiscard]] static std::uint32_t lower_bound(Node& leaf, const Layout& layout, std::uint32_t count,
                                                 Key key) {
    return search<Key, false>(leaf.memory(), count, key,
                              [&](std::uint32_t slot) { return leaf.at(layout.key(slot), sizeof(Key)); });
  }

  /// Into a leaf that is not full, at the slot where locate() has not found the key.
  template <typename Node>
  static void insert(Node& leaf, const Layout& layout, std::uint32_t slot, Key key,
                     std::span<const std::byte> payload) {
    const std::uint32_t count = leaf.count();
    const std::uint32_t behind = count - slot;
    announce(leaf, layout, slot, behind + 1);
    leaf.move(layout.key(slot + 1), layout.key(slot), behind * layout.key_bytes);
    leaf.move(layout.payload(slot + 1), layout.payload(slot), behind * layout.payload_bytes);
    leaf.template put<Key>(layout.key(slot), key);
    leaf.write(layout.payload(slot), payload);
    leaf.template put<std::uint32_t>(kCountOffset, count + 1);
    leaf.settle();
  }
  /// Returns how many are left.
  template <typename Node>
  static std::uint32_t erase(Node& leaf, const Layout& layout, std::uint32_t slot) {
    const std::uint32_t count = leaf.count();
    const std::uint32_t behind = count - slot - 1;
    announce(leaf, layout, slot, behind);
    leaf.move(layout.key(slot), layout.key(slot + 1), behind * layout.key_bytes);
    leaf.move(layout.payload(slot), layout.payload(slot + 1), behind * layout.payload_bytes);
    leaf.template put<std::uint32_t>(kCountOffset, count - 1);
    leaf.settle();
    return count - 1;
  }

  /// The upper half of a full leaf to `right`, an empty page; returns its first key. Headers are the tree's.
  template <typename Node>
  [[nodiscard]] static Key split(Node& left, Node& right, const Layout& layout, std::uint32_t count,
                                 std::uint32_t keep, std::vector<std::byte>& scratch) {
    const std::uint32_t moved = count - keep;
    right.copy(layout.key(0), left, layout.key(keep), moved * layout.key_bytes, scratch);
    Key separator;
    std::memcpy(&separator, scratch.data(), sizeof separator);
    right.copy(layout.payload(0), left, layout.payload(keep), moved * layout.payload_bytes, scratch);
    return separator;
  }
  /// Appends the rows of `right`. Headers are the tree's.
  template <typename Node>
  static void merge(Node& left, Node& right, const Layout& layout, std::uint32_t left_count,
                    std::uint32_t right_count, std::vector<std::byte>& scratch) {
    left.copy(layout.key(left_count), right, layout.key(0), right_count * layout.key_bytes, scratch);
    left.copy(layout.payload(left_count), right, layout.payload(0), right_count * layout.payload_bytes,
              scratch);
  }

  /// Adds the next row, in ascending order, to a page image.
  static void append(std::span<std::byte> image, const Layout& layout, std::uint32_t count, Key key,
                     std::span<const std::byte> payload) {
    std::memcpy(image.data() + layout.key(count), &key, sizeof key);
    std::memcpy(image.data() + layout.payload(count), payload.data(), payload.size());
  }

 private:
  /// That the number of rows and `rows` of them from `slot` on are about to change.
  template <typename Node>
  static void announce(Node& leaf, const Layout& layout, std::uint32_t slot, std::uint32_t rows) {
    leaf.announce({{kCountOffset, sizeof(std::uint32_t)},
                   {layout.key(slot), rows * layout.key_bytes},
                   {layout.payload(slot), rows * layout.payload_bytes}});
  }
};

}  // namespace pmsim::engines::btree
