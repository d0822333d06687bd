#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/core/time.hpp"
#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/dram_channel.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/recent_writes.hpp"

namespace pmsim::machine {

/// Who waits for a write to be accepted: a fill buffer or writeback slot of a virtual thread.
struct WriteToken {
  std::uint32_t thread = 0;
  std::uint16_t buffer = 0;
  bool writeback = false;   ///< the buffer is one of the writeback slots
  bool controller = false;  ///< the memory controller writes for itself (memory mode): nobody waits
  Picoseconds issued = 0;
  Picoseconds hold = 0;  ///< least time that the buffer stays taken after `issued`
};

/// A line whose write could not be accepted at once has been accepted now.
struct Grant {
  WriteToken token;
  Picoseconds accepted;
};

/// One PMem module (DIMM) with the write pending queue of its channel.
///
/// Reads and writes are 64-byte lines; the medium works on blocks. Arriving lines are combined in a small buffer of
/// open blocks that leave it in the order in which they entered; each leaving block costs the medium a whole block
/// write, complete or not. Lines that find the write pending queue full wait, and freed places go to any of the
/// waiting lines: cores retry, nobody keeps an order. So with more threads the lines of a block arrive further
/// apart, more blocks leave incomplete, their late lines enter again, and write bandwidth falls. A line is durable
/// once the queue has accepted it (ADR).
///
/// A read fetches its block into a read buffer with random replacement; with many readers a block may be gone before
/// all of its lines have been read, and is fetched again.
class PmemModule {
 public:
  PmemModule(const PmemParams& pmem, const ControllerParams& controller, DramChannel& channel, Counters& counters,
             std::uint64_t seed);

  /// Read of a line that arrives at the controller at `now`; returns when its data leave the controller.
  Picoseconds read(std::uint64_t line, Picoseconds now);

  /// Write that arrives at `now`. Returns when it was accepted, or kNever: then a Grant for `token` will follow.
  Picoseconds write(std::uint64_t line, Picoseconds now, const WriteToken& token);

  /// When this module wants to move the next line out of the write pending queue; kNever when that is empty.
  [[nodiscard]] Picoseconds next_drain() const noexcept { return next_drain_; }

  /// Moves one line, at next_drain(). Returns true where that let a waiting line in, described by `grant`.
  bool drain(Grant& grant);

 private:
  struct QueuedLine {
    std::uint64_t line;
    Picoseconds arrived;
  };
  struct WaitingLine {
    std::uint64_t line;
    Picoseconds arrived;
    WriteToken token;
  };
  struct OpenBlock {
    std::uint64_t lines;  ///< which lines of it have been written: bit i is line i
  };
  struct BufferedRead {
    std::uint64_t block;
    Picoseconds available;
  };

  void enqueue(std::uint64_t line, Picoseconds now);
  Picoseconds combine(std::uint64_t line, Picoseconds now);
  Picoseconds write_block(std::uint64_t block, bool complete, Picoseconds now);
  [[nodiscard]] std::size_t find_open(std::uint64_t block) const noexcept;
  Picoseconds translate(std::uint64_t block);

  PmemParams params_;
  int block_shift_;          ///< log2 of lines per block
  std::uint64_t full_mask_;  ///< all lines of a block
  std::size_t queue_capacity_;

  std::vector<QueuedLine> queue_;  ///< ring
  std::size_t queue_head_ = 0;
  std::size_t queue_size_ = 0;
  std::vector<WaitingLine> waiting_;
  Picoseconds next_drain_ = kNever;
  Picoseconds port_free_ = 0;

  std::vector<std::uint64_t> open_blocks_;  ///< block numbers; flat, scanned
  std::vector<OpenBlock> open_lines_;
  std::size_t oldest_open_ = 0;  ///< victim of the next eviction
  std::vector<BufferedRead> read_buffer_;

  Picoseconds media_free_ = 0;        ///< the medium has work until then
  Picoseconds last_write_end_ = 0;

  Cache translations_;
  RecentWrites recent_writes_;
  struct FreeDeleter {
    void operator()(std::uint32_t* pointer) const noexcept;
  };
  std::unique_ptr<std::uint32_t[], FreeDeleter> wear_;  ///< block writes per wear region; committed lazily
  std::uint64_t wear_regions_ = 0;
  int wear_shift_ = 0;

  DramChannel* channel_;
  Counters* counters_;
  Random random_;
};

}  // namespace pmsim::machine
