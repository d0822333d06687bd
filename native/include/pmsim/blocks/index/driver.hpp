#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pmsim/blocks/index/fptree_leaf.hpp"
#include "pmsim/blocks/index/interleaved_leaf.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::blocks::index {

/// The pairs that the driver's leaves hold. The fingerprints of one leaf are all different ("prohibiting
/// multiple matching fingerprints", section 3.5.2), and the key of a slot is found without touching the leaf.
struct LeafContents {
  [[nodiscard]] static constexpr std::uint64_t key(std::uint64_t leaf, std::uint64_t slot) noexcept {
    const std::uint64_t top = (mix64(leaf) + slot * 37) & 0xff;  // 37 is odd: distinct for 256 slots
    return (top << 56 | (leaf * FpTreeLeaf::kSlots + slot)) * kInverse;
  }
  [[nodiscard]] static constexpr std::uint64_t value(std::uint64_t key) noexcept { return ~key; }
  /// Leaves for inserts are filled to different degrees; at least one slot is free.
  [[nodiscard]] static constexpr std::uint32_t pairs_before_inserts(std::uint64_t leaf) noexcept {
    return static_cast<std::uint32_t>(mix64(~leaf) % FpTreeLeaf::kSlots);
  }

 private:
  /// Multiplies with kHashFactor to 1, modulo 2^64 (Newton's iteration).
  static constexpr std::uint64_t kInverse = [] {
    std::uint64_t inverse = FpTreeLeaf::kHashFactor;
    for (int step = 0; step < 6; ++step)
      inverse *= 2 - FpTreeLeaf::kHashFactor * inverse;
    return inverse;
  }();
  static_assert(FpTreeLeaf::kHashFactor * kInverse == 1);
};

/// The experiment of section 3.5.4: each thread looks up present keys in random leaves of its own, or inserts
/// new ones. Runs on any Memory.
template <memory::Memory M>
class InterleaveDriver {
 public:
  struct Options {
    bool inserts = false;
    bool interleaved = true;  ///< coroutines; off: plain code, one operation after the other
    Interleave how{};
    std::uint32_t group_size = 20;  ///< coroutines that are active at the same time
    memory::Medium medium = memory::Medium::kPmem;
    std::uint64_t region_bytes = std::uint64_t{1} << 30;
    std::uint32_t threads = 1;
    std::uint64_t seed = 1;
    bool fill_at_once = true;  ///< off: a leaf is filled when prepare() first chooses it
  };

  InterleaveDriver(M& memory, const Options& options) : options_(options) {
    ensure(options.group_size >= 1 && options.group_size <= kMaxGroup && options.threads >= 1,
           "a driver needs a thread and a group of 1 to 64");
    leaves_ = options.region_bytes / options.threads / FpTreeLeaf::kBytes;
    ensure(leaves_ >= (options.inserts ? group() : 1), "each thread needs a leaf for each insert of a group");
    base_ =
        memory.allocate(options.medium, options.region_bytes,
                        {.name = "leaves",
                         .alignment = 1 << 21,
                         .backing = options.fill_at_once ? memory::Backing::kBytes : memory::Backing::kSparse});
    for (std::uint32_t thread = 0; thread < options.threads; ++thread) {
      threads_.push_back(std::make_unique<Thread>(options, thread));
      threads_.back()->waiting.resize(options.inserts ? leaves_ : 0);
    }
    if (options.fill_at_once) {
      for (std::uint64_t leaf = 0; leaf < leaves_ * options.threads; ++leaf)
        fill(memory, leaf);
    }
  }

  /// Operations that one call of operation() performs.
  [[nodiscard]] std::uint32_t group() const noexcept { return options_.interleaved ? options_.group_size : 1; }

  /// Chooses the operations of calls to come until so many wait (of inserts, a group or one per two leaves),
  /// and makes room for them. Not part of the work: a simulation does not time it, and real memory forgets what
  /// it has brought into the caches. operation() calls it where nobody has.
  void prepare(M& memory, std::uint32_t thread, std::uint64_t calls = 1) {
    Thread& state = *threads_[thread];
    forget_done(thread);
    // So there is always a leaf that no insert waits for, which has a free slot or may be filled anew.
    const std::uint64_t most = options_.inserts ? std::max<std::uint64_t>(leaves_ / 2 / group(), 1) : calls;
    const std::uint64_t wanted = std::min(calls, most) * group();
    while (options_.inserts && state.inserts.size() < wanted) {
      const std::uint64_t leaf = with_room(memory, thread);
      const std::uint64_t key = LeafContents::key(leaf, FpTreeLeaf::kSlots + state.inserted++);
      state.inserts.push_back({address(leaf), key, LeafContents::value(key)});
      ++state.waiting[leaf - thread * leaves_];
    }
    while (!options_.inserts && state.lookups.size() < wanted) {
      const std::uint64_t leaf = any_leaf(thread);
      const Address at = address(leaf);
      const auto slot = static_cast<std::uint32_t>(state.random.below(FpTreeLeaf::kSlots));
      state.lookups.push_back({at, LeafContents::key(leaf, slot)});
      if (!options_.fill_at_once && memory.template load<std::uint32_t>(at) == 0)
        fill(memory, leaf);
    }
  }

