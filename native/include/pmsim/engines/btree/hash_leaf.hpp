#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "pmsim/engines/btree/node.hpp"
#include "pmsim/engines/btree/sorted_leaf.hpp"

namespace pmsim::engines::btree {

/// Leaves as hash tables with open addressing (van Renen et al. 2018, section 5.5): a lookup touches the line
/// of the key's slot and the payload, where binary search touches a line per probe. Scans sort the keys of a
/// leaf just in time.
///
/// Linear probing over leaf_slots slots; a slot whose key is 0 is empty, so zero bytes are an empty leaf. The
/// key 0 itself has the slot behind the others, and a flag in the header says whether it is there. Erasing
/// moves later keys of the run back (no tombstones), so runs are as short as if the erased key had never been
/// there.
template <typename Key>
struct HashLeaf {
  static constexpr std::uint8_t kHasZero = 1;
  static constexpr PageRange kCounts{kCountOffset, kNextOffset - kCountOffset};  ///< and the flags
  static constexpr std::uint32_t kHashInstructions = 5;   ///< constant, multiply, shift, multiply, shift
  static constexpr std::uint32_t kProbeInstructions = 5;  ///< compare, branch, compare, branch, next slot
  static constexpr std::uint32_t kSortInstructions = 8;   ///< per comparison of a sort of (key, slot) pairs

  /// A key and where it is.
  struct Entry {
    Key key;
    std::uint32_t slot;
    [[nodiscard]] bool operator<(const Entry& other) const noexcept { return key < other.key; }
  };

