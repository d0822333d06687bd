#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>

namespace pmsim::blocks {

/// What scenarios call an algorithm, and what it is.
struct Named {
  std::string_view name;
  std::string_view title;
};

template <typename Tuple>
struct NamedList;

/// The algorithms of one family, as a tuple of their classes. Each has `kNames`, an array of `Named`: more than
/// one where the class has variants.
template <typename... Types>
struct NamedList<std::tuple<Types...>> {
  static constexpr std::size_t kNames = (Types::kNames.size() + ...);

  /// Calls visit.template operator()<Type>(place among the type's names) for every name until one returns true.
  template <typename Visit>
  static constexpr bool any(Visit&& visit) {
    const auto of_one = [&]<typename Type>() {
      for (std::size_t i = 0; i < Type::kNames.size(); ++i) {
        if (visit.template operator()<Type>(i))
          return true;
      }
      return false;
    };
    return (of_one.template operator()<Types>() || ...);
  }

  static constexpr std::array<std::string_view, kNames> names() {
    std::array<std::string_view, kNames> all{};
    std::size_t at = 0;
    any([&]<typename Type>(std::size_t i) {
      all[at++] = Type::kNames[i].name;
      return false;
    });
    return all;
  }
};

}  // namespace pmsim::blocks
