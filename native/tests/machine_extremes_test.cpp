#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"

/// Machines with a parameter at an end of its range: nobody builds them, and a profile may say them.
namespace pmsim::machine {
namespace {

using memory::LatchMode;
using memory::MicroOp;
using memory::OpKind;
using Ops = Script::Ops;

constexpr std::uint64_t kRegion = 1 << 18;  ///< that these loads touch, of each medium
constexpr std::uint64_t kWordBytes = 8;
constexpr std::uint64_t kWords = memory::kLineBytes / kWordBytes;

/// With all its mechanisms at work in a short run.
PlatformParams busy_machine() {
  PlatformParams params = plain_machine();
  params.core.cores = 2;
  params.core.threads_per_core = 2;
  params.core.mispredict_latency = params.core.fence_latency = params.core.atomic_latency = 10 * kNs;
  params.core.stream_hold = 180 * kNs;
  params.tlb.page_size = params.tlb.dram_page_size = 4096;
  params.tlb.first_level_entries = 4;
  params.tlb.second_level_entries = 16;
  params.l1 = {.size = 1 << 10, .ways = 2, .latency = 2 * kNs};
  params.l2 = {.size = 4 << 10, .ways = 4, .latency = 5 * kNs};
  params.llc = {.size = 16 << 10, .ways = 4, .latency = 20 * kNs, .slices = 4, .transfer_latency = 60 * kNs};
  params.prefetcher.enabled = 1;
  params.controller.channels = 3;
  params.controller.pmem_write_queue = 4;
  params.controller.pmem_read_queue = 4;
  params.pmem.dimms = 3;
  params.pmem.write_buffer_blocks = 4;
  params.pmem.wear_stall_writes = 8;
  params.pmem.wear_stall = 500 * kNs;
  params.block.capacity = kRegion;
  params.block.read_latency = params.block.program_latency = 1000 * kNs;
  params.block.read_bandwidth = params.block.write_bandwidth = 1'000'000'000;
  params.block.write_cache = 64 << 10;
  params.block.copy_bandwidth = 1'000'000'000;
  return params;
}

class Load final : public memory::Source {
 public:
  static constexpr int kPieces = 40;
  Load(const PlatformParams& params, std::uint32_t threads, std::uint64_t seed)
      : left_(threads, kPieces), random_(seed), pmem_(params.pmem.dimms > 0), dram_(params.dram.capacity > 0) {}

  [[nodiscard]] bool shares_lines() const noexcept override { return true; }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (left_[thread] == 0)
      return;
    --left_[thread];
    push(stream, {0, 0, OpKind::kOperationBegin, static_cast<std::uint8_t>(random_.below(3)), 0});
    for (std::uint64_t count = 1 + random_.below(20); count > 0; --count)
      access(stream);
    push(stream, {0, 64, OpKind::kOperationEnd, 0, 0});
  }

 private:
  static void push(memory::Stream& stream, const MicroOp& op) {
    stream.push(op.kind, op.address, op.bytes, op.flags, op.site);
  }
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }

  void access(memory::Stream& stream) {
    const std::uint64_t line =
        (pmem_ && (!dram_ || below(3) > 0) ? kPmemBase : kDramBase) + below(kRegion / 64) * 64;
    const std::uint64_t word = below(kWords);
    switch (below(14)) {
      case 0:
        return push(stream, load(line));
      case 1:
        return push(stream, dependent_load(line));
      case 2:
        return push(stream, store(line));
      case 3:  // a part of a line
        return push(stream, {line + word * kWordBytes,
                             static_cast<std::uint32_t>((1 + below(kWords - word)) * kWordBytes),
                             OpKind::kStreamStore, 0, 0});
      case 4:
        return push(stream, stream_store(line));
      case 5:
        push(stream, store(line));
        return push(stream, {line, 64, static_cast<OpKind>(3 + below(3)), 0, 0});
      case 6:
        return push(stream, below(4) > 0 ? sfence() : mfence());
      case 7:
        return push(stream, prefetch(line));
      case 8:
        return push(stream, below(2) > 0 ? mispredicted_branch()
                                         : MicroOp{below(50), static_cast<std::uint32_t>(below(300)),
                                                   OpKind::kCompute, 0, 0});
      case 9: {
        const std::uint64_t latch = kDramBase + below(4) * 64;
        const auto mode = static_cast<std::uint8_t>(below(4));
        push(stream, {latch, 8, OpKind::kAcquire, mode, 0});
        push(stream, load(line));
        return push(stream, {latch, 8, OpKind::kRelease, mode, 0});
      }
      case 10:
        return push(stream, {kDramBase + 4096, 8, OpKind::kAtomic, 0, 0});
      case 11:
        return block(stream);
      default:  // lines one after the other
        for (std::uint64_t next = 0; next < 6; ++next)
          push(stream, load((line & ~std::uint64_t{4095}) + next * 64));
    }
  }
  void block(memory::Stream& stream) {
    const std::uint64_t place = kBlockBase + below(kRegion / 4096) * 4096;
    switch (below(4)) {
      case 0:
        return push(stream, {place, 4096, OpKind::kBlockRead, 0, 0});
      case 1:
        return push(stream, {place, 512, OpKind::kBlockWrite, 0, 0});
      case 2:
        return push(stream, {kBlockBase, 0, OpKind::kBlockFlush, 0, 0});
      default:
        push(stream, {place, 512, OpKind::kBlockGather, 0, 0});
        push(stream, {kBlockBase, 0, OpKind::kBlockCommit, 0, 0});
    }
  }

