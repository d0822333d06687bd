#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/machine/params.hpp"
#include "pmsim/machine/simulate.hpp"
#include "pmsim/memory/micro_op.hpp"
#include "pmsim/memory/stream.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::machine {

inline constexpr Picoseconds kNs = 1'000;
inline constexpr Picoseconds kInstruction = 1 * kNs;  ///< of plain_machine()
inline constexpr std::uint64_t kDramBase = memory::medium_base(memory::Medium::kDram);
inline constexpr std::uint64_t kPmemBase = memory::medium_base(memory::Medium::kPmem);
inline constexpr std::uint64_t kBlockBase = memory::medium_base(memory::Medium::kBlock);

/// A machine whose every time is a round number of its own, so that a sum tells which ones went into it: one
/// instruction per nanosecond, one channel, one module, pages of 1 GiB, no prefetcher, no wear levelling.
inline PlatformParams plain_machine() {
  PlatformParams params;
  params.core.cores = 4;
  params.core.frequency = 1'000'000'000;
  params.core.dispatch_width = 1;
  params.core.shared_read_latency = 40 * kNs;
  params.core.shared_write_latency = 60 * kNs;
  params.tlb.page_size = std::int64_t{1} << 30;
  params.tlb.dram_page_size = params.tlb.page_size;
  params.tlb.second_level_latency = 3 * kNs;
  params.tlb.walk_latency = 7 * kNs;
  params.l1 = {.size = 32 << 10, .ways = 8, .latency = 2 * kNs};
  params.l2 = {.size = 1 << 20, .ways = 16, .latency = 5 * kNs};
  params.llc = {.size = 4 << 20, .ways = 16, .latency = 20 * kNs};
  params.controller.channels = 1;
  params.dram.capacity = std::int64_t{1} << 34;
  params.dram.row_hit_latency = 18 * kNs;
  params.dram.row_miss_penalty = 25 * kNs;
  params.dram.banks = 1;
  params.dram.read_burst = 3 * kNs;
  params.dram.write_burst = 4 * kNs;
  params.pmem.dimms = 1;
  params.pmem.capacity = std::int64_t{1} << 36;
  params.pmem.buffer_latency = 70 * kNs;
  params.pmem.media_read_latency = 150 * kNs;
  params.pmem.media_read_service = 38 * kNs;
  params.pmem.media_write_service = 120 * kNs;
  params.pmem.bus_read = 3 * kNs;
  params.pmem.bus_write = 5 * kNs;
  params.pmem.translation_entries = 1 << 20;
  params.pmem.translation_miss_latency = 0;
  return params;
}

/// Fixed micro-operations for each thread, handed over in one batch.
class Script final : public memory::Source {
 public:
  using Ops = std::vector<memory::MicroOp>;
  explicit Script(std::vector<Ops> threads) : threads_(std::move(threads)) {}

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    for (const memory::MicroOp& op : threads_[thread]) {
      stream.push(op.kind, op.address, op.bytes, op.flags, op.site);
    }
    threads_[thread].clear();
  }
  [[nodiscard]] std::uint32_t threads() const { return static_cast<std::uint32_t>(threads_.size()); }

 private:
  std::vector<Ops> threads_;
};

inline memory::MicroOp load(std::uint64_t address) { return {address, 8, memory::OpKind::kLoad, 0, 0}; }
inline memory::MicroOp dependent_load(std::uint64_t address) {
  return {address, 8, memory::OpKind::kLoad, memory::kDependent, 0};
}
inline memory::MicroOp store(std::uint64_t address) { return {address, 64, memory::OpKind::kStore, 0, 0}; }
inline memory::MicroOp prefetch(std::uint64_t address) {
  return {address, 64, memory::OpKind::kPrefetch, 0, 0};
}
inline memory::MicroOp mispredicted_branch() { return {0, 1, memory::OpKind::kCompute, memory::kDependent, 0}; }
inline memory::MicroOp stream_store(std::uint64_t address) {
  return {address, 64, memory::OpKind::kStreamStore, 0, 0};
}
inline memory::MicroOp clwb(std::uint64_t address) { return {address, 64, memory::OpKind::kClwb, 0, 0}; }
inline memory::MicroOp sfence() { return {0, 0, memory::OpKind::kSfence, 0, 0}; }
inline memory::MicroOp mfence() { return {0, 0, memory::OpKind::kMfence, 0, 0}; }
inline memory::MicroOp begin() { return {0, 0, memory::OpKind::kOperationBegin, memory::kSerialising, 0}; }
inline memory::MicroOp end(std::uint32_t bytes = 64) { return {0, bytes, memory::OpKind::kOperationEnd, 0, 0}; }

/// Runs all of it, everything measured.
inline LaneResult run(const PlatformParams& params, std::vector<Script::Ops> threads,
                      std::uint64_t pmem_footprint = 0) {
  Script script(std::move(threads));
  SimulateOptions options;
  options.pmem_footprint = pmem_footprint;
  options.length.measured_operations = std::int64_t{1} << 40;
  return simulate(script, script.threads(), std::span(&params, 1), options).front();
}
inline LaneResult run(const PlatformParams& params, Script::Ops ops, std::uint64_t pmem_footprint = 0) {
  return run(params, std::vector<Script::Ops>{std::move(ops)}, pmem_footprint);
}

/// The time of `timed`, as one operation that begins when everything in `before` has retired.
inline Picoseconds time_of(const PlatformParams& params, Script::Ops before, const Script::Ops& timed,
                           std::uint64_t pmem_footprint = 0) {
  before.push_back(begin());
  before.insert(before.end(), timed.begin(), timed.end());
  before.push_back(end());
  before.push_back(begin());  // waits until it has retired: an operation is recorded then
  return run(params, before, pmem_footprint).groups[0].latency.maximum();
}

inline std::vector<LaneResult> run_workload(const std::string& name,
                                            const std::map<std::string, workloads::Parameters::Value>& values,
                                            std::span<const PlatformParams> platforms, std::uint64_t seed = 1) {
  const auto workload =
      workloads::make_workload(name, workloads::Parameters(name, values), platforms.front(), seed);
  SimulateOptions options;
  options.length = workload->length();
  options.group_of_thread = workload->groups();
  options.seed = seed;
  options.pmem_footprint = workload->pmem_footprint();
  return simulate(*workload, workload->threads(), platforms, options);
}

}  // namespace pmsim::machine
