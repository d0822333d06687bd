#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "pmsim/engines/fptree/engine.hpp"

namespace pmsim::engines::fptree {

// DURABLE before a restart: leaves, links, undo log. Everything else is built from them.
//
// A rollback needs no leaf: it never splits one, so it has room where no leaf is free.
//  - While a transaction can be taken back no leaf is unlinked. So each leaf's keys belonged to one leaf when
//    it began, and that leaf's old pairs now belong to it and to those split off it.
//  - A restart knows a leaf's place by its keys, and those of pairs that the transaction has erased from it
//    count as such: their undo entries name the leaf. So no old pair goes to a leaf that lay beside its own.
//  - All that the transaction has inserted is erased first. So a leaf holds old pairs only when others return,
//    and all old pairs of a leaf have once been in one. After a crash in between it is the same again.
//  - A leaf that is empty and not named then has no pair to get back: the restart unlinks it.

template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::recover(M& memory) {
  LeafOps<M>::recover_split(memory, space_, place_.meta);
  const auto tables = memory.template load<std::uint64_t>(place_.meta + Meta::kTables);
  log_.recover(memory);
  const LowKeys erased = erased_lows(memory);
  std::vector<bool> in_use;
  std::vector<std::vector<Child>> children(tables);
  for (std::uint32_t number = 0; number < tables; ++number) {
    std::array<char, Meta::kNameBytes> name;
    memory.read(Meta::row(place_.meta, number) + 8, std::as_writable_bytes(std::span(name)));
    tables_.push_back({name.data(), nullptr});
    children[number] = walk(memory, number, erased, in_use);
  }
  space_.rebuild(memory, in_use);
  const double fill = rebuild_fill(children);
  for (std::uint32_t number = 0; number < tables; ++number)
    tables_[number].inner = build_inner(memory, children[number], fill);
  undo_all(memory);
  unlink_emptied(memory);
}

/// Of each leaf, the lowest key that the transaction under way has erased from it.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
auto FpTreeEngine<M, kInnerNodeBytes>::erased_lows(M& memory) -> LowKeys {
  LowKeys lows;
  log_.for_each_backwards(memory, [&](const Change& change) {
    if (change.kind != Change::Kind::kErase)
      return;
    std::uint64_t& low = lows.try_emplace(change.leaf, change.key).first->second;
    low = std::min(low, change.key);
  });
  return lows;
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
auto FpTreeEngine<M, kInnerNodeBytes>::walk(M& memory, std::uint32_t table, const LowKeys& erased,
                                            std::vector<bool>& in_use) -> std::vector<Child> {
  std::vector<Child> children;
  Address link = Meta::row(place_.meta, table);
  Address leaf = memory.template load<std::uint64_t>(link);
  while (leaf != 0) {
    const std::uint64_t number = space_.number(leaf);
    in_use.resize(std::max<std::uint64_t>(in_use.size(), number + 1));
    ensure(!in_use[number], "fptree: a leaf is linked twice");
    const auto named = erased.find(number);
    std::uint64_t low = named != erased.end() ? named->second : std::numeric_limits<std::uint64_t>::max();
    auto used = memory.template load_dependent<Bitmap>(leaf);
    memory.mispredict();
    const bool empty = used == 0;
    memory.compute(0, static_cast<std::uint32_t>(std::popcount(used)) * kInstructionsPerKey);
    for (; used != 0; used &= used - 1) {
      const auto slot = static_cast<std::uint32_t>(std::countr_zero(used));
      low = std::min(low, memory.template load<std::uint64_t>(Leaf::pair(leaf, slot)));
    }
    const Address next = next_of(memory, leaf);
    if (empty && named == erased.end() && !children.empty()) {
      store_link(memory, link, next);
    } else {
      in_use[number] = true;
      children.push_back({children.empty() ? 0 : low, leaf});
      if (empty)
        emptied_.push_back({static_cast<TableId>(table), children.back().low});
      link = space_.link(leaf);
    }
    leaf = next;
  }
  return children;
}

/// To what was there before each key's first change. What the transaction has inserted goes first, and empty
/// leaves last. (Which entry is a key's first is known by a table in host memory, which is not charged.)
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::undo_all(M& memory) {
  if (log_.empty())
    return;
  std::map<std::pair<TableId, std::uint64_t>, Change> firsts;
  log_.for_each_backwards(
      memory, [&](const Change& change) { firsts.insert_or_assign({change.table, change.key}, change); });
  for (const bool inserted : {true, false}) {
    for (const auto& [key, change] : firsts) {
      if ((change.kind == Change::Kind::kInsert) == inserted)
        undo(memory, change);
    }
  }
  unlink_emptied(memory);
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
