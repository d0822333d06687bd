#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// The way of a line from the cache of one core to that of another, in three parts of equal length: the request
/// goes to the line's home (a slice of the last level), from there to the core that has the line, and the line
/// from there to who asked. A line is taken away from one core at a time: requests wait at its home until the
/// one before has been served, which is what bounds the rate of a counter that all cores increment. Ways of
/// different lines do not wait for each other (a mesh has room for more than 24 cores ask for).
class LineTransfers {
 public:
  explicit LineTransfers(Picoseconds latency) : request_(latency / 3), served_(latency - latency / 3) {}

  /// When a core that asks at `at` has the line, which the one that gives it has from `held` on.
  Picoseconds move(std::uint64_t line, Picoseconds at, Picoseconds held = 0) noexcept {
    Way& way = ways_[line % ways_.size()];
    const Picoseconds asks = std::max(at + request_, held);
    const bool known = way.line == line;
    way = Way{line, (known ? std::max(asks, way.arrives) : asks) + served_, known && way.copied};
    return way.arrives;
  }
  /// When a core has a copy that looks at the line again at `at`: the first from the core that has written it,
  /// others from the last level, `last_level` away, which has one when that is over.
  Picoseconds look_again(std::uint64_t line, Picoseconds at, Picoseconds last_level) noexcept {
    Way& way = ways_[line % ways_.size()];
    if (way.line == line && way.copied)
      return std::max(at + last_level, way.arrives);
    const Picoseconds arrives = move(line, at);
    way.copied = true;
    return arrives;
  }
  /// A core asks for the line alone. Whether others have looked at it again since the last one did: they give
  /// their copies up, which takes as long as to move it (an upgrade from S to M, by its home).
  bool take(std::uint64_t line) noexcept {
    Way& way = ways_[line % ways_.size()];
    return way.line == line && std::exchange(way.copied, false);
  }

 private:
  struct Way {
    std::uint64_t line = ~std::uint64_t{0};
    Picoseconds arrives = 0;
    bool copied = false;  ///< by look_again()
  };
  Picoseconds request_;
  Picoseconds served_;
  std::array<Way, 1024> ways_{};  ///< the latest ones, direct-mapped by line
};

}  // namespace pmsim::machine
