#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "pmsim/blocks/log/classic.hpp"
#include "pmsim/blocks/log/header.hpp"
#include "pmsim/blocks/log/pmemlog.hpp"
#include "pmsim/blocks/log/poplog.hpp"
#include "pmsim/blocks/log/rawl.hpp"

namespace pmsim::blocks::log {

/// The names of the algorithms, as scenarios and the crash checker use them. header-dancing is Header with
/// more than one size field.
inline constexpr std::array<std::string_view, 6> kAlgorithms{"classic", "header", "header-dancing",
                                                             "rawl",    "poplog", "pmemlog"};
inline constexpr std::array<std::string_view, 3> kLayouts{"naive", "padded", "dram-tail"};

/// Throws ConfigError for an unknown name.
[[nodiscard]] inline Layout layout_named(std::string_view name) {
  for (std::size_t i = 0; i < kLayouts.size(); ++i) {
    if (kLayouts[i] == name)
      return static_cast<Layout>(i);
  }
  throw ConfigError("log: layout \"" + std::string(name) + "\" is unknown; choose naive, padded or dram-tail");
}

/// A log whose algorithm is chosen at run time. The interface is that of LogBase.
class AnyLog {
 public:
  /// Throws ConfigError for an unknown algorithm.
  template <Memory M>
  [[nodiscard]] static AnyLog create(M& memory, std::string_view algorithm, const Place& place,
                                     const Options& options) {
    if (algorithm == "classic")
      return AnyLog(ClassicLog::create(memory, place, options));
    if (algorithm == "header" || algorithm == "header-dancing")
      return AnyLog(HeaderLog::create(memory, place, with_fields(algorithm, options)));
    if (algorithm == "rawl")
      return AnyLog(RawlLog::create(memory, place, options));
    if (algorithm == "poplog")
      return AnyLog(PopLog::create(memory, place, options));
    if (algorithm == "pmemlog")
      return AnyLog(PmemLog::create(memory, place, options));
    unknown(algorithm);
  }
  template <Memory M>
  [[nodiscard]] static std::optional<AnyLog> recover(M& memory, std::string_view algorithm, const Place& place,
                                                     const Options& options) {
    if (algorithm == "classic")
      return wrap(ClassicLog::recover(memory, place, options));
    if (algorithm == "header" || algorithm == "header-dancing")
      return wrap(HeaderLog::recover(memory, place, with_fields(algorithm, options)));
    if (algorithm == "rawl")
      return wrap(RawlLog::recover(memory, place, options));
    if (algorithm == "poplog")
      return wrap(PopLog::recover(memory, place, options));
    if (algorithm == "pmemlog")
      return wrap(PmemLog::recover(memory, place, options));
    unknown(algorithm);
  }

  template <Memory M>
  Lsn append(M& memory, std::span<const std::byte> payload) {
    return std::visit([&](auto& log) { return log.append(memory, payload); }, log_);
  }
  template <Memory M>
  void commit(M& memory) {
    std::visit([&](auto& log) { log.commit(memory); }, log_);
  }
  template <Memory M>
  void truncate(M& memory) {
    std::visit([&](auto& log) { log.truncate(memory); }, log_);
  }
  /// Of the logs that know their entries: pmemlog refuses.
  template <Memory M>
  void truncate_to(M& memory, Lsn end) {
    std::visit(
        [&](auto& log) {
          if constexpr (requires { log.truncate_to(memory, end); })
            log.truncate_to(memory, end);
          else
            throw ConfigError(
                "log: pmemlog has no entries, so it is truncated as a whole; choose another algorithm");
        },
        log_);
  }
  template <Memory M, typename Visit>
  void for_each(M& memory, Visit&& visit, Lsn from = 0) const {
    std::visit(
        [&](const auto& log) {
          if constexpr (requires { log.for_each(memory, visit, from); })
            log.for_each(memory, visit, from);
          else
            log.for_each(memory, visit);
        },
        log_);
  }
  [[nodiscard]] bool fits(std::size_t payload) const {
    return std::visit([&](const auto& log) { return log.fits(payload); }, log_);
  }
  [[nodiscard]] std::uint64_t footprint(std::size_t payload) const {
    return std::visit([&](const auto& log) { return log.footprint(payload); }, log_);
  }
  [[nodiscard]] std::uint64_t capacity() const {
    return std::visit([](const auto& log) { return log.capacity(); }, log_);
  }
  [[nodiscard]] Lsn head() const {
    return std::visit([](const auto& log) { return log.head(); }, log_);
  }
  [[nodiscard]] Lsn tail() const {
    return std::visit([](const auto& log) { return log.tail(); }, log_);
  }

 private:
  using Variant = std::variant<ClassicLog, HeaderLog, RawlLog, PopLog, PmemLog>;

  explicit AnyLog(Variant log) : log_(std::move(log)) {}

  template <typename Log>
  [[nodiscard]] static std::optional<AnyLog> wrap(std::optional<Log> log) {
    return log ? std::optional(AnyLog(std::move(*log))) : std::nullopt;
  }
  [[nodiscard]] static Options with_fields(std::string_view algorithm, Options options) {
    if (algorithm == "header")
      options.fields = 1;
    return options;
  }
  [[noreturn]] static void unknown(std::string_view algorithm) {
    throw ConfigError("log: algorithm \"" + std::string(algorithm) +
                      "\" is unknown; choose classic, header, header-dancing, rawl, poplog or pmemlog");
  }

  Variant log_;
};

}  // namespace pmsim::blocks::log
