#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "pmsim/blocks/run/pair.hpp"
#include "pmsim/blocks/run/sort.hpp"

namespace pmsim::blocks::run {

// C0, the DRAM buffer of an LSM tree, full. Inserts into it belong to nobody's measurement here: fill() builds
// what they would have left.

/// An ordered map, as std::map: a search tree whose nodes lie in the order in which their keys were inserted.
class SortedBuffer {
 public:
  static constexpr std::uint64_t kNodeBytes =
      64;  ///< color, parent, left, right, key, value: malloc gives 64 bytes

  SortedBuffer(Address nodes, std::uint64_t) : nodes_(nodes) {}
  [[nodiscard]] static constexpr std::uint64_t bytes(std::uint64_t pairs) noexcept {
    return pairs * kNodeBytes;
  }

  /// Pairs in the order of their insertion; no key twice.
  template <Memory M>
  void fill(M& memory, std::span<const Pair> pairs) {
    order_.resize(pairs.size());
    for (std::uint64_t at = 0; at < pairs.size(); ++at)
      order_[at] = at;
    std::ranges::sort(order_, {}, [&](std::uint64_t at) { return pairs[at].key; });
    for (std::uint64_t at = 0; at < pairs.size(); ++at)
      store_pair(memory, node(at) + kPairAt, pairs[at]);
    root_ = link(memory, 0, pairs.size(), 0);
  }

  /// Copies the pairs in the order of their keys: from node to node (std::_Rb_tree_increment), pair by pair.
  template <Memory M>
  std::uint64_t copy_to(M& memory, Address target) const {
    Address at = leftmost(memory, root_);
    std::uint64_t pairs = 0;
    for (; at != 0; ++pairs) {
      store_pair(memory, target + pairs * kPairBytes, load_pair(memory, at + kPairAt));
      memory.compute(0, kCopyInstructions);
      at = next(memory, at);
    }
    return pairs;
  }

 private:
  static constexpr std::uint64_t kParentAt = 8, kLeftAt = 16, kRightAt = 24, kPairAt = 32;
  static constexpr std::uint32_t kCopyInstructions = 3 + kHalvesInstructions;  ///< add, call, compare
  static constexpr std::uint32_t kStepInstructions = 2;                        ///< mov, test or compare

  [[nodiscard]] Address node(std::uint64_t at) const noexcept { return nodes_ + at * kNodeBytes; }

  /// The balanced tree of the pairs [first, last) of order_. Returns its root.
  template <Memory M>
  Address link(M& memory, std::uint64_t first, std::uint64_t last, Address parent) const {
    if (first == last)
      return 0;
    const std::uint64_t middle = first + (last - first) / 2;
    const Address root = node(order_[middle]);
    memory.template store<Address>(root + kParentAt, parent);
    memory.template store<Address>(root + kLeftAt, link(memory, first, middle, root));
    memory.template store<Address>(root + kRightAt, link(memory, middle + 1, last, root));
    return root;
  }

  template <Memory M>
  [[nodiscard]] static Address follow(M& memory, Address node, std::uint64_t at) {
    memory.compute(0, kStepInstructions);
    return memory.template load_dependent<Address>(node + at);
  }
  template <Memory M>
  [[nodiscard]] static Address leftmost(M& memory, Address node) {
    for (Address left = node; left != 0; left = follow(memory, node, kLeftAt))
      node = left;
    return node;
  }
  template <Memory M>
  [[nodiscard]] static Address next(M& memory, Address node) {
    if (const Address right = follow(memory, node, kRightAt); right != 0)
      return leftmost(memory, right);
    Address parent = follow(memory, node, kParentAt);
    while (parent != 0 && follow(memory, parent, kRightAt) == node) {
      node = parent;
      parent = follow(memory, node, kParentAt);
    }
    return parent;
  }

  Address nodes_;
  Address root_ = 0;
  std::vector<std::uint64_t> order_;
};

/// A hash map, as std::unordered_map: its nodes are a list, in no order of keys. What is moved is gathered into
/// an array and sorted there.
class UnsortedBuffer {
 public:
  static constexpr std::uint64_t kNodeBytes = 48;  ///< next, key, value: malloc gives 48 bytes

  UnsortedBuffer(Address nodes, std::uint64_t pairs) : nodes_(nodes), array_(nodes + list_bytes(pairs)) {}
  [[nodiscard]] static constexpr std::uint64_t bytes(std::uint64_t pairs) noexcept {
    return list_bytes(pairs) + log::round_up(pairs * kPairBytes, kLineBytes);
  }

  /// Pairs in the order of their insertion; the list has the last one first.
  template <Memory M>
  void fill(M& memory, std::span<const Pair> pairs) {
    head_ = 0;
    for (std::uint64_t at = 0; at < pairs.size(); ++at) {
      const Address node = nodes_ + at * kNodeBytes;
      memory.template store<Address>(node, head_);
      store_pair(memory, node + sizeof(Address), pairs[at]);
      head_ = node;
    }
  }

  template <Memory M>
  std::uint64_t copy_to(M& memory, Address target) const {
    std::uint64_t pairs = 0;
    for (Address node = head_; node != 0; ++pairs) {
      store_pair(memory, array_ + pairs * kPairBytes, load_pair(memory, node + sizeof(Address)));
      memory.compute(0, kGatherInstructions);
      node = memory.template load_dependent<Address>(node);
    }
    PairSort<M>(memory, array_)(pairs);
    copy_pairs(memory, array_, target, pairs);
    return pairs;
  }

 private:
  static constexpr std::uint32_t kGatherInstructions = 2 + kHalvesInstructions;  ///< add, test and branch

  [[nodiscard]] static constexpr std::uint64_t list_bytes(std::uint64_t pairs) noexcept {
    return log::round_up(pairs * kNodeBytes, kLineBytes);
  }

  Address nodes_;
  Address array_;
  Address head_ = 0;
};

}  // namespace pmsim::blocks::run
