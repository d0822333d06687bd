#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pmsim/engines/fptree/layout.hpp"
#include "pmsim/engines/fptree/leaf_space.hpp"

namespace pmsim::engines::fptree {

using Bitmap = Leaf::Bitmap;

/// What a leaf needs beside BasicFpTreeLeaf: the slot of a key, erase, update, its pairs in order, and the
/// split, which is failure-atomic by a micro-log (Oukid et al., SIGMOD 2016, algorithm 3).
template <memory::Memory M>
struct LeafOps {
  struct Entry {
    std::uint64_t key;
    std::uint32_t slot;
    [[nodiscard]] bool operator<(const Entry& other) const noexcept { return key < other.key; }
  };
  using Entries = std::array<Entry, Leaf::kSlots>;
  static constexpr std::uint32_t kSortInstructions = 8;  ///< per comparison

  struct Found {
    std::uint32_t slot;
    std::uint64_t value;
  };
  /// Two lines: bitmap with fingerprints, and the pair (and one more per fingerprint that agrees by chance).
  [[nodiscard]] static std::optional<Found> find(M& memory, Address leaf, std::uint64_t key) {
    memory.compute(0, Leaf::kHashInstructions);
    const std::uint8_t hash = Leaf::fingerprint(key);
    const auto used = memory.template load_dependent<Bitmap>(leaf);
    for (std::uint32_t slot = 0; (slot = Leaf::find(memory, leaf, used, hash, slot)) < Leaf::kSlots; ++slot) {
      if (const auto value = Leaf::match(memory, leaf, slot, key))
        return Found{slot, *value};
    }
    return std::nullopt;
  }

  /// DURABLE on return.
  static void erase(M& memory, Address leaf, std::uint32_t slot) {
    const auto used = memory.template load<Bitmap>(leaf);
    memory.template store<Bitmap>(leaf, used & ~(Bitmap{1} << slot));
    memory.flush(leaf, sizeof(Bitmap), memory::FlushKind::kClwb, kFlushErased);
    memory.sfence(kFenceErased);
  }
  /// DURABLE on return: a value is one aligned word, which is failure-atomic in place.
  static void update(M& memory, Address leaf, std::uint32_t slot, std::uint64_t value) {
    const Address at = Leaf::pair(leaf, slot) + 8;
    memory.template store<std::uint64_t>(at, value);
    memory.flush(at, 8, memory::FlushKind::kClwb, kFlushValue);
    memory.sfence(kFenceValue);
  }

  /// The entries with keys >= from, sorted just in time.
  [[nodiscard]] static std::span<const Entry> sorted(M& memory, Address leaf, std::uint64_t from,
                                                     Entries& entries) {
    std::uint32_t count = 0;
    for (auto used = memory.template load<Bitmap>(leaf); used != 0; used &= used - 1) {
      const auto slot = static_cast<std::uint32_t>(std::countr_zero(used));
      const auto key = memory.template load<std::uint64_t>(Leaf::pair(leaf, slot));
      if (key >= from)
        entries[count++] = {key, slot};
    }
    std::sort(entries.begin(), entries.begin() + count);
    memory.compute(0, count * static_cast<std::uint32_t>(std::bit_width(count)) * kSortInstructions);
    return std::span(entries).first(count);
  }

  /// Moves the upper half of a full leaf to `fresh`, which nobody knows yet, and links it behind. DURABLE on
  /// return but for the end of the micro-log, which the insert that asked for the split makes durable with its
  /// first barrier, before it changes either leaf. Returns the lowest key of `fresh`.
  static std::uint64_t split(M& memory, LeafSpace<M>& space, Address meta, Address leaf, Address fresh) {
    memory.template store<std::uint64_t>(meta + Meta::kSplitNew, fresh);
    memory.order(kOrderSplitLog);
    memory.template store<std::uint64_t>(meta + Meta::kSplitOld, leaf);
    memory.flush(meta + Meta::kSplitOld, 16, memory::FlushKind::kClwb, kFlushSplitLog);
    const std::uint64_t separator = copy_upper_half(memory, space, leaf, fresh);
    finish_split(memory, space, meta, leaf, fresh);
    return separator;
  }

  /// What split() would return.
  [[nodiscard]] static std::uint64_t middle(M& memory, Address leaf) {
    Entries entries;
    const auto all = sorted(memory, leaf, 0, entries);
    return all[all.size() / 2].key;
  }

  /// After a crash, before anything else. A leaf that is still full is split again from the start.
  static void recover_split(M& memory, LeafSpace<M>& space, Address meta) {
    const auto leaf = memory.template load<std::uint64_t>(meta + Meta::kSplitOld);
    if (leaf == 0)
      return;
    const auto fresh = memory.template load<std::uint64_t>(meta + Meta::kSplitNew);
    if (memory.template load<Bitmap>(leaf) == Leaf::kAllUsed)
      copy_upper_half(memory, space, leaf, fresh);
    finish_split(memory, space, meta, leaf, fresh);
    memory.sfence(kFenceRecovered);
  }

 private:
  static std::uint64_t copy_upper_half(M& memory, LeafSpace<M>& space, Address leaf, Address fresh) {
    Entries entries;
    const auto all = sorted(memory, leaf, 0, entries);
    const auto upper = all.subspan(all.size() / 2);
    Bitmap used = 0;
    for (const Entry& entry : upper)
      used |= Bitmap{1} << entry.slot;
    // All of it, as in the paper: slots stay where they are, and what the bitmap does not name nobody reads.
    std::array<std::byte, Leaf::kBytes> content;
    memory.read(leaf, content);
    memory.write(fresh + sizeof used, std::span(content).subspan(sizeof used));
    memory.template store<Bitmap>(fresh, used);
    const auto next = memory.template load<std::uint64_t>(space.link(leaf));
    memory.template store<std::uint64_t>(space.link(fresh), next);
    memory.flush(fresh, Leaf::kBytes, memory::FlushKind::kClwb, kFlushNewLeaf);
    memory.flush(space.link(fresh), 8, memory::FlushKind::kClwb, kFlushNewLink);
    memory.sfence(kFenceNewLeaf);
    return upper.front().key;
  }
  static void finish_split(M& memory, LeafSpace<M>& space, Address meta, Address leaf, Address fresh) {
    memory.template store<Bitmap>(leaf, Leaf::kAllUsed & ~memory.template load<Bitmap>(fresh));
    memory.flush(leaf, sizeof(Bitmap), memory::FlushKind::kClwb, kFlushOldBitmap);
    memory.sfence(kFenceOldBitmap);
    memory.template store<std::uint64_t>(space.link(leaf), fresh);
    memory.flush(space.link(leaf), 8, memory::FlushKind::kClwb, kFlushOldLink);
    memory.sfence(kFenceOldLink);
    memory.template store<std::uint64_t>(meta + Meta::kSplitOld, 0);
    memory.flush(meta + Meta::kSplitOld, 8, memory::FlushKind::kClwb, kFlushSplitDone);
  }
};

}  // namespace pmsim::engines::fptree
