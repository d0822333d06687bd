#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pmsim/core/error.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::undo {

/// The checksum of PMDK's logs (util_checksum_seq): two sums over words of 32 bits, the second one over the
/// first. `before` is the checksum of what lies before; the size is a multiple of 4.
///
/// 64 bits tell a torn entry from a whole one, but for one chance in 2^64 and for data that somebody has made
/// for the purpose: the sums are linear.
[[nodiscard]] inline std::uint64_t fletcher(std::span<const std::byte> bytes, std::uint64_t before = 0) {
  ensure(bytes.size() % sizeof(std::uint32_t) == 0, "a checksum of a fraction of a word");
  auto low = static_cast<std::uint32_t>(before);
  auto high = static_cast<std::uint32_t>(before >> 32);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t word;
    std::memcpy(&word, &bytes[at], sizeof word);
    low += word;
    high += low;
  }
  return std::uint64_t{high} << 32 | low;
}

/// Of the loop, counted in the compiled code (GCC 12, -O2, as PMDK is built: add, add from memory, add, fused
/// compare and branch), without the loads, which the memory counts.
inline constexpr std::uint32_t kFletcherInstructionsPerLine = memory::kLineBytes / sizeof(std::uint32_t) * 4;

}  // namespace pmsim::blocks::undo
