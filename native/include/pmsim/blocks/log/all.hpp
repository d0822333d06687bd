#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>

#include "pmsim/blocks/log/classic.hpp"
#include "pmsim/blocks/log/header.hpp"
#include "pmsim/blocks/log/pmemlog.hpp"
#include "pmsim/blocks/log/poplog.hpp"
#include "pmsim/blocks/log/rawl.hpp"
#include "pmsim/blocks/named_list.hpp"

namespace pmsim::blocks::log {

/// The list of log algorithms. A new one is its header and its place here; scenarios, storage engines, servers,
/// the crash checker, measurements on this machine and Python take names and titles from it.
/// Its points take the next twenty numbers from 220 on (FileHeader has 100 to 119, the list 120 to 219 in this
/// order, 299 is the last of logs), its kFormat is the next from 6 on: raise both here when you take them.
using AllLogs = std::tuple<ClassicLog, HeaderLog, RawlLog, PopLog, PmemLog>;

namespace detail {

template <typename... Logs>
constexpr bool formats_differ(const std::tuple<Logs...>*) {
  const std::array formats{Logs::kFormat...};
  for (std::size_t i = 0; i < formats.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (formats[i] == formats[j])
        return false;
    }
  }
  return true;
}

}  // namespace detail

using AllLogNames = NamedList<AllLogs>;
// What marks a log in memory as one of its algorithm.
static_assert(detail::formats_differ(static_cast<const AllLogs*>(nullptr)), "two logs have one kFormat");

/// The names of the algorithms, as scenarios and the crash checker use them.
inline constexpr auto kAlgorithms = AllLogNames::names();

/// Whether the log knows its entries: a log of bytes has one layout, and cannot tell transactions apart.
[[nodiscard]] constexpr bool has_entries(std::string_view algorithm) {
  return AllLogNames::any(
      [&]<typename Log>(std::size_t i) { return Log::kNames[i].name == algorithm && Log::kHasEntries; });
}

/// "a, b or c": the names for messages, of all or of those that know their entries.
[[nodiscard]] inline std::string known_algorithms(bool with_entries_only = false) {
  std::string text;
  std::string_view last;
  for (const std::string_view name : kAlgorithms) {
    if (with_entries_only && !has_entries(name))
      continue;
    if (!last.empty())
      text += (text.empty() ? "" : ", ") + std::string(last);
    last = name;
  }
  return text + (text.empty() ? "" : " or ") + std::string(last);
}

}  // namespace pmsim::blocks::log
