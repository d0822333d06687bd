#include <gtest/gtest.h>

#include <array>

#include "machine_harness.hpp"

namespace pmsim::machine {
namespace {

using Ops = Script::Ops;

/// Batches of micro-operations for each thread, one handed over at a time.
class Batches final : public memory::Source {
 public:
  explicit Batches(std::vector<std::vector<Ops>> threads)
      : threads_(std::move(threads)), next_(threads_.size()) {}

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (next_[thread] == threads_[thread].size())
      return;
    for (const memory::MicroOp& op : threads_[thread][next_[thread]++])
      stream.push(op.kind, op.address, op.bytes, op.flags, op.site);
  }

 private:
  std::vector<std::vector<Ops>> threads_;
  std::vector<std::size_t> next_;
};

/// Runs all batches of one thread; `untimed` of its operations untimed, and measures from there on.
LaneResult measured_after(const PlatformParams& params, std::vector<Ops> batches, std::int64_t untimed,
                          std::uint64_t pmem_footprint = 0) {
  Batches source({std::move(batches)});
  SimulateOptions options;
  options.length = {
      .warmup_operations = untimed, .measured_operations = 1 << 20, .untimed_operations = untimed};
  options.pmem_footprint = pmem_footprint;
  return simulate(source, 1, std::span(&params, 1), options).front();
}

TEST(Untimed, FillsTheCachesAndTakesNoTime) {
  const PlatformParams params = plain_machine();
  const LaneResult result =
      measured_after(params, {{load(kDramBase), end()}, {dependent_load(kDramBase), end()}}, 1);
  EXPECT_EQ(result.started, 0);
  EXPECT_EQ(result.counters.l1_hits, 1);
  EXPECT_EQ(result.counters.loads, 1);
  EXPECT_EQ(result.groups[0].operations, 1);
  EXPECT_EQ(result.micro_ops, 2);
  EXPECT_EQ(result.warmup_micro_ops, 2);
}

TEST(Untimed, ModulesKeepTheTranslationsOfWhatIsRead) {
  PlatformParams params = plain_machine();
  params.pmem.translation_entries = 16;
  params.pmem.translation_miss_latency = 90 * kNs;
  const std::uint64_t other_block = kPmemBase + 4 * 256;
  const auto misses_after = [&](const memory::MicroOp& op) {
    const LaneResult result = measured_after(params, {{op, end()}, {load(other_block), end()}}, 1);
    EXPECT_EQ(result.counters.pmem_media_read_blocks, 1);
    return result.counters.pmem_translation_misses;
  };
  EXPECT_EQ(misses_after(load(kPmemBase)), 0);
  EXPECT_EQ(misses_after(prefetch(kPmemBase)), 0);
  EXPECT_EQ(misses_after(store(kPmemBase)), 0);  // reads for ownership
  EXPECT_EQ(misses_after(stream_store(kPmemBase)), 1);
  EXPECT_EQ(misses_after(load(kDramBase)), 1);
}

TEST(Untimed, TheDramOfMemoryModeHoldsWhatWasReadAndWritten) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  PlatformParams params = plain_machine();
  params.controller.memory_mode = 1;
  params.dram.capacity = kMiB;
  params.pmem.capacity = 4 * kMiB;
  // The two share a set, and DRAM holds the first.
  const std::uint64_t resident = kPmemBase;
  const std::uint64_t conflict = kPmemBase + kMiB;
  const auto after = [&](const Ops& untimed, const Ops& timed) {
    return measured_after(params, {untimed, timed}, 1, kMiB).counters;
  };
  EXPECT_EQ(after({load(kDramBase), end()}, {load(conflict), end()}).memory_mode_misses, 1);
  EXPECT_EQ(after({prefetch(conflict), end()}, {load(resident), end()}).memory_mode_misses, 1);
  // A clean line is dropped, a dirty one written back.
  EXPECT_EQ(after({load(conflict), end()}, {load(resident), mfence(), end()}).pmem_write_lines, 0);
  EXPECT_EQ(after({stream_store(conflict), end()}, {load(resident), mfence(), end()}).pmem_write_lines, 1);
  EXPECT_EQ(after({store(conflict), clwb(conflict), end()}, {load(resident), mfence(), end()}).pmem_write_lines,
            1);
  // That it is read again, hit, does not make it clean.
  EXPECT_EQ(after({stream_store(conflict), load(conflict), end()}, {load(resident), mfence(), end()})
                .pmem_write_lines,
            1);
}

TEST(Untimed, ThreadsTakeTurnsAndAllLanesAreWarm) {
  const Ops one = {load(kPmemBase), end()};
  const Ops other = {load(kPmemBase + 4096), end()};
  Batches source({{one, one, one}, {other, other, other}});
  std::array<PlatformParams, 2> platforms{plain_machine(), plain_machine()};
  platforms[1].pmem.media_read_latency *= 2;
  SimulateOptions options;
  options.length = {.warmup_operations = 2, .measured_operations = 4, .untimed_operations = 2};
  for (const LaneResult& result : simulate(source, 2, platforms, options)) {
    EXPECT_EQ(result.counters.l1_hits, 4);
    EXPECT_EQ(result.groups[0].operations, 4);
    EXPECT_EQ(result.counters.pmem_read_lines, 0);
  }
}

TEST(Untimed, EndsWithTheWorkOfTheThreadsAndIsNoLongerThanTheWarmup) {
  const std::vector<Ops> batches(3, Ops{load(kDramBase), end()});
  EXPECT_EQ(measured_after(plain_machine(), batches, 100).groups[0].operations, 0);
  Batches source({batches});
  SimulateOptions options;
  options.length = {.warmup_operations = 1, .measured_operations = 2, .untimed_operations = 3};
  const PlatformParams params = plain_machine();
  EXPECT_EQ(simulate(source, 1, std::span(&params, 1), options).front().groups[0].operations, 2);
}

TEST(Untimed, OneThreadMeasuresWhatItDoesAfterATimedWarmup) {
  PlatformParams params = plain_machine();
  params.pmem.translation_entries = 64;
  params.pmem.translation_miss_latency = 90 * kNs;
  const auto measured = [&](const char* memory, std::int64_t memory_mode, bool untimed) {
    params.controller.memory_mode = memory_mode;
    params.dram.capacity = std::int64_t{64} << 20;
    const std::map<std::string, workloads::Parameters::Value> values{{"memory", std::string(memory)},
                                                                     {"operation", std::string("load")},
                                                                     {"pattern", std::string("random")},
                                                                     {"region_size", std::int64_t{16} << 20}};
    const auto workload =
        workloads::make_workload("latency", workloads::Parameters("latency", values), params, 1);
    SimulateOptions options;
    options.length = workload->length();
    EXPECT_GT(options.length.untimed_operations, options.length.warmup_operations / 2);
    options.length.untimed_operations *= untimed ? 1 : 0;
    options.pmem_footprint = workload->pmem_footprint();
    return simulate(*workload, 1, std::span(&params, 1), options).front();
  };
  for (const auto& [memory, mode] : {std::pair{"pmem", 0}, {"pmem", 1}, {"dram", 0}}) {
    const LaneResult one = measured(memory, mode, false);
    const LaneResult other = measured(memory, mode, true);
    EXPECT_EQ(one.elapsed, other.elapsed) << memory << mode;
    EXPECT_EQ(one.counters.l1_hits, other.counters.l1_hits);
    EXPECT_EQ(one.counters.pmem_translation_misses, other.counters.pmem_translation_misses);
    EXPECT_LT(other.started, one.started / 2);
  }
}

}  // namespace
}  // namespace pmsim::machine
