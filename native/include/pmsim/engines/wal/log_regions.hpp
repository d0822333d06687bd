#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/wal/commit_order.hpp"
#include "pmsim/engines/wal/horizon.hpp"
#include "pmsim/engines/wal/log_file.hpp"
#include "pmsim/engines/wal/record.hpp"

namespace pmsim::engines::wal {

/// Where the regions of a write-ahead log lie. The same places must be given after a restart.
struct LogPlace {
  Address log = 0;
  Address buffer = 0;  ///< DRAM
};

/// How many logs and buffers there are, and how two regions are cut into them. That of the log:
/// horizon of several logs | logs. That of the buffers: staging buffers | a sector for the horizon of several
/// logs | tails of the logs | latches.
class LogRegions {
 public:
  /// A batch buffer, in pages: unless options say something else, and at least (an operation may copy half a
  /// page on every level of the tree, and a root as a whole, into the half that early appends leave free; two
  /// pages as a whole where a hashed leaf splits).
  static constexpr std::uint64_t kBatchPages = 16, kLeastPages = 6, kLeastPagesHashed = 10;

  /// Throws ConfigError where the options cannot be.
  explicit LogRegions(const EngineOptions& options)
      : options_(options),
        latched_(Latches::are_needed(options)),
        per_thread_(options.logs == "per-thread" && options.threads > 1) {
    LogFile::check(options);
    if (options.logs != "shared" && options.logs != "per-thread")
      throw ConfigError("logs = \"" + options.logs + "\": must be shared or per-thread");
    if (options.commits != "single" && options.commits != "group")
      throw ConfigError("commits = \"" + options.commits + "\": must be single or group");
    if (options.commits == "group" && (!on_ssd() || options.logs != "shared"))
      throw ConfigError(
          "commits = \"group\": is for one log on the SSD; choose log_device = \"ssd\" and logs = "
          "\"shared\", or commits = \"single\"");
    if (per_thread_ && !is_kept())
      throw ConfigError(
          "log_device = \"" + options.log_device +
          "\": there is nothing that threads could have for themselves; choose logs = \"shared\"");
    if (per_thread_ && options.threads > CommitOrder::kMostLogs)
      throw ConfigError("threads = " + std::to_string(options.threads) + ": at most " +
                        std::to_string(CommitOrder::kMostLogs) + " can have a log each");
    const std::uint64_t pages = options.leaf_layout == "hash" ? kLeastPagesHashed : kLeastPages;
    const std::uint64_t least = pages * options.page_bytes;
    capacity_ = options.log_buffer_bytes != 0
                    ? options.log_buffer_bytes
                    : std::max(std::min(kBatchPages * options.page_bytes, log_bytes() / 10), least);
    capacity_ = blocks::log::round_up(capacity_, kSectorBytes);
    if (capacity_ < least)
      throw ConfigError("log_buffer_bytes = " + std::to_string(options.log_buffer_bytes) +
                        ": an operation that splits a page must fit into half of it; at least " +
                        std::to_string(least) + " (" + std::to_string(pages) + " pages) are needed");
  }
  /// Of a log, when it has been made: throws ConfigError where it has no room for four batches.
  void check_room(std::uint64_t log_capacity) const {
    if (log_capacity >= 4 * capacity_)
      return;
    constexpr std::uint64_t kSector = 512;  // logs begin at lines, or sectors
    const std::uint64_t missing = (4 * capacity_ - log_capacity + kSector - 1) / kSector * kSector;
    throw ConfigError("log_bytes = " + std::to_string(options_.log_bytes) + ": too small; choose at least " +
                      std::to_string(options_.log_bytes + missing * logs()) +
                      ", for four batches of log records and the log's own header" +
                      (per_thread_ ? ", of each thread" : ""));
  }

