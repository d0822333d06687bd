#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/memory/memory.hpp"

/// Sorted runs on persistent memory, as levels of an LSM tree (P. Goetze, A. K. Tharanatha, K.-U. Sattler,
/// "Data structure primitives on persistent memory: an evaluation", DaMoN 2020, sections 4.2 and 5.3).
namespace pmsim::blocks::run {

using memory::Address;
using memory::kLineBytes;
using memory::Memory;
using memory::Site;

/// A key and the paper's value, a tuple of two ints and a double.
struct Pair {
  std::uint64_t key = 0;
  std::array<std::uint64_t, 2> value{};
  auto operator<=>(const Pair&) const = default;
};
inline constexpr std::uint64_t kPairBytes = sizeof(Pair);
static_assert(kPairBytes == 24);

/// A pair is read and written with two instructions each, of which the memory counts one for every line.
inline constexpr std::uint32_t kHalvesInstructions = 2;

template <Memory M>
[[nodiscard]] Pair load_pair(M& memory, Address address) {
  Pair pair;
  memory.read(address, std::as_writable_bytes(std::span(&pair, 1)));
  return pair;
}
template <Memory M>
void store_pair(M& memory, Address address, const Pair& pair) {
  memory.write(address, std::as_bytes(std::span(&pair, 1)));
}

/// Consecutive pairs, copied as memcpy does it: by lines, with vectors. The target begins a line.
template <Memory M>
void copy_pairs(M& memory, Address from, Address to, std::uint64_t pairs) {
  std::array<std::byte, kLineBytes> line;
  for (std::uint64_t at = 0; at < pairs * kPairBytes; at += kLineBytes) {
    const std::uint64_t bytes = std::min<std::uint64_t>(kLineBytes, pairs * kPairBytes - at);
    const std::span<std::byte> part = std::span(line).first(bytes);
    memory.read(from + at, part);
    memory.compute(0, log::kCopyInstructionsPerLine);
    memory.write(to + at, part);
  }
}

}  // namespace pmsim::blocks::run
