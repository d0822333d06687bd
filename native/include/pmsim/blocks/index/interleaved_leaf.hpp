#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "pmsim/blocks/index/fptree_leaf.hpp"
#include "pmsim/blocks/index/round_robin.hpp"
#include "pmsim/blocks/site.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::index {

inline constexpr std::size_t kMaxGroup = 64;

/// What the inserts of a group that are under way have made of their leaves' bitmaps. A slot is taken before
/// its bit is set, so two inserts into one leaf would find the same free slot without this: a hazard that the
/// paper does not state. Volatile; forgotten with the group.
class Claims {
 public:
  struct Bitmap {
    std::uint32_t taken = 0;      ///< by pairs and by inserts under way
    std::uint32_t published = 0;  ///< as last stored
  };

  void forget() noexcept { ++group_; }

  /// The bitmap of a leaf that holds `used` unless an insert of this group knows better.
  Bitmap& of(Address leaf, std::uint32_t used) noexcept {
    std::size_t at = mix64(leaf) % entries_.size();
    while (entries_[at].group == group_ && entries_[at].leaf != leaf)
      at = (at + 1) % entries_.size();
    Entry& entry = entries_[at];
    if (entry.group != group_)
      entry = Entry{group_, leaf, {used, used}};
    return entry.bitmap;
  }

 private:
  struct Entry {
    std::uint64_t group = 0;
    Address leaf = 0;
    Bitmap bitmap;
  };
  std::array<Entry, 2 * kMaxGroup> entries_{};
  std::uint64_t group_ = 1;
};

/// How operations of a group are interleaved. Neither: one after the other, but still as coroutines.
struct Interleave {
  bool reads = true;   ///< prefetch and suspend before the first access to a line
  bool writes = true;  ///< suspend instead of a barrier; the scheduler makes one for the group
  Fence fence = Fence::kSfence;
  FirstFlush first_flush = FirstFlush::kPairAndFingerprint;
  std::uint64_t switch_cycles = 0;  ///< of a start or resumption, beyond its instructions
};

/// Lookups and inserts into FP-tree leaves, interleaved by coroutines (sections 3.5.2 and 3.5.3).
///
/// Durability: an insert is acknowledged when its coroutine ends, after a barrier that followed its phase 2;
/// until then it is absent or whole, on its own, whatever the others of its group are. What the leaf promises
/// holds for each insert: its phase 1 is behind a barrier before its bit is stored.
///
/// Belongs to one thread; the leaves that it is given are nobody else's meanwhile. Everything in here is
/// volatile.
class InterleavedLeaf {
 public:
  static constexpr memory::Site kGroupFenceEntry = 720;
  static constexpr memory::Site kGroupFenceBit = 721;
  /// With writes interleaved; without, the sites are those of the leaf.
  static constexpr std::array<SiteInfo, 5> kSites{{
      FpTreeLeaf::kSites[0],
      FpTreeLeaf::kSites[1],
      {kGroupFenceEntry, "group: one barrier between all entries and all bits"},
      FpTreeLeaf::kSites[3],
      {kGroupFenceBit, "group: one barrier before all acknowledgements"},
  }};

  // Instructions of the compiled code (g++ 12 -O2), a compare and its jump as one: benchmarks/leaf.cpp.
  static constexpr std::uint32_t kStartInstructions = 74;  ///< frame taken, arguments copied, task kept
  static constexpr std::uint32_t kEndInstructions =
      56;  ///< frame destroyed and given back, when all have ended
  static constexpr std::uint32_t kSwitchInstructions = 40;  ///< loop, call, restore, jump; save, return
  static constexpr std::uint32_t kClaimInstructions = 50;   ///< hash, probe, compare; arguments of an insert

  struct Lookup {
    Address leaf;
    std::uint64_t key;
  };
  struct Insert {
    Address leaf;
    std::uint64_t key;
    std::uint64_t value;
  };

  explicit InterleavedLeaf(const Interleave& how) : how_(how) {}

  /// Looks up the keys of one group of at most kMaxGroup; `values` has a place for each.
  template <memory::Memory M>
  void lookup(M& memory, std::span<const Lookup> group, std::span<std::optional<std::uint64_t>> values) {
    ensure(group.size() <= kMaxGroup && values.size() == group.size(), "a group has at most 64 operations");
    run(memory, group.size(), [&](FramePool& pool, std::size_t index) {
      return lookup_task(pool, memory, how_, group[index], values[index]);
    });
  }

