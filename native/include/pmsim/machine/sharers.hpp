#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pmsim/machine/line_map.hpp"

namespace pmsim::machine {

/// Which cores may have a line in their L1 or L2: the snoop filter of a socket, without a limit to its size.
///
/// Invariant: a core that has the line is in its set. The opposite need not hold: an L1 drops a clean line that
/// its L2 no longer has without telling anybody, as in hardware; whoever asks that core then finds nothing.
class Sharers {
 public:
  /// A set of cores. Of more than 64 cores some share a bit (a coarse vector).
  using Cores = std::uint64_t;
  static constexpr std::uint32_t kBits = 64;

  /// `lines`: that the L1s and L2s of all cores hold. There is room for these at once, for some 250 MB of
  /// caches at most: the map grows, and who simulates a gigabyte for each core need not fill it.
  Sharers(std::size_t lines, std::uint32_t cores)
      : exact_(cores <= kBits), sets_(std::min(lines, kLinesAtOnce)) {}

  [[nodiscard]] static constexpr Cores bit_of(std::uint32_t core) noexcept {
    return Cores{1} << (core % kBits);
  }

  [[nodiscard]] Cores of(std::uint64_t line) noexcept {
    const Cores* cores = sets_.find(line);
    return cores == nullptr ? 0 : *cores;
  }
  /// Cores besides `core` that may have it. Who shares the bit of `core` may be among them.
  [[nodiscard]] Cores others_of(std::uint64_t line, std::uint32_t core) noexcept {
    return of(line) & ~(exact_ ? bit_of(core) : Cores{0});
  }
  void add(std::uint64_t line, std::uint32_t core) { sets_[line] |= bit_of(core); }
  /// No other core has it any longer.
  void set_owner(std::uint64_t line, std::uint32_t core) { sets_[line] = bit_of(core); }
  /// The core has lost it.
  void remove(std::uint64_t line, std::uint32_t core) {
    Cores* cores = sets_.find(line);
    if (cores == nullptr || !exact_)
      return;
    *cores &= ~bit_of(core);
    if (*cores == 0)
      sets_.erase(line);
  }
  /// Nobody has it.
  void clear(std::uint64_t line) {
    if (sets_.find(line) != nullptr)
      sets_.erase(line);
  }

 private:
  static constexpr std::size_t kLinesAtOnce = std::size_t{1} << 22;

  bool exact_;
  LineMap<Cores> sets_;
};

}  // namespace pmsim::machine
