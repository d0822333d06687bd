#pragma once

#include <bit>

#include "pmsim/engines/fptree/engine.hpp"

namespace pmsim::engines::fptree {

/// DURABLE on return.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::apply(M& memory, const HeldBack& held) {
  const Change& change = held.change;
  Table& table = tables_[change.table];
  if (change.kind == Change::Kind::kInsert)
    require_room(memory, table, held.leaf);
  const HeldLatch<M> latch(memory, leaf_latches_.of(space_.number(held.leaf)), LatchMode::kExclusive);
  switch (change.kind) {
    case Change::Kind::kUpdate:
      return LeafOps<M>::update(memory, held.leaf, held.slot, change.after);
    case Change::Kind::kInsert:
      if (!Leaf::insert(memory, held.leaf, change.key, change.after)) {
        const Address leaf = split(memory, table, held.leaf, change.key);
        ensure(Leaf::insert(memory, leaf, change.key, change.after), "fptree: half a leaf is full");
      }
      return;
    case Change::Kind::kErase:
      return erase(memory, change, held.leaf, held.slot);
  }
}

/// Refuses an insert that would split the leaf where there is no room: before anything is latched or changed,
/// so that the transaction can be taken back. Nothing may fail once the leaf has been split: every full inner
/// node on the way to its separator is split, too.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::require_room(M& memory, const Table& table, Address leaf) {
  const std::uint32_t most = table.inner->root_level() + 2;  // one per level, and a new root
  const bool scarce = store_.free_pages() < most;
  if ((!space_.full() && !scarce) || memory.template load<Bitmap>(leaf) != Leaf::kAllUsed) [[likely]]
    return;
  if (space_.full())
    space_.refuse();
  const std::uint64_t separator = LeafOps<M>::middle(memory, leaf);
  if (store_.free_pages() < table.inner->pages_to_insert(memory, store_, separator))
    throw CapacityError("engine fptree: dram_bytes: its inner nodes are full; raise it");
}

/// Returns the half that `key` belongs to.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
Address FpTreeEngine<M, kInnerNodeBytes>::split(M& memory, Table& table, Address leaf, std::uint64_t key) {
  ++leaf_splits_;
  const Address fresh = space_.take(memory);
  const std::uint64_t low = LeafOps<M>::split(memory, space_, place_.meta, leaf, fresh);
  table.inner->insert(memory, store_, low, std::as_bytes(std::span(&fresh, 1)), [] {});
  return key < low ? leaf : fresh;
}

/// The only change of a transaction erases the only entry of a leaf by unlinking the leaf, in one store. A leaf
/// that others empty stays where it is until they have ended (restart.hpp says why).
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::erase(M& memory, const Change& change, Address leaf,
                                             std::uint32_t slot) {
  const bool last = std::has_single_bit(memory.template load<Bitmap>(leaf));
  if (last && log_.empty() && unlink(memory, change.table, change.key, leaf))
    return;
  LeafOps<M>::erase(memory, leaf, slot);
  if (last && !log_.empty())
    emptied_.push_back({change.table, change.key});
}

/// Behind the end of a transaction, of its rollback, or of a crash.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::unlink_emptied(M& memory) {
  for (const Emptied& emptied : emptied_) {
    const Address leaf = leaf_of(memory, tables_[emptied.table], emptied.key);
    const HeldLatch<M> latch(memory, leaf_latches_.of(space_.number(leaf)), LatchMode::kExclusive);
    if (memory.template load<Bitmap>(leaf) == 0)
      unlink(memory, emptied.table, emptied.key, leaf);
  }
  emptied_.clear();
}

/// Takes the leaf that `key` belongs to out of its table, in one store. False: it is the only one.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
bool FpTreeEngine<M, kInnerNodeBytes>::unlink(M& memory, TableId number, std::uint64_t key, Address leaf) {
  Table& table = tables_[number];
  const Address next = next_of(memory, leaf);
  Address self = 0;
  const auto into = std::as_writable_bytes(std::span(&self, 1));
  const std::uint64_t low = *table.inner->floor(memory, store_, key, into);
  Address link = Meta::row(place_.meta, number);
  if (low > 0) {
    Address before = 0;
    table.inner->floor(memory, store_, low - 1, std::as_writable_bytes(std::span(&before, 1)));
    link = space_.link(before);
  } else if (next == 0) {
    return false;
  }
  ++leaf_unlinks_;
  store_link(memory, link, next);
  const auto ignore = [](std::span<const std::byte>) {};
  if (low > 0) {
    table.inner->erase(memory, store_, low, ignore);
  } else {
    // The next leaf is the first one now: it gets all keys from 0 on.
    std::uint64_t next_low = 0;
    table.inner->scan(memory, store_, 1, 1, 0, 8, ScanMode::kGrained,
                      [&](std::uint64_t first, std::span<const std::byte>) {
                        next_low = first;
                        return false;
                      });
    table.inner->erase(memory, store_, next_low, ignore);
    table.inner->update(memory, store_, 0, 0, std::as_bytes(std::span(&next, 1)), ignore);
  }
  space_.give(memory, leaf);
  return true;
}

/// DURABLE on return.
template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::store_link(M& memory, Address link, Address next) {
  memory.template store<std::uint64_t>(link, next);
  memory.flush(link, 8, memory::FlushKind::kClwb, kFlushUnlinked);
  memory.sfence(kFenceUnlinked);
}

}  // namespace pmsim::engines::fptree
