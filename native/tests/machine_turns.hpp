#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "machine_harness.hpp"

/// Threads that meet on lines and latches, each with its batches of work.
namespace pmsim::machine {

using memory::LatchMode;
using memory::OpKind;

inline constexpr Picoseconds kTransfer = 55 * kNs;

inline PlatformParams two_caches() {
  PlatformParams params = plain_machine();
  params.llc.transfer_latency = kTransfer;
  params.core.atomic_latency = 6 * kNs;
  return params;
}

/// Batches of work for each thread.
class Turns final : public memory::Source {
 public:
  explicit Turns(std::vector<std::deque<Script::Ops>> batches) : batches_(std::move(batches)) {}
  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (batches_[thread].empty())
      return;
    for (const memory::MicroOp& op : batches_[thread].front())
      stream.push(op.kind, op.address, op.bytes, op.flags, op.site);
    batches_[thread].pop_front();
  }
  [[nodiscard]] bool shares_lines() const noexcept override { return true; }
  LaneResult run(const PlatformParams& params) {
    SimulateOptions options;
    options.length.measured_operations = std::int64_t{1} << 40;
    return simulate(*this, static_cast<std::uint32_t>(batches_.size()), std::span(&params, 1), options).front();
  }

 private:
  std::vector<std::deque<Script::Ops>> batches_;
};

inline memory::MicroOp work(std::uint64_t cycles) { return {cycles, 1, OpKind::kCompute, 0, 0}; }
inline memory::MicroOp atomic(std::uint64_t address) { return {address, 8, OpKind::kAtomic, 0, 0}; }
inline memory::MicroOp acquire(std::uint64_t latch, LatchMode mode) {
  return {latch, 8, OpKind::kAcquire, static_cast<std::uint8_t>(mode), 0};
}
inline memory::MicroOp release(std::uint64_t latch, LatchMode mode) {
  return {latch, 8, OpKind::kRelease, static_cast<std::uint8_t>(mode), 0};
}
inline constexpr LatchMode kWrites = LatchMode::kExclusive, kReads = LatchMode::kShared,
                           kLooks = LatchMode::kOptimistic, kTries = LatchMode::kAttempt;

}  // namespace pmsim::machine
