#pragma once

#include <cstdint>
#include <string>

#include "pmsim/blocks/run/pair.hpp"
#include "pmsim/core/error.hpp"

namespace pmsim::blocks::run {

inline constexpr std::uint32_t kRunsPerLevel = 4;

/// Where the runs of an LSM tree lie, and the word that says which of them count.
///
///     line 0: Run_Ptr, a byte for each level: so many of its runs are valid, the first ones | level 0: 4 runs
///     | level 1: 4 runs, each four times as long | ... run: a line with the number of its pairs | pairs,
///     sorted by key
///
/// A run above the count is free, whatever it holds. Run_Ptr is one aligned word, which the hardware writes
/// atomically: whoever changes it last has published a run, or the end of four and the beginning of one. Fresh
/// zero bytes are an empty tree.
class Levels {
 public:
  static constexpr std::uint32_t kMostLevels = 8;

  Levels(Address base, std::uint64_t pairs, std::uint32_t levels)
      : base_(base), pairs_(pairs), levels_(levels) {
    if (pairs == 0 || levels == 0 || levels > kMostLevels || base % kLineBytes != 0)
      throw ConfigError("runs of " + std::to_string(pairs) + " pairs in " + std::to_string(levels) +
                        " levels: choose at least one pair, and 1 to " + std::to_string(kMostLevels) +
                        " levels");
  }

  [[nodiscard]] static constexpr std::uint64_t run_bytes(std::uint64_t pairs) noexcept {
    return kLineBytes + log::round_up(pairs * kPairBytes, kLineBytes);
  }
  [[nodiscard]] static constexpr std::uint64_t bytes(std::uint64_t pairs, std::uint32_t levels) noexcept {
    std::uint64_t total = kLineBytes;
    for (std::uint32_t level = 0; level < levels; ++level)
      total += kRunsPerLevel * run_bytes(pairs << (2 * level));
    return total;
  }

  [[nodiscard]] std::uint32_t levels() const noexcept { return levels_; }
  [[nodiscard]] Address pointer() const noexcept { return base_; }
  /// Pairs that a run of the level has room for.
  [[nodiscard]] std::uint64_t capacity(std::uint32_t level) const noexcept { return pairs_ << (2 * level); }
  [[nodiscard]] Address run(std::uint32_t level, std::uint32_t index) const noexcept {
    return base_ + bytes(pairs_, level) + index * run_bytes(capacity(level));
  }
  [[nodiscard]] static Address pairs_of(Address run) noexcept { return run + kLineBytes; }

  [[nodiscard]] static std::uint32_t valid(std::uint64_t word, std::uint32_t level) noexcept {
    return static_cast<std::uint32_t>(word >> (8 * level) & 0xff);
  }
  [[nodiscard]] static std::uint64_t with(std::uint64_t word, std::uint32_t level,
                                          std::uint32_t valid) noexcept {
    return (word & ~(std::uint64_t{0xff} << (8 * level))) | std::uint64_t{valid} << (8 * level);
  }

  template <Memory M>
  [[nodiscard]] std::uint64_t word(M& memory) const {
    return memory.template load<std::uint64_t>(pointer());
  }
  /// Pairs of a valid run.
  template <Memory M>
  [[nodiscard]] std::uint64_t size(M& memory, Address run) const {
    return memory.template load<std::uint64_t>(run);
  }

 private:
  Address base_;
  std::uint64_t pairs_;
  std::uint32_t levels_;
};

}  // namespace pmsim::blocks::run
