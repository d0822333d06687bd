#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "pmsim/blocks/inplace/all.hpp"

namespace pmsim::blocks::inplace {

namespace detail {

/// Returns what visit.template operator()<Method>(place among the method's names) returns for that name. Throws
/// ConfigError for an unknown one.
template <typename Visit>
auto with_method(std::string_view name, Visit&& visit) {
  std::optional<decltype(visit.template operator()<AtomicWord>(0))> result;
  const bool known = AllMethodNames::any([&]<typename Method>(std::size_t i) {
    if (Method::kNames[i].name != name)
      return false;
    result = visit.template operator()<Method>(i);
    return true;
  });
  if (!known)
    throw ConfigError("algorithm: in-place method \"" + std::string(name) + "\" is unknown");
  return std::move(*result);
}

}  // namespace detail

/// From one record to the next [bytes]. Throws ConfigError for a size that the method does not have.
[[nodiscard]] inline std::size_t stride_of(std::string_view name, std::size_t bytes) {
  return detail::with_method(name, [&]<typename Method>(std::size_t) { return stride_of<Method>(bytes); });
}

/// Whether each writer has a log.
[[nodiscard]] inline bool logs_updates(std::string_view name) {
  return detail::with_method(name, []<typename Method>(std::size_t) { return LogsUpdates<Method>; });
}

/// What `updates` updates take of each writer's log [bytes]; 0 for methods without one.
[[nodiscard]] inline std::uint64_t log_bytes_of(std::string_view name, std::size_t bytes,
                                                std::uint64_t updates) {
  return detail::with_method(name, [&]<typename Method>(std::size_t) -> std::uint64_t {
    if constexpr (LogsUpdates<Method>)
      return Method::log_bytes(bytes, updates);
    else
      return 0;
  });
}

/// An in-place method chosen at run time, as one writer has it.
class AnyMethod {
 public:
  /// `place` is of the writer's log; not looked at by methods without one. Throws ConfigError for an unknown
  /// name or a bad size.
  template <memory::Memory M>
  [[nodiscard]] static AnyMethod create(M& memory, std::string_view name, std::size_t bytes,
                                        const log::Place& place) {
    return detail::with_method(name, [&]<typename Method>(std::size_t i) {
      if constexpr (LogsUpdates<Method>)
        return AnyMethod(Method::create(memory, bytes, place));
      else if constexpr (requires { Method::named(bytes, i); })
        return AnyMethod(Method::named(bytes, i));
      else
        return AnyMethod(Method(bytes));
    });
  }

  template <memory::Memory M>
  void update(M& memory, memory::Address record, std::span<const std::byte> value) {
    std::visit([&](auto& method) { method.update(memory, record, value); }, method_);
  }
  template <memory::Memory M>
  void read(M& memory, memory::Address record, std::span<std::byte> into, Reads reads) const {
    std::visit([&](const auto& method) { method.read(memory, record, into, reads); }, method_);
  }
  /// Gives a record that was never written the state that a long history would, where that matters for cost.
  template <memory::Memory M>
  void age(M& memory, memory::Address record) const {
    std::visit(
        [&](const auto& method) {
          if constexpr (requires { method.age(memory, record); })
            method.age(memory, record);
        },
        method_);
  }

 private:
  template <typename Tuple>
  struct OneOf;
  template <typename... Methods>
  struct OneOf<std::tuple<Methods...>> {
    using Type = std::variant<Methods...>;
  };

  template <typename Method>
  explicit AnyMethod(Method method) : method_(std::move(method)) {}

  OneOf<AllMethods>::Type method_;
};

}  // namespace pmsim::blocks::inplace
