#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/core/time.hpp"
#include "pmsim/machine/block_index.hpp"
#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/dram_channel.hpp"
#include "pmsim/machine/host_prefetch.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/read_buffer.hpp"
#include "pmsim/machine/read_queue.hpp"
#include "pmsim/machine/recent_writes.hpp"
#include "pmsim/memory/mapped_bytes.hpp"

namespace pmsim::machine {

/// Who waits for a write to be accepted: a fill buffer or writeback slot of a virtual thread's core.
struct WriteToken {
  std::uint32_t thread = 0;
  bool writeback = false;   ///< a writeback slot waits, not a fill buffer
  bool controller = false;  ///< the memory controller writes for itself (memory mode): nobody waits
  Picoseconds issued = 0;
  Picoseconds hold = 0;   ///< least time that the buffer stays taken after `issued`
  Picoseconds known = 0;  ///< from the end of the write until its thread's fences know of it
};

/// A line that could not enter its module's write pending queue at once.
struct WaitingLine {
  std::uint64_t line;  ///< of the module
  std::size_t module;
  std::size_t slice;  ///< of the last-level cache, where it waits
  Picoseconds arrived;
  WriteToken token;
};

/// A waiting line has been accepted now, and is acknowledged at `acknowledged`.
struct Grant {
  WriteToken token;
  std::size_t module;
  Picoseconds acknowledged;
};

/// One PMem module (DIMM) with the pending queues of its channel.
///
/// Reads and writes are 64-byte lines; the medium works on blocks. Arriving lines are combined in a small
/// buffer of open blocks. Complete ones leave when the medium is idle; when the buffer is full, the block that
/// entered first leaves. Each leaving block costs the medium a whole block write, complete or not. Lines that
/// find the write pending queue full wait in slices of the last-level cache; the slices take turns, and any
/// waiting line of a slice may go. The lines of a block come from different slices: with more threads they
/// arrive further apart, more blocks leave incomplete, their late lines enter again, and write bandwidth falls.
/// A line is durable once the queue has accepted it (ADR).
///
/// A read fetches its block into a read buffer, where it takes the place of the oldest one; with many readers a
/// block may be gone before all of its lines have been read, and is fetched again.
///
/// With a path of its own (emulated NVM, a CXL expander) a module shares no channel with DRAM: reads and writes
/// have a direction each, and only the medium is shared by them.
class PmemModule {
 public:
  PmemModule(const PlatformParams& params, DramChannel& channel, Counters& counters, std::uint64_t seed);

  /// Read of a line that arrives at the controller at `now`; returns when its data leave the controller.
  Picoseconds read(std::uint64_t line, Picoseconds now);
  /// What a read leaves behind that needs no clock: its translation.
  void read_untimed(std::uint64_t line) { translate(page_of(line >> block_shift_)); }
  /// The same for one that has a place in the read pending queue until then.
  Picoseconds read_in_place(std::uint64_t line, Picoseconds now) {
    const Picoseconds done = read(line, now);
    reads_.take_place(done);
    return done;
  }

  /// The read pending queue. What waits there enters by admit(), at its next_admission(), `place`.
  [[nodiscard]] ReadQueue& reads() noexcept { return reads_; }
  [[nodiscard]] const ReadQueue& reads() const noexcept { return reads_; }
  Admission admit(Picoseconds place);

  /// Asks the host for what the read of a line from the medium will look at.
  void look_ahead(std::uint64_t line) const noexcept {
    translations_.prefetch_fill(translations_.place_of(page_of(line >> block_shift_)));
  }

  /// The write pending queue has a place.
  [[nodiscard]] bool has_room() const noexcept { return queue_size_ < queue_capacity_; }
  /// Puts a line into the queue, which must have room: from now on it is durable. Who waits for the write hears
  /// of it write_latency() later.
  void accept(std::uint64_t line, Picoseconds now);
  [[nodiscard]] Picoseconds write_latency() const noexcept { return params_.write_latency; }

  /// Lets a line wait for a place.
  void wait(const WaitingLine& waiting);
  [[nodiscard]] bool has_waiting() const noexcept { return waiting_count_ > 0; }
  /// Takes any of the waiting lines of the slice whose turn it is: requests retry, nobody keeps an order.
  [[nodiscard]] WaitingLine take_waiting();

  /// When this module wants to move the next line out of the write pending queue; kNever when that is empty.
  [[nodiscard]] Picoseconds next_drain() const noexcept { return next_drain_; }

  /// Moves one line out of the queue, at next_drain(). Returns when its place is free.
  Picoseconds drain();
  /// The medium pauses from `now` on for `duration`, as wear levelling makes it: what it has to do comes later.
  void stall(Picoseconds now, Picoseconds duration) noexcept;
  /// From now on the medium takes `percent` hundredths of the times of `original`.
  void slow(const PmemParams& original, std::int64_t percent) noexcept;
  /// To be called after drain(), when the free place has been given away.
  void schedule_drain() noexcept;

