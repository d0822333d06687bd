#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pmsim/host/benchmark.hpp"
#include "pmsim/host/region.hpp"
#include "pmsim/host/stopwatch.hpp"
#include "pmsim/prototype/host_memory.hpp"
#include "pmsim/prototype/operation.hpp"

namespace pmsim::prototype {

/// A program on this machine: each repetition is a new object on empty regions that are in no cache, which runs
/// the same operations. Those of the warm-up are not timed. `alone`: each of the others is timed on its own.
template <typename Program>
class HostRun final : public host::Benchmark {
 public:
  using Operations = std::vector<OperationOf<Program>>;

  /// `bytes`: of the regions of either medium, at most.
  HostRun(const host::Place& place, std::uint64_t bytes, Operations operations, std::uint64_t warmup,
          bool alone)
      : memory_(memory::HostOptions{.capacities = memory::Capacities::of(bytes, bytes, 0),
                                    .pmem_path = place.path,
                                    .large_pages = place.large_pages,
                                    .best_flush = true}),
        operations_(std::move(operations)),
        warmup_(warmup) {
    if (alone)
      stopwatch_.emplace(memory_, kGapNs);
    reset();
  }

  [[nodiscard]] std::uint64_t limit() const override { return operations_.size() - warmup_; }
  [[nodiscard]] bool is_dax() const override { return memory_.pmem_is_dax(); }

  void reset() override {
    memory_.restart();
    program_ = std::make_unique<Program>();
    program_->create(memory_);
    host::evict(memory_);
    done_ = acknowledged_ = 0;
    if (stopwatch_)
      stopwatch_->clear();
  }
  void warm(std::uint32_t) override {
    for (std::uint64_t warmed = 0; warmed < warmup_; ++warmed)
      run_next();
  }
  void run(std::uint32_t, std::uint64_t operations) override {
    for (; operations > 0 && done_ < operations_.size(); --operations) {
      if (stopwatch_)
        stopwatch_->time([this] { run_next(); });
      else
        run_next();
    }
  }
  [[nodiscard]] std::optional<double> own_time_ns() override {
    return stopwatch_ ? stopwatch_->median_ns() : std::nullopt;
  }

  /// Of the last repetition, those of its warm-up among them.
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  /// What a new object finds in memory.
  [[nodiscard]] auto recover() { return Program().recover(memory_); }

 private:
  /// Between operations that are timed on their own, as in pmsim/host_subjects.py.
  static constexpr double kGapNs = 500;

  void run_next() {
    const bool now = acknowledges(*program_, memory_, operations_[done_++]);
    if (now)
      acknowledged_ = done_;
  }

  HostMemory memory_;
  Operations operations_;
  std::uint64_t warmup_;
  std::unique_ptr<Program> program_;
  std::optional<host::Stopwatch> stopwatch_;
  std::uint64_t done_ = 0;
  std::uint64_t acknowledged_ = 0;
};

}  // namespace pmsim::prototype
