#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/params.hpp"

namespace pmsim::machine {

/// What the hardware threads of one core share in time: its fill buffers, writeback slots and prefetch queue.
///
/// A buffer's entry is the time at which it is free again; kNever while a write in it waits for acceptance.
class CoreTiming {
 public:
  explicit CoreTiming(const PlatformParams& params)
      : fill_buffers_(static_cast<std::size_t>(params.core.line_fill_buffers), 0),
        writeback_slots_(static_cast<std::size_t>(params.core.line_fill_buffers), 0),
        prefetch_slots_(static_cast<std::size_t>(params.prefetcher.queue), 0) {}

  [[nodiscard]] std::vector<Picoseconds>& fill_buffers() noexcept { return fill_buffers_; }
  [[nodiscard]] std::vector<Picoseconds>& writeback_slots() noexcept { return writeback_slots_; }
  [[nodiscard]] std::vector<Picoseconds>& prefetch_slots() noexcept { return prefetch_slots_; }

  [[nodiscard]] static std::size_t earliest(const std::vector<Picoseconds>& buffers) noexcept {
    std::size_t best = 0;
    for (std::size_t index = 1; index < buffers.size(); ++index) {
      best = buffers[index] < buffers[best] ? index : best;
    }
    return best;
  }

  /// Each fill buffer holds a write that has still to be accepted.
  [[nodiscard]] bool all_buffers_wait() const noexcept { return fill_buffers_[earliest(fill_buffers_)] == kNever; }

  /// Notes when a line that is being fetched arrives.
  void note_fill(std::uint64_t line, Picoseconds arrives) noexcept {
    in_flight_[line % in_flight_.size()] = Fill{line, arrives};
  }
  /// When the line arrives or has arrived; 0 where that is long past.
  [[nodiscard]] Picoseconds arrival(std::uint64_t line) const noexcept {
    const Fill& fill = in_flight_[line % in_flight_.size()];
    return fill.line == line ? fill.arrives : 0;
  }

 private:
  struct Fill {
    std::uint64_t line = ~std::uint64_t{0};
    Picoseconds arrives = 0;
  };
  std::vector<Picoseconds> fill_buffers_;
  std::vector<Picoseconds> writeback_slots_;
  std::vector<Picoseconds> prefetch_slots_;
  std::array<Fill, 256> in_flight_{};
};

}  // namespace pmsim::machine