  [[nodiscard]] static std::uint32_t home(Key key, const Layout& layout) noexcept {
    const std::uint64_t hash = (std::uint64_t{key} * 0x9e37'79b9'7f4a'7c15) >> 32;
    return static_cast<std::uint32_t>((hash * layout.leaf_slots) >> 32);
  }
  [[nodiscard]] static std::uint32_t after(std::uint32_t slot, const Layout& layout) noexcept {
    return slot + 1 == layout.leaf_slots ? 0 : slot + 1;
  }

  template <typename Node>
  [[nodiscard]] static Located locate(Node& leaf, const Layout& layout, Key key) {
    if (key == 0) [[unlikely]]
      return {(leaf.template load<std::uint8_t>(kFlagsOffset) & kHasZero) != 0, layout.leaf_slots};
    auto& memory = leaf.memory();
    std::uint32_t slot = home(key, layout);
    for (std::uint32_t probes = 1;; slot = after(slot, layout), ++probes) {
      const Key there = leaf.template load<Key>(layout.key(slot));
      if (there == key || there == 0) {
        memory.compute(0, kHashInstructions + probes * kProbeInstructions);
        // A predictor expects the key in its first slot, and what it cannot know is where a run ends.
        if (probes > 1)
          memory.mispredict();
        return {there == key, slot};
      }
    }
  }

  template <typename Node>
  static void insert(Node& leaf, const Layout& layout, std::uint32_t slot, Key key,
                     std::span<const std::byte> payload) {
    leaf.announce({kCounts,
                   {layout.key(slot), key == 0 ? 0 : layout.key_bytes},
                   {layout.payload(slot), layout.payload_bytes}});
    leaf.write(layout.payload(slot), payload);
    auto header = leaf.header();
    header.count += 1;
    if (key == 0) {
      header.flags |= kHasZero;
    } else {
      leaf.template put<Key>(layout.key(slot), key);
    }
    put_count(leaf, header);
    leaf.settle();
  }
  template <typename Node>
  static std::uint32_t erase(Node& leaf, const Layout& layout, std::uint32_t slot) {
    auto header = leaf.header();
    header.count -= 1;
    if (slot == layout.leaf_slots) {
      header.flags &= static_cast<std::uint8_t>(~kHasZero);
      leaf.announce({kCounts});
    } else {
      std::vector<std::uint32_t> holes{slot};  // each row moves to the one before its own
      std::uint32_t probes = 1;
      for (std::uint32_t next = after(slot, layout);; next = after(next, layout), ++probes) {
        const Key key = leaf.template load<Key>(layout.key(next));
        if (key == 0)
          break;
        const std::uint32_t from = home(key, layout);
        // The key may stay where its home lies cyclically in (hole, next].
        const std::uint32_t hole = holes.back();
        const bool stays = hole <= next ? hole < from && from <= next : hole < from || from <= next;
        if (stays)
          continue;
        holes.push_back(next);
      }
      leaf.memory().compute(0, probes * (kHashInstructions + kProbeInstructions));
      announce_run(leaf, layout, slot, holes.back());
      for (std::size_t row = 1; row < holes.size(); ++row) {
        leaf.move(layout.key(holes[row - 1]), layout.key(holes[row]), layout.key_bytes);
        leaf.move(layout.payload(holes[row - 1]), layout.payload(holes[row]), layout.payload_bytes);
      }
      leaf.template put<Key>(layout.key(holes.back()), 0);
    }
    put_count(leaf, header);
    leaf.settle();
    return header.count;
  }

  /// The step of an erasure: the rows of a run from one slot to another, behind the last slot from the first
  /// on.
  template <typename Node>
  static void announce_run(Node& leaf, const Layout& layout, std::uint32_t slot, std::uint32_t last) {
    const bool moves = slot != last;
    const std::uint32_t end = last < slot ? layout.leaf_slots : last + 1;
    const std::uint32_t wrapped = last < slot ? last + 1 : 0;
    const std::uint32_t payload_bytes = moves ? layout.payload_bytes : 0;
    leaf.announce({kCounts,
                   {layout.key(slot), (end - slot) * layout.key_bytes},
                   {layout.payload(slot), (end - slot) * payload_bytes},
                   {layout.key(0), wrapped * layout.key_bytes},
                   {layout.payload(0), wrapped * payload_bytes}});
  }

  /// The entries with keys >= from, in ascending order: sorted just in time. Reads all keys.
  template <typename Node>
  static void sorted_entries(Node& leaf, const Layout& layout, Key from, std::vector<Entry>& entries,
                             std::vector<std::byte>& scratch) {
    entries.clear();
    const std::uint8_t flags = leaf.template load<std::uint8_t>(kFlagsOffset);
    const auto keys = std::span(scratch).first(std::size_t{layout.leaf_slots} * layout.key_bytes);
    leaf.read(layout.key(0), keys);
    if ((flags & kHasZero) != 0 && from == 0)
      entries.push_back({0, layout.leaf_slots});
    for (std::uint32_t slot = 0; slot < layout.leaf_slots; ++slot) {
      Key key;
      std::memcpy(&key, keys.data() + std::size_t{slot} * sizeof key, sizeof key);
      if (key != 0 && key >= from)
        entries.push_back({key, slot});
    }
    std::sort(entries.begin(), entries.end());
    const auto count = static_cast<std::uint32_t>(entries.size());
    leaf.memory().compute(0, layout.leaf_slots * 4 +
                                 count * static_cast<std::uint32_t>(std::bit_width(count)) * kSortInstructions);
  }

  /// The rows with the highest keys to `right`, an empty page; `keep` stay. Both are written anew: what is left
  /// of a run must be moved anyway. Returns the first key of `right`.
  template <typename Node>
  [[nodiscard]] static Key split(Node& left, Node& right, const Layout& layout, std::uint32_t keep,
                                 std::vector<Entry>& entries, std::vector<std::byte>& scratch,
                                 std::vector<std::byte>& image) {
    sorted_entries(left, layout, 0, entries, scratch);
    left.read(0, std::span(scratch).first(layout.page_bytes));
    const std::span<const Entry> all(entries);
    for (const bool upper : {true, false}) {
      const auto part = upper ? all.subspan(keep) : all.first(keep);
      std::fill(image.begin(), image.end(), std::byte{0});
      NodeHeader header{.count = 0, .kind = NodeKind::kHashLeaf};
      for (const Entry& entry : part) {
        append(image, layout, header, entry.key,
               std::span(scratch).subspan(layout.payload(entry.slot), layout.payload_bytes));
      }
      Node& to = upper ? right : left;  // the key 0 is the lowest: the flag of `left` stays as it is
      to.write(kKeysOffset, std::span(image).subspan(kKeysOffset, layout.page_bytes - kKeysOffset));
    }
    return all[keep].key;
  }
  /// Adds the rows of `right`, and their number to the header of `left`, which is written anew: row by row a
  /// log would have three records for each.
  template <typename Node>
  static void merge(Node& left, Node& right, const Layout& layout, std::vector<Entry>& entries,
                    std::vector<std::byte>& scratch, std::vector<std::byte>& image) {
    std::fill(image.begin(), image.end(), std::byte{0});
    NodeHeader header{.count = 0, .kind = NodeKind::kHashLeaf};
    for (Node* const from : {&left, &right}) {
      sorted_entries(*from, layout, 0, entries, scratch);
      from->read(0, std::span(scratch).first(layout.page_bytes));
      for (const Entry& entry : entries) {
        append(image, layout, header, entry.key,
               std::span(scratch).subspan(layout.payload(entry.slot), layout.payload_bytes));
      }
    }
    left.write(kKeysOffset, std::span(image).subspan(kKeysOffset, layout.page_bytes - kKeysOffset));
    put_count(left, header);
  }

  /// Adds a row to a page image; keeps count and flags of its header.
  static void append(std::span<std::byte> image, const Layout& layout, NodeHeader& header, Key key,
                     std::span<const std::byte> payload) {
    std::uint32_t slot = layout.leaf_slots;
    if (key == 0) {
      header.flags |= kHasZero;
    } else {
      slot = home(key, layout);
      const auto at = [&](std::uint32_t place) {
        Key there;
        std::memcpy(&there, image.data() + layout.key(place), sizeof there);
        return there;
      };
      while (at(slot) != 0)
        slot = after(slot, layout);
      std::memcpy(image.data() + layout.key(slot), &key, sizeof key);
    }
    ++header.count;
    std::memcpy(image.data() + layout.payload(slot), payload.data(), payload.size());
  }

 private:
  template <typename Node>
  static void put_count(Node& leaf, const NodeHeader& header) {
    leaf.write(kCountOffset, std::as_bytes(std::span(&header, 1)).first(kNextOffset - kCountOffset));
  }
};

}  // namespace pmsim::engines::btree
