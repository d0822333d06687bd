#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/buffer_pool.hpp"
#include "pmsim/machine/fill_buffers.hpp"
#include "pmsim/machine/fills.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/timed_op.hpp"
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

/// What the hardware threads of one core share in time: its fill buffers, writeback slots, prefetch queue, the
/// lines that they bring, and page walks.
class CoreTiming {
 public:
  CoreTiming(const PlatformParams& params, LaneFills* for_others)
      : fill_buffers(static_cast<std::size_t>(params.core.line_fill_buffers),
                     static_cast<std::size_t>(params.core.stream_fill_buffers)),
        writeback_slots(static_cast<std::size_t>(params.core.line_fill_buffers)),
        prefetch_slots(static_cast<std::size_t>(params.prefetcher.queue)),
        l2_read_interval_(params.l2.read_interval),
        may_combine_(params.core.line_fill_buffers - 1),
        for_others_(for_others) {}

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

  /// L2 gives lines one after the other: when it begins with the one that is asked for at `at`.
  [[nodiscard]] Picoseconds read_l2(Picoseconds at) noexcept {
    const Picoseconds begins = std::max(at, l2_free_);
    l2_free_ = begins + l2_read_interval_;
    return begins;
  }

  /// Notes when a line arrives that is being fetched, here and for cores that will ask this one for it.
  void note_fill(std::uint64_t line, Picoseconds arrives, std::uint8_t from = kFromMemory) noexcept {
    fills_.note(line, arrives, from);
    if (for_others_ != nullptr)
      for_others_->note(line, arrives, from);
  }
  void note_dropped(std::uint64_t line, std::uint8_t from) noexcept {
    fills_.note_dropped(line, from);
    if (for_others_ != nullptr)
      for_others_->note_dropped(line, from);
  }
  [[nodiscard]] const Fills<256>& fills() const noexcept { return fills_; }

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
  struct Walk {
    std::uint64_t page = ~std::uint64_t{0};
    Picoseconds ends = 0;
  };
  Fills<256> fills_;
  std::array<Walk, 64> walks_{};
  Picoseconds walks_end_ = 0;  ///< of the last one
  std::uint64_t walks_noted_ = 0;
  Picoseconds l2_read_interval_;
  Picoseconds l2_free_ = 0;
  std::int64_t may_combine_;    ///< write-combining buffers of its threads at a time
  std::int64_t combining_ = 0;  ///< those that are open
  LaneFills* for_others_;       ///< null where no other core can be given a line of this one
};

}  // namespace pmsim::machine
