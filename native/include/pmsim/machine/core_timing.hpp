#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/buffer_pool.hpp"
#include "pmsim/machine/fill_buffers.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/tlb.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

/// What each micro-operation needs to know of its platform, in few host cache lines that all threads share.
struct CoreTimes {
  explicit CoreTimes(const PlatformParams& params)
      : cycle(kSecond / params.core.frequency),
        half_read(params.core.shared_read_latency / 2),
        half_write(params.core.shared_write_latency / 2),
        l1(params.l1.latency),
        l2(params.l2.latency),
        llc(params.llc.latency),
        tlb_second(params.tlb.second_level_latency),
        walk(params.tlb.walk_latency),
        stream_hold(params.core.stream_hold),
        stream_delay(params.core.stream_delay),
        flush_delay(params.core.flush_delay),
        mispredict(params.core.mispredict_latency),
        store_miss_interval(params.core.store_miss_interval),
        store_next_interval(params.core.store_next_interval),
        line_interval(params.core.line_interval),
        flush_interval(params.core.flush_interval),
        fence(params.core.fence_latency),
        atomic(params.core.atomic_latency),
        pages(params.tlb) {}

  Picoseconds cycle;
  Picoseconds half_read;   ///< on-chip part of a read, each way
  Picoseconds half_write;  ///< on-chip part of a write, each way
  Picoseconds l1;
  Picoseconds l2;
  Picoseconds llc;
  Picoseconds tlb_second;
  Picoseconds walk;
  Picoseconds stream_hold;
  Picoseconds stream_delay;
  Picoseconds flush_delay;
  Picoseconds mispredict;
  Picoseconds store_miss_interval;
  Picoseconds store_next_interval;
  Picoseconds line_interval;
  Picoseconds flush_interval;
  Picoseconds fence;
  Picoseconds atomic;
  PageNumbers pages;
};

/// What the hardware threads of one core share in time: its fill buffers, writeback slots, prefetch queue and
/// page walks.
class CoreTiming {
 public:
  explicit CoreTiming(const PlatformParams& params)
      : fill_buffers(static_cast<std::size_t>(params.core.line_fill_buffers),
                     static_cast<std::size_t>(params.core.stream_fill_buffers)),
        writeback_slots(static_cast<std::size_t>(params.core.line_fill_buffers)),
        prefetch_slots(static_cast<std::size_t>(params.prefetcher.queue)),
        may_combine_(params.core.line_fill_buffers - 1) {}

  FillBuffers fill_buffers;  ///< one that waits holds a write, or a load, that its module has still to accept
  BufferPool writeback_slots;
  BufferPool prefetch_slots;

  /// Opens a write-combining buffer, which keeps a fill buffer until a later store of its thread closes it.
  /// False: it would be the last one that loads and other stores may take, and that store may be behind those.
  [[nodiscard]] bool open_combining() noexcept {
    if (combining_ >= may_combine_) {
      return false;
    }
    ++combining_;
    return true;
  }
  void close_combining() noexcept { --combining_; }

  /// Notes when a line that is being fetched arrives; kNever: a prefetch of it has been dropped.
  void note_fill(std::uint64_t line, Picoseconds arrives) noexcept {
    in_flight_[place_of(line)].put(line, arrives);
  }
  /// When the line arrives or has arrived; 0 where that is long past.
  [[nodiscard]] Picoseconds arrival(std::uint64_t line) const noexcept {
    return in_flight_[place_of(line)].arrival(line);
  }
  /// The same for a hit that does not stem from a prefetch. The L1 may hold a line that the L2 has lost and
  /// that the prefetcher wants to bring back: whether it does, or drops it, is nothing to whoever hits the L1.
  [[nodiscard]] Picoseconds arrival_if_coming(std::uint64_t line) const noexcept {
    const Picoseconds arrives = arrival(line);
    return arrives == kNever ? 0 : arrives;
  }

  /// Notes when a page walk ends.
  void note_walk(std::uint64_t page, Picoseconds ends) noexcept {
    walks_[page % walks_.size()] = Walk{page, ends};
    walks_end_ = std::max(walks_end_, ends);
    ++walks_noted_;
  }
  /// How many walks have been noted: while it stays, walk_end() answers as before.
  [[nodiscard]] std::uint64_t walks_noted() const noexcept { return walks_noted_; }
  /// When the translation of a page is there that the tags hold, and a walk may still be bringing.
  [[nodiscard]] Picoseconds walk_end(std::uint64_t page) const noexcept {
    const Walk& walk = walks_[page % walks_.size()];
    return walk.page == page ? walk.ends : 0;
  }
  /// A walk has not ended by `at`.
  [[nodiscard]] bool walks(Picoseconds at) const noexcept { return walks_end_ > at; }

 private:
  static constexpr std::size_t kFillPlaces = 256;

  /// Lines in order have a place each; where a piece of memory begins among them is as good as random, so that
  /// streams which run through equal parts of their regions hardly meet.
  [[nodiscard]] static std::size_t place_of(std::uint64_t line) noexcept {
    return static_cast<std::size_t>(line + ((line / kFillPlaces) * 0x9e3779b97f4a7c15U >> 57)) % kFillPlaces;
  }

  /// The last fills of the lines that share a place, latest first. Several, since threads of a core, or streams
  /// of one, that run at one distance meet in each place: a dropped prefetch that another's line puts out would
  /// be taken for a line that has arrived, though nobody has fetched it.
  class alignas(memory::kLineBytes) Fills {
   public:
    void put(std::uint64_t line, Picoseconds arrives) noexcept {
      std::shift_right(lines_.begin(), lines_.end(), 1);
      std::shift_right(arrives_.begin(), arrives_.end(), 1);
      lines_.front() = line;
      arrives_.front() = arrives;
    }
    [[nodiscard]] Picoseconds arrival(std::uint64_t line) const noexcept {
      for (std::size_t i = 0; i < lines_.size(); ++i) {
        if (lines_[i] == line)
          return arrives_[i];
      }
      return 0;
    }

   private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::array<std::uint64_t, 4> lines_{kNone, kNone, kNone, kNone};
    std::array<Picoseconds, 4> arrives_{};
  };
  struct Walk {
    std::uint64_t page = ~std::uint64_t{0};
    Picoseconds ends = 0;
  };
  std::array<Fills, kFillPlaces> in_flight_{};
  std::array<Walk, 64> walks_{};
  Picoseconds walks_end_ = 0;  ///< of the last one
  std::uint64_t walks_noted_ = 0;
  std::int64_t may_combine_;    ///< write-combining buffers of its threads at a time
  std::int64_t combining_ = 0;  ///< those that are open
};

}  // namespace pmsim::machine
