#pragma once

#include <algorithm>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/params.hpp"

namespace pmsim::machine {

/// The way between all cores and all controllers, a lane for lines that are read and one for lines that are
/// written, as the links of a chiplet or a virtual machine's share have it. Each lane takes a line at a time.
///
/// Nobody waits for a line that a cache writes back, so without more the writes of a program that stores would
/// be on their way without bound: a read, whose line takes a place in the caches, waits while more of them are
/// under way than the write pending queues hold.
class MemoryLink {
 public:
  explicit MemoryLink(const ControllerParams& controller) noexcept
      : read_interval_(controller.link_read_interval),
        write_interval_(controller.link_write_interval),
        most_behind_(controller.channels * controller.dram_write_queue * controller.link_write_interval) {}

  [[nodiscard]] bool limits() const noexcept { return read_interval_ > 0 || write_interval_ > 0; }

  /// When a line that is asked for at `now` is on its way. `ahead` as of DramChannel::read().
  Picoseconds read(Picoseconds now, Picoseconds ahead = 0) noexcept {
    Picoseconds start = now;
    if (write_interval_ > 0)
      start = std::max(start, write_free_ - most_behind_);
    return read_interval_ > 0 ? take(read_free_, start, read_interval_, ahead) : start;
  }
  /// When a line that comes to the link at `now` is through.
  Picoseconds write(Picoseconds now) noexcept {
    return write_interval_ > 0 ? take(write_free_, now, write_interval_) : now;
  }

 private:
  static Picoseconds take(Picoseconds& free, Picoseconds now, Picoseconds interval,
                          Picoseconds ahead = 0) noexcept {
    const Picoseconds start = std::max(now, free);
    free = std::max(now - ahead, free) + interval;
    return start;
  }

  Picoseconds read_interval_;
  Picoseconds write_interval_;
  Picoseconds most_behind_;
  Picoseconds read_free_ = 0;
  Picoseconds write_free_ = 0;
};

}  // namespace pmsim::machine