  /// One operation of plain code, or one group of interleaved ones.
  void operation(M& memory, std::uint32_t thread) {
    Thread& state = *threads_[thread];
    if (state.called == std::max(state.inserts.size(), state.lookups.size())) [[unlikely]]
      prepare(memory, thread);
    const std::uint32_t count = group();
    const std::size_t first = state.called;
    state.called += count;
    if (options_.inserts) {
      const auto inserts = std::span<const InterleavedLeaf::Insert>(state.inserts).subspan(first, count);
      if (options_.interleaved) {
        state.leaf.insert(memory, inserts, std::span(state.durable).first(count));
      } else {
        memory.compute(0, kLoopInstructions);
        const auto& [leaf, key, value] = inserts.front();
        state.durable[0] =
            FpTreeLeaf::insert(memory, leaf, key, value, options_.how.fence, options_.how.first_flush);
      }
      for (std::uint32_t index = 0; index < count; ++index)
        state.done += state.durable[index] ? 1 : 0;
      return;
    }
    const auto lookups = std::span<const InterleavedLeaf::Lookup>(state.lookups).subspan(first, count);
    if (options_.interleaved) {
      state.leaf.lookup(memory, lookups, std::span(state.values).first(count));
    } else {
      memory.compute(0, kLoopInstructions);
      state.values[0] = FpTreeLeaf::lookup(memory, lookups.front().leaf, lookups.front().key);
    }
    for (std::uint32_t index = 0; index < count; ++index)
      state.done += state.values[index] == LeafContents::value(lookups[index].key) ? 1 : 0;
  }

  /// Operations that did what they should: found their value, or a free slot. All of them do.
  [[nodiscard]] std::uint64_t done(std::uint32_t thread) const noexcept { return threads_[thread]->done; }
  /// Suspensions of coroutines so far, over all threads.
  [[nodiscard]] std::uint64_t suspensions() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& thread : threads_)
      sum += thread->leaf.scheduler().suspensions();
    return sum;
  }
  [[nodiscard]] std::uint64_t leaves_per_thread() const noexcept { return leaves_; }
  [[nodiscard]] Address address(std::uint64_t leaf) const noexcept { return base_ + leaf * FpTreeLeaf::kBytes; }

  // Fetching the next request and using the result, g++ 12 -O2.
  static constexpr std::uint32_t kLoopInstructions = 8;

 private:
  struct Thread {
    Thread(const Options& options, std::uint32_t thread)
        : random(mix64(options.seed) + thread), leaf(options.how) {}
    Random random;
    InterleavedLeaf leaf;
    std::vector<InterleavedLeaf::Lookup> lookups;  ///< prepared; of the two, one is in use
    std::vector<InterleavedLeaf::Insert> inserts;
    std::size_t called = 0;             ///< how many of them operation() has carried out
    std::vector<std::uint8_t> waiting;  ///< of each leaf, how many prepared inserts will take a slot there
    std::array<std::optional<std::uint64_t>, kMaxGroup> values{};
    std::array<bool, kMaxGroup> durable{};
    std::uint64_t inserted = 0;
    std::uint64_t done = 0;
  };

  [[nodiscard]] std::uint64_t any_leaf(std::uint32_t thread) {
    return thread * leaves_ + threads_[thread]->random.below(leaves_);
  }
  void forget_done(std::uint32_t thread) {
    Thread& state = *threads_[thread];
    const auto done = static_cast<std::ptrdiff_t>(state.called);
    state.called = 0;
    if (!options_.inserts) {
      state.lookups.erase(state.lookups.begin(), state.lookups.begin() + done);
      return;
    }
    for (std::ptrdiff_t index = 0; index < done; ++index)
      --state.waiting[(state.inserts[index].leaf - base_) / FpTreeLeaf::kBytes - thread * leaves_];
    state.inserts.erase(state.inserts.begin(), state.inserts.begin() + done);
  }
  /// A leaf for the next insert: any with a slot that no insert before it takes. Full ones are filled anew, but
  /// not where inserts that wait count on what is there.
  [[nodiscard]] std::uint64_t with_room(M& memory, std::uint32_t thread) {
    for (;;) {
      const std::uint64_t leaf = any_leaf(thread);
      const auto used = memory.template load<std::uint32_t>(address(leaf));
      const std::uint32_t taken = threads_[thread]->waiting[leaf - thread * leaves_];
      if (taken == 0 && (used == FpTreeLeaf::kAllUsed || (!options_.fill_at_once && used == 0))) {
        fill(memory, leaf);
        return leaf;
      }
      if (static_cast<std::uint32_t>(std::popcount(used)) + taken < FpTreeLeaf::kSlots)
        return leaf;
    }
  }

  void fill(M& memory, std::uint64_t leaf) {
    const std::uint32_t count =
        options_.inserts ? LeafContents::pairs_before_inserts(leaf) : FpTreeLeaf::kSlots;
    const Address at = address(leaf);
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      const std::uint64_t key = LeafContents::key(leaf, slot);
      memory.template store<std::uint64_t>(FpTreeLeaf::pair(at, slot), key);
      memory.template store<std::uint64_t>(FpTreeLeaf::pair(at, slot) + 8, LeafContents::value(key));
      memory.template store<std::uint8_t>(at + FpTreeLeaf::kFingerprints + slot, FpTreeLeaf::fingerprint(key));
    }
    const auto used = static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
    memory.template store<std::uint32_t>(at, used);
  }

  Options options_;
  Address base_ = 0;
  std::uint64_t leaves_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace pmsim::blocks::index
