#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pmsim/engines/btree/hash_leaf.hpp"
#include "pmsim/engines/btree/layout.hpp"
#include "pmsim/engines/btree/node.hpp"
#include "pmsim/engines/btree/search.hpp"
#include "pmsim/engines/btree/sorted_leaf.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::btree {

/// Structure modifications since the start.
struct TreeCounters {
  std::uint64_t splits = 0;
  std::uint64_t merges = 0;
};

/// The B+-tree that all page-based engines share (van Renen et al. 2018, section 5.1), over the pages of a
/// store.
///
/// Invariants: an inner node with keys k1 < ... < kn has n + 1 children; the keys below child i are in
/// [ki, ki+1). Leaves form a list from left to right. The root's PageId never changes: a root that is split
/// gives its content to a child.
///
/// Lookup, update, insert and erase read inner nodes whole and leaves line by line; splits, merges and scans
/// with another mode than ScanMode::kGrained read leaves whole too (section 3.1).
///  - insert: a leaf with room is changed at once. Otherwise a second descent splits every full node on its way
///    down in the middle, so a parent always has room; three pages are fixed at most.
///  - erase: a leaf that falls below a quarter of its capacity, or becomes empty, starts a second descent that
///    merges each such node on its way with a sibling under the same parent where the two fill at most three
///    quarters of one (or one of them is empty), and lifts the only child of a root. Nothing is borrowed: a
///    node may stay underfull, even empty, until a neighbour has room. Pages that become free are released.
/// What is durable when is the store's business; the tree changes pages only by overwrite and move.
///
/// `note` of update(before), insert() and erase(payload) is called when the change is certain, before it.
/// Nothing is allocated per operation: the scratch pages are members.
///
/// Latches, where there are any, are coupled from the root down: the child's is acquired before the parent's is
/// given up. Inner nodes are read, and the leaf is written where it may be changed; a descent that splits or
/// merges writes all of its way.
template <typename Store, typename Key, memory::Memory M>
  requires PageStore<Store, M>
class BTree {
 public:
  /// `latches`: of pages, where several threads use the tree; must outlive it.
  BTree(M& memory, Store& store, const Layout& layout, PageId root, const PageLatches* latches = nullptr)
      : layout_(layout),
        latches_(latches),
        read_(latches == nullptr ? LatchMode::kShared : latches->read),
        root_{.id = root},
        scratch_(layout.page_bytes),
        image_(layout.page_bytes) {
    reopen(memory, store);
  }

  /// Forgets what it knows about the root: after pages have been changed behind the tree's back (physical
  /// undo).
  void reopen(M& memory, Store& store) {
    root_.frame = 0;
    root_level_ = 0;
    root_level_ = root(memory, store, Access::kFull, LatchMode::kShared).header().level;
  }

  /// The part [offset, offset + into.size()) of the payload; false where there is no such key.
  bool lookup(M& memory, Store& store, Key key, std::uint32_t offset, std::span<std::byte> into) {
    Node leaf = descend(memory, store, key, Access::kGrained, read_);
    const Located at = locate(leaf, key);
    if (at.found)
      leaf.read(layout_.payload(at.slot) + offset, into);
    return at.found;
  }

  /// The highest key <= key, and the beginning of its payload. Sorted leaves only.
  std::optional<Key> floor(M& memory, Store& store, Key key, std::span<std::byte> into) {
    for (;;) {
      Node node = root(memory, store, root_level_ == 0 ? Access::kGrained : Access::kFull, read_);
      std::optional<Key> low;  // separator left of the subtree that `node` is the root of
      for (std::uint32_t level = root_level_; level > 0; --level) {
        const std::uint32_t slot = child_slot(node, node.count(), key);
        if (slot > 0)
          low = node.template load<Key>(layout_.key(slot - 1));
        node = node.child(layout_.child(slot), level == 1 ? Access::kGrained : Access::kFull, read_);
      }
      const std::uint32_t slot = child_slot(node, node.count(), key);
      if (slot > 0) {
        node.read(layout_.payload(slot - 1), into);
        return node.template load<Key>(layout_.key(slot - 1));
      }
      if (!low || *low == 0)
        return std::nullopt;
      key = static_cast<Key>(*low - 1);  // what there was in this leaf below `key` has been erased
    }
  }