  /// Inserts the pairs of one group of at most kMaxGroup; distinct keys per leaf. `durable[i]` is set as soon
  /// as insert i is acknowledged, and stays false where its leaf is full.
  template <memory::Memory M>
  void insert(M& memory, std::span<const Insert> group, std::span<bool> durable) {
    ensure(group.size() <= kMaxGroup && durable.size() == group.size(), "a group has at most 64 operations");
    claims_.forget();
    for (bool& flag : durable)
      flag = false;
    run(memory, group.size(), [&](FramePool& pool, std::size_t index) {
      return insert_task(pool, memory, how_, claims_, group[index], durable[index]);
    });
  }

  [[nodiscard]] const RoundRobin& scheduler() const noexcept { return scheduler_; }

 private:
  template <memory::Memory M, typename Make>
  void run(M& memory, std::size_t count, Make&& make) {
    scheduler_.run(
        count,
        [&](FramePool& pool, std::size_t index) {
          memory.compute(0, kStartInstructions);
          return make(pool, index);
        },
        [&](memory::Site site) { fence(memory, how_.fence, site); },
        [&] { memory.compute(how_.switch_cycles, kSwitchInstructions); });
    for (std::size_t task = 0; task < count; ++task)
      memory.compute(0, kEndInstructions);
  }

  template <memory::Memory M>
  static Task lookup_task(FramePool&, M& memory, const Interleave& how, const Lookup& wanted,
                          std::optional<std::uint64_t>& value) {
    memory.compute(0, FpTreeLeaf::kHashInstructions);
    const std::uint8_t hash = FpTreeLeaf::fingerprint(wanted.key);
    if (how.reads) {
      memory.prefetch(wanted.leaf);
      co_await Wait{};
    }
    value.reset();
    const auto used = memory.template load<std::uint32_t>(wanted.leaf);
    std::uint32_t slot = 0;
    while ((slot = FpTreeLeaf::find(memory, wanted.leaf, used, hash, slot)) < FpTreeLeaf::kSlots) {
      if (how.reads) {
        memory.prefetch(FpTreeLeaf::pair(wanted.leaf, slot));
        co_await Wait{};
      }
      if ((value = FpTreeLeaf::match(memory, wanted.leaf, slot, wanted.key)))
        break;
      ++slot;
    }
  }

  template <memory::Memory M>
  static Task insert_task(FramePool&, M& memory, const Interleave& how, Claims& claims, const Insert& wanted,
                          bool& durable) {
    if (how.reads) {
      memory.prefetch(wanted.leaf);
      co_await Wait{};
    }
    const auto used = memory.template load<std::uint32_t>(wanted.leaf);
    memory.compute(0, kClaimInstructions);
    Claims::Bitmap& bitmap = claims.of(wanted.leaf, used);
    if (bitmap.taken == FpTreeLeaf::kAllUsed)
      co_return;
    const std::uint32_t slot = FpTreeLeaf::find_free(memory, bitmap.taken);
    bitmap.taken |= std::uint32_t{1} << slot;
    // The paper shows no listing of an insert; its published benchmark fetches the pair's line, too, so that no
    // store of the group misses.
    if (how.reads) {
      memory.prefetch(FpTreeLeaf::pair(wanted.leaf, slot));
      co_await Wait{};
    }
    FpTreeLeaf::write_entry(memory, wanted.leaf, slot, wanted.key, wanted.value, how.first_flush);
    if (how.writes) {
      co_await Wait{true, kGroupFenceEntry};
    } else {
      fence(memory, how.fence, FpTreeLeaf::kFenceEntry);
    }
    bitmap.published |= std::uint32_t{1} << slot;
    FpTreeLeaf::publish(memory, wanted.leaf, bitmap.published);
    if (how.writes) {
      co_await Wait{true, kGroupFenceBit};
    } else {
      fence(memory, how.fence, FpTreeLeaf::kFenceBit);
    }
    durable = true;
  }

  Interleave how_;
  Claims claims_;
  RoundRobin scheduler_;
};

}  // namespace pmsim::blocks::index
