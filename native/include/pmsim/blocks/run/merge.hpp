#pragma once

#include <array>
#include <cstdint>

#include "pmsim/blocks/run/branch.hpp"
#include "pmsim/blocks/run/publisher.hpp"

namespace pmsim::blocks::run {

enum class MergeAlgorithm : std::uint8_t {
  kTwoWay,  ///< runs 0 and 1 to a buffer in DRAM, 2 and 3 to another one, these two to the target (Fig. 3b)
  kKWay,    ///< the heads of all runs are compared for each pair (Fig. 3c)
};
enum class MergeTarget : std::uint8_t {
  kDirect,  ///< the new run
  kBuffer,  ///< a buffer in DRAM, which is copied to the new run
};

/// Pairs in the order of their keys, no key twice.
struct Sorted {
  Address begin = 0;
  std::uint64_t pairs = 0;
  [[nodiscard]] Address end() const noexcept { return begin + pairs * kPairBytes; }
};

/// Merges the four runs of a level into one run of the next level (section 4.2, "Merge Level"). Of pairs with
/// the same key the one of the newest run, that is the last one, stays.
///
/// Instructions are those of compiled loops of this shape (GCC 12, -O3 -march=skylake), counted, beside loads
/// and stores; branches on keys have predictors of their own.
class Merger {
 public:
  /// `buffers`: scratch_bytes() in DRAM, on a line.
  Merger(MergeAlgorithm algorithm, MergeTarget target, Address buffers)
      : algorithm_(algorithm), target_(target), buffers_(buffers) {}

  /// For runs of so many pairs: B1, B2 and, for MergeTarget::kBuffer, one for the result.
  [[nodiscard]] static constexpr std::uint64_t scratch_bytes(std::uint64_t pairs) noexcept {
    return 2 * buffer_bytes(2 * pairs) + buffer_bytes(4 * pairs);
  }

  /// Durable on return. Returns false, and does nothing, where the level is not full or the next one is.
  ///
  /// What a transaction snapshots of the new run (section 5.3): as many pairs as will be written where that is
  /// known, after a merge to a buffer; those of B1 and B2 together for a direct 2-way merge, and all of the run
  /// for a direct K-way merge, since nobody knows how many keys are there twice.
  template <Memory M>
  [[nodiscard]] bool merge(M& memory, const Levels& levels, Publisher& publisher, std::uint32_t level) {
    const std::uint64_t word = levels.word(memory);
    const std::uint32_t valid = Levels::valid(word, level + 1);
    if (Levels::valid(word, level) != kRunsPerLevel || level + 1 == levels.levels() || valid == kRunsPerLevel)
      return false;
    std::array<Sorted, kRunsPerLevel> runs;
    for (std::uint32_t index = 0; index < kRunsPerLevel; ++index) {
      const Address run = levels.run(level, index);
      runs[index] = {Levels::pairs_of(run), levels.size(memory, run)};
    }
    const Address run = levels.run(level + 1, valid);
    const Address b1 = buffers_;
    const Address b2 = b1 + buffer_bytes(2 * levels.capacity(level));
    const Address result = b2 + buffer_bytes(2 * levels.capacity(level));
    const bool direct = target_ == MergeTarget::kDirect;
    const Address to = direct ? Levels::pairs_of(run) : result;

    publisher.begin(memory, levels);
    std::uint64_t pairs = 0;
    if (algorithm_ == MergeAlgorithm::kTwoWay) {
      const Sorted older{b1, merge_two(memory, runs[0], runs[1], b1)};
      const Sorted newer{b2, merge_two(memory, runs[2], runs[3], b2)};
      if (direct)
        publisher.claim(memory, run, older.pairs + newer.pairs);
      pairs = merge_two(memory, older, newer, to);
    } else {
      if (direct)
        publisher.claim(memory, run, levels.capacity(level + 1));
      pairs = merge_all(memory, runs, to);
    }
    if (!direct) {
      publisher.claim(memory, run, pairs);
      copy_pairs(memory, result, Levels::pairs_of(run), pairs);
    }
    publisher.publish(memory, levels, run, pairs,
                      Levels::with(Levels::with(word, level, 0), level + 1, valid + 1));
    return true;
  }

 private:
  /// Per pair of a 2-way merge: two bounds, the keys, two pointers. The last comparison, whether keys are
  /// equal, is only made where the first one says no.
  static constexpr std::uint32_t kTwoWayInstructions = 5 + kHalvesInstructions, kEqualInstructions = 2;
  /// Per head of a K-way merge: its pointer, its bound, two comparisons, which is the best; per pair: its
  /// pointer is found and moved, so is the target's.
  static constexpr std::uint32_t kHeadInstructions = 5, kKWayInstructions = 5 + kHalvesInstructions;
  static constexpr std::uint32_t kTailInstructions = 3 + kHalvesInstructions;

  [[nodiscard]] static constexpr std::uint64_t buffer_bytes(std::uint64_t pairs) noexcept {
    return log::round_up(pairs * kPairBytes, kLineBytes);
  }

  template <Memory M>
  [[nodiscard]] std::uint64_t merge_two(M& memory, Sorted older, Sorted newer, Address to) {
    const Address begin = to;
    Address a = older.begin;
    Address b = newer.begin;
    for (; a != older.end() && b != newer.end(); to += kPairBytes) {
      const auto of_a = memory.template load<std::uint64_t>(a);
      const auto of_b = memory.template load<std::uint64_t>(b);
      memory.compute(0, kTwoWayInstructions);
      if (less_(memory, of_a < of_b)) {
        take(memory, a, to);
        continue;
      }
      memory.compute(0, kEqualInstructions);
      if (equal_(memory, of_a == of_b))
        a += kPairBytes;  // the older one
      take(memory, b, to);
    }
    for (; a != older.end(); to += kPairBytes) {
      memory.compute(0, kTailInstructions);
      take(memory, a, to);
    }
    for (; b != newer.end(); to += kPairBytes) {
      memory.compute(0, kTailInstructions);
      take(memory, b, to);
    }
    return (to - begin) / kPairBytes;
  }

  template <Memory M>
  [[nodiscard]] std::uint64_t merge_all(M& memory, const std::array<Sorted, kRunsPerLevel>& runs, Address to) {
    const Address begin = to;
    std::array<Address, kRunsPerLevel> at;
    for (std::uint32_t run = 0; run < kRunsPerLevel; ++run)
      at[run] = runs[run].begin;
    for (;; to += kPairBytes) {
      std::uint32_t best = kRunsPerLevel;
      std::uint64_t key = 0;
      for (std::uint32_t run = kRunsPerLevel; run-- > 0;) {  // the newest first
        memory.compute(0, kHeadInstructions);
        if (at[run] == runs[run].end())
          continue;
        const auto head = memory.template load<std::uint64_t>(at[run]);
        if (best == kRunsPerLevel || heads_[run](memory, head < key)) {
          best = run;
          key = head;
        } else if (equal_(memory, head == key)) {
          at[run] += kPairBytes;  // older than the best so far, whether that stays the best or not
        }
      }
      if (best == kRunsPerLevel)
        return (to - begin) / kPairBytes;
      memory.compute(0, kKWayInstructions);
      take(memory, at[best], to);
    }
  }

  template <Memory M>
  static void take(M& memory, Address& from, Address to) {
    store_pair(memory, to, load_pair(memory, from));
    from += kPairBytes;
  }

  MergeAlgorithm algorithm_;
  MergeTarget target_;
  Address buffers_;
  Branch less_;
  Branch equal_;
  std::array<Branch, kRunsPerLevel> heads_;
};

}  // namespace pmsim::blocks::run
