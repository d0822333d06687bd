#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "pmsim/core/random.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// Uniform in [low, high] (clause 2.1.5: random(x, y)).
[[nodiscard]] constexpr std::uint32_t uniform(Random& random, std::uint32_t low, std::uint32_t high) noexcept {
  return low + static_cast<std::uint32_t>(random.below(std::uint64_t{high} - low + 1));
}

/// The non-uniform random number NURand(A, x, y) of clause 2.1.6, with its run-time constant C.
[[nodiscard]] constexpr std::uint32_t nurand(Random& random, std::uint32_t a, std::uint32_t c,
                                             std::uint32_t low, std::uint32_t high) noexcept {
  const std::uint32_t bits = uniform(random, 0, a);  // drawn first, whatever the compiler
  return ((bits | uniform(random, low, high)) + c) % (high - low + 1) + low;
}

inline constexpr std::uint32_t kNames = 1000;

/// The constants C of one population and run. Those of the last name differ by 65 to 119, but not by 96 or 112,
/// between loading and running (clause 2.1.6.1).
struct NurandConstants {
  std::uint32_t load_name = 0;
  std::uint32_t run_name = 0;
  std::uint32_t customer = 0;
  std::uint32_t item = 0;

  explicit constexpr NurandConstants(std::uint64_t seed) noexcept {
    Random random(mix64(seed ^ 0x7c9c));
    load_name = uniform(random, 0, 255 - 119);
    std::uint32_t delta = uniform(random, 65, 119);
    while (delta == 96 || delta == 112)
      delta = uniform(random, 65, 119);
    run_name = load_name + delta;
    customer = uniform(random, 0, 1023);
    item = uniform(random, 0, 8191);
  }
};

/// C_LAST from a number of three digits (clause 4.3.2.3), padded with zeros.
inline void last_name(std::uint32_t number, std::span<char, 16> into) noexcept {
  static constexpr std::array<std::string_view, 10> kSyllables{"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                                               "ESE", "ANTI",  "CALLY", "ATION", "EING"};
  std::memset(into.data(), 0, into.size());
  std::size_t at = 0;
  for (const std::uint32_t digit : {number / 100 % 10, number / 10 % 10, number % 10}) {
    const std::string_view syllable = kSyllables[digit];
    std::memcpy(into.data() + at, syllable.data(), syllable.size());
    at += syllable.size();
  }
}

/// Random letters, `low` to `high` of them, the rest zeros (clause 4.3.2.2: a-string).
inline void letters(Random& random, std::span<char> into, std::uint32_t low, std::uint32_t high) noexcept {
  const std::uint32_t length = uniform(random, low, high);
  for (std::size_t at = 0; at < into.size(); ++at)
    into[at] = at < length ? static_cast<char>('a' + random.below(26)) : '\0';
}

/// Random digits in the whole field (n-string).
inline void digits(Random& random, std::span<char> into) noexcept {
  for (char& digit : into)
    digit = static_cast<char>('0' + random.below(10));
}

/// Letters with "ORIGINAL" somewhere inside of each tenth string (I_DATA and S_DATA, clause 4.3.3.1).
inline void original_letters(Random& random, std::span<char> into, std::uint32_t low, std::uint32_t high) {
  static constexpr std::string_view kOriginal = "ORIGINAL";
  letters(random, into, low, high);
  if (random.below(10) == 0)
    std::memcpy(into.data() + random.below(low - kOriginal.size()), kOriginal.data(), kOriginal.size());
}

}  // namespace pmsim::workloads::oltp::tpcc
