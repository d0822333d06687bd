#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmsim::blocks::page {

/// Largest page: 64 KiB.
inline constexpr std::uint32_t kMaxLines = 1024;
inline constexpr std::uint32_t kMaskBits = 64;

/// A set of cache lines of one page: which are dirty, which are in DRAM. Volatile, and the form in which a
/// micro log names its lines. Invariant: bits at and above the page's number of lines are zero.
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

  /// How many aligned groups of `lines` lines the set touches: PMem blocks, when a block holds that many.
  [[nodiscard]] std::uint32_t groups(std::uint32_t lines) const {
    std::uint32_t groups = 0;
    std::uint32_t last = ~std::uint32_t{0};
    for_each([&](std::uint32_t line) {
      groups += line / lines != last ? 1 : 0;
      last = line / lines;
    });
    return groups;
  }

  bool operator==(const LineMask&) const = default;

 private:
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace pmsim::blocks::page
