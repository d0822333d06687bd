#include "pmsim/machine/params.hpp"

#include <array>
#include <bit>
#include <string>

#include "pmsim/core/error.hpp"

namespace pmsim::machine {
namespace {

constexpr int64_t kNs = 1'000;
constexpr int64_t kMs = 1'000'000'000;
constexpr int64_t kKiB = 1024;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kTiB = int64_t{1} << 40;

#define PMSIM_FIELD(section, name, quantity, minimum, maximum, meaning)        \
  Field {                                                                      \
    #section, #name, Quantity::quantity, minimum, maximum, meaning,            \
        [](PlatformParams& params) -> int64_t& { return params.section.name; } \
  }

constexpr std::array kFields{
    PMSIM_FIELD(core, cores, kCount, 1, 256, "physical cores of one socket"),
    PMSIM_FIELD(core, threads_per_core, kCount, 1, 2,
                "hardware threads that share a core: its caches, fill buffers and, by halves, its window"),
    PMSIM_FIELD(core, frequency, kFrequency, 100'000'000, 10'000'000'000, "core clock under load"),
    PMSIM_FIELD(core, dispatch_width, kCount, 1, 16, "instructions dispatched per cycle"),
    PMSIM_FIELD(core, window, kCount, 1, 2048,
                "instructions in flight between dispatch and in-order retirement"),
    PMSIM_FIELD(core, line_fill_buffers, kCount, 1, 64,
                "outstanding line transfers of a core beyond its L1: misses, flushes, streaming stores"),
    PMSIM_FIELD(core, stream_fill_buffers, kCount, 0, 64, "further ones, which only streaming stores may take"),
    PMSIM_FIELD(
        core, fill_buffer_credits, kCount, 1, 16,
        "oldest loads that wait for a fill buffer of which any may take a free one; 1: in program order"),
    PMSIM_FIELD(core, store_buffer, kCount, 1, 256, "stores between dispatch and commit to L1"),
    PMSIM_FIELD(core, mispredict_latency, kTime, 0, 1000 * kNs,
                "from the resolution of a mispredicted branch to the next dispatch"),
    PMSIM_FIELD(core, store_miss_interval, kTime, 0, 1000 * kNs,
                "time that the way below L1 is busy when a store asks for a line from beyond L2"),
    PMSIM_FIELD(core, store_next_interval, kTime, 0, 1000 * kNs,
                "the same where the store before was to the line before, with nothing in between"),
    PMSIM_FIELD(
        core, line_interval, kTime, 0, 1000 * kNs,
        "the same for a line that a prefetch has brought, or is bringing, to L2, and for a streamed line"),
    PMSIM_FIELD(core, flush_interval, kTime, 0, 1000 * kNs, "time that it is busy with a flush"),
    PMSIM_FIELD(core, fence_latency, kTime, 0, 1000 * kNs,
                "time of a fence beyond the completion of what it waits for"),
    PMSIM_FIELD(core, atomic_latency, kTime, 0, 1000 * kNs,
                "time of a locked read-modify-write beyond that, and of the way of its line to L1"),
    PMSIM_FIELD(core, flush_keeps_line, kFlag, 0, 1,
                "clwb leaves the line cached; off: it behaves as clflushopt (Cascade Lake)"),
    PMSIM_FIELD(core, shared_read_latency, kTime, 0, 10'000 * kNs,
                "on-chip part of a memory read: L2 miss to controller and back, without the device"),
    PMSIM_FIELD(core, shared_write_latency, kTime, 0, 10'000 * kNs,
                "on-chip part of a write: core to controller's write queue and acknowledgement back"),
    PMSIM_FIELD(core, stream_hold, kTime, 0, 10'000 * kNs,
                "time a streaming store holds its fill buffer when the controller accepts it at once"),
    PMSIM_FIELD(core, stream_delay, kTime, 0, 10'000 * kNs,
                "extra time of a streaming store: the write-combining buffer has to be emptied"),
    PMSIM_FIELD(
        core, flush_delay, kTime, 0, 10'000 * kNs,
        "time until fences know that a flushed line has been accepted, beyond that of a streaming store"),
    PMSIM_FIELD(tlb, page_size, kSize, 4 * kKiB, kGiB, "page size of the mappings of PMem"),
    PMSIM_FIELD(tlb, dram_page_size, kSize, 4 * kKiB, kGiB, "page size of the mappings of DRAM"),
    PMSIM_FIELD(tlb, first_level_entries, kCount, 1, 4096, "entries of the first-level data TLB"),
    PMSIM_FIELD(tlb, second_level_entries, kCount, 1, 65536, "entries of the second-level TLB"),
    PMSIM_FIELD(tlb, second_level_latency, kTime, 0, 1000 * kNs, "extra time of a second-level hit"),
    PMSIM_FIELD(tlb, walk_latency, kTime, 0, 1000 * kNs,
                "extra time of a page walk before it reads entries through the caches"),
    PMSIM_FIELD(tlb, paging_structure_entries, kCount, 1, 65536,
                "page tables whose place a core knows without reading the level above them"),
    PMSIM_FIELD(l1, size, kSize, 1 * kKiB, kGiB, "L1 data cache of a core"),
    PMSIM_FIELD(l1, ways, kCount, 1, 16, "associativity of L1"),
    PMSIM_FIELD(l1, latency, kTime, 0, 1000 * kNs, "load to use of an L1 hit"),
    PMSIM_FIELD(l2, size, kSize, 1 * kKiB, kGiB, "L2 cache of a core"),
    PMSIM_FIELD(l2, ways, kCount, 1, 16, "associativity of L2"),
    PMSIM_FIELD(l2, latency, kTime, 0, 1000 * kNs, "load to use of an L2 hit"),
    PMSIM_FIELD(l2, read_interval, kTime, 0, 1000 * kNs,
                "time that L2 is busy with a line that it gives to L1"),
    PMSIM_FIELD(llc, size, kSize, 1 * kKiB, 4 * kGiB, "last-level cache, shared by the cores"),
    PMSIM_FIELD(llc, ways, kCount, 1, 16, "associativity of the last-level cache"),
    PMSIM_FIELD(llc, latency, kTime, 0, 1000 * kNs, "load to use of a last-level hit"),
    PMSIM_FIELD(llc, slices, kCount, 1, 1024,
                "parts of the last-level cache, over which lines are hashed, also on their way to PMem"),
    PMSIM_FIELD(llc, transfer_latency, kTime, 0, 10'000 * kNs,
                "load to use of a line that is in a cache of another core"),
    PMSIM_FIELD(prefetcher, enabled, kFlag, 0, 1, "the hardware stream prefetcher is on"),
    PMSIM_FIELD(prefetcher, trigger, kCount, 1, 64,
                "accesses to consecutive lines of a page that start a stream"),
    PMSIM_FIELD(prefetcher, distance, kCount, 1, 256, "how many lines a stream runs ahead"),
    PMSIM_FIELD(prefetcher, crosses_pages, kFlag, 0, 1, "streams go on into the next 4 KiB page"),
    PMSIM_FIELD(prefetcher, degree, kCount, 1, 16, "lines requested per access of a running stream"),
    PMSIM_FIELD(prefetcher, queue, kCount, 1, 256, "outstanding prefetches of a core"),
    PMSIM_FIELD(controller, channels, kCount, 1, 16, "memory channels of the socket"),
    PMSIM_FIELD(controller, dram_interleave, kSize, 64, 65536,
                "bytes per channel before DRAM turns to the next one"),
    PMSIM_FIELD(controller, link_read_interval, kTime, 0, 1000 * kNs,
                "time between two lines that all cores together read from memory; 0: no limit but memory's"),
    PMSIM_FIELD(controller, link_write_interval, kTime, 0, 1000 * kNs, "the same for lines that are written"),
    PMSIM_FIELD(controller, dram_write_queue, kCount, 1, 1024,
                "lines in the DRAM write pending queue of a channel"),
    PMSIM_FIELD(controller, dram_write_low, kCount, 0, 1023, "lines left in it when a forced drain ends"),
    PMSIM_FIELD(controller, pmem_write_queue, kCount, 1, 1024,
                "lines in the PMem write pending queue of a channel"),
    PMSIM_FIELD(controller, pmem_read_queue, kCount, 0, 65536,
                "read pending queue entries per PMem channel; 0: loads never wait for one"),
    PMSIM_FIELD(controller, pmem_read_credits, kCount, 1, 1024,
                "oldest waiting loads of a slice of which any may enter a PMem read queue"),
    PMSIM_FIELD(controller, pmem_credits, kCount, 1, 1024,
                "lines of one slice of the last-level cache that compete for places in PMem write queues"),
    PMSIM_FIELD(controller, eadr, kFlag, 0, 1,
                "caches are in the persistence domain: flushes cost an instruction only"),
    PMSIM_FIELD(controller, memory_mode, kFlag, 0, 1, "PMem is main memory and DRAM its direct-mapped cache"),
    PMSIM_FIELD(controller, memory_mode_tag_latency, kTime, 0, 1000 * kNs,
                "extra time of a read in memory mode for the tag check"),
    PMSIM_FIELD(dram, capacity, kSize, 0, 8 * kTiB, "DRAM of the socket"),  // behind it lie the page tables
    PMSIM_FIELD(dram, row_hit_latency, kTime, 0, 1000 * kNs, "device part of a read from an open row"),
    PMSIM_FIELD(dram, row_miss_penalty, kTime, 0, 1000 * kNs, "extra time where the row has to be opened"),
    PMSIM_FIELD(dram, row_size, kSize, 64, 65536, "row buffer of a bank, over the devices of a rank"),
    PMSIM_FIELD(dram, banks, kCount, 1, 1024, "banks of a channel, over its ranks"),
    PMSIM_FIELD(dram, bank_busy, kTime, 0, 1000 * kNs, "time before a bank can open another row (tRC)"),
    PMSIM_FIELD(dram, read_burst, kTime, 1, 1000 * kNs,
                "channel time of reading a line, with command overhead"),
    PMSIM_FIELD(dram, write_burst, kTime, 1, 1000 * kNs,
                "channel time of writing a line, with command overhead"),
    PMSIM_FIELD(dram, turnaround, kTime, 0, 1000 * kNs,
                "channel time lost by a turn from reads to writes and back"),
    PMSIM_FIELD(dram, reread_delay, kTime, 0, 10'000 * kNs,
                "time after its acceptance for which a written line cannot be read again"),
    PMSIM_FIELD(pmem, dimms, kCount, 0, 16, "modules of the socket, at most one per channel; 0: none"),
    PMSIM_FIELD(pmem, capacity, kSize, 0, 16 * kTiB, "capacity over all modules"),
    PMSIM_FIELD(pmem, interleave, kSize, 64, kGiB, "bytes per module before the next one"),
    PMSIM_FIELD(pmem, block_size, kSize, 64, 4096, "internal access unit of the medium"),
    PMSIM_FIELD(pmem, buffer_latency, kTime, 0, 10'000 * kNs,
                "module part of a read that hits the module's buffer"),
    PMSIM_FIELD(pmem, media_read_latency, kTime, 0, 100'000 * kNs, "extra time of a read from the medium"),
    PMSIM_FIELD(pmem, media_read_service, kTime, 0, 100'000 * kNs,
                "media time of reading a block (1 / throughput)"),
    PMSIM_FIELD(pmem, media_write_service, kTime, 0, 100'000 * kNs,
                "media time of writing a block (1 / throughput); a partial block's read overlaps it"),
    PMSIM_FIELD(pmem, write_latency, kTime, 0, 100'000 * kNs,
                "from the acceptance of a write by the queue, when it is durable, to its acknowledgement"),
    PMSIM_FIELD(pmem, banks, kCount, 1, 1024, "banks of the medium, over which blocks are hashed"),
    PMSIM_FIELD(pmem, bank_write_busy, kTime, 0, 100'000 * kNs,
                "time for which a block write keeps its bank from reading"),
    PMSIM_FIELD(pmem, bank_read_busy, kTime, 0, 100'000 * kNs,
                "time for which a block read keeps its bank from reading another one"),
    PMSIM_FIELD(pmem, read_buffer_blocks, kCount, 1, 65536, "blocks of the module's buffer that serve reads"),
    PMSIM_FIELD(pmem, write_buffer_blocks, kCount, 1, 65536, "blocks of the module's write-combining buffer"),
    PMSIM_FIELD(pmem, bus_read, kTime, 0, 1000 * kNs,
                "time of reading a line from a module: of its channel, or of its own path"),
    PMSIM_FIELD(pmem, bus_write, kTime, 0, 1000 * kNs,
                "time of writing a line to a module: of its channel, or of its own path"),
    PMSIM_FIELD(
        pmem, own_path, kFlag, 0, 1,
        "modules share no channel with DRAM: each has a path with one direction for reads, one for writes"),
    PMSIM_FIELD(pmem, reads_per_write, kCount, 0, 64,
                "block reads that the medium serves between two block writes when both wait"),
    PMSIM_FIELD(pmem, reread_delay, kTime, 0, 10'000 * kNs,
                "time after its acceptance for which a written line cannot be read again"),
    PMSIM_FIELD(pmem, translation_entries, kCount, 1, 1 << 20,
                "entries of a module's address-translation cache"),
    PMSIM_FIELD(pmem, translation_page, kSize, 64, kGiB, "bytes covered by one translation entry"),
    PMSIM_FIELD(pmem, translation_miss_latency, kTime, 0, 100'000 * kNs, "extra time of a translation miss"),
    PMSIM_FIELD(pmem, wear_stall_writes, kCount, 0, 1'000'000'000,
                "block writes to one wear region between two wear-levelling stalls; 0: never"),
    PMSIM_FIELD(pmem, wear_stall, kTime, 0, kMs, "time the module stops for wear levelling"),
    PMSIM_FIELD(pmem, wear_region, kSize, 256, kGiB, "bytes that wear levelling moves together"),
    PMSIM_FIELD(block, capacity, kSize, 0, 16 * kTiB, "capacity of the block device; 0: none"),
    PMSIM_FIELD(block, block_size, kSize, 512, 1024 * kKiB,
                "smallest unit of transfer; smaller requests are rounded up"),
    PMSIM_FIELD(block, read_latency, kTime, 0, 1000 * kMs, "device time of reading a block, without transfer"),
    PMSIM_FIELD(block, write_latency, kTime, 0, 1000 * kMs,
                "device time until a write is in the device's cache"),
    PMSIM_FIELD(block, program_latency, kTime, 0, 1000 * kMs,
                "time a unit needs to write a block to the medium"),
    PMSIM_FIELD(block, units, kCount, 1, 4096, "blocks that the medium serves at once (dies, heads)"),
    PMSIM_FIELD(block, queue_depth, kCount, 1, 65536, "commands outstanding at the device"),
    PMSIM_FIELD(block, read_bandwidth, kBandwidth, 1, 1'000'000'000'000, "cap on transfers from the device"),
    PMSIM_FIELD(block, write_bandwidth, kBandwidth, 1, 1'000'000'000'000, "cap on transfers to the device"),
    PMSIM_FIELD(block, write_cache, kSize, 0, kTiB, "write cache; 0: writes wait for the medium"),
    PMSIM_FIELD(block, write_cache_durable, kFlag, 0, 1,
                "capacitors write the cache out when the power fails: a flush does not wait for the medium"),
    PMSIM_FIELD(block, flush_latency, kTime, 0, 1000 * kMs,
                "FLUSH CACHE beyond writing what a volatile cache holds"),
    PMSIM_FIELD(block, seek_latency, kTime, 0, 1000 * kMs,
                "average head movement where a request is not adjacent"),
    PMSIM_FIELD(block, rotation_latency, kTime, 0, 1000 * kMs, "average rotational delay of such a request"),
    PMSIM_FIELD(block, software_latency, kTime, 0, 1000 * kMs,
                "system call, file system and block layer of one request"),
    PMSIM_FIELD(block, copy_bandwidth, kBandwidth, 1, 1'000'000'000'000,
                "copy between the page cache and the caller's buffer"),
};

#undef PMSIM_FIELD

void require(bool condition, const std::string& message) {
  if (!condition) {
    throw ConfigError(message);
  }
}

bool power_of_two(int64_t value) { return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value)); }

}  // namespace

std::span<const Field> fields() noexcept { return kFields; }

void validate(const PlatformParams& params) {
  auto copy = params;
  for (const Field& field : kFields) {
    const int64_t value = field.ref(copy);
    require(value >= field.minimum && value <= field.maximum,
            std::string(field.section) + "." + std::string(field.name) + " = " + std::to_string(value) +
                ": must be between " + std::to_string(field.minimum) + " and " + std::to_string(field.maximum));
  }
  require(power_of_two(params.tlb.page_size), "tlb.page_size: must be a power of two");
  require(power_of_two(params.tlb.dram_page_size), "tlb.dram_page_size: must be a power of two");
  require(power_of_two(params.pmem.block_size), "pmem.block_size: must be a power of two");
  require(power_of_two(params.dram.row_size), "dram.row_size: must be a power of two");
  require(params.pmem.dimms <= params.controller.channels,
          "pmem.dimms: more modules than controller.channels; a channel takes one module");
  require(params.pmem.interleave % params.pmem.block_size == 0,
          "pmem.interleave: must be a multiple of pmem.block_size");
  const int64_t blocks_of_region = params.pmem.wear_region / params.pmem.block_size;
  require(
      power_of_two(blocks_of_region) && blocks_of_region * params.pmem.block_size == params.pmem.wear_region,
      "pmem.wear_region: must be pmem.block_size times a power of two");
  require(params.controller.dram_interleave % 64 == 0,
          "controller.dram_interleave: must be a multiple of 64 B, a line");
  require(params.controller.dram_write_low < params.controller.dram_write_queue,
          "controller.dram_write_low: must be below controller.dram_write_queue");
  require(params.pmem.dimms == 0 || params.pmem.capacity > 0,
          "pmem.capacity: must be positive where pmem.dimms > 0");
  require(params.controller.memory_mode == 0 || (params.pmem.dimms > 0 && params.dram.capacity > 0),
          "controller.memory_mode: needs both dram.capacity and pmem.dimms");
  require(params.l1.size <= params.l2.size && params.l2.size <= params.llc.size,
          "l1.size, l2.size, llc.size: each level must be at least as large as the one before it");
}

}  // namespace pmsim::machine
