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
/// drain while the bus is idle, and are forced out in one batch when the queue is full: then reads wait.
class DramChannel {
 public:
  DramChannel(const DramParams& dram, const ControllerParams& controller, Counters& counters);

  /// Read of a line that arrives at the controller at `now`; returns when its data leave the controller.
  Picoseconds read(std::uint64_t line, Picoseconds now);

  /// Write that arrives at `now`; returns when the queue has accepted it.
  Picoseconds write(std::uint64_t line, Picoseconds now);

  /// A line goes to the PMem module. Such writes have priority (Yoshida et al., cited by the building-blocks
  /// paper, section 2.4): the line does not wait, but reads behind it lose its transfer and a turn of the bus.
  void yield_bus_to_write(Picoseconds now, Picoseconds duration);

  /// Takes the bus for `duration` on behalf of a read from the PMem module; returns when the transfer starts.
  Picoseconds take_bus(Picoseconds now, Picoseconds duration);

 private:
  void drain_idle(Picoseconds now);

  DramParams dram_;
  std::int64_t queue_capacity_;
  std::int64_t queue_low_;
  Picoseconds bus_free_ = 0;
  std::int64_t waiting_writes_ = 0;
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