  [[nodiscard]] const EngineOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool on_ssd() const noexcept { return LogFile::on_ssd(options_); }
  [[nodiscard]] bool is_kept() const noexcept { return LogFile::is_kept(options_); }
  /// Whether there are several logs.
  [[nodiscard]] bool per_thread() const noexcept { return per_thread_; }
  [[nodiscard]] std::uint32_t logs() const noexcept { return per_thread_ ? options_.threads : 1; }
  [[nodiscard]] Stamps stamps() const noexcept { return per_thread_ ? Stamps::kOnRedo : Stamps::kNone; }
  /// Of a batch buffer, for records.
  [[nodiscard]] std::uint64_t batch_capacity() const noexcept { return capacity_; }

  /// Allocates what the options ask for.
  template <Memory M>
  [[nodiscard]] LogPlace allocate(M& memory) const {
    LogPlace place;
    if (is_kept())
      place.log = memory.allocate(on_ssd() ? memory::Medium::kBlock : memory::Medium::kPmem, options_.log_bytes,
                                  {.name = "write-ahead log"});
    place.buffer = memory.allocate(memory::Medium::kDram, latches({}) + latch_bytes(), {.name = "log buffer"});
    return place;
  }

  /// Staging buffers: one for each thread; with one log on SSD, which reads it from where it was made, one,
  /// unless several wait there to be written.
  [[nodiscard]] std::uint64_t buffers() const noexcept {
    return per_thread_ || (latched_ && !on_ssd()) || LogFile::gathers(options_) ? options_.threads : 1;
  }
  [[nodiscard]] Address staging(const LogPlace& place, std::uint64_t buffer) const noexcept {
    return place.buffer + buffer * staging_bytes();
  }
  /// One of the logs.
  [[nodiscard]] LogFile::Place log(const LogPlace& place, std::uint32_t index) const {
    return {.log = place.log + (per_thread_ ? Horizon::kBytes : 0) + index * log_bytes(),
            .bytes = log_bytes(),
            .staging = staging(place, index),
            .staging_bytes = staging_bytes(),
            .tail = tail(place, index),
            .tail_bytes = tail_bytes()};
  }
  /// Of several logs.
  [[nodiscard]] Horizon horizon(const LogPlace& place) const {
    return Horizon(on_ssd(), place.log, horizon_buffer(place));
  }
  /// Of one log: an entry is appended by one thread at a time; 0: there is no latch.
  [[nodiscard]] Address append_latch(const LogPlace& place) const {
    return latched_ && !per_thread_ ? latches(place) : 0;
  }
  /// Of several logs.
  [[nodiscard]] Address epoch_word(const LogPlace& place) const { return latches(place); }
  /// CommitOrder's; 0: there are none.
  [[nodiscard]] Address commit_latches(const LogPlace& place) const {
    return latched_ ? latches(place) + memory::kLineBytes : 0;
  }

 private:
  [[nodiscard]] std::uint64_t log_bytes() const noexcept {
    if (!per_thread_)
      return options_.log_bytes;
    const std::uint64_t all = options_.log_bytes - std::min(options_.log_bytes, Horizon::kBytes);
    return blocks::log::round_down(all / logs(), kSectorBytes);
  }
  [[nodiscard]] std::uint64_t staging_bytes() const noexcept {
    return LogFile::staging_bytes(BatchHead::kBytes + capacity_);
  }
  [[nodiscard]] std::uint64_t tail_bytes() const { return LogFile::tail_bytes(options_, capacity_); }
  [[nodiscard]] Address horizon_buffer(const LogPlace& place) const noexcept {
    return staging(place, buffers());
  }
  [[nodiscard]] Address tail(const LogPlace& place, std::uint32_t log) const {
    return horizon_buffer(place) + (per_thread_ ? Horizon::kBytes : 0) + log * tail_bytes();
  }
  [[nodiscard]] Address latches(const LogPlace& place) const {
    return blocks::log::round_up(tail(place, logs()), memory::kLineBytes);
  }
  [[nodiscard]] std::uint64_t latch_bytes() const noexcept {
    const std::uint64_t order = per_thread_ && latched_ ? CommitOrder::latch_bytes(logs()) : 0;
    return per_thread_ || latched_ ? memory::kLineBytes + order : 0;
  }

  EngineOptions options_;
  bool latched_;
  bool per_thread_;
  std::uint64_t capacity_ = 0;
};

}  // namespace pmsim::engines::wal
