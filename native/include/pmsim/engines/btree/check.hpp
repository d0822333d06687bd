#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pmsim/engines/btree/btree.hpp"

namespace pmsim::engines::btree {

/// Walks over a whole tree and checks what the tree promises: order of keys, separators, levels, no node past
/// its capacity, the list of leaves, every hashed key where a lookup finds it. `owned` gets the tree's pages.
template <typename Store, typename Key, memory::Memory M>
class TreeCheck {
 public:
  using Tree = BTree<Store, Key, M>;
  using Node = typename Tree::Node;

  TreeCheck(Tree& tree, std::vector<PageId>& owned) : tree_(tree), layout_(tree.layout()), owned_(owned) {}

  /// What is wrong, as one sentence, or nothing.
  [[nodiscard]] std::string run(M& memory, Store& store) {
    {
      Node root = tree_.root(memory, store, Access::kFull, LatchMode::kShared);
      if (root.id() != tree_.root_id())
        return "the root is another page than the catalog says";
      walk(root, tree_.root_level(), std::nullopt, std::nullopt);
    }
    if (problem_.empty() && expected_next_ != kNoPage)
      problem_ = "the last leaf names a next one";
    return problem_;
  }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

 private:
  using Bound = std::optional<Key>;

  void fail(const Node& node, const std::string& what) {
    if (problem_.empty())
      problem_ = "page " + std::to_string(node.id()) + ": " + what;
  }

  /// All keys of the node's subtree lie in [low, high).
  void walk(Node& node, std::uint32_t level, Bound low, Bound high) {
    owned_.push_back(node.id());
    const NodeHeader header = node.header();
    if (header.level != level)
      return fail(node, "level " + std::to_string(header.level) + ", must be " + std::to_string(level));
    if (header.kind != (level == 0 ? layout_.leaf_kind : NodeKind::kInner))
      return fail(node, "it is a node of another kind");
    if (header.count > (level == 0 ? layout_.leaf_capacity : layout_.inner_capacity))
      return fail(node, "it holds more than its capacity");
    if (level == 0)
      return leaf(node, header, low, high);
    std::vector<Key> keys;
    for (std::uint32_t slot = 0; slot < header.count; ++slot)
      keys.push_back(node.template load<Key>(layout_.key(slot)));
    check_order(node, keys, low, high);
    for (std::uint32_t slot = 0; slot <= header.count && problem_.empty(); ++slot) {
      Node child =
          node.child(layout_.child(slot), level == 1 ? Access::kGrained : Access::kFull, LatchMode::kShared);
      walk(child, level - 1, slot == 0 ? low : Bound(keys[slot - 1]),
           slot == header.count ? high : Bound(keys[slot]));
    }
  }
  void leaf(Node& node, const NodeHeader& header, Bound low, Bound high) {
    if (!first_leaf_ && expected_next_ != node.id())
      fail(node, "the leaf before it names page " + std::to_string(expected_next_) + " as the next one");
    first_leaf_ = false;
    expected_next_ = header.next;
    rows_ += header.count;
    std::vector<Key> keys;
    if (layout_.hashed()) {
      std::vector<typename HashLeaf<Key>::Entry> entries;
      std::vector<std::byte> scratch(layout_.page_bytes);
      HashLeaf<Key>::sorted_entries(node, layout_, 0, entries, scratch);
      for (const auto& entry : entries) {
        keys.push_back(entry.key);
        const Located at = HashLeaf<Key>::locate(node, layout_, entry.key);
        if (!at.found || at.slot != entry.slot)
          fail(node, "key " + std::to_string(entry.key) + " is where its lookup does not find it");
      }
      if (entries.size() != header.count)
        fail(node, "its count is not the number of its keys");
    } else {
      for (std::uint32_t slot = 0; slot < header.count; ++slot)
        keys.push_back(node.template load<Key>(layout_.key(slot)));
    }
    check_order(node, keys, low, high);
  }
  void check_order(const Node& node, const std::vector<Key>& keys, Bound low, Bound high) {
    for (std::size_t at = 1; at < keys.size(); ++at) {
      if (keys[at - 1] >= keys[at])
        fail(node, "its keys are not in ascending order");
    }
    if (!keys.empty() && ((low && keys.front() < *low) || (high && keys.back() >= *high)))
      fail(node, "it holds a key outside of its parent's separators");
  }

  Tree& tree_;
  const Layout& layout_;
  std::vector<PageId>& owned_;
  std::string problem_;
  PageId expected_next_ = kNoPage;
  bool first_leaf_ = true;
  std::uint64_t rows_ = 0;
};

}  // namespace pmsim::engines::btree
