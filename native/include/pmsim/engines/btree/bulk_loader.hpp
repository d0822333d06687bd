#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/btree/hash_leaf.hpp"
#include "pmsim/engines/btree/layout.hpp"
#include "pmsim/engines/btree/shares.hpp"
#include "pmsim/engines/btree/sorted_leaf.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::btree {

/// Builds a tree bottom-up from rows in ascending order: page images, each given to store.load() once. Not
/// logged, not timed; sync() and the entry in the catalog are the caller's.
///
/// `fill` (0..1] is the load factor of leaves and inner nodes (0.66 in section 5.1), on average (Shares).
template <typename Store, typename Key, memory::Memory M>
class BulkLoader {
 public:
  BulkLoader(M& memory, Store& store, const Layout& layout, double fill)
      : memory_(memory), store_(store), layout_(layout), fill_(fill), image_(layout.page_bytes) {
    if (!(fill > 0 && fill <= 1))
      throw ConfigError("fill = " + std::to_string(fill) + ": must be above 0 and at most 1");
  }

  /// Returns the root's PageId.
  [[nodiscard]] PageId load(RowSource& rows) {
    std::vector<Child> children = load_leaves(rows);
    for (std::uint16_t level = 1; children.size() > 1; ++level)
      children = load_inner(children, level);
    return children.front().page;
  }

 private:
  struct Child {
    Key first;
    PageId page;
  };

  [[nodiscard]] std::vector<Child> load_leaves(RowSource& rows) {
    const Shares shares(fill_, layout_.leaf_capacity);
    std::vector<Child> children;
    std::vector<std::byte> payload(layout_.payload_bytes);
    std::uint64_t left = rows.rows();
    std::uint64_t previous = 0;
    bool first_row = true;
    do {
      const std::uint64_t entries = std::min(left, shares.of(children.size()));
      left -= entries;
      NodeHeader header{.kind = layout_.leaf_kind};
      std::fill(image_.begin(), image_.end(), std::byte{0});
      Key first = 0;
      for (std::uint64_t row = 0; row < entries; ++row) {
        const std::uint64_t wide = rows.next(payload);
        const Key key = static_cast<Key>(wide);
        if (key != wide || (!first_row && wide <= previous)) {
          throw ConfigError("row with key " + std::to_string(wide) +
                            ": keys must fit the table's key_bytes and ascend");
        }
        previous = wide;
        first_row = false;
        if (row == 0)
          first = key;
        if (layout_.hashed()) {
          HashLeaf<Key>::append(image_, layout_, header, key, payload);
        } else {
          SortedLeaf<Key>::append(image_, layout_, header.count++, key, payload);
        }
      }
      if (left > 0)
        header.next = store_.next_load() + 1;
      std::memcpy(image_.data() + kCountOffset, &header, sizeof header);
      children.push_back({first, store_.load(memory_, image_)});
    } while (left > 0);
    return children;
  }

  [[nodiscard]] std::vector<Child> load_inner(const std::vector<Child>& below, std::uint16_t level) {
    const Shares shares(fill_, layout_.inner_capacity);
    std::vector<Child> children;
    for (std::size_t next = 0; next < below.size();) {
      // A node with n keys has n + 1 children. The last one must not be left with none.
      std::uint64_t entries = shares.of(children.size()) + 1;
      const std::uint64_t left = below.size() - next;
      if (left <= entries) {
        entries = left;
      } else if (left - entries == 1) {
        entries == 2 ? ++entries : --entries;
      }
      std::fill(image_.begin(), image_.end(), std::byte{0});
      const NodeHeader header{
          .count = static_cast<std::uint32_t>(entries - 1), .level = level, .kind = NodeKind::kInner};
      for (std::uint64_t entry = 0; entry < entries; ++entry) {
        const Child& child = below[next + entry];
        const auto at = static_cast<std::uint32_t>(entry);
        if (entry > 0)
          std::memcpy(image_.data() + layout_.key(at - 1), &child.first, sizeof(Key));
        std::memcpy(image_.data() + layout_.child(at), &child.page, sizeof child.page);
      }
      std::memcpy(image_.data() + kCountOffset, &header, sizeof header);
      children.push_back({below[next].first, store_.load(memory_, image_)});
      next += entries;
    }
    return children;
  }

  M& memory_;
  Store& store_;
  const Layout& layout_;
  double fill_;
  std::vector<std::byte> image_;
};

}  // namespace pmsim::engines::btree
