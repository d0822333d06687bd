#pragma once

#include <algorithm>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/buffer/frame.hpp"

namespace pmsim::engines::buffer {

/// The frames that the thread that works has fixed, once for each time: what it knows by itself, on its stack,
/// where frames do not count their users. A handful, and empty between operations.
class Users {
 public:
  void add(Address frame) { frames_.push_back(frame); }
  void remove(Address frame) {
    const auto latest = std::find(frames_.rbegin(), frames_.rend(), frame);
    ensure(latest != frames_.rend(), "a page is unfixed that is not fixed");
    *latest = frames_.back();
    frames_.pop_back();
  }
  [[nodiscard]] bool has(Address frame) const noexcept {
    return std::find(frames_.begin(), frames_.end(), frame) != frames_.end();
  }
  [[nodiscard]] bool empty() const noexcept { return frames_.empty(); }

 private:
  std::vector<Address> frames_;
};

}  // namespace pmsim::engines::buffer
