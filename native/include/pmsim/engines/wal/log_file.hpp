#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "pmsim/blocks/log/any.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/engines/wal/no_log.hpp"
#include "pmsim/engines/wal/sector_log.hpp"

namespace pmsim::engines::wal {

/// A log of batches on the device that the options name: one of blocks/log on PMem, sectors of the SSD, or
/// nothing (NoLog). A batch is made in DRAM, `kHeadBytes` behind the begin of a staging buffer, and appended
/// from there.
///
/// What is durable when: as the log's that it is. append(): the batch, when it returns.
class LogFile {
  using Log = std::variant<blocks::log::AnyLog, SectorLog, NoLog>;

  template <typename Question>
  [[nodiscard]] auto ask(Question question) const {
    return std::visit(question, log_);
  }

 public:
  /// Of the staging buffer, left for the header of an entry on SSD.
  static constexpr std::uint64_t kHeadBytes = SectorLog::kHeadBytes;

  struct Place {
    Address log = 0;  ///< on the device
    std::uint64_t bytes = 0;
    Address staging = 0;  ///< DRAM
    std::uint64_t staging_bytes = 0;
    Address tail = 0;  ///< DRAM, of Layout::kDramTail
    std::uint64_t tail_bytes = 0;
  };

  /// Throws ConfigError for a device that there is not, and for a log without entries.
  static void check(const EngineOptions& options) {
    if (options.log_device != "pmem" && options.log_device != "ssd" && is_kept(options))
      throw ConfigError("log_device = \"" + options.log_device + "\": must be pmem, ssd, unwritten or none");
    const auto& known = blocks::log::kAlgorithms;
    if (is_kept(options) && !on_ssd(options) &&
        std::ranges::find(known, options.log_algorithm) != known.end() &&
        !blocks::log::has_entries(options.log_algorithm))
      throw ConfigError("log_algorithm = \"" + options.log_algorithm +
                        "\": it keeps no entries, so a restart could not tell transactions apart; choose " +
                        blocks::log::known_algorithms(true));
  }
  [[nodiscard]] static bool on_ssd(const EngineOptions& options) noexcept {
    return options.log_device == "ssd";
  }
  [[nodiscard]] static bool is_kept(const EngineOptions& options) noexcept {
    return options.log_device != "unwritten" && options.log_device != "none";
  }
  /// Whether threads commit in groups.
  [[nodiscard]] static bool gathers(const EngineOptions& options) noexcept {
    return on_ssd(options) && options.commits == "group" && options.threads > 1;
  }
  /// Of staging, for batches of so many bytes: room for an entry's header, and a sector (SectorLog).
  [[nodiscard]] static std::uint64_t staging_bytes(std::uint64_t batch) noexcept {
    return blocks::log::round_up(kHeadBytes + batch, kSectorBytes) + kSectorBytes;
  }
  /// Of the tail: the largest entry of any algorithm, and the line that it begins in.
  [[nodiscard]] static std::uint64_t tail_bytes(const EngineOptions& options, std::uint64_t batch) {
    return is_kept(options) && !on_ssd(options) && options.log_layout == "dram-tail"
               ? blocks::log::round_up(batch + batch / 32 + 1024, memory::kLineBytes)
               : 0;
  }

  /// An empty log; durable on return.
  template <Memory M>
  [[nodiscard]] static LogFile create(M& memory, const EngineOptions& options, const Place& place) {
    if (!is_kept(options))
      return LogFile(NoLog(), place);
    if (on_ssd(options))
      return LogFile(SectorLog::create(memory, place.log, place.bytes, place.staging, place.staging_bytes),
                     place, gathers(options));
    return LogFile(
        blocks::log::AnyLog::create(memory, options.log_algorithm, block_place(place), block_options(options)),
        place);
  }
  /// What create() has made, after a restart; nothing where it had not finished.
  template <Memory M>
  [[nodiscard]] static std::optional<LogFile> recover(M& memory, const EngineOptions& options,
                                                      const Place& place) {
    const auto found = [&](auto log) -> std::optional<LogFile> {
      return log ? std::optional(LogFile(*std::move(log), place, gathers(options))) : std::nullopt;
    };
    if (on_ssd(options))
      return found(SectorLog::recover(memory, place.log, place.bytes, place.staging, place.staging_bytes));
    return found(blocks::log::AnyLog::recover(memory, options.log_algorithm, block_place(place),
                                              block_options(options)));
  }

