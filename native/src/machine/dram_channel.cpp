#include "pmsim/machine/dram_channel.hpp"

#include <algorithm>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

namespace {

/// Lines from the first one of a row to that of the next. Rows of all channels lie beside each other, unless a
/// channel has one row after the other before the next channel's turn has come.
std::uint64_t lines_between_rows(const DramParams& dram, const ControllerParams& controller) {
  const std::int64_t beside = dram.row_size < controller.dram_interleave ? 1 : controller.channels;
  return static_cast<std::uint64_t>(dram.row_size * beside) / memory::kLineBytes;
}

}  // namespace

DramChannel::DramChannel(const DramParams& dram, const ControllerParams& controller, Counters& counters)
    : dram_(dram),
      queue_capacity_(controller.dram_write_queue),
      batch_(controller.dram_write_queue - controller.dram_write_low),
      banks_(static_cast<std::size_t>(dram.banks)),
      bank_count_(banks_.size()),
      row_lines_(lines_between_rows(dram, controller)),
      counters_(&counters) {}

void DramChannel::settle(Picoseconds now) {
  while (waiting_writes_ >= queue_capacity_ && batch_end_ <= now) {
    ++counters_->dram_forced_drains;
    bus_free_ += dram_.turnaround + batch_ * dram_.write_burst;
    batch_end_ = bus_free_;
    waiting_writes_ -= batch_;
  }
  if (waiting_writes_ > 0 && bus_free_ < now) {
    const std::int64_t drained = std::min(waiting_writes_, (now - bus_free_) / dram_.write_burst);
    waiting_writes_ -= drained;
    bus_free_ += drained * dram_.write_burst;
  }
}

Picoseconds DramChannel::when_left(std::int64_t lines, Picoseconds now) const {
  const std::int64_t leaving = leaving_at(now);
  if (lines <= leaving)
    return batch_end_ - (leaving - lines) * dram_.write_burst;
  const std::int64_t later = lines - leaving;
  return std::max(now, bus_free_) + ((later - 1) / batch_ + 1) * dram_.turnaround + later * dram_.write_burst;
}

std::int64_t DramChannel::leaving_at(Picoseconds now) const {
  const Picoseconds left = std::max<Picoseconds>(batch_end_ - now, 0);
  return std::min(batch_, (left + dram_.write_burst - 1) / dram_.write_burst);
}

Picoseconds DramChannel::read(std::uint64_t line, Picoseconds now, Picoseconds ahead) {
  ++counters_->dram_read_lines;
  settle(now - ahead);
  const Picoseconds start = std::max(now, bus_free_);
  bus_free_ = std::max(now - ahead, bus_free_) + dram_.read_burst;
  const std::uint64_t row = row_lines_.quotient(line);
  Bank& bank = banks_[bank_count_.remainder(mix64(row))];
  if (bank.row != row) {
    ++counters_->dram_row_misses;
    // No row is closed before its lines are served.
    const Picoseconds opens = std::max({start, bank.free, bank.next_line});
    bank.row = row;
    bank.free = opens + dram_.bank_busy;
    bank.next_line = opens + dram_.row_miss_penalty;
  }
  // A line whose row is being opened for another waits for it; lines of one row follow each other as on the
  // bus.
  const Picoseconds served = std::max(start, bank.next_line);
  bank.next_line = served + dram_.read_burst;
  // A line that cannot be re-read yet keeps nobody else waiting.
  return recent_writes_.not_before(line, served) + dram_.row_hit_latency;
}

Picoseconds DramChannel::write(std::uint64_t line, Picoseconds now, Picoseconds ahead) {
  ++counters_->dram_write_lines;
  const Picoseconds told = now - ahead;
  settle(told);
  if (waiting_writes_ == 0)
    bus_free_ = std::max(bus_free_, told);  // nothing leaves before it is on its way
  ++waiting_writes_;
  const std::int64_t beyond = waiting_writes_ + leaving_at(told) - queue_capacity_;
  const Picoseconds accepted = beyond > 0 ? std::max(now, when_left(beyond, told)) : now;
  recent_writes_.note(line, accepted + dram_.reread_delay);
  return accepted;
}

Picoseconds DramChannel::take_bus(Picoseconds now, Picoseconds duration) {
  settle(now);
  const Picoseconds start = std::max(now, bus_free_);
  bus_free_ = start + duration;
  return start;
}

void DramChannel::yield_bus_to_write(Picoseconds now, Picoseconds duration) {
  settle(now);
  bus_free_ = std::max(now, bus_free_) + duration + dram_.turnaround;
}

}  // namespace pmsim::machine