 private:
  struct QueuedLine {
    std::uint64_t line;
    Picoseconds arrived;
  };
  static constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};
  struct OpenBlock {
    std::uint64_t block;  ///< kNoBlock: the place is free
    std::uint64_t lines;  ///< which lines of it have been written: bit i is line i
  };
  struct CompleteBlock {
    std::uint64_t block;
    Picoseconds completed;
  };

  /// When a read that is at the controller at `now` has the channel, or the module's own path.
  Picoseconds take_path(Picoseconds now);
  Picoseconds combine(std::uint64_t line, Picoseconds now);
  void receive(Picoseconds now) noexcept;
  [[nodiscard]] Picoseconds when_all_are_read() const noexcept;
  Picoseconds write_block(std::uint64_t block, bool complete, Picoseconds now);
  void write_out_idle(Picoseconds now);
  void note_complete(std::uint64_t block, Picoseconds now);
  void forget_those_that_left();
  [[nodiscard]] HashedLine page_of(std::uint64_t block) const noexcept;
  Picoseconds translate(HashedLine page);
  struct Bank {
    Picoseconds begins = 0;  ///< it writes from then on
    Picoseconds ends = 0;    ///< and has nothing to write any more from then on
    Picoseconds reads_until = 0;
  };
  [[nodiscard]] Bank& bank_of(std::uint64_t block) noexcept {
    return banks_[((mix64(block) >> 32) * banks_.size()) >> 32];
  }
  [[nodiscard]] Picoseconds behind_write(const Bank& bank, Picoseconds start) const noexcept {
    return start <= bank.begins || start >= bank.ends ? start
                                                      : start + (bank.ends - start) % params_.bank_write_busy;
  }
  [[nodiscard]] std::uint64_t wear_region(std::uint64_t block) const noexcept {
    const std::uint64_t region = block >> wear_shift_;
    return region < wear_regions_ ? region : region % wear_regions_;
  }

  PmemParams params_;
  int block_shift_;          ///< log2 of lines per block
  std::uint64_t full_mask_;  ///< all lines of a block
  int page_shift_;           ///< log2 of the bytes of a translation entry; -1: not a power of two
  std::size_t queue_capacity_;

  std::vector<QueuedLine> queue_;  ///< ring
  std::size_t queue_head_ = 0;
  std::size_t queue_size_ = 0;

  std::vector<std::vector<WaitingLine>> waiting_;  ///< by slice
  std::vector<std::uint64_t> waiting_slices_;      ///< bit i of them is set: lines of slice i wait
  std::size_t waiting_count_ = 0;
  std::size_t turn_ = 0;  ///< the first slice that may go
  Picoseconds next_drain_ = kNever;
  Picoseconds port_free_ = 0;  ///< of writes
  Picoseconds path_free_ = 0;  ///< of reads, where the module has a path of its own

  BlockIndex open_;                    ///< block to its place
  std::vector<OpenBlock> open_lines_;  ///< the write-combining buffer
  std::size_t open_count_ = 0;
  std::size_t next_place_ = 0;  ///< victim of the next eviction
  /// In order; the medium takes them when idle. Some may have left since.
  std::vector<CompleteBlock> complete_;
  std::size_t complete_head_ = 0;
  ReadBuffer read_buffer_;
  std::size_t oldest_read_ = 0;  ///< its place that is used next

  std::vector<Bank> banks_;
  ReadQueue reads_;
  /// Arrivals of reads that were on their way when they were noted, in the order of the calls. Of more than
  /// these the oldest is taken for come: 512 places gave the same bandwidths of readers beside writers.
  class ComingReads {
   public:
    [[nodiscard]] bool is_empty() const noexcept { return size_ == 0; }
    [[nodiscard]] bool is_full() const noexcept { return size_ == arrivals_.size(); }
    [[nodiscard]] Picoseconds next() const noexcept { return arrivals_[head_]; }
    Picoseconds take() noexcept {
      const Picoseconds arrival = arrivals_[head_];
      head_ = (head_ + 1) % arrivals_.size();
      --size_;
      return arrival;
    }
    void put(Picoseconds arrival) noexcept { arrivals_[(head_ + size_++) % arrivals_.size()] = arrival; }
    template <typename Use>
    void for_each(Use use) const {
      for (std::size_t index = 0; index < size_; ++index)
        use(arrivals_[(head_ + index) % arrivals_.size()]);
    }

   private:
    std::array<Picoseconds, 32> arrivals_{};
    std::size_t head_ = 0, size_ = 0;
  };

  Picoseconds media_free_ = 0;  ///< the medium has work until then, reads that are coming left out
  Picoseconds reads_free_ = 0;  ///< the same with them
  ComingReads coming_;
  Picoseconds last_write_end_ = 0;

  Cache translations_;
  RecentWrites recent_writes_;
  memory::MappedBytes wear_table_;  ///< of which a run touches little, whatever its size
  std::uint32_t* wear_ = nullptr;   ///< in it: block writes per wear region; null: not counted
  std::uint64_t wear_regions_ = 0;
  int wear_shift_ = 0;

  DramChannel* channel_;
  Counters* counters_;
  Random random_;
};

}  // namespace pmsim::machine
