#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pmsim/workloads/options/page_flush.hpp"
#include "pmsim/workloads/page_costs.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

using blocks::page::CostModel;
using blocks::page::DriverOptions;
using blocks::page::PageFlushDriver;

/// Page propagation (Fig. 7 of the building-blocks paper): each thread flushes the pages of its part of the
/// store, one after the other.
class PageFlush final : public Workload {
 public:
  PageFlush(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)), options_(options_from(parameters, platform, seed)) {
    const auto threads = static_cast<std::int64_t>(options_.store.writers);
    length_ = {std::max({std::int64_t{300}, 30 * threads, flushes_to_fill_caches(platform)}),
               std::max<std::int64_t>(2'000, 250 * threads)};
  }

  void prepare(const Watch& watch) override { driver_.emplace(memory_, options_, Poll(watch, Phase::kLoad)); }

  [[nodiscard]] std::uint32_t threads() const override { return options_.store.writers; }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return driver_->pmem_bytes(); }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    memory_.attach(stream, thread);
    memory_.operation_begin();
    driver_->operation(memory_, thread);
    stream.push(memory::OpKind::kOperationEnd, 0, options_.store.page_bytes);
  }

 private:
  /// Flushes until the caches hold as many of the pages as in a long run: none of so many that, in order, each
  /// has left them when it is due again.
  [[nodiscard]] std::int64_t flushes_to_fill_caches(const machine::PlatformParams& platform) const {
    const auto pages = static_cast<std::int64_t>(options_.store.pages);
    const auto lines = pages * static_cast<std::int64_t>(options_.store.page_bytes / memory::kLineBytes);
    constexpr std::int64_t kOverCaches = 4;
    if (lines > kOverCaches * cached_lines(platform, options_.store.writers)) {
      if (options_.store.write != blocks::page::Write::kStoreFlush)
        return 0;
      // A micro log is written to the same lines each time, and of the page only what has changed.
      using blocks::page::Technique;
      const bool in_place =
          options_.technique == Technique::kMicroLog || options_.technique == Technique::kHybrid;
      const std::uint32_t lines_left = in_place ? options_.dirty_lines : options_.store.lines();
      return stores_to_fill_caches(platform, options_.store.writers, true) / lines_left;
    }
    return options_.random_order ? kMeetings * pages : pages;
  }

  static DriverOptions options_from(Parameters& parameters, const machine::PlatformParams& platform,
                                    std::uint64_t seed) {
    DriverOptions options = read_page_flush(parameters);
    options.store.spare_slots = static_cast<std::uint32_t>(parameters.number("spare_slots", 1, 1 << 20));
    options.store.barriers = parameters.number("barriers", 0, 1) != 0;
    options.random_order = parameters.choice("order", {"sequential", "random"}) == "random";
    options.costs = page_costs(platform);
    options.seed = seed;
    return options;
  }

  memory::SimMemory memory_;
  DriverOptions options_;
  std::optional<PageFlushDriver<memory::SimMemory>> driver_;  ///< once prepared
  machine::RunLength length_;
};

}  // namespace

CostModel page_costs(const machine::PlatformParams& platform) {
  const machine::CoreParams& core = platform.core;
  const std::int64_t read = core.shared_read_latency + platform.dram.row_hit_latency +
                            platform.dram.row_miss_penalty + platform.dram.read_burst;
  const std::int64_t write = core.stream_delay + core.shared_write_latency + platform.pmem.write_latency;
  return {
      .stream_line = std::max(core.stream_hold, write) / (core.line_fill_buffers + core.stream_fill_buffers),
      .read_line = read / core.line_fill_buffers,
      .persist = write + core.fence_latency,
      .repeat = platform.pmem.reread_delay + platform.pmem.buffer_latency + core.shared_read_latency,
      .block_write = platform.pmem.media_write_service / std::max<std::int64_t>(1, platform.pmem.dimms),
      .lines_per_block =
          static_cast<std::uint32_t>(std::max<std::int64_t>(1, platform.pmem.block_size / memory::kLineBytes))};
}

std::unique_ptr<Workload> make_page_flush(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed) {
  return std::make_unique<PageFlush>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