  template <typename Note>
  bool update(M& memory, Store& store, Key key, std::uint32_t offset, std::span<const std::byte> bytes,
              Note&& note) {
    Node leaf = descend(memory, store, key, Access::kChanged, LatchMode::kExclusive);
    const Located at = locate(leaf, key);
    if (!at.found)
      return false;
    const auto before = std::span(scratch_).first(bytes.size());
    leaf.read(layout_.payload(at.slot) + offset, before);
    note(std::span<const std::byte>(before));
    leaf.write(layout_.payload(at.slot) + offset, bytes);
    return true;
  }

  template <typename Note>
  bool insert(M& memory, Store& store, Key key, std::span<const std::byte> payload, Note&& note) {
    {
      Node leaf = descend(memory, store, key, Access::kChanged, LatchMode::kExclusive);
      const Located at = locate(leaf, key);
      if (at.found)
        return false;
      if (leaf.template load<std::uint32_t>(kCountOffset) < layout_.leaf_capacity) {
        note();
        insert_at(leaf, at.slot, key, payload);
        return true;
      }
    }
    Node leaf = descend_splitting(memory, store, key);
    const Located at = locate(leaf, key);
    note();
    insert_at(leaf, at.slot, key, payload);
    return true;
  }

  /// Pages that an insert of `key` would allocate now.
  [[nodiscard]] std::uint32_t pages_to_insert(M& memory, Store& store, Key key) {
    Node node = root(memory, store, Access::kFull, read_);
    std::uint32_t pages = node.count() == capacity(root_level_) ? 2 : 0;  // grow(), and the split of its child
    for (std::uint32_t level = root_level_; level > 0; --level) {
      node = node.child(layout_.child(child_slot(node, node.count(), key)), Access::kFull, read_);
      pages += node.count() == capacity(level - 1) ? 1 : 0;
    }
    return node.count() == capacity(0) ? pages : 0;
  }

  template <typename Note>
  bool erase(M& memory, Store& store, Key key, Note&& note) {
    return erase(memory, store, key, note, [] { return true; });
  }
  /// `may_merge()`: whether there is room for what a rollback would need of it; asked where a merge is due. A
  /// leaf that stays almost empty, or empty, is merged when a neighbour becomes so.
  template <typename Note, typename MayMerge>
  bool erase(M& memory, Store& store, Key key, Note&& note, MayMerge&& may_merge) {
    std::uint32_t left = 0;
    {
      Node leaf = descend(memory, store, key, Access::kChanged, LatchMode::kExclusive);
      const Located at = locate(leaf, key);
      if (!at.found)
        return false;
      const auto before = std::span(scratch_).first(layout_.payload_bytes);
      leaf.read(layout_.payload(at.slot), before);
      note(std::span<const std::byte>(before));
      left = layout_.hashed() ? HashLeaf<Key>::erase(leaf, layout_, at.slot)
                              : SortedLeaf<Key>::erase(leaf, layout_, at.slot);
    }
    if ((left == 0 || left + 1 == layout_.leaf_capacity / 4) && root_level_ > 0 && may_merge())
      descend_merging(memory, store, key);
    return true;
  }