  std::vector<int> left_;
  Random random_;
  bool pmem_;
  bool dram_;
};

void expect_it_adds_up(const PlatformParams& params, std::uint32_t threads, std::uint64_t seed) {
  Load source(params, threads, seed);
  SimulateOptions options;
  options.length.measured_operations = std::int64_t{1} << 40;
  options.pmem_footprint = kRegion;
  const LaneResult result = simulate(source, threads, std::span(&params, 1), options).front();
  const Counters& counters = result.counters;
  EXPECT_EQ(result.groups[0].operations, std::int64_t{threads} * Load::kPieces);
  EXPECT_EQ(result.groups[0].latency.count(), result.groups[0].operations);
  EXPECT_EQ(counters.loads + counters.stores + counters.atomics, counters.l1_hits + counters.l2_hits +
                                                                     counters.llc_hits + counters.memory_reads +
                                                                     counters.core_transfers);
  // Every line read comes from a buffer or from a block of the medium, which partial writes read, too.
  EXPECT_EQ(counters.pmem_read_lines,
            counters.pmem_buffer_read_hits + counters.pmem_media_read_blocks - counters.pmem_partial_writes);
  EXPECT_LE(counters.pmem_media_write_blocks, counters.pmem_write_lines);
  counters.for_each([](std::string_view name, std::int64_t value) { EXPECT_GE(value, 0) << name; });
  EXPECT_GT(result.elapsed, 0);
}

TEST(Extremes, EveryParameterMayBeAtEitherEndOfItsRange) {
  std::uint64_t seed = 0;
  int machines = 0;
  for (const Field& field : fields()) {
    for (const std::int64_t end : {field.minimum, field.maximum}) {
      SCOPED_TRACE(std::string(field.section) + "." + std::string(field.name) + " = " + std::to_string(end));
      PlatformParams params = busy_machine();
      field.ref(params) = end;
      try {
        validate(params);
      } catch (const ConfigError&) {
        continue;  // a rule between parameters says so
      }
      ++machines;
      const std::int64_t most = params.core.cores * params.core.threads_per_core;
      // Kernels without overcommitted memory may refuse the tables of some machines, and nothing else may fail.
      try {
        expect_it_adds_up(params, 1, ++seed);
        expect_it_adds_up(params, static_cast<std::uint32_t>(std::min<std::int64_t>(4, most)), ++seed);
      } catch (const HostMemoryError&) {
        continue;
      }
    }
  }
  EXPECT_GT(machines, 180);
}

/// A write-combining buffer is closed by a later store, which may be behind loads and stores that want it.
TEST(Extremes, NoWriteCombiningBufferTakesTheLastFillBuffer) {
  const MicroOp half{kPmemBase, 32, OpKind::kStreamStore, 0, 0};
  const MicroOp other{kPmemBase + 4096, 32, OpKind::kStreamStore, 0, 0};
  for (const std::int64_t threads_per_core : {1, 2}) {
    PlatformParams params = plain_machine();
    params.core.cores = 1;
    params.core.threads_per_core = threads_per_core;
    for (const std::int64_t kept_back : {0, 2}) {
      params.core.stream_fill_buffers = kept_back;
      for (const MicroOp& wants : {load(kDramBase), store(kDramBase), prefetch(kDramBase), other}) {
        const Ops ops{half, wants, clwb(kDramBase), store(kDramBase + 8192), half, end()};
        params.core.line_fill_buffers = threads_per_core;
        const std::vector<Ops> each(static_cast<std::size_t>(threads_per_core), ops);
        const LaneResult result = run(params, each);
        EXPECT_EQ(result.groups[0].operations, threads_per_core);
        if (threads_per_core == 1) {  // of two, one may come when the other has closed its buffer
          EXPECT_GE(result.counters.out_of_range_count, 2);  // incomplete lines
        }
      }
    }
  }
}

/// With one more than there are threads, words of a line are combined as on any machine.
TEST(Extremes, AnotherFillBufferIsEnoughToCombine) {
  PlatformParams params = plain_machine();
  Ops words;
  for (std::uint64_t word = 0; word < kWords; ++word)
    words.push_back({kPmemBase + word * kWordBytes, 8, OpKind::kStreamStore, 0, 0});
  words.push_back(sfence());
  params.core.line_fill_buffers = 2;
  EXPECT_EQ(run(params, words).counters.pmem_write_lines, 1);
  params.core.line_fill_buffers = 1;
  EXPECT_EQ(run(params, words).counters.pmem_write_lines, static_cast<std::int64_t>(kWords));
}

}  // namespace
}  // namespace pmsim::machine
