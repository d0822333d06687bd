#pragma once

#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/divider.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/recent_writes.hpp"

namespace pmsim::machine {

/// One memory channel: its data bus, shared by DRAM and by the PMem module in the other slot, and the DRAM
/// behind it.
///
/// Reads are served first come, first served. Writes wait in the write pending queue (durable there under ADR),
/// drain while the bus is idle, and are forced out in a batch when the queue is full: then reads wait. Where it
/// is full again, the reads that came during a batch go before the next one. A place is free when its line has
/// left. A line that finds none is accepted when as many have left as are before it, reads that come until then
/// not counted.
class DramChannel {
 public:
  DramChannel(const DramParams& dram, const ControllerParams& controller, Counters& counters);

  /// Read of a line that arrives at the controller at `now`; returns when its data leave the controller. One
  /// that is told of `ahead` of its time takes the bus from those that are told of before that, but does not
  /// keep it idle until then.
  Picoseconds read(std::uint64_t line, Picoseconds now, Picoseconds ahead = 0);

  /// Write that arrives at `now`; returns when the queue has accepted it. One that is told of `ahead` of the
  /// reads' time keeps nobody waiting who comes before it.
  Picoseconds write(std::uint64_t line, Picoseconds now, Picoseconds ahead = 0);

  /// A line goes to the PMem module. Such writes have priority (Yoshida et al., cited by the building-blocks
  /// paper, section 2.4): the line does not wait, but reads behind it lose its transfer and a turn of the bus.
  void yield_bus_to_write(Picoseconds now, Picoseconds duration);

  /// Takes the bus for `duration` on behalf of a read from the PMem module; returns when the transfer starts.
  Picoseconds take_bus(Picoseconds now, Picoseconds duration);

 private:
  /// What has happened up to `now`: batches of a queue that was full, and lines that left an idle bus.
  void settle(Picoseconds now);
  /// Lines of the batch under way, or about to begin, that have not left.
  [[nodiscard]] std::int64_t leaving_at(Picoseconds now) const;
  /// When so many lines have left, by the batch under way and those behind it.
  [[nodiscard]] Picoseconds when_left(std::int64_t lines, Picoseconds now) const;

  DramParams dram_;
  std::int64_t queue_capacity_;
  std::int64_t batch_;  ///< lines
  Picoseconds bus_free_ = 0;
  Picoseconds batch_end_ = 0;        ///< of the last one; 0: there was none
  std::int64_t waiting_writes_ = 0;  ///< in no batch; those that find no place too
  struct Bank {
    std::uint64_t row = ~std::uint64_t{0};
    Picoseconds free = 0;       ///< another row may be opened
    Picoseconds next_line = 0;  ///< of the open row may be served
  };
  std::vector<Bank> banks_;
  Modulus bank_count_;
  Divider row_lines_;
  RecentWrites recent_writes_;
  Counters* counters_;
};

}  // namespace pmsim::machine
