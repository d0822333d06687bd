#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// Remembers, for lines written not long ago, from when on they can be read again. A direct-mapped table: a
/// forgotten line is one that nobody re-read soon.
class RecentWrites {
 public:
  void note(std::uint64_t line, Picoseconds readable_at) noexcept {
    slot(line) = {line, readable_at};
    latest_ = std::max(latest_, readable_at);
  }

  /// When a read that could start at `now` may start.
  [[nodiscard]] Picoseconds not_before(std::uint64_t line, Picoseconds now) const noexcept {
    if (now >= latest_) {
      return now;
    }
    const Entry& entry = entries_[line % entries_.size()];
    return entry.line == line ? std::max(now, entry.readable_at) : now;
  }

 private:
  struct Entry {
    std::uint64_t line = ~std::uint64_t{0};
    Picoseconds readable_at = 0;
  };
  Entry& slot(std::uint64_t line) noexcept { return entries_[line % entries_.size()]; }

  Picoseconds latest_ = 0;            ///< from then on all of them can be read
  std::array<Entry, 251> entries_{};  // a prime: lines of one channel are strided
};

}  // namespace pmsim::machine
