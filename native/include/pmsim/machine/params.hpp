#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pmsim::machine {

using std::int64_t;

/// What a parameter measures. Python parses "37.5 ns" or "16 KiB" by it; the core sees the base unit only.
enum class Quantity : std::uint8_t {
  kTime,       ///< int64 picoseconds
  kSize,       ///< int64 bytes
  kFrequency,  ///< int64 hertz
  kBandwidth,  ///< int64 bytes per second
  kCount,      ///< int64
  kFlag,       ///< int64, 0 or 1
};

/// Execution core and its private queues. One core runs one or two virtual threads.
struct CoreParams {
  int64_t cores = 1;
  int64_t threads_per_core = 1;
  int64_t frequency = 2'400'000'000;
  int64_t dispatch_width = 4;
  int64_t window = 224;
  int64_t line_fill_buffers = 10;
  int64_t stream_fill_buffers = 0;
  int64_t fill_buffer_credits = 1;
  int64_t store_buffer = 56;
  int64_t mispredict_latency = 0;
  int64_t store_miss_interval = 0;
  int64_t store_next_interval = 0;
  int64_t line_interval = 0;
  int64_t flush_interval = 0;
  int64_t fence_latency = 0;
  int64_t atomic_latency = 0;
  int64_t flush_keeps_line = 0;
  int64_t shared_read_latency = 0;
  int64_t shared_write_latency = 0;
  int64_t stream_hold = 0;
  int64_t stream_delay = 0;
  int64_t flush_delay = 0;
};

struct TlbParams {
  int64_t page_size = 4096;
  int64_t dram_page_size = 4096;
  int64_t first_level_entries = 64;
  int64_t second_level_entries = 1536;
  int64_t second_level_latency = 0;
  int64_t walk_latency = 0;
  int64_t paging_structure_entries = 32;
};

struct CacheParams {
  int64_t size = 0;
  int64_t ways = 8;
  int64_t latency = 0;
};

struct MidLevelParams {
  int64_t size = 0;
  int64_t ways = 8;
  int64_t latency = 0;
  int64_t read_interval = 0;
};

struct LastLevelParams {
  int64_t size = 0;
  int64_t ways = 8;
  int64_t latency = 0;
  int64_t slices = 8;
  int64_t transfer_latency = 0;
};

struct PrefetcherParams {
  int64_t enabled = 0;
  int64_t trigger = 3;
  int64_t distance = 16;
  int64_t crosses_pages = 0;
  int64_t degree = 2;
  int64_t queue = 16;
};

/// Integrated memory controllers; `channels` channels carry DRAM and PMem side by side.
struct ControllerParams {
  int64_t channels = 6;
  int64_t dram_interleave = 256;
  int64_t link_read_interval = 0;
  int64_t link_write_interval = 0;
  int64_t dram_write_queue = 48;
  int64_t dram_write_low = 16;
  int64_t pmem_write_queue = 24;
  int64_t pmem_credits = 5;
  int64_t pmem_read_queue = 0;
  int64_t pmem_read_credits = 4;
  int64_t eadr = 0;
  int64_t memory_mode = 0;
  int64_t memory_mode_tag_latency = 0;
};

struct DramParams {
  int64_t capacity = 0;
  int64_t row_hit_latency = 0;
  int64_t row_miss_penalty = 0;
  int64_t row_size = 8192;
  int64_t banks = 16;
  int64_t bank_busy = 0;
  int64_t read_burst = 3000;
  int64_t write_burst = 3000;
  int64_t turnaround = 0;
  int64_t reread_delay = 0;
};

/// The second memory tier: Optane DIMMs, an emulated NVM, or a CXL memory expander.
struct PmemParams {
  int64_t dimms = 0;
  int64_t capacity = 0;
  int64_t interleave = 4096;
  int64_t block_size = 256;
  int64_t buffer_latency = 0;
  int64_t media_read_latency = 0;
  int64_t media_read_service = 0;
  int64_t media_write_service = 0;
  int64_t write_latency = 0;
  int64_t banks = 16;
  int64_t bank_write_busy = 0;
  int64_t bank_read_busy = 0;
  int64_t read_buffer_blocks = 16;
  int64_t write_buffer_blocks = 64;
  int64_t bus_read = 0;
  int64_t bus_write = 0;
  int64_t own_path = 0;
  int64_t reads_per_write = 2;
  int64_t reread_delay = 0;
  int64_t translation_entries = 4096;
  int64_t translation_page = 4096;
  int64_t translation_miss_latency = 0;
  int64_t wear_stall_writes = 0;
  int64_t wear_stall = 0;
  int64_t wear_region = 65536;
};

/// A block device behind the file system: NVMe or SATA SSD, Optane SSD, hard disk.
struct BlockDeviceParams {
  int64_t capacity = 0;
  int64_t block_size = 4096;
  int64_t read_latency = 0;
  int64_t write_latency = 0;
  int64_t program_latency = 0;
  int64_t units = 1;
  int64_t queue_depth = 32;
  int64_t read_bandwidth = 1;
  int64_t write_bandwidth = 1;
  int64_t write_cache = 0;
  int64_t write_cache_durable = 0;
  int64_t flush_latency = 0;
  int64_t seek_latency = 0;
  int64_t rotation_latency = 0;
  int64_t software_latency = 0;
  int64_t copy_bandwidth = 1;
};

struct PlatformParams {
  CoreParams core;
  TlbParams tlb;
  CacheParams l1;
  MidLevelParams l2;
  LastLevelParams llc;
  PrefetcherParams prefetcher;
  ControllerParams controller;
  DramParams dram;
  PmemParams pmem;
  BlockDeviceParams block;
};

/// One parameter, declared once: from this row come the Python model, range checks, docs and sweep bounds.
struct Field {
  std::string_view section;
  std::string_view name;
  Quantity quantity;
  int64_t minimum;
  int64_t maximum;
  std::string_view meaning;
  int64_t& (*ref)(PlatformParams&);
};

/// Every parameter of a platform, in the order of its sections.
[[nodiscard]] std::span<const Field> fields() noexcept;

/// Checks what no single field can: rules between fields. Throws ConfigError naming section.field and remedy.
void validate(const PlatformParams& params);

}  // namespace pmsim::machine
