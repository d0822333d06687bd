#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pmsim/blocks/log/any.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::blocks::log {

/// What Fig. 8 measures: threads that append entries of one size, each to its own log.
struct DriverOptions {
  std::string algorithm = "poplog";
  Layout layout = Layout::kPadded;
  std::uint64_t entry_size = 512;  ///< bytes of payload, a multiple of 8
  std::uint32_t group_commit = 1;
  std::uint32_t dancing_fields = 64;
  std::uint64_t log_size = std::uint64_t{1} << 30;  ///< per thread; a full log is truncated and used again
  std::uint32_t threads = 1;
  std::uint32_t cpu_cycles = 0;  ///< per append, besides the instructions that the algorithms count
  memory::Medium medium = memory::Medium::kPmem;
  std::uint64_t seed = 0;
};

/// Common to the simulated workload and to measurements on real memory. One operation is one append; the last
/// of a group waits for the group's commit. Set-up (creation) is not an operation.
template <Memory M>
class LogDriver {
 public:
  LogDriver(M& memory, const DriverOptions& options) : options_(options), payloads_(payload_bytes(options)) {
    Random random(mix64(options.seed));
    for (std::size_t at = 0; at < payloads_.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = random.next();
      std::memcpy(payloads_.data() + at, &word, sizeof word);
    }
    // RAWL adds most: its header, and a word for each 63 of payload.
    const std::uint64_t entry_bytes = options.entry_size + options.entry_size / 32 + kLineBytes;
    const std::uint64_t group_bytes = round_up(entry_bytes * options.group_commit, kLineBytes);
    for (std::uint32_t thread = 0; thread < options.threads; ++thread) {
      Place place{.bytes = options.log_size};
      place.base = memory.allocate(options.medium, place.bytes, {.name = "log", .alignment = 1 << 21});
      if (options.layout == Layout::kDramTail) {
        place.buffer_bytes = group_bytes + 2 * kLineBytes;
        place.buffer = memory.allocate(memory::Medium::kDram, place.buffer_bytes, {.name = "tail buffer"});
      }
      const Options log_options{.layout = options.layout,
                                .group_commit = options.group_commit,
                                .fields = options.dancing_fields,
                                .key = random.next()};
      threads_.push_back({AnyLog::create(memory, options.algorithm, place, log_options), 0});
      if (!threads_.back().log.fits(options.entry_size))
        throw ConfigError("log_size: too small; an entry needs " +
                          std::to_string(threads_.back().log.footprint(options.entry_size)) + " of " +
                          std::to_string(threads_.back().log.capacity()) + " bytes");
    }
  }

  void operation(M& memory, std::uint32_t thread) {
    Thread& state = threads_[thread];
    if (!state.log.fits(options_.entry_size)) [[unlikely]]
      state.log.truncate(memory);
    state.next = state.next + sizeof(std::uint64_t) < kPayloadPool ? state.next + sizeof(std::uint64_t) : 0;
    if (options_.cpu_cycles > 0)
      memory.compute(options_.cpu_cycles, 0);
    state.log.append(memory, std::span(payloads_).subspan(state.next, options_.entry_size));
  }

  [[nodiscard]] const AnyLog& log(std::uint32_t thread) const { return threads_[thread].log; }
  [[nodiscard]] std::uint64_t persistent_bytes() const noexcept { return options_.log_size * options_.threads; }

 private:
  static constexpr std::uint64_t kPayloadPool = 4096;  ///< entries are windows of it, so they differ

  struct Thread {
    AnyLog log;
    std::uint64_t next;
  };

  [[nodiscard]] static std::size_t payload_bytes(const DriverOptions& options) {
    if (options.entry_size == 0 || options.entry_size % kWord != 0 ||
        options.entry_size > EntryHeader::kMaxPayload)
      throw ConfigError("entry_size: must be a multiple of 8 bytes, at most 256 MiB");
    return kPayloadPool + options.entry_size;
  }

  DriverOptions options_;
  std::vector<std::byte> payloads_;
  std::vector<Thread> threads_;
};

}  // namespace pmsim::blocks::log
