#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/workloads/access.hpp"
#include "pmsim/workloads/registry.hpp"
#include "pmsim/workloads/tlb_warmup.hpp"

namespace pmsim::workloads {

namespace {

using memory::kLineBytes;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;
/// Instructions that PerMA-Bench spends per random read beside the read itself: a 64-bit random number, a
/// division by the number of places, two indirect calls. Calibrated (perma-a256, rp_64): two independent chains
/// overlap in a window of 224 and only one in half of it, so it lies between 112 and 224; this and the next are
/// the CPU numbers of the family.
constexpr std::uint32_t kReadInstructions = 112;
/// Until the address of a random read is known: a multiplication of 128 bits, then `%`, a DIV of 64 bits
/// (perma-bench, ChainedOperation::get_random_address). Calibrated (perma-a256, rd_64 and random reads of
/// DRAM), too: 5 ns more than the dispatch of the instructions takes.
constexpr std::uint64_t kReadCycles = 44;
/// What a reading of the clock takes of the time that it measures: an RDTSCP, 25 to 35 cycles (Intel
/// Community, "High impact of rdtsc"), without the rest of `steady_clock::now()`.
constexpr std::uint64_t kClockCycles = 32;
constexpr std::uint32_t kClockInstructions = 22;
constexpr std::uint32_t kLineInstructions = 5;  ///< each further line of an access (rp_512 against rp_64)
constexpr std::uint32_t kWriteInstructions = 8;
/// One chain of so many is timed. PerMA-Bench samples few (latency_sample_frequency); here enough for a mean.
constexpr std::uint64_t kSampleEvery = 16;
constexpr std::int64_t kSettling = 20'000;  ///< lines until queues and buffers are as in a long run

struct Step {
  bool read = true;
  memory::Medium medium = memory::Medium::kPmem;
  std::uint64_t bytes = 0;
  Access access = Access::kLoad;
  std::optional<memory::FlushKind> flush;  ///< of all lines, when all have been stored
  bool persist = false;                    ///< ends with an sfence
  std::int64_t offset = 0;                 ///< writes: from the last address

