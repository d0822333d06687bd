#pragma once

#include <cstddef>
#include <cstdint>

namespace pmsim::blocks::inplace {

/// A FAM block (FAMB): 31 bits of user data in one word that the hardware writes atomically (van Renen et al.,
/// Building blocks for persistent memory, VLDB Journal 29, 2020, sec. 3.4.3).
///
///     63 62 | 61 ........ 31 | 30 ......... 0
///     version | old, 31 bits | new, 31 bits
///
/// Unsigned throughout: the paper's listing has signed bit-fields, whose conversion the language leaves open.
using Famb = std::uint64_t;

inline constexpr int kFambDataBits = 31;
inline constexpr int kFambVersionBits = 2;
static_assert(kFambVersionBits + 2 * kFambDataBits == 64);

inline constexpr std::uint64_t kFambDataMask = (std::uint64_t{1} << kFambDataBits) - 1;
inline constexpr std::uint64_t kFambOneVersion = std::uint64_t{1} << (2 * kFambDataBits);
inline constexpr std::uint64_t kFambVersionMask = std::uint64_t{3} << (2 * kFambDataBits);

[[nodiscard]] constexpr std::uint32_t famb_version(Famb famb) noexcept {
  return static_cast<std::uint32_t>(famb >> (2 * kFambDataBits));
}
[[nodiscard]] constexpr std::uint32_t famb_old(Famb famb) noexcept {
  return static_cast<std::uint32_t>(famb >> kFambDataBits & kFambDataMask);
}
[[nodiscard]] constexpr std::uint32_t famb_new(Famb famb) noexcept {
  return static_cast<std::uint32_t>(famb & kFambDataMask);
}

/// The next version (3 wraps to 0) with `data` as the new value and the former new value as the old one. Bits
/// of `data` above the 31st are ignored.
[[nodiscard]] constexpr Famb famb_advance(Famb famb, std::uint32_t data) noexcept {
  return ((famb + kFambOneVersion) & kFambVersionMask) |
         ((famb << kFambDataBits) & ~kFambVersionMask & ~kFambDataMask) | (data & kFambDataMask);
}

/// Undoes one advance: the version before (0 wraps to 3) and the old value. Old stays where it is: what was
/// older still is lost, and nobody asks for it.
[[nodiscard]] constexpr Famb famb_roll_back(Famb famb) noexcept {
  return ((famb - kFambOneVersion) & kFambVersionMask) | (famb & ~kFambVersionMask & ~kFambDataMask) |
         famb_old(famb);
}

/// 32-bit words of user data whose top bits share one further FAMB.
inline constexpr std::size_t kWordsPerTopFamb = kFambDataBits;

/// FAMBs of a record: one for each word of 32 bits, and one for the top bits of every 31 of them. Equals
/// ceil(8 n / 31), Table 3.
[[nodiscard]] constexpr std::size_t fambs_of(std::size_t bytes) noexcept {
  const std::size_t words = bytes / sizeof(std::uint32_t);
  return words + (words + kWordsPerTopFamb - 1) / kWordsPerTopFamb;
}
static_assert(fambs_of(16) == 5 && fambs_of(32) == 9 && fambs_of(64) == 17);

}  // namespace pmsim::blocks::inplace
