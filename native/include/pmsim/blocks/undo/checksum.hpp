#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::undo {

/// The checksum of a log's entries. Of an entry that is torn over older bytes one in 2^64 is taken for whole,
/// whatever the data are. `before` is the checksum of what lies before; the size is a multiple of 8.
///
/// PMDK takes Fletcher's two sums (util_checksum_seq), the second one over the first. They are linear: where
/// the words that are missing differ from what lay there by 1, -2 and 1 in a row, both sums stay as they are.
/// Snapshots of small numbers are like that, of a node's slots for example, on which the crash checker came
/// upon it: a torn snapshot was whole, and recovery put bytes back that nobody had changed. Here every word is
/// mixed.
[[nodiscard]] inline std::uint64_t entry_checksum(std::span<const std::byte> bytes, std::uint64_t before = 0) {
  ensure(bytes.size() % sizeof(std::uint64_t) == 0, "a checksum of a fraction of a word");
  std::uint64_t sum = before;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, &bytes[at], sizeof word);
    sum = mix64(sum ^ word);
  }
  return sum;
}

/// What it costs is what PMDK's costs: of Fletcher's loop, counted in the compiled code (GCC 12, -O2, as PMDK
/// is built: add, add from memory, add, fused compare and branch, for 4 bytes), without the loads, which the
/// memory counts.
inline constexpr std::uint32_t kFletcherInstructionsPerLine = memory::kLineBytes / sizeof(std::uint32_t) * 4;

}  // namespace pmsim::blocks::undo
