#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace pmsim {

/// What a run does, in this order; it may lack the first ones.
enum class Phase : std::uint8_t {
  kLoad,     ///< makes and fills data structures
  kWarmUp,   ///< works without simulated time
  kMeasure,  ///< works in simulated time; RunLength counts it, warm-up included
};

/// What a run is doing, and which part of that it has done [0..1].
struct Doing {
  Phase phase = Phase::kLoad;
  double share = 0;
};

/// Whoever waits for a run: called several times per second of real time with what it is doing; may throw to
/// stop it. It must not change what the run computes.
using Watch = std::function<void(Doing)>;

/// Calls a watch from a long loop without simulated time.
class Poll {
 public:
  /// Units of work between two calls. A unit takes 0.3 us (a row loaded in bulk) to 50 us (one inserted into an
  /// engine that moves pages): calls are rare enough to cost nothing and frequent enough for Ctrl-C.
  static constexpr std::uint64_t kStride = 1024;

  Poll() = default;  ///< never stops
  Poll(Watch watch, Phase phase) : watch_(std::move(watch)), phase_(phase) {}

  /// So many calls of worked() are to come, until this is said again. Nobody said: the share stays 0.
  void expect(std::uint64_t items) noexcept {
    expected_ = items;
    items_ = 0;
  }

  /// One item more has been worked on, which took so many units.
  void worked(std::uint64_t units = 1) {
    ++items_;
    units_ += units;
    if (units_ < kStride) [[likely]]
      return;
    units_ = 0;
    if (watch_)
      watch_({phase_, expected_ == 0
                          ? 0
                          : std::min(1.0, static_cast<double>(items_) / static_cast<double>(expected_))});
  }

 private:
  Watch watch_;
  Phase phase_ = Phase::kLoad;
  std::uint64_t expected_ = 0;
  std::uint64_t items_ = 0;
  std::uint64_t units_ = 0;
};

}  // namespace pmsim
