#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pmsim/blocks/log/all.hpp"

namespace pmsim::blocks::log {

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
    return *named(algorithm, options, [&]<typename Log>(const Options& own) -> std::optional<AnyLog> {
      return AnyLog(Log::create(memory, place, own));
    });
  }
  template <Memory M>
  [[nodiscard]] static std::optional<AnyLog> recover(M& memory, std::string_view algorithm, const Place& place,
                                                     const Options& options) {
    return named(algorithm, options, [&]<typename Log>(const Options& own) -> std::optional<AnyLog> {
      std::optional<Log> log = Log::recover(memory, place, own);
      return log ? std::optional(AnyLog(std::move(*log))) : std::nullopt;
    });
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
  /// Of the logs that know their entries; the others refuse.
  template <Memory M>
  void truncate_to(M& memory, Lsn end) {
    std::visit(
        [&](auto& log) {
          if constexpr (requires { log.truncate_to(memory, end); })
            log.truncate_to(memory, end);
          else
            refuse("it is truncated as a whole");
        },
        log_);
  }
  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read(M& memory, Lsn at, std::vector<std::byte>& payload) const {
    return std::visit(
        [&](const auto& log) -> std::optional<Lsn> {
          if constexpr (requires { log.read(memory, at, payload); })
            return log.read(memory, at, payload);
          else
            refuse("it is read as a whole");
        },
        log_);
  }
  template <Memory M, typename Visit>
  void for_each(M& memory, Visit&& visit) const {
    std::visit([&](const auto& log) { log.for_each(memory, visit); }, log_);
  }
  [[nodiscard]] bool fits(std::size_t payload) const {
    return std::visit([&](const auto& log) { return log.fits(payload); }, log_);
  }
  /// Whether a word of free space is as the log's rule has it; true for logs without such a rule.
  [[nodiscard]] bool fresh(std::uint64_t word, Lsn at) const {
    return std::visit(
        [&](const auto& log) {
          if constexpr (requires { log.fresh(word, at); })
            return log.fresh(word, at);
          else
            return true;
        },
        log_);
  }
  [[nodiscard]] std::uint64_t footprint(std::size_t payload) const {
    return std::visit([&](const auto& log) { return log.footprint(payload); }, log_);
  }
  [[nodiscard]] std::uint64_t free() const {
    return std::visit([](const auto& log) { return log.free(); }, log_);
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
  template <typename Tuple>
  struct OneOf;
  template <typename... Logs>
  struct OneOf<std::tuple<Logs...>> {
    using Type = std::variant<Logs...>;
  };
  using Variant = OneOf<AllLogs>::Type;

  explicit AnyLog(Variant log) : log_(std::move(log)) {}

  [[noreturn]] static void refuse(const std::string& instead) {
    throw ConfigError("log: this one has no entries, so " + instead + "; choose another algorithm");
  }

  /// Calls open.template operator()<Log>(the options of that name).
  template <typename Open>
  [[nodiscard]] static std::optional<AnyLog> named(std::string_view algorithm, const Options& options,
                                                   Open&& open) {
    std::optional<AnyLog> log;
    const bool known = AllLogNames::any([&]<typename Log>(std::size_t i) {
      if (Log::kNames[i].name != algorithm)
        return false;
      if constexpr (requires { Log::options_of(algorithm, options); })
        log = open.template operator()<Log>(Log::options_of(algorithm, options));
      else
        log = open.template operator()<Log>(options);
      return true;
    });
    if (!known)
      throw ConfigError("log: algorithm \"" + std::string(algorithm) + "\" is unknown; choose " +
                        known_algorithms());
    return log;
  }

  Variant log_;
};

}  // namespace pmsim::blocks::log
