#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// The way of a line from the cache of one core to that of another. A line makes one way at a time: cores that
/// want the same one get it one after the other, which is what bounds the rate of a counter that all of them
/// increment. Ways of different lines do not wait for each other (a mesh has room for more than 24 cores ask
/// for).
class LineTransfers {
 public:
  explicit LineTransfers(Picoseconds latency) : latency_(latency) {}

  /// When a core that asks at `at` has the line.
  Picoseconds move(std::uint64_t line, Picoseconds at) noexcept {
    Way& way = ways_[line % ways_.size()];
    const Picoseconds starts = way.line == line ? std::max(at, way.arrives) : at;
    way = Way{line, starts + latency_};
    return way.arrives;
  }

 private:
  struct Way {
    std::uint64_t line = ~std::uint64_t{0};
    Picoseconds arrives = 0;
  };
  Picoseconds latency_;
  std::array<Way, 1024> ways_{};  ///< the latest ones, direct-mapped by line
};

}  // namespace pmsim::machine
