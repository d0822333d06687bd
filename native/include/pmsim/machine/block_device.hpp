#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/block_unit.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/line_map.hpp"
#include "pmsim/machine/params.hpp"

namespace pmsim::machine {

/// An SSD or hard disk behind the operating system: parallel units (dies or a head), a command queue, a link
/// with a bandwidth cap each way, and a volatile write cache, in which writes of one block are combined and
/// from which it is read. The units write what the cache holds while nobody waits for a read, until somebody
/// waits for room in the cache or for flush(). Data in the write cache are lost at a power failure; they are
/// durable after flush(), or at once where there is no write cache.
class BlockDevice {
 public:
  BlockDevice(const BlockDeviceParams& params, Counters& counters);

  /// Each takes the time at which the caller enters the system call and returns when it comes back.
  Picoseconds read(std::uint64_t address, std::uint64_t bytes, Picoseconds now);
  Picoseconds write(std::uint64_t address, std::uint64_t bytes, Picoseconds now);
  Picoseconds flush(Picoseconds now);

  /// Units and links pause from `now` on for `duration` (garbage collection, a reset of the link).
  void stall(Picoseconds now, Picoseconds duration);
  /// From now on everything inside the device takes `percent` hundredths of the times of `original`.
  void slow(const BlockDeviceParams& original, std::int64_t percent) noexcept;

 private:
  struct Cached {
    std::int64_t bytes;   ///< of the cache that it takes
    std::uint64_t first;  ///< of its blocks
    std::uint64_t last;
    std::uint64_t program;  ///< the last of its programs: when all up to it are done, it has left the cache
  };

  Picoseconds enter_queue(Picoseconds now);
  void leave_queue(Picoseconds done);
  /// The head goes to what is read or written; how long that takes.
  Picoseconds position(std::uint64_t address, std::uint64_t bytes) noexcept;
  /// Only the cache is read or written.
  void pass(std::uint64_t address, std::uint64_t bytes) noexcept;
  [[nodiscard]] BlockUnit& unit_of(std::uint64_t block) noexcept;
  /// When the medium has what the cache holds of the block, as far as is known at `at`: kNever where its unit
  /// has not begun to write it, 0 where the cache does not hold it.
  [[nodiscard]] Picoseconds programmed(std::uint64_t block, Picoseconds at);
  /// The oldest entry of the cache.
  [[nodiscard]] bool has_left(const Cached& entry, Picoseconds at);
  /// Somebody waits for its room. Returns when it is there.
  [[nodiscard]] Picoseconds empty_front();
  /// It makes room. That may be later than `now`: a flush that comes before still waits for its programs.
  void leave_cache(Picoseconds now);

  BlockDeviceParams params_;
  std::vector<BlockUnit> units_;
  std::vector<Picoseconds> places_;  ///< of the queue, free from then on: a heap, the earliest first
  Picoseconds link_in_free_ = 0;
  Picoseconds link_out_free_ = 0;
  Picoseconds paused_until_ = 0;
  std::deque<Cached> cache_;  ///< empties in order
  std::int64_t cached_bytes_ = 0;
  /// Of each block in the cache, the program of its latest content. Until its unit begins with that a further
  /// write only changes what is there: sectors of a log that follow one another become one write of their
  /// block.
  LineMap<std::uint64_t> programs_{16};
  std::uint64_t last_program_ = 0;
  std::uint64_t next_address_ = ~std::uint64_t{0};
  Counters* counters_;
};

}  // namespace pmsim::machine