  [[nodiscard]] std::uint64_t capacity() const {
    return ask([](const auto& log) { return log.capacity(); });
  }
  [[nodiscard]] Lsn head() const {
    return ask([](const auto& log) { return log.head(); });
  }
  [[nodiscard]] Lsn tail() const {
    return ask([](const auto& log) { return log.tail(); });
  }
  [[nodiscard]] std::uint64_t used() const { return tail() - head(); }
  /// Whether so many bytes fit now, in entries of `piece` bytes or more but for the last one.
  [[nodiscard]] bool has_room(std::uint64_t bytes, std::uint64_t piece) const {
    return ask([&](const auto& log) {
      const std::uint64_t rest = bytes % piece;
      return bytes / piece * log.footprint(piece) + (rest > 0 ? log.footprint(rest) : 0) <= log.free();
    });
  }
  /// Appends `bytes` from `batch`, in a staging buffer. `latch()` holds others off, from where they meet, to
  /// where the batch is durable or, of a group, handed over. `placed()` is called when whoever comes later is
  /// behind it in the log, before the batch is durable. Returns the bytes of log that it takes, with the
  /// entry's header and padding.
  template <Memory M, typename Latch, typename Placed>
  std::uint64_t append(M& memory, std::uint64_t bytes, Address batch, Latch&& latch, Placed&& placed) {
    const Lsn begin = tail();
    if (auto* log = std::get_if<SectorLog>(&log_); log != nullptr && gathers_) {
      std::uint64_t gathered = 0;
      Lsn end = 0;
      {
        const auto alone = latch();
        gathered = gathered_ = log->gather(memory, bytes, batch - kHeadBytes);
        end = log->tail();
      }
      placed();
      SectorLog::commit(memory, gathered);
      durable_ = std::max(durable_, end);
      return log->footprint(bytes);  // others may have appended meanwhile
    } else if (log != nullptr) {
      const auto alone = latch();
      placed();
      log->append(memory, bytes);
    } else if (auto* dropped = std::get_if<NoLog>(&log_)) {
      dropped->append(bytes);
    } else {
      if (registers_.size() < bytes)
        registers_.resize(bytes);
      const auto payload = std::span(registers_).first(bytes);
      memory.read(batch, payload);
      const auto alone = latch();
      placed();
      std::get<blocks::log::AnyLog>(log_).append(memory, payload);
    }
    return tail() - begin;
  }
  /// Returns when what lies before `end` is durable. Only a member of a group may have been handed over and not
  /// be.
  template <Memory M>
  void make_durable(M& memory, Lsn end) {
    if (!gathers_ || end <= durable_)
      return;
    const Lsn all = tail();
    SectorLog::commit(memory, gathered_);
    durable_ = std::max(durable_, all);
  }
  /// `end`: the position of a batch, or the tail.
  template <Memory M>
  void truncate_to(M& memory, Lsn end) {
    std::visit([&](auto& log) { log.truncate_to(memory, end); }, log_);
  }
  /// The batch at `at`, and the position behind it; nothing at the tail. From an SSD by way of `staging`, of
  /// which nothing stays.
  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read(M& memory, Lsn at, std::vector<std::byte>& batch, Address staging,
                                        SectorLog::Window* ahead = nullptr) const {
    return ask([&](const auto& log) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(log)>, SectorLog>)
        return log.read(memory, at, batch, staging, ahead);
      else
        return log.read(memory, at, batch);
    });
  }
  /// The same, one batch after the other, by way of the log's own buffer, while no transaction is under way.
  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read_ahead(M& memory, Lsn at, std::vector<std::byte>& batch,
                                              SectorLog::Window& ahead) const {
    return read(memory, at, batch, place_.staging, &ahead);
  }

 private:
  LogFile(Log log, const Place& place, bool gathers = false)
      : log_(std::move(log)), place_(place), gathers_(gathers), durable_(tail()) {}

  [[nodiscard]] static blocks::log::Place block_place(const Place& place) noexcept {
    return {place.log, place.bytes, place.tail_bytes == 0 ? 0 : place.tail, place.tail_bytes};
  }
  [[nodiscard]] static blocks::log::Options block_options(const EngineOptions& options) {
    return {.layout = blocks::log::layout_named(options.log_layout), .fields = 64};
  }

  Log log_;
  Place place_;
  bool gathers_;
  std::uint64_t gathered_ = 0;        ///< of groups: the latest of which has been handed over
  Lsn durable_ = 0;                   ///< of groups: what lies before it is
  std::vector<std::byte> registers_;  ///< a batch is copied through them to the log
};

}  // namespace pmsim::engines::wal
