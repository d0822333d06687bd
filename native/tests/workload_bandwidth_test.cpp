#include <gtest/gtest.h>

#include <set>
#include <string>

#include "machine_harness.hpp"
#include "pmsim/workloads/workload.hpp"

namespace pmsim::machine {
namespace {

using Values = std::map<std::string, workloads::Parameters::Value>;

Values bandwidth(const std::string& operation, const std::string& pattern, std::int64_t access_size,
                 std::int64_t threads, std::int64_t region_size = 64 << 20) {
  return {{"memory", "pmem"},
          {"operation", operation},
          {"pattern", pattern},
          {"access_size", access_size},
          {"stride", std::int64_t{0}},
          {"alignment", std::int64_t{0}},
          {"threads", threads},
          {"shared_region", std::int64_t{1}},
          {"region_size", region_size},
          {"fence_every", std::int64_t{0}},
          {"flush_every", std::int64_t{64}},
          {"address_list", std::int64_t{0}},
          {"instructions", std::int64_t{0}}};
}

LaneResult run_bandwidth(const PlatformParams& params, const Values& values) {
  return run_workload("bandwidth", values, std::span(&params, 1)).front();
}

double bytes_per_ps(const LaneResult& result) {
  return static_cast<double>(result.groups[0].user_bytes) / static_cast<double>(result.elapsed);
}

/// Catches siblings that wake each other for ever while both wait for a place for an evicted line.
TEST(BandwidthWorkload, StoresByTwoThreadsOfACoreFinish) {
  PlatformParams params = plain_machine();
  params.core.cores = 1;
  params.core.threads_per_core = 2;
  params.l1.size = 4 << 10;
  params.l2.size = 16 << 10;
  params.llc.size = 64 << 10;
  params.controller.pmem_write_queue = 2;
  const LaneResult result = run_bandwidth(params, bandwidth("store", "random", 256, 2, 4 << 20));
  EXPECT_GT(result.counters.writebacks, 0);
  EXPECT_GE(result.groups[0].operations, 20'000 - 1);
}

/// The same where loads, some of them of lines that a prefetch brings, wait for a common buffer while one that
/// is kept back for streaming stores is free.
TEST(BandwidthWorkload, LoadsByTwoThreadsOfACoreFinishWhereBuffersAreKeptBack) {
  PlatformParams params = plain_machine();
  params.core.cores = 4;
  params.core.threads_per_core = 2;
  params.core.stream_fill_buffers = 2;
  params.controller.pmem_read_queue = 1;
  params.prefetcher.enabled = 1;
  params.prefetcher.trigger = 2;
  const LaneResult result = run_bandwidth(params, bandwidth("load", "random", 1024, 8, 1 << 30));
  EXPECT_GE(result.groups[0].operations, 5'000 - 1);
}

/// One module: no more than a block per media_write_service, and that exactly once the write queue is never
/// empty.
TEST(BandwidthWorkload, BlockWritesAreBoundByTheMediumsServiceTime) {
  PlatformParams params = plain_machine();
  params.llc.slices =
      1;  // lines of a block in different slices overtake each other, and a few blocks leave early
  const LaneResult result = run_bandwidth(params, bandwidth("ntstore", "sequential", 4096, 2));
  const double most = 256.0 / static_cast<double>(params.pmem.media_write_service);
  EXPECT_NEAR(bytes_per_ps(result) / most, 1.0, 0.01);
  EXPECT_EQ(result.counters.pmem_partial_writes, 0);
}

/// A block that gets one of its four lines costs the medium as much as a complete one.
TEST(BandwidthWorkload, RandomLinesReachAQuarterOfTheBandwidthOfBlocks) {
  const PlatformParams params = plain_machine();
  const LaneResult lines = run_bandwidth(params, bandwidth("ntstore", "random", 64, 2));
  const LaneResult blocks = run_bandwidth(params, bandwidth("ntstore", "random", 256, 2));
  EXPECT_NEAR(bytes_per_ps(lines) / bytes_per_ps(blocks), 0.25, 0.01);
}

/// The letters of what a thread does: S store, C clwb, F sfence; a clwb of a line that is not stored to fails.
std::string order_of(const std::string& kind, const Values& values, std::size_t letters) {
  const PlatformParams params = plain_machine();
  const auto workload = workloads::make_workload(kind, workloads::Parameters(kind, values), params, 1);
  std::string order;
  std::set<std::uint64_t> dirty;
  while (order.size() < letters) {
    memory::Stream stream;
    workload->refill(0, stream);
    for (std::size_t index = 0; index < stream.size(); ++index) {
      const memory::MicroOp& op = stream[index];
      if (op.kind == memory::OpKind::kStore) {
        order += 'S';
        dirty.insert(op.address);
      } else if (op.kind == memory::OpKind::kClwb) {
        order += 'C';
        EXPECT_EQ(dirty.erase(op.address), 1U);
      } else if (op.kind == memory::OpKind::kSfence) {
        order += 'F';
        EXPECT_TRUE(dirty.empty());
      }
    }
  }
  return order.substr(0, letters);
}

TEST(BandwidthWorkload, FlushesFollowTheStoresOfTheirWindow) {
  const auto order = [](const std::string& pattern, std::int64_t size, std::int64_t flush, std::int64_t fence) {
    Values values = bandwidth("store+clwb", pattern, size, 1, 1 << 20);
    values["flush_every"] = flush;
    values["fence_every"] = fence;
    return order_of("bandwidth", values, 12);
  };
  EXPECT_EQ(order("random", 256, 64, 256), "SCSCSCSCFSCS");
  EXPECT_EQ(order("random", 256, 128, 256), "SSCCSSCCFSSC");
  EXPECT_EQ(order("random", 256, 256, 256), "SSSSCCCCFSSS");
  EXPECT_EQ(order("random", 256, 256, 0), "SSSSCCCCSSSS");
  EXPECT_EQ(order("random", 256, 512, 128), "SSCCFSSCCFSS");  // nothing stays dirty behind a fence
  EXPECT_EQ(order("random", 128, 512, 0), "SSCCSSCCSSCC");    // a window ends where the lines in a row end
  EXPECT_EQ(order("sequential", 64, 192, 0).find("SSSCCCSSSCCC"), 0U);
}

/// As PerMA-Bench does it: all stores of an access, then its flushes, then the fence.
TEST(OperationsWorkload, FlushesFollowTheStoresOfTheirAccess) {
  const auto order = [](const std::string& chain) {
    const Values values = {{"operations", chain},
                           {"threads", std::int64_t{1}},
                           {"region_size", std::int64_t{1} << 20},
                           {"timed", std::int64_t{0}}};
    return order_of("operations", values, 9);
  };
  EXPECT_EQ(order("rp_256,wp_256_cache"), "SSSSCCCCF");
  EXPECT_EQ(order("rp_64,wp_64_cache,wp_64_cache_64"), "SCFSCFSCF");
}

/// Of four places in a block for a chunk of its size, three lie across two blocks.
TEST(BandwidthWorkload, ChunksThatAreNotAlignedTouchFurtherBlocks) {
  const PlatformParams params = plain_machine();
  const auto blocks_per_chunk = [&](std::int64_t alignment) {
    Values values = bandwidth("load", "random", 256, 1, std::int64_t{1} << 30);
    values["alignment"] = alignment;
    const LaneResult result = run_bandwidth(params, values);
    return 256.0 * static_cast<double>(result.counters.pmem_media_read_blocks) /
           static_cast<double>(result.groups[0].user_bytes);
  };
  EXPECT_NEAR(blocks_per_chunk(0), 1.0, 0.01);
  EXPECT_NEAR(blocks_per_chunk(64), 1.75, 0.02);
  EXPECT_NEAR(blocks_per_chunk(512), 1.0, 0.01);
}

/// Late lines of a block enter the combining buffer again.
TEST(BandwidthWorkload, MoreWritersLeaveMoreBlocksIncomplete) {
  PlatformParams params = plain_machine();
  params.core.cores = 16;
  const auto incomplete = [&](std::int64_t threads) {
    const LaneResult result = run_bandwidth(params, bandwidth("ntstore", "random", 4096, threads));
    return static_cast<double>(result.counters.pmem_partial_writes) /
           static_cast<double>(result.counters.pmem_media_write_blocks);
  };
  const double by_one = incomplete(1);
  const double by_eight = incomplete(8);
  const double by_sixteen = incomplete(16);
  EXPECT_LT(by_one, 0.01);
  EXPECT_GT(by_eight, by_one);
  EXPECT_GT(by_sixteen, by_eight);
}

/// With N buffers and a latency L that nothing shortens, a core moves N lines per L. Reads are bound by neither
/// the window nor the device here.
TEST(BandwidthWorkload, FillBuffersBoundWhatACoreReads) {
  PlatformParams params = plain_machine();
  params.core.dispatch_width = 16;
  params.core.window = 2048;
  params.core.line_fill_buffers = 4;
  params.pmem.media_read_service = 0;
  const Picoseconds latency =
      params.core.shared_read_latency + params.pmem.media_read_latency + params.pmem.buffer_latency;
  const LaneResult result = run_bandwidth(params, bandwidth("load", "random", 64, 1, std::int64_t{1} << 30));
  const double expected = 64.0 * 4.0 / static_cast<double>(latency);
  EXPECT_NEAR(bytes_per_ps(result) / expected, 1.0, 0.02);
}

/// Lines of a block wait for the medium together, each in a fill buffer. Where a younger load may be first,
/// more blocks are under way, and lines of a block that are asked for late find it in the module's buffer.
/// Where each load is of a block of its own, the older ones that are passed only hold up the window. Pages are
/// small: loads that wait for their translations do not stop the front end.
TEST(BandwidthWorkload, LoadsThatPassEachOtherForABufferHaveMoreBlocksUnderWay) {
  const auto gain = [](std::int64_t size) {
    PlatformParams params = plain_machine();
    params.core.dispatch_width = 4;
    params.core.line_fill_buffers = 10;
    params.tlb.page_size = 4 << 10;
    params.pmem.media_read_service = 5 * kNs;
    const Values values = bandwidth("load", "random", size, 1, std::int64_t{1} << 30);
    const double in_order = bytes_per_ps(run_bandwidth(params, values));
    params.core.fill_buffer_credits = 4;
    return bytes_per_ps(run_bandwidth(params, values)) / in_order;
  };
  EXPECT_GT(gain(256), 1.02);
  EXPECT_LT(gain(64), 1.0);
}

/// PerMA-Bench writes down its addresses before it begins: eight of them are a line.
TEST(BandwidthWorkload, AListOfAddressesIsReadFromDram) {
  const PlatformParams params = plain_machine();
  const auto lines_of_list = [&](const std::string& pattern, std::int64_t size, std::int64_t threads) {
    Values values = bandwidth("load", pattern, size, threads, std::int64_t{1} << 30);
    const LaneResult computed = run_bandwidth(params, values);
    values["address_list"] = std::int64_t{1} << 26;
    const LaneResult listed = run_bandwidth(params, values);
    EXPECT_EQ(listed.groups[0].user_bytes, computed.groups[0].user_bytes);
    return static_cast<double>(listed.counters.dram_read_lines - computed.counters.dram_read_lines) * 64.0 /
           static_cast<double>(listed.groups[0].user_bytes);
  };
  EXPECT_NEAR(lines_of_list("sequential", 64, 1), 1.0 / 8, 0.003);
  EXPECT_NEAR(lines_of_list("sequential", 256, 2), 1.0 / 32, 0.003);
  EXPECT_NEAR(lines_of_list("random", 64, 2), 1.0 / 8, 0.003);
}

/// A load waits for its data in the window, and what lies between it and the next takes places there.
TEST(BandwidthWorkload, InstructionsBetweenLoadsLeaveFewerUnderWay) {
  const PlatformParams params = plain_machine();
  const auto rate = [&](std::int64_t apart) {
    Values values = bandwidth("load", "random", 64, 1, std::int64_t{1} << 30);
    values["instructions"] = apart - 13;  // the load, and what finds its address
    return bytes_per_ps(run_bandwidth(params, values));
  };
  const std::int64_t window = params.core.window;
  EXPECT_NEAR(rate(window / 2) / rate(window), 2.0, 0.15);
  EXPECT_NEAR(rate(window / 4) / rate(window), 4.0, 0.4);
}

/// Times differ between these lanes, what one thread asks for does not.
TEST(LatencyWorkload, LanesGiveTheResultsOfSeparateRuns) {
  const Values values = {{"memory", "pmem"},
                         {"operation", "load"},
                         {"pattern", "random"},
                         {"region_size", std::int64_t{16} << 20}};
  std::vector<PlatformParams> platforms(3, plain_machine());
  platforms[1].pmem.media_read_latency *= 2;
  platforms[2].core.shared_read_latency *= 3;
  const std::vector<LaneResult> together = run_workload("latency", values, platforms);
  ASSERT_EQ(together.size(), platforms.size());
  for (std::size_t lane = 0; lane < platforms.size(); ++lane) {
    const LaneResult alone = run_workload("latency", values, std::span(&platforms[lane], 1)).front();
    EXPECT_EQ(together[lane].elapsed, alone.elapsed) << lane;
    EXPECT_EQ(together[lane].groups[0].latency.mean(), alone.groups[0].latency.mean()) << lane;
    EXPECT_EQ(together[lane].counters.pmem_media_read_blocks, alone.counters.pmem_media_read_blocks) << lane;
  }
  EXPECT_LT(together[0].elapsed, together[1].elapsed);
  EXPECT_LT(together[0].elapsed, together[2].elapsed);
}

TEST(BandwidthWorkload, TwoEqualLanesAgreeWithEachOtherAndWithASingleRun) {
  const Values values = bandwidth("ntstore", "random", 256, 4);
  const std::vector<PlatformParams> platforms(2, plain_machine());
  const std::vector<LaneResult> together = run_workload("bandwidth", values, platforms);
  const LaneResult alone = run_bandwidth(platforms[0], values);
  for (const LaneResult& lane : together) {
    EXPECT_EQ(lane.elapsed, alone.elapsed);
    EXPECT_EQ(lane.groups[0].user_bytes, alone.groups[0].user_bytes);
    EXPECT_EQ(lane.counters.pmem_partial_writes, alone.counters.pmem_partial_writes);
    EXPECT_EQ(lane.counters.write_queue_wait_ps, alone.counters.write_queue_wait_ps);
  }
}

TEST(PageTableWarmup, MeetsEachLineOfEntriesThreeTimes) {
  PlatformParams params = plain_machine();
  params.tlb.page_size = 4096;
  params.tlb.dram_page_size = 1 << 21;
  const auto walks = [&](memory::Medium medium, std::int64_t most) {
    return workloads::accesses_to_warm_page_tables(params, medium, std::uint64_t{1} << 30, most);
  };
  // 1 GiB in pages of 4 KiB or 2 MiB, eight entries in a line.
  EXPECT_EQ(walks(memory::Medium::kPmem, 1'000'000), 3 * 32'768);
  EXPECT_EQ(walks(memory::Medium::kDram, 1'000'000), 3 * 64);
  EXPECT_EQ(walks(memory::Medium::kPmem, 50'000), 50'000);
}

}  // namespace
}  // namespace pmsim::machine