  /// As Engine::scan, over [offset, offset + bytes) of the payloads.
  std::uint64_t scan(M& memory, Store& store, Key from, std::uint64_t limit, std::uint32_t offset,
                     std::uint32_t bytes, ScanMode mode, const typename Engine<M>::Visit& visit) {
    if (limit == 0)
      return 0;
    const Access access = mode == ScanMode::kGrained ? Access::kGrained : Access::kFull;
    const bool prefetches = mode == ScanMode::kPrefetchNext;
    Node leaf = descend(memory, store, from, access, read_);
    std::uint64_t visited = 0;
    for (;;) {
      if (!scan_leaf(leaf, from, limit, offset, bytes, prefetches, visit, visited))
        return visited;
      const PageId next = leaf.template load<PageId>(kNextOffset);
      if (next == kNoPage)
        return visited;
      leaf.unfix();
      leaf = Node(memory, store, store.fix_page(memory, next, access), access, latches_, read_);
    }
  }

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] PageId root_id() const noexcept { return root_.id; }
  [[nodiscard]] std::uint32_t root_level() const noexcept { return root_level_; }
  [[nodiscard]] const TreeCounters& counters() const noexcept { return counters_; }

  using Node = btree::Node<Store, M>;
  [[nodiscard]] Node root(M& memory, Store& store, Access access, LatchMode mode) {
    return Node(memory, store, store.fix(memory, root_, access), access, latches_, mode);
  }

 private:
  [[nodiscard]] Node descend(M& memory, Store& store, Key key, Access leaf_access, LatchMode leaf_mode) {
    Node node = root(memory, store, root_level_ == 0 ? leaf_access : Access::kFull,
                     root_level_ == 0 ? leaf_mode : read_);
    for (std::uint32_t level = root_level_; level > 0; --level) {
      const std::uint32_t slot = child_slot(node, node.count(), key);
      node = level == 1 ? node.child(layout_.child(slot), leaf_access, leaf_mode)
                        : node.child(layout_.child(slot), Access::kFull, read_);
    }
    return node;
  }
  [[nodiscard]] std::uint32_t child_slot(Node& node, std::uint32_t count, Key key) {
    return search<Key, true>(node.memory(), count, key,
                             [&](std::uint32_t slot) { return node.at(layout_.key(slot), sizeof(Key)); });
  }
  [[nodiscard]] Located locate(Node& leaf, Key key) {
    return layout_.hashed() ? HashLeaf<Key>::locate(leaf, layout_, key)
                            : SortedLeaf<Key>::locate(leaf, layout_, key);
  }
  void insert_at(Node& leaf, std::uint32_t slot, Key key, std::span<const std::byte> payload) {
    layout_.hashed() ? HashLeaf<Key>::insert(leaf, layout_, slot, key, payload)
                     : SortedLeaf<Key>::insert(leaf, layout_, slot, key, payload);
  }
  [[nodiscard]] std::uint32_t capacity(std::uint32_t level) const noexcept {
    return level == 0 ? layout_.leaf_capacity : layout_.inner_capacity;
  }

  /// A scan makes whole rows resident, whatever it reads of them: cache-line-grained loading "loads each tuple
  /// individually", so that "almost no loads are avoided when all tuples on a page are needed" (section 5.4.2).
  void read_in_scan(Node& leaf, std::uint32_t slot, std::uint32_t offset, std::span<std::byte> into) {
    const Address row = leaf.at(layout_.payload(slot), layout_.payload_bytes);
    if (!into.empty())
      leaf.memory().read(row + offset, into);
  }

  void prefetch_row(Node& leaf, std::uint32_t slot, std::uint32_t offset, std::uint32_t bytes) {
    const Address row = leaf.at(layout_.payload(slot), layout_.payload_bytes) + offset;
    for (Address at = row / memory::kLineBytes * memory::kLineBytes; at < row + bytes; at += memory::kLineBytes)
      leaf.memory().prefetch(at);
  }

  /// False where the scan is over.
  bool scan_leaf(Node& leaf, Key from, std::uint64_t limit, std::uint32_t offset, std::uint32_t bytes,
                 bool prefetches, const typename Engine<M>::Visit& visit, std::uint64_t& visited) {
    const auto row = std::span(scratch_).first(bytes);
    if (layout_.hashed()) {
      HashLeaf<Key>::sorted_entries(leaf, layout_, from, entries_, scratch_);
      for (const auto& entry : entries_) {
        read_in_scan(leaf, entry.slot, offset, row);
        ++visited;
        if (!visit(entry.key, row) || visited == limit)
          return false;
      }
      return true;
    }
    const std::uint32_t count = leaf.count();
    std::uint32_t slot = visited == 0 ? SortedLeaf<Key>::lower_bound(leaf, layout_, count, from) : 0;
    // Keys are taken by the line, so a store is asked once per line of them for what it need not load.
    constexpr std::uint32_t kKeysOfLine = memory::kLineBytes / sizeof(Key);
    static_assert(kKeysOffset % memory::kLineBytes == 0);
    std::array<Key, kKeysOfLine> keys;
    for (bool fresh = true; slot < count; ++slot, fresh = false) {
      if (fresh || slot % kKeysOfLine == 0) {
        leaf.read(layout_.key(slot / kKeysOfLine * kKeysOfLine), std::as_writable_bytes(std::span(keys)));
        leaf.memory().compute(0, kKeyLineInstructions);
      }
      const Key key = keys[slot % kKeysOfLine];
      if (prefetches && slot + 1 < count)
        prefetch_row(leaf, slot + 1, offset, bytes);
      read_in_scan(leaf, slot, offset, row);
      leaf.memory().compute(0, kScanInstructions);
      ++visited;
      if (!visit(key, row) || visited == limit)
        return false;
    }
    return true;
  }

  /// Down to a leaf with room for one more row.
  [[nodiscard]] Node descend_splitting(M& memory, Store& store, Key key) {
    Node node = root(memory, store, Access::kFull, LatchMode::kExclusive);
    if (node.count() == capacity(root_level_))
      grow(memory, store, node);
    for (std::uint32_t level = root_level_; level > 0; --level) {
      const std::uint32_t slot = child_slot(node, node.count(), key);
      Node child = node.child(layout_.child(slot), Access::kFull, LatchMode::kExclusive);
      if (child.count() == capacity(level - 1)) {
        Key separator;
        Node right = split(memory, store, node, slot, child, level - 1, separator);
        if (key >= separator)
          child = std::move(right);
      }
      node = std::move(child);
    }
    return node;
  }

  /// One level more: what was in the root is now in its only child.
  void grow(M& memory, Store& store, Node& node) {
    ++counters_.splits;
    Node child(memory, store, store.allocate(memory), Access::kFull, latches_, LatchMode::kExclusive);
    if (root_level_ > 0)
      node.unswizzle(layout_.child(0), node.count() + 1);
    child.copy(kCountOffset, node, kCountOffset, layout_.page_bytes - kCountOffset, scratch_);
    node.template put<PageId>(layout_.child(0), child.id());
    node.template put<NodeHeader>(
        kCountOffset,
        {.count = 0, .level = static_cast<std::uint16_t>(++root_level_), .kind = NodeKind::kInner});
  }

  /// Splits the full child at `slot` of a parent that has room; returns the new right one.
  [[nodiscard]] Node split(M& memory, Store& store, Node& parent, std::uint32_t slot, Node& left,
                           std::uint32_t level, Key& separator) {
    ++counters_.splits;
    Node right(memory, store, store.allocate(memory), Access::kFull, latches_, LatchMode::kExclusive);
    NodeHeader header = left.header();
    const std::uint32_t count = header.count;
    const std::uint32_t keep = count / 2;
    if (level == 0) {
      separator = layout_.hashed()
                      ? HashLeaf<Key>::split(left, right, layout_, keep, entries_, scratch_, image_)
                      : SortedLeaf<Key>::split(left, right, layout_, count, keep, scratch_);
      right.template put<NodeHeader>(kCountOffset,
                                     {.count = count - keep, .kind = header.kind, .next = header.next});
      header.next = right.id();
    } else {
      const std::uint32_t moved = count - keep - 1;  // the key in the middle goes up
      separator = left.template load<Key>(layout_.key(keep));
      left.unswizzle(layout_.child(keep + 1), moved + 1);
      right.copy(layout_.key(0), left, layout_.key(keep + 1), moved * layout_.key_bytes, scratch_);
      right.copy(layout_.child(0), left, layout_.child(keep + 1), (moved + 1) * 8, scratch_);
      right.template put<NodeHeader>(kCountOffset,
                                     {.count = moved, .level = header.level, .kind = NodeKind::kInner});
    }
    header.count = keep;
    left.template put<NodeHeader>(kCountOffset, header);

    const std::uint32_t in_parent = parent.count();
    const std::uint32_t behind = in_parent - slot;
    parent.unswizzle(layout_.child(slot + 1), behind);
    parent.move(layout_.key(slot + 1), layout_.key(slot), behind * layout_.key_bytes);
    parent.move(layout_.child(slot + 2), layout_.child(slot + 1), behind * 8);
    parent.template put<Key>(layout_.key(slot), separator);
    parent.template put<PageId>(layout_.child(slot + 1), right.id());
    parent.template put<std::uint32_t>(kCountOffset, in_parent + 1);
    return right;
  }

  /// Merges what can be merged on the way to the leaf of `key`.
  void descend_merging(M& memory, Store& store, Key key) {
    lift(memory, store);
    {
      Node node = root(memory, store, Access::kFull, LatchMode::kExclusive);
      for (std::uint32_t level = root_level_; level > 0; --level) {
        const std::uint32_t count = node.count();
        const std::uint32_t slot = child_slot(node, count, key);
        Node child = node.child(layout_.child(slot), Access::kFull, LatchMode::kExclusive);
        const std::uint32_t in_child = child.count();
        if (in_child == 0 || in_child < capacity(level - 1) / 4) {
          if (slot < count) {
            Node right = node.child(layout_.child(slot + 1), Access::kFull, LatchMode::kExclusive);
            merge(node, slot, child, right, level - 1);
          } else if (slot > 0) {
            Node left = node.child(layout_.child(slot - 1), Access::kFull, LatchMode::kExclusive);
            if (merge(node, slot - 1, left, child, level - 1))
              child = std::move(left);
          }
        }
        node = std::move(child);
      }
    }
    lift(memory, store);
  }

  /// Merges the children at `slot` and `slot + 1` into the first and releases the second, where they fit.
  bool merge(Node& parent, std::uint32_t slot, Node& left, Node& right, std::uint32_t level) {
    NodeHeader header = left.header();
    const NodeHeader other = right.header();
    const std::uint32_t separators = level == 0 ? 0 : 1;
    const std::uint32_t sum = header.count + other.count + separators;
    const std::uint32_t most = capacity(level);
    if (sum > most || (header.count > 0 && other.count > 0 && sum > most / 4 * 3))
      return false;
    ++counters_.merges;
    const std::uint32_t in_parent = parent.count();
    if (level > 0) {
      right.unswizzle(layout_.child(0), other.count + 1);
      const Key separator = parent.template load<Key>(layout_.key(slot));
      left.template put<Key>(layout_.key(header.count), separator);
      left.copy(layout_.key(header.count + 1), right, layout_.key(0), other.count * layout_.key_bytes,
                scratch_);
      left.copy(layout_.child(header.count + 1), right, layout_.child(0), (other.count + 1) * 8, scratch_);
    } else if (layout_.hashed()) {
      HashLeaf<Key>::merge(left, right, layout_, entries_, scratch_, image_);
      header = left.header();
    } else {
      SortedLeaf<Key>::merge(left, right, layout_, header.count, other.count, scratch_);
    }
    header.count = sum;
    header.next = other.next;
    left.template put<NodeHeader>(kCountOffset, header);

    const std::uint32_t behind = in_parent - slot - 1;
    parent.unswizzle(layout_.child(slot + 1), behind + 1);
    parent.move(layout_.key(slot), layout_.key(slot + 1), behind * layout_.key_bytes);
    parent.move(layout_.child(slot + 1), layout_.child(slot + 2), behind * 8);
    parent.template put<std::uint32_t>(kCountOffset, in_parent - 1);
    right.release();
    return true;
  }

  /// While the root has one child only: its content moves into the root.
  void lift(M& memory, Store& store) {
    while (root_level_ > 0) {
      Node node = root(memory, store, Access::kFull, LatchMode::kExclusive);
      if (node.count() > 0)
        return;
      ++counters_.merges;
      Node child = node.child(layout_.child(0), Access::kFull, LatchMode::kExclusive);
      node.unswizzle(layout_.child(0), 1);
      if (root_level_ > 1)
        child.unswizzle(layout_.child(0), child.count() + 1);
      node.copy(kCountOffset, child, kCountOffset, layout_.page_bytes - kCountOffset, scratch_);
      child.release();
      --root_level_;
    }
  }

  // As g++ 12 -O2 compiles it over plain memory: address of the line (4), whether the page is whole (2), seven
  // moves besides the access.
  static constexpr std::uint32_t kKeyLineInstructions = 13;
  static constexpr std::uint32_t kScanInstructions = 11;  ///< per row: key (5), its address, call, return, loop

  Layout layout_;
  const PageLatches* latches_;
  LatchMode read_;  ///< of who only reads
  RootRef root_;
  std::uint32_t root_level_ = 0;
  TreeCounters counters_;
  std::vector<std::byte> scratch_;  ///< stands for registers while bytes are copied
  std::vector<std::byte> image_;
  std::vector<typename HashLeaf<Key>::Entry> entries_;
};

}  // namespace pmsim::engines::btree
