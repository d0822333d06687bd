#include <algorithm>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/workloads/access.hpp"
#include "pmsim/workloads/registry.hpp"
#include "pmsim/workloads/tlb_warmup.hpp"

namespace pmsim::workloads {

namespace {

using memory::kLineBytes;

enum class Pattern : std::uint8_t { kRandom, kSequential, kStrided };

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;
constexpr std::uint32_t kChunkInstructions =
    12;  ///< drawing the next address: LATTester's shift register, OptaneStudy memaccess.c
/// Instructions of a loop over a list of addresses, beside the load of the next one: PerMA-Bench,
/// read_write_ops.hpp.
constexpr std::uint32_t kListInstructions = 3;
constexpr std::int64_t kMostInstructions = 1 << 20;
constexpr std::int64_t kLongestWarmupLines = 1'400'000;
constexpr std::int64_t kSettling = 24'000;  ///< lines until queues and buffers of today's are as in a long run
/// Of longer chunks the translation of their page hardly shows.
constexpr std::uint64_t kTranslatedOften = 4096;
constexpr std::uint64_t kLinesPerPiece =
    16;  ///< a long chunk is executed in pieces, so that streams stay short
constexpr std::int64_t kMaxWindow = std::int64_t{1} << 26;  ///< its flushes are one piece

/// Chunks of `access_size` bytes, line by line, back to back: the bandwidth microbenchmark of all published
/// studies.
class Bandwidth final : public Workload {
 public:
  Bandwidth(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)), tlb_warmup_(seed) {
    const std::string medium = parameters.choice("memory", {"dram", "pmem"});
    access_ = access_named(parameters.choice(
        "operation", {"load", "store", "store+clwb", "load+store", "load+store+clwb", "ntstore"}));
    const std::string pattern = parameters.choice("pattern", {"random", "sequential", "strided"});
    pattern_ = pattern == "random"       ? Pattern::kRandom
               : pattern == "sequential" ? Pattern::kSequential
                                         : Pattern::kStrided;
    const auto threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
    chunk_bytes_ = static_cast<std::uint64_t>(parameters.number("access_size", kLineBytes, kMaxBytes));
    const auto stride = static_cast<std::uint64_t>(parameters.number("stride", 0, kMaxBytes));
    const auto alignment = static_cast<std::uint64_t>(parameters.number("alignment", 0, kMaxBytes));
    const bool shared = parameters.number("shared_region", 0, 1) != 0;
    const auto region_bytes =
        static_cast<std::uint64_t>(parameters.number("region_size", kLineBytes, kMaxBytes));
    fence_every_ = static_cast<std::uint64_t>(parameters.number("fence_every", 0, kMaxBytes));
    const auto flush_every =
        static_cast<std::uint64_t>(parameters.number("flush_every", kLineBytes, kMaxWindow));
    list_bytes_ = static_cast<std::uint64_t>(parameters.number("address_list", 0, kMaxBytes));
    const std::uint32_t finding = list_bytes_ > 0                ? kListInstructions
                                  : pattern_ == Pattern::kRandom ? kChunkInstructions
                                                                 : 0;
    instructions_ =
        finding + static_cast<std::uint32_t>(parameters.number("instructions", 0, kMostInstructions));
    if (access_ == Access::kStoreClwb || access_ == Access::kUpdateClwb) {
      window_bytes_ = flush_every;
    }
    if (chunk_bytes_ % kLineBytes != 0) {
      parameters.refuse("access_size", "must be a multiple of 64 bytes");
    }
    if (pattern_ == Pattern::kStrided && (stride < chunk_bytes_ || stride % kLineBytes != 0)) {
      parameters.refuse("stride", "must be a multiple of 64 bytes and at least access_size");
    }
    const std::uint64_t step = pattern_ == Pattern::kStrided ? stride : chunk_bytes_;
    if (alignment % kLineBytes != 0) {
      parameters.refuse("alignment", "must be a multiple of 64 bytes");
    }
    const bool partitioned = !shared || pattern_ != Pattern::kRandom;
    const std::uint64_t part_bytes = region_bytes / step / (partitioned ? threads : 1) * step;
    slot_bytes_ = pattern_ == Pattern::kRandom && alignment != 0 ? alignment : step;
    slots_ = part_bytes < chunk_bytes_ ? 0 : (part_bytes - chunk_bytes_) / slot_bytes_ + 1;
    if (slots_ == 0) {
      parameters.refuse("region_size", partitioned && threads > 1
                                           ? "too small: each thread needs room for one access of its own"
                                           : "is smaller than access_size (or stride)");
    }
    shares_lines_ = !partitioned && meet_in_caches(platform, threads, region_bytes);
    const memory::Medium on = medium == "dram" ? memory::Medium::kDram : memory::Medium::kPmem;
    const memory::Address base = memory_.allocate(
        on, region_bytes, {.name = "region", .alignment = 1 << 21, .backing = memory::Backing::kNone});
    footprint_ = on == memory::Medium::kPmem ? region_bytes : 0;
    const memory::Address lists =
        list_bytes_ > 0
            ? memory_.allocate(memory::Medium::kDram, list_bytes_ * threads,
                               {.name = "lists", .alignment = 1 << 21, .backing = memory::Backing::kNone})
            : 0;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      Thread state{.random = Random(mix64(seed) + thread), .base = base};
      state.base += partitioned ? thread * part_bytes : 0;
      // Threads of a real run drift apart: sequential ones begin at different places of their part.
      state.slot = pattern_ == Pattern::kRandom ? 0 : state.random.below(slots_);
      state.list = lists + thread * list_bytes_;
      threads_.push_back(state);
    }
    const auto lines_in_piece = static_cast<std::int64_t>(std::min(kLinesPerPiece, chunk_bytes_ / kLineBytes));
    const auto lines_in_chunk = static_cast<std::int64_t>(chunk_bytes_ / kLineBytes);
    const bool flushed = access_ != Access::kStore && access_ != Access::kUpdate;
    // Stores reach memory only when the caches are full of dirty lines; everything else is steady soon.
    const std::int64_t stores = access_ == Access::kLoad || access_ == Access::kStream
                                    ? 0
                                    : stores_to_fill_caches(platform, threads, flushed);
    const std::int64_t settling =
        on == memory::Medium::kPmem ? std::max(kSettling, lines_to_fill_modules(platform)) : kSettling;
    std::int64_t warmup_lines = std::max(settling, stores);
    if (pattern_ == Pattern::kRandom && chunk_bytes_ < kTranslatedOften) {
      warmup_lines = std::max(
          warmup_lines,
          std::min(kLongestWarmupLines, lines_in_chunk * accesses_to_warm_page_tables(
                                                             platform, on, region_bytes, kLongestWarmupLines)));
    }
    if (access_ == Access::kLoad || stores > 0) {
      const auto region_lines = static_cast<std::int64_t>(region_bytes / kLineBytes);
      const bool random = pattern_ == Pattern::kRandom;
      warmup_lines = std::max(warmup_lines, loads_to_fill_caches(platform, threads, region_lines, random));
    }
    // Long enough for each thread to meet several whole chunks: which modules the chunks of a moment share is
    // chance.
    constexpr std::int64_t kChunks = 4;
    constexpr std::int64_t kMostForChunks = 1'500'000;
    const std::int64_t several_chunks = std::min(kChunks * threads * lines_in_chunk, kMostForChunks);
    // After a long warm-up a measurement that is longer, too, costs little and leaves less to chance.
    std::int64_t measured_lines =
        std::max<std::int64_t>({80'000, 2'500 * std::int64_t{threads}, several_chunks, warmup_lines / 4});
    if (window_bytes_ > kLineBytes) {
      // Whole windows: some would be measured without their flushes, or the flushes without their stores.
      const std::int64_t windows = static_cast<std::int64_t>(window_bytes_ / kLineBytes) * threads;
      warmup_lines = (warmup_lines + windows - 1) / windows * windows;
      rounds_ = (measured_lines + windows - 1) / windows;
      measured_lines = rounds_ * windows;
    }
    if (pattern_ == Pattern::kRandom && chunk_bytes_ < kTranslatedOften) {
      for (std::uint32_t thread = 0; thread < threads; ++thread)
        tlb_warmup_.add(platform, thread, threads_[thread].base, part_bytes);
    }
    length_.warmup_operations = tlb_warmup_.operations() + warmup_lines / lines_in_piece;
    length_.measured_operations = measured_lines / lines_in_piece;
    // Windows are measured whole, by threads that are about as far as each other.
    if (rounds_ == 0)
      length_.untimed_operations = length_.warmup_operations - settling / lines_in_piece;
  }