  /// What a write has stored stays in the caches until it is evicted: it is not flushed, or that does nothing.
  [[nodiscard]] bool leaves_lines(bool caches_persist) const noexcept {
    return !persist || (caches_persist && access != Access::kStream);
  }
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) {
    text.remove_prefix(1);
  }
  if (text.empty() || text.size() > 12 || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::int64_t value = std::stoll(std::string(text));
  return negative ? -value : value;
}

/// PerMA-Bench's notation: r|w, p|d (PMem or DRAM), size, and for writes cache|cacheinv|nocache|none and an
/// offset from the last address.
Step parse_step(std::string_view text, const Parameters& parameters) {
  const auto refuse = [&](const std::string& problem) -> void {
    std::string message{text};
    message.append(": ").append(problem);
    message.append(
        "; write r[pd]_SIZE or w[pd]_SIZE_(cache|cacheinv|nocache|none)[_OFFSET], e.g. rp_64 or "
        "wp_64_cache_128");
    parameters.refuse("operations", message);
  };
  const std::vector<std::string_view> parts = split(text, '_');
  const bool known = parts[0] == "r" || parts[0] == "w" || parts[0] == "rp" || parts[0] == "wp" ||
                     parts[0] == "rd" || parts[0] == "wd";
  if (!known) {
    refuse("unknown operation");
  }
  Step step;
  step.read = parts[0].front() == 'r';
  step.medium = parts[0].size() == 2 && parts[0][1] == 'd' ? memory::Medium::kDram : memory::Medium::kPmem;
  if (parts.size() < 2 || (step.read && parts.size() != 2) ||
      (!step.read && (parts.size() < 3 || parts.size() > 4))) {
    refuse("wrong number of parts");
  }
  const std::optional<std::int64_t> bytes = whole_number(parts[1]);
  if (!bytes || *bytes < static_cast<std::int64_t>(kLineBytes) || *bytes % kLineBytes != 0 ||
      *bytes > (1 << 20)) {
    refuse("the size must be a multiple of 64 bytes, at most 1 MiB");
  }
  step.bytes = static_cast<std::uint64_t>(*bytes);
  if (step.read) {
    return step;
  }
  step.access = parts[2] == "nocache" ? Access::kStream : Access::kStore;
  if (parts[2] == "cache") {
    step.flush = memory::FlushKind::kClwb;
  } else if (parts[2] == "cacheinv") {
    step.flush = memory::FlushKind::kClflushOpt;
  } else if (parts[2] != "nocache" && parts[2] != "none") {
    refuse("unknown persist instruction");
  }
  step.persist = parts[2] != "none";
  if (parts.size() == 4) {
    const std::optional<std::int64_t> offset = whole_number(parts[3]);
    if (!offset || *offset % static_cast<std::int64_t>(kLineBytes) != 0) {
      refuse("the offset must be a multiple of 64 bytes");
    }
    step.offset = *offset;
  }
  return step;
}

/// Lines that one turn of a chain leaves in the caches: what it reads, less what it flushes, and what it writes
/// beside that. A read goes to a new place; writes stay near the last address.
std::int64_t lines_left_in_caches(const std::vector<Step>& steps, bool caches_persist) {
  std::size_t left = 0;
  std::set<std::int64_t> near;
  std::int64_t at = 0;
  for (const Step& step : steps) {
    if (step.read) {
      left += near.size();
      near.clear();
    }
    at = step.read ? 0 : at + step.offset;
    for (std::int64_t line = at; line < at + static_cast<std::int64_t>(step.bytes);
         line += static_cast<std::int64_t>(kLineBytes)) {
      if (!step.leaves_lines(caches_persist)) {
        near.erase(line);
      } else {
        near.insert(line);
      }
    }
  }
  return static_cast<std::int64_t>(left + near.size());
}

/// Every thread runs the chain over and over. A read goes to a random place, aligned to its size, that depends
/// on the value of the read before it in the chain; chains do not depend on each other and overlap as far as
/// the window allows. With `timed` some of them are timed, as PerMA-Bench samples them: each begins when all
/// loads before it have their values. The others keep the load up.
class Operations final : public Workload {
 public:
  Operations(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)), caches_persist_(platform.controller.eadr != 0), tlb_warmup_(seed) {
    const std::string text = parameters.text("operations");
    const auto threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
    const auto region_bytes = static_cast<std::uint64_t>(parameters.number("region_size", 4096, kMaxBytes));
    timed_ = parameters.number("timed", 0, 1) != 0;
    bool uses_dram = false;
    bool uses_pmem = false;
    std::int64_t lines = 0;
    bool stores = false;
    for (const std::string_view part : split(text, ',')) {
      steps_.push_back(parse_step(part, parameters));
      if (!steps_.front().read)
        parameters.refuse("operations", "a chain begins with a read; there is no last address before it");
      (steps_.back().medium == memory::Medium::kDram ? uses_dram : uses_pmem) = true;
      stores = stores || (!steps_.back().read && steps_.back().leaves_lines(caches_persist_));
      lines += static_cast<std::int64_t>(steps_.back().bytes / kLineBytes);
      if (steps_.back().bytes > region_bytes) {
        parameters.refuse("region_size", "is smaller than the largest access of the chain");
      }
    }
    const memory::RegionOptions options{
        .name = "region", .alignment = 1 << 21, .backing = memory::Backing::kNone};
    if (uses_dram) {
      dram_ = memory_.allocate(memory::Medium::kDram, region_bytes, options);
    }
    if (uses_pmem) {
      pmem_ = memory_.allocate(memory::Medium::kPmem, region_bytes, options);
    }
    region_bytes_ = region_bytes;
    shares_lines_ = meet_in_caches(platform, threads, region_bytes);
    chains_.resize(threads);
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      randoms_.emplace_back(mix64(seed) + thread);
    }
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      if (uses_dram)
        tlb_warmup_.add(platform, thread, dram_, region_bytes);
      if (uses_pmem)
        tlb_warmup_.add(platform, thread, pmem_, region_bytes);
    }
    const std::int64_t warm = tlb_warmup_.operations() + warmup(platform, lines, stores) + 1;
    const std::int64_t settling = std::min(warm, kSettling / lines);
    length_ =
        machine::RunLength::in_order(warm - settling, settling, std::max<std::int64_t>(60'000 / lines, 2'000));
  }

  [[nodiscard]] std::uint32_t threads() const override { return static_cast<std::uint32_t>(randoms_.size()); }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return memory_.regions().pmem_footprint(); }
  [[nodiscard]] bool shares_lines() const noexcept override { return shares_lines_; }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (tlb_warmup_.refill(memory_, thread, stream))
      return;
    memory_.attach(stream, thread);
    Random& random = randoms_[thread];
    if (timed_ && chains_[thread]++ % kSampleEvery == 0) {
      stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kDependent);
      memory_.compute(kClockCycles, kClockInstructions);
    }
    std::uint64_t offset = 0;  // of the last address, in the region
    bool dependent = false;    // nothing has been read yet
    std::uint64_t bytes = 0;
    bool unfenced = false;
    for (const Step& step : steps_) {
      if (std::exchange(unfenced, false)) {
        memory_.sfence();
      }
      const memory::Address base = step.medium == memory::Medium::kDram ? dram_ : pmem_;
      bytes += step.bytes;
      if (step.read) {
        memory_.compute(kReadCycles, kReadInstructions + further_lines(step) * kLineInstructions);
        offset = random.below(region_bytes_ / step.bytes) * step.bytes;
        read(base + offset, step.bytes, dependent);
        dependent = true;
      } else {
        memory_.compute(0, kWriteInstructions + further_lines(step) * kLineInstructions);
        offset = wrap(offset, step);
        write(base + offset, step);
        unfenced = step.persist;
      }
    }
    // The benchmark takes both times with rdtscp, which waits for loads but not for stores to become visible
    // (Intel SDM, vol. 2B): the last fence of a chain still waits then, beside the loads of the next chain.
    stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(bytes), memory::kDependent);
    if (unfenced) {
      memory_.sfence();
    }
  }

 private:
  /// Chains before the caches are as a long run has them. Stores that nothing flushes reach memory only when
  /// these are full of them; random reads find their page-table entries there as far as these fit, which does
  /// not change any more once each entry's line has been met or the caches have been filled.
  [[nodiscard]] std::int64_t warmup(const machine::PlatformParams& platform, std::int64_t lines,
                                    bool stores) const {
    const std::int64_t cached = cached_lines(platform, threads());
    if (stores) {
      return cached * 3 / 2 / std::max<std::int64_t>(1, lines_left_in_caches(steps_, caches_persist_));
    }
    std::int64_t chains = kSettling / lines;
    for (const Step& step : steps_) {
      if (step.read) {
        const auto region_lines = static_cast<std::int64_t>(region_bytes_ / kLineBytes);
        chains = std::max({chains,
                           accesses_to_warm_page_tables(platform, step.medium, region_bytes_, cached / lines),
                           loads_to_fill_caches(platform, threads(), region_lines, true) / lines});
      }
    }
    return chains;
  }

  [[nodiscard]] static std::uint32_t further_lines(const Step& step) {
    return static_cast<std::uint32_t>(step.bytes / kLineBytes - 1);
  }

  void read(memory::Address address, std::uint64_t bytes, bool dependent) {
    if (dependent) {
      static_cast<void>(memory_.load_dependent<Line>(address));
    } else {
      touch_line(memory_, address, Access::kLoad);
    }
    for (std::uint64_t done = kLineBytes; done < bytes; done += kLineBytes) {
      touch_line(memory_, address + done, Access::kLoad);
    }
  }

  /// All stores of an access, then all its flushes, as in the program (perma-bench, src/read_write_ops.hpp).
  void write(memory::Address address, const Step& step) {
    for (std::uint64_t done = 0; done < step.bytes; done += kLineBytes) {
      touch_line(memory_, address + done, step.access);
    }
    if (step.flush) {
      memory_.flush(address, step.bytes, *step.flush);
    }
  }

  /// Last address plus the step's offset, kept inside the region.
  [[nodiscard]] std::uint64_t wrap(std::uint64_t offset, const Step& step) const {
    const auto places = static_cast<std::int64_t>(region_bytes_ - step.bytes + kLineBytes);
    const std::int64_t moved = (static_cast<std::int64_t>(offset) + step.offset) % places;
    return static_cast<std::uint64_t>(moved < 0 ? moved + places : moved) / kLineBytes * kLineBytes;
  }

  memory::SimMemory memory_;
  bool caches_persist_;
  std::vector<Step> steps_;
  std::vector<Random> randoms_;
  std::vector<std::uint64_t> chains_;  ///< begun, by thread
  memory::Address dram_ = 0;
  memory::Address pmem_ = 0;
  std::uint64_t region_bytes_ = 0;
  bool timed_ = false;
  bool shares_lines_ = false;
  TlbWarmup tlb_warmup_;
  machine::RunLength length_;
};

}  // namespace

std::unique_ptr<Workload> make_operations(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed) {
  return std::make_unique<Operations>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
