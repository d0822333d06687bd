#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace pmsim {

/// What a long loop without simulated time does now and then, so that whoever waits for it can stop it: the
/// function throws to do so. It must not change what the loop computes.
class Poll {
 public:
  /// Units of work between two calls. A unit takes 0.3 us (a row loaded in bulk) to 50 us (one inserted into an
  /// engine that moves pages): calls are rare enough to cost nothing and frequent enough for Ctrl-C.
  static constexpr std::uint64_t kStride = 1024;

  Poll() = default;  ///< never stops
  explicit Poll(std::function<void()> function) : function_(std::move(function)) {}

  void worked(std::uint64_t units = 1) {
    done_ += units;
    if (done_ < kStride) [[likely]]
      return;
    done_ = 0;
    if (function_)
      function_();
  }

 private:
  std::function<void()> function_;
  std::uint64_t done_ = 0;
};

}  // namespace pmsim
