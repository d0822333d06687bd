#pragma once

#include <cstdint>

#include "pmsim/blocks/run/branch.hpp"
#include "pmsim/blocks/run/pair.hpp"

namespace pmsim::blocks::run {

/// Sorts pairs in place by key, as std::sort of GCC 12 does it: quicksort with the median of three as the pivot
/// down to 16 pairs, then one insertion sort over all. Without its heapsort for keys made to be slow: these
/// take longer.
///
/// Instructions are those of the compiled loops (GCC 12, -O3 -march=skylake), counted, beside the loads and
/// stores.
template <Memory M>
class PairSort {
 public:
  PairSort(M& memory, Address pairs) : memory_(memory), pairs_(pairs) {}

  void operator()(std::uint64_t count) {
    if (count < 2)
      return;
    quicksort(0, count);
    for (std::uint64_t at = 1; at < count; ++at)
      insert(at);
  }

 private:
  static constexpr std::uint64_t kFewPairs = 16;
  static constexpr std::uint32_t kStepInstructions = 2;  ///< add, fused compare and branch
  static constexpr std::uint32_t kSwapInstructions = 9;  ///< lea, add, compare; 6 of 10 moves
  static constexpr std::uint32_t kShiftInstructions = 3 + kHalvesInstructions;  ///< mov, sub, compare
  static constexpr std::uint32_t kInsertInstructions =
      6 + kHalvesInstructions;  ///< around the shifts of a pair

  [[nodiscard]] Address at(std::uint64_t index) const noexcept { return pairs_ + index * kPairBytes; }
  [[nodiscard]] std::uint64_t key(std::uint64_t index) const {
    return memory_.template load<std::uint64_t>(at(index));
  }

  void quicksort(std::uint64_t first, std::uint64_t last) {
    while (last - first > kFewPairs) {
      const std::uint64_t cut = partition(first, last);
      quicksort(cut, last);
      last = cut;
    }
  }

  std::uint64_t partition(std::uint64_t first, std::uint64_t last) {
    swap(first, median(first + 1, first + (last - first) / 2, last - 1));
    const std::uint64_t pivot = key(first);
    std::uint64_t low = first + 1;
    std::uint64_t high = last;
    for (;;) {
      while (step(low_branch_, key(low) < pivot))
        ++low;
      do {
        --high;
      } while (step(high_branch_, pivot < key(high)));
      if (low >= high)
        return low;
      swap(low++, high);
    }
  }
  bool step(Branch& branch, bool taken) {
    memory_.compute(0, kStepInstructions);
    return branch(memory_, taken);
  }
  [[nodiscard]] std::uint64_t median(std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
    const std::uint64_t of_a = key(a);
    const std::uint64_t of_b = key(b);
    const std::uint64_t of_c = key(c);
    if (of_a < of_b)
      return of_b < of_c ? b : of_a < of_c ? c : a;
    return of_a < of_c ? a : of_b < of_c ? c : b;
  }
  void swap(std::uint64_t a, std::uint64_t b) {
    const Pair of_a = load_pair(memory_, at(a));
    const Pair of_b = load_pair(memory_, at(b));
    memory_.compute(0, kSwapInstructions);
    store_pair(memory_, at(a), of_b);
    store_pair(memory_, at(b), of_a);
  }

  void insert(std::uint64_t index) {
    const Pair pair = load_pair(memory_, at(index));
    memory_.compute(0, kInsertInstructions);
    std::uint64_t hole = index;
    while (hole > 0 && insert_branch_(memory_, pair.key < key(hole - 1))) {
      memory_.compute(0, kShiftInstructions);
      store_pair(memory_, at(hole), load_pair(memory_, at(hole - 1)));
      --hole;
    }
    if (hole != index)
      store_pair(memory_, at(hole), pair);
  }

  M& memory_;
  Address pairs_;
  Branch low_branch_;
  Branch high_branch_;
  Branch insert_branch_;
};

}  // namespace pmsim::blocks::run
