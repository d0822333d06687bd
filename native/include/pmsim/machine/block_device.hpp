#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/line_map.hpp"
#include "pmsim/machine/params.hpp"

namespace pmsim::machine {

/// An SSD or hard disk behind the operating system: parallel units (dies or a head), a command queue, a link
/// with a bandwidth cap each way, and a volatile write cache, in which writes of one block are combined. Data
/// in the write cache are lost at a power failure; they are durable after flush(), or at once where there is no
/// write cache.
class BlockDevice {
 public:
  BlockDevice(const BlockDeviceParams& params, Counters& counters);

  /// Each takes the time at which the caller enters the system call and returns when it comes back.
  Picoseconds read(std::uint64_t address, std::uint64_t bytes, Picoseconds now);
  Picoseconds write(std::uint64_t address, std::uint64_t bytes, Picoseconds now);
  Picoseconds flush(Picoseconds now);

  /// Units and links pause from `now` on for `duration` (garbage collection, a reset of the link).
  void stall(Picoseconds now, Picoseconds duration) noexcept;
  /// From now on everything inside the device takes `percent` hundredths of the times of `original`.
  void slow(const BlockDeviceParams& original, std::int64_t percent) noexcept;

 private:
  struct Cached {
    Picoseconds written;
    std::int64_t bytes;   ///< of the cache that it takes
    std::uint64_t first;  ///< of its blocks
    std::uint64_t last;
  };

  Picoseconds enter_queue(Picoseconds now);
  void leave_queue(Picoseconds done);
  Picoseconds position(std::uint64_t address, std::uint64_t bytes);
  /// The cache holds the block, and its unit has not begun to write it by `at`.
  [[nodiscard]] bool waits(std::uint64_t block, Picoseconds at) noexcept;
  /// The oldest entry of the cache makes room.
  void leave_cache();
  Picoseconds occupy_unit(std::uint64_t block, Picoseconds now, Picoseconds duration);

  BlockDeviceParams params_;
  std::vector<Picoseconds> units_;
  std::vector<Picoseconds> commands_;  ///< completion times of the last queue_depth commands: a ring
  std::size_t next_command_ = 0;
  Picoseconds link_in_free_ = 0;
  Picoseconds link_out_free_ = 0;
  Picoseconds paused_until_ = 0;
  std::deque<Cached> cache_;
  std::int64_t cached_bytes_ = 0;
  /// Of each block in the cache, when a unit begins to write its latest content: until then a further write of
  /// it only changes what is there. Sectors of a log that follow one another so become one write of their
  /// block.
  LineMap<Picoseconds> waiting_{16};
  std::uint64_t next_address_ = ~std::uint64_t{0};
  Counters* counters_;
};

}  // namespace pmsim::machine
