#pragma once

#include <algorithm>
#include <cstdint>

#include "pmsim/engines/btree/layout.hpp"
#include "pmsim/engines/btree/shares.hpp"
#include "pmsim/engines/fptree/layout.hpp"
#include "pmsim/engines/options.hpp"

namespace pmsim::workloads::oltp {

/// Pages of a tree with so many leaves, inner nodes included.
[[nodiscard]] inline std::uint64_t pages_of_tree(std::uint64_t leaves, const engines::btree::Layout& layout,
                                                 double fill) {
  const engines::btree::Shares inner(fill, layout.inner_capacity);
  std::uint64_t pages = leaves;
  for (std::uint64_t level = leaves; level > 1; pages += level)
    level = inner.nodes_above(level);
  return pages;
}

/// Rows of one table that takes at most `data_bytes` of the engine's pages after loading, inner nodes and the
/// catalog's page included: the "data size" of the paper (section 5.1). Of fptree, whose inner nodes are in
/// DRAM, it is that of the leaves. At least one.
[[nodiscard]] inline std::uint64_t rows_of_size(std::uint64_t data_bytes, const engines::TableSpec& table,
                                                const engines::EngineOptions& engine, double fill) {
  using engines::btree::Layout;
  using engines::btree::NodeKind;
  using engines::btree::Shares;
  if (engine.engine == "fptree") {
    const Shares shares(fill, engines::fptree::Leaf::kSlots);
    return std::max<std::uint64_t>(1, shares.until(data_bytes / engines::fptree::kLinkedLeafBytes));
  }
  const Layout layout = Layout::of(table, engine.page_bytes,
                                   engine.leaf_layout == "hash" ? NodeKind::kHashLeaf : NodeKind::kSortedLeaf);
  const std::uint64_t pages = data_bytes / engine.page_bytes;
  std::uint64_t leaves = 0, too_many = pages;
  while (leaves + 1 < too_many) {
    const std::uint64_t middle = leaves + (too_many - leaves) / 2;
    (pages_of_tree(middle, layout, fill) < pages ? leaves : too_many) = middle;
  }
  return std::max<std::uint64_t>(1, Shares(fill, layout.leaf_capacity).until(leaves));
}

}  // namespace pmsim::workloads::oltp
