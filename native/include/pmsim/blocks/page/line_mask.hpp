#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::page {

/// Largest page: 64 KiB.
inline constexpr std::uint32_t kMaxLines = 1024;
inline constexpr std::uint32_t kMaskBits = 64;

/// A set of cache lines of one page: which are dirty, which are in DRAM. Volatile. Invariant: bits at and above
/// the page's number of lines are zero.
class LineMask {
 public:
  static constexpr std::size_t kWords = kMaxLines / kMaskBits;

  void set(std::uint32_t line) noexcept { words_[line / kMaskBits] |= std::uint64_t{1} << (line % kMaskBits); }
  void set_first(std::uint32_t lines) noexcept {
    for (std::uint32_t line = 0; line < lines; ++line)
      set(line);
  }
  void clear() noexcept { words_ = {}; }
  [[nodiscard]] bool test(std::uint32_t line) const noexcept {
    return (words_[line / kMaskBits] >> (line % kMaskBits) & 1) != 0;
  }
  [[nodiscard]] std::uint32_t count() const noexcept {
    std::uint32_t lines = 0;
    for (const std::uint64_t word : words_)
      lines += static_cast<std::uint32_t>(std::popcount(word));
    return lines;
  }
  [[nodiscard]] std::uint64_t word(std::size_t index) const noexcept { return words_[index]; }
  void set_word(std::size_t index, std::uint64_t bits) noexcept { words_[index] = bits; }

  /// Calls visit(line) for every line of the set, ascending.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t index = 0; index < kWords; ++index) {
      for (std::uint64_t rest = words_[index]; rest != 0; rest &= rest - 1)
        visit(static_cast<std::uint32_t>(index * kMaskBits) +
              static_cast<std::uint32_t>(std::countr_zero(rest)));
    }
  }

  /// for_each() as a program does it that tests `lines` bits one by one (the published one of the paper), with
  /// what that costs: the instructions of each turn, and a mispredicted branch for each line of the rarer sort,
  /// since dirty lines lie at random. The mask itself is in L1 by then.
  template <memory::Memory M, typename Visit>
  void scan(M& memory, std::uint32_t lines, std::uint32_t instructions, Visit&& visit) const {
    const bool rare = 2 * count() <= lines;
    for (std::uint32_t line = 0, passed = 0; line < lines; ++line) {
      const bool set = test(line);
      passed += instructions;
      if (set || set == rare || passed >= kMostAtOnce || line + 1 == lines) {
        memory.compute(0, passed);
        passed = 0;
      }
      if (set == rare)
        memory.mispredict(memory::BranchOn::kAtHand);
      if (set)
        visit(line);
    }
  }

  /// How many aligned groups of `lines` lines the set touches: PMem blocks, when a block holds that many.
  [[nodiscard]] std::uint32_t groups(std::uint32_t lines) const {
    std::uint32_t groups = 0;
    if (lines < kMaskBits && std::has_single_bit(lines)) {
      const std::uint64_t firsts = ~std::uint64_t{0} / ((std::uint64_t{1} << lines) - 1);
      for (std::uint64_t any : words_) {
        for (std::uint32_t shift = 1; shift < lines; shift *= 2)
          any |= any >> shift;  // the first line of each group stands for all of them
        groups += static_cast<std::uint32_t>(std::popcount(any & firsts));
      }
      return groups;
    }
    std::uint32_t last = ~std::uint32_t{0};
    for_each([&](std::uint32_t line) {
      groups += line / lines != last ? 1 : 0;
      last = line / lines;
    });
    return groups;
  }

  bool operator==(const LineMask&) const = default;

 private:
  static constexpr std::uint32_t kMostAtOnce = 32;  ///< instructions, so that the window sees them as they come
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace pmsim::blocks::page
