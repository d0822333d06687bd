#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "machine_harness.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/machine/time_ledger.hpp"

/// Machines and loads drawn at random: small queues, few buffers, siblings that share them. Two threads of a
/// core that wake each other for ever over a buffer that neither may take, say, hide in such corners. A lane
/// where nobody gets on ends in a SimulationError.
namespace pmsim::machine {
namespace {

using Values = std::map<std::string, workloads::Parameters::Value>;

template <typename T>
T one_of(Random& random, std::initializer_list<T> values) {
  return *(values.begin() + random.below(values.size()));
}

PlatformParams random_machine(Random& random) {
  const auto pick = [&](std::initializer_list<std::int64_t> values) { return one_of(random, values); };
  PlatformParams params = plain_machine();
  params.core.cores = pick({1, 2, 4});
  params.core.threads_per_core = pick({1, 2, 2});
  params.core.frequency = 3'000'000'000;
  params.core.dispatch_width = pick({1, 4});
  params.core.window = pick({16, 64, 224});
  params.core.line_fill_buffers = pick({1, 2, 3, 10});
  params.core.stream_fill_buffers = pick({0, 1, 2});
  params.core.fill_buffer_credits = pick({1, 2, 4, 16});
  params.core.store_buffer = pick({2, 8, 56});
  params.core.store_miss_interval = pick({0, 30 * kNs});
  params.core.store_next_interval = pick({0, 12 * kNs});
  params.core.line_interval = pick({0, 3 * kNs});
  params.core.flush_interval = pick({0, 11 * kNs});
  params.core.fence_latency = pick({0, 15 * kNs});
  params.core.flush_keeps_line = pick({0, 1});
  params.core.stream_hold = pick({0, 180 * kNs});
  params.core.stream_delay = pick({0, 30 * kNs});
  params.core.flush_delay = pick({0, 0, 70 * kNs});
  params.tlb.page_size = pick({4 << 10, 2 << 20});
  params.tlb.dram_page_size = pick({4 << 10, 2 << 20});
  params.tlb.first_level_entries = pick({4, 64});
  params.tlb.second_level_entries = pick({16, 1536});
  params.l1.size = pick({2 << 10, 32 << 10});
  params.l2.size = pick({32 << 10, 256 << 10});
  params.llc.size = pick({256 << 10, 1 << 20});
  params.llc.slices = pick({1, 2, 24});
  params.prefetcher.enabled = pick({0, 1});
  params.prefetcher.trigger = pick({1, 2, 5});
  params.prefetcher.distance = pick({2, 16});
  params.prefetcher.crosses_pages = pick({0, 1});
  params.prefetcher.degree = pick({1, 4});
  params.prefetcher.queue = pick({1, 16});
  params.controller.channels = pick({1, 2, 6});
  params.controller.link_read_interval = pick({0, 0, 2 * kNs});
  params.controller.link_write_interval = pick({0, 0, 3 * kNs});
  params.controller.dram_write_queue = pick({2, 48});
  params.controller.dram_write_low = pick({0, 1});
  params.controller.pmem_write_queue = pick({1, 2, 24});
  params.controller.pmem_read_queue = pick({0, 1, 2, 8});
  params.controller.pmem_credits = pick({1, 6});
  params.controller.pmem_read_credits = pick({1, 4});
  params.controller.eadr = pick({0, 0, 0, 1});
  params.dram.banks = pick({1, 16});
  params.dram.bank_busy = pick({0, 46 * kNs});
  params.dram.turnaround = pick({0, 7 * kNs});
  params.dram.reread_delay = pick({0, 300 * kNs});
  params.pmem.dimms = pick({1, params.controller.channels});
  params.pmem.banks = pick({1, 16});
  params.pmem.write_latency = pick({0, 0, 400 * kNs});
  params.pmem.bank_write_busy = pick({0, 300 * kNs});
  params.pmem.bank_read_busy = pick({0, 100 * kNs});
  params.pmem.read_buffer_blocks = pick({1, 16, 64});
  params.pmem.write_buffer_blocks = pick({1, 4, 64});
  params.pmem.reread_delay = pick({0, 400 * kNs});
  params.pmem.translation_entries = pick({1, 4096});
  params.pmem.translation_miss_latency = pick({0, 90 * kNs});
  params.pmem.wear_stall_writes = pick({0, 50});
  params.pmem.wear_stall = 10 * kNs;
  return params;
}

std::pair<std::string, Values> random_load(Random& random, std::int64_t threads) {
  const auto pick = [&](std::initializer_list<std::int64_t> values) { return one_of(random, values); };
  const std::int64_t region = pick({1 << 20, 8 << 20});
  if (threads > 1 && random.below(3) == 0) {
    const auto group = [&](std::int64_t count) {
      const auto task = one_of<std::string>(
          random, {"scan", "lookup", "log", "page", "read", "write", "append", "overwrite"});
      return task + one_of<std::string>(random, {":dram:", ":pmem:"}) + std::to_string(count);
    };
    const std::string groups = group(threads / 2) + ";" + group(threads - threads / 2);
    return {"mixed", {{"groups", groups}, {"region_size", region}}};
  }
  if (random.below(3) == 0) {
    const auto chain =
        one_of<std::string>(random, {"rp_64", "rp_512,wp_512_nocache", "rp_256,wp_64_cache,wp_64_cache",
                                     "rd_64,wp_256_cacheinv_1024,wd_64_none", "rd_512,wp_64_nocache,rp_1024",
                                     "rp_64,wp_256_none,wp_64_nocache"});
    return {"operations",
            {{"operations", chain}, {"threads", threads}, {"region_size", region}, {"timed", pick({0, 1})}}};
  }
  const auto operation =
      one_of<std::string>(random, {"load", "store", "store+clwb", "load+store", "load+store+clwb", "ntstore"});
  const auto pattern = one_of<std::string>(random, {"random", "sequential"});
  return {"bandwidth",
          {{"memory", std::string(random.below(3) == 0 ? "dram" : "pmem")},
           {"operation", operation},
           {"pattern", pattern},
           {"access_size", pick({64, 256, 1024, 4096})},
           {"stride", std::int64_t{0}},
           {"alignment", std::int64_t{0}},
           {"threads", threads},
           {"shared_region", pick({0, 1})},
           {"region_size", region},
           {"fence_every", pick({0, 0, 64, 512})},
           {"flush_every", pick({64, 64, 256})},
           {"address_list", pick({0, 0, 1 << 20})},
           {"instructions", pick({0, 0, 200})}}};
}

class RandomMachine : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomMachine, FinishesAndIsNoFasterThanItsParts) {
  constexpr int kMachines = 25;
  for (int turn = 0; turn < kMachines; ++turn) {
    SCOPED_TRACE("machine " + std::to_string(turn));
    Random random(GetParam() * kMachines + static_cast<std::uint64_t>(turn));
    const PlatformParams params = random_machine(random);
    const std::int64_t most = params.core.cores * params.core.threads_per_core;
    const auto [kind, values] = random_load(random, random.below(2) == 0 ? most : 1);
    const auto workload = workloads::make_workload(kind, workloads::Parameters(kind, values), params, 1);
    // So many of each that what front ends are ahead or behind in the end is little.
    const std::int64_t operations = std::max<std::int64_t>(3'000, 1'500 * std::int64_t{workload->threads()});
    SimulateOptions options;
    // Enough for the loads that fill TLBs, which are much of a kind.
    options.length = {std::min<std::int64_t>(workload->length().warmup_operations, 40'000), operations};
    if (random.below(2) == 0)
      options.length.untimed_operations = options.length.warmup_operations / 2;
    options.pmem_footprint = workload->pmem_footprint();
    const std::array<PlatformParams, 2> lanes{params, params};
    const std::vector<LaneResult> results = simulate(*workload, workload->threads(), lanes, options);
    const LaneResult& result = results.front();
    const Counters& counters = result.counters;
    EXPECT_EQ(result.groups[0].operations, operations);
    // Equal machines in one pass agree in everything.
    EXPECT_EQ(result.elapsed, results.back().elapsed);
    counters.for_each([&](std::string_view name, std::int64_t value) {
      EXPECT_GE(value, 0) << name;
      results.back().counters.for_each([&](std::string_view other, std::int64_t twin) {
        EXPECT_TRUE(name != other || value == twin) << name << ": " << value << " and " << twin;
      });
    });
    // What a module has done took its time. Up to a full queue may be counted and not yet done.
    const auto busy = [&](std::int64_t times, std::int64_t each) { return times * each / params.pmem.dimms; };
    const Picoseconds slack = 100 * params.pmem.media_write_service;
    EXPECT_LE(busy(counters.pmem_read_lines, params.pmem.bus_read) +
                  busy(counters.pmem_write_lines, params.pmem.bus_write),
              result.elapsed + slack);
    EXPECT_LE(busy(counters.pmem_media_write_blocks, params.pmem.media_write_service), result.elapsed + slack);
    EXPECT_LE(counters.pmem_partial_writes, counters.pmem_media_write_blocks);
    EXPECT_LE(counters.pmem_media_write_blocks, counters.pmem_write_lines);
    EXPECT_LE(counters.lines_persisted, counters.flushes + counters.stream_stores);
    // All of the threads' time has a cause. Front ends may have come a little further than the run, or not as
    // far.
    const double time = static_cast<double>(workload->threads()) * static_cast<double>(result.elapsed);
    EXPECT_NEAR(static_cast<double>(TimeLedger::total(counters)), time, 0.01 * time);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMachine, ::testing::Range<std::uint64_t>(0, 16));

}  // namespace
}  // namespace pmsim::machine
