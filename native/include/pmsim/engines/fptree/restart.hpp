#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "pmsim/engines/fptree/engine.hpp"

namespace pmsim::engines::fptree {

// DURABLE before a restart: leaves, links, undo log. Everything else is built from them.

template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::recover(M& memory) {
  LeafOps<M>::recover_split(memory, space_, place_.meta);
  const auto tables = memory.template load<std::uint64_t>(place_.meta + Meta::kTables);
  std::vector<bool> in_use;
  std::vector<std::vector<Child>> children(tables);
  for (std::uint32_t number = 0; number < tables; ++number) {
    std::array<char, Meta::kNameBytes> name;
    memory.read(Meta::row(place_.meta, number) + 8, std::as_writable_bytes(std::span(name)));
    tables_.push_back({name.data(), nullptr});
    children[number] = walk(memory, number, in_use);
  }
  space_.rebuild(memory, in_use);
  const double fill = rebuild_fill(children);
  for (std::uint32_t number = 0; number < tables; ++number)
    tables_[number].inner = build_inner(memory, children[number], fill);
  log_.recover(memory);
  undo_all(memory);
}

/// What DRAM has held before the restart it can hold after it: inner nodes are packed more densely where there
/// is no room for kRebuildFill.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
double FpTreeEngine<M, kInnerNodeBytes>::rebuild_fill(const std::vector<std::vector<Child>>& children) const {
  const btree::Layout layout = inner_layout();
  const auto nodes = [&](double fill) {
    std::uint64_t all = 0;
    for (const std::vector<Child>& table : children) {
      std::uint64_t level = table.size();
      for (std::uint32_t capacity = layout.leaf_capacity;; capacity = layout.inner_capacity) {
        level = static_cast<std::uint64_t>(std::ceil(static_cast<double>(level) / (fill * capacity)));
        all += level;
        if (level <= 1)
          break;
      }
    }
    return all;
  };
  double fill = kRebuildFill;
  while (fill < 1 && nodes(fill) > store_.free_pages())
    fill = std::min(fill + 0.02, 1.0);
  return fill;
}

/// Reads all leaves of a table in the order of their links, as the paper's recovery does. The lowest key is
/// the discriminator of an unsorted leaf, so all of its keys are read. Which pairs these are the bitmap says,
/// and where the loop over its bits ends no predictor knows (37 iterations at a load factor of 0.66): nothing
/// of the pairs, and nothing of the next leaf, is asked for before the bitmap is there.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
auto FpTreeEngine<M, kInnerNodeBytes>::walk(M& memory, std::uint32_t table,
                                            std::vector<bool>& in_use) -> std::vector<Child> {
  std::vector<Child> children;
  Address leaf = memory.template load<std::uint64_t>(Meta::row(place_.meta, table));
  while (leaf != 0) {
    const std::uint64_t number = space_.number(leaf);
    in_use.resize(std::max<std::uint64_t>(in_use.size(), number + 1));
    ensure(!in_use[number], "fptree: a leaf is linked twice");
    in_use[number] = true;
    std::uint64_t low = std::numeric_limits<std::uint64_t>::max();
    auto used = memory.template load_dependent<Bitmap>(leaf);
    memory.mispredict();
    ensure(used != 0 || (children.empty() && next_of(memory, leaf) == 0), "fptree: an empty leaf is linked");
    memory.compute(0, static_cast<std::uint32_t>(std::popcount(used)) * kInstructionsPerKey);
    for (; used != 0; used &= used - 1) {
      const auto slot = static_cast<std::uint32_t>(std::countr_zero(used));
      low = std::min(low, memory.template load<std::uint64_t>(Leaf::pair(leaf, slot)));
    }
    children.push_back({children.empty() ? 0 : low, leaf});
    leaf = next_of(memory, leaf);
  }
  return children;
}

template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::undo_all(M& memory) {
  if (log_.empty())
    return;
  log_.for_each_backwards(memory, [&](const Change& change) { undo(memory, change); });
  log_.clear(memory);
}

/// A change that was logged need not have happened, and a crash may have come after its undoing.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::undo(M& memory, const Change& change) {
  Table& table = tables_.at(change.table);
  const Address leaf = leaf_of(memory, table, change.key);
  const auto found = LeafOps<M>::find(memory, leaf, change.key);
  Change inverse = change;
  inverse.after = change.before;
  inverse.kind = found ? Change::Kind::kUpdate : Change::Kind::kInsert;
  if (change.kind == Change::Kind::kInsert) {
    if (!found)
      return;
    inverse.kind = Change::Kind::kErase;
  }
  apply(memory, {inverse, leaf, found ? found->slot : 0});
}

}  // namespace pmsim::engines::fptree