  [[nodiscard]] std::uint32_t threads() const override { return static_cast<std::uint32_t>(threads_.size()); }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  /// A part of a window has its stores, or its flushes: what batches differ by would not be chance.
  [[nodiscard]] std::uint32_t batches() const override {
    const std::int64_t usual = Workload::batches();
    if (rounds_ == 0)
      return static_cast<std::uint32_t>(usual);
    const std::int64_t times = length().measured_operations / length_.measured_operations;
    return static_cast<std::uint32_t>(std::min(usual, rounds_ * times));
  }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return footprint_; }
  [[nodiscard]] bool shares_lines() const noexcept override { return shares_lines_; }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (tlb_warmup_.refill(memory_, thread, stream))
      return;
    memory_.attach(stream, thread);
    Thread& state = threads_[thread];
    for (std::uint64_t lines = 0; lines < kLinesPerPiece;) {
      if (state.remaining == 0) {
        start_chunk(state);
      }
      const std::uint64_t bytes = std::min<std::uint64_t>(state.remaining, kLinesPerPiece * kLineBytes);
      touch(state, bytes);
      stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(bytes));
      state.address += bytes;
      state.remaining -= bytes;
      lines += bytes / kLineBytes;
    }
  }

 private:
  struct Thread {
    Random random;
    memory::Address base;
    memory::Address address = 0;
    std::uint64_t remaining = 0;
    std::uint64_t slot = 0;
    memory::Address list = 0;  ///< where the list of its addresses begins
    std::uint64_t listed = 0;  ///< bytes of the list that have been read
    std::uint64_t unfenced = 0;
    memory::Address window_begin = 0;  ///< stored to and not flushed
    memory::Address window_end = 0;
  };

  void touch(Thread& state, std::uint64_t bytes) {
    if (fence_every_ == 0 && window_bytes_ <= kLineBytes) {
      touch_lines(memory_, state.address, bytes, access_);
      return;
    }
    for (std::uint64_t done = 0; done < bytes; done += kLineBytes) {
      if (window_bytes_ <= kLineBytes) {
        touch_line(memory_, state.address + done, access_);
      } else {
        store_in_window(state, state.address + done);
      }
      state.unfenced += kLineBytes;
      if (fence_every_ > 0 && state.unfenced >= fence_every_) {
        flush_window(state);
        memory_.sfence();
        state.unfenced = 0;
      }
    }
  }

  /// A window is as many lines in a row as `flush_every` says, fewer where the next chunk lies elsewhere.
  void store_in_window(Thread& state, memory::Address line) {
    if (line != state.window_end) {
      flush_window(state);
      state.window_begin = line;
    }
    touch_line(memory_, line, access_ == Access::kUpdateClwb ? Access::kUpdate : Access::kStore);
    state.window_end = line + kLineBytes;
    if (state.window_end - state.window_begin >= window_bytes_) {
      flush_window(state);
    }
  }

  void flush_window(Thread& state) {
    memory_.flush(state.window_begin, state.window_end - state.window_begin);
    state.window_begin = state.window_end;
  }

  void start_chunk(Thread& state) {
    if (instructions_ > 0) {
      memory_.compute(0, instructions_);
    }
    if (list_bytes_ > 0) {
      // The access does not wait for its address: assumed, as the prefetcher of L1, which follows strides of
      // one instruction, is not in the model.
      consume(memory_.load<std::uint64_t>(state.list + state.listed));
      state.listed = (state.listed + sizeof(std::uint64_t)) % list_bytes_;
    }
    if (pattern_ == Pattern::kRandom) {
      state.address = state.base + state.random.below(slots_) * slot_bytes_;
    } else {
      state.address = state.base + state.slot * slot_bytes_;
      state.slot = state.slot + 1 == slots_ ? 0 : state.slot + 1;
    }
    state.remaining = chunk_bytes_;
  }

  memory::SimMemory memory_;
  Access access_{};
  Pattern pattern_{};
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t slot_bytes_ = 0;  ///< from one place for a chunk to the next
  std::uint64_t fence_every_ = 0;
  std::uint64_t window_bytes_ = 0;  ///< stored before they are flushed; 0: nothing is flushed
  std::uint64_t list_bytes_ = 0;    ///< of each thread: its addresses are read from a list in DRAM; 0: computed
  std::uint32_t instructions_ = 0;  ///< between a chunk and the next, with those that find where it begins
  std::uint64_t slots_ = 0;         ///< places for a chunk in a thread's part of the region
  std::uint64_t footprint_ = 0;
  bool shares_lines_ = false;
  TlbWarmup tlb_warmup_;
  machine::RunLength length_;
  std::int64_t rounds_ = 0;  ///< windows of each thread that are measured; 0: there are none
  std::vector<Thread> threads_;
};

}  // namespace

std::unique_ptr<Workload> make_bandwidth(Parameters& parameters, const machine::PlatformParams& platform,
                                         std::uint64_t seed) {
  return std::make_unique<Bandwidth>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
