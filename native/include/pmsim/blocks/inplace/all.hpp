#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "pmsim/blocks/inplace/atomic_word.hpp"
#include "pmsim/blocks/inplace/cow.hpp"
#include "pmsim/blocks/inplace/fam.hpp"
#include "pmsim/blocks/inplace/log.hpp"
#include "pmsim/blocks/named_list.hpp"

namespace pmsim::blocks::inplace {

/// The list of in-place methods. A new one is its header and its place here; scenarios, the crash checker,
/// measurements on this machine and Python take names and titles from it. Its points have free numbers from 500
/// to 699.
///
/// A method has `kNames`, `kSites`, `kCheckedSizes` (sizes of records for the crash checker, each a program's),
/// a constructor from the bytes of a value, `stride()`, `update()` and `read()` as Cow has them. Where it needs
/// more, it says so by having it: a PopLog for each writer (LogsUpdates: `create`, `recover`, `log_bytes` and
/// `stride_of` as of Logged), a recovery of each record (`recover(memory, record)` as of Fam), names for
/// variants (`named()` as of Fam), a state of records never written that matters for cost (`age()` as of Cow).
using AllMethods = std::tuple<AtomicWord, Cow, Logged, Fam>;
using AllMethodNames = NamedList<AllMethods>;

/// The names of the methods, as scenarios use them.
inline constexpr auto kMethods = AllMethodNames::names();

/// A method whose updates go through a PopLog that belongs to the writer.
template <typename Method>
concept LogsUpdates = requires(std::size_t bytes) {
  { Method::log_bytes(bytes, std::uint64_t{1}) };
};

/// From one record to the next [bytes]. Throws ConfigError for a size that the method does not have.
template <typename Method>
[[nodiscard]] std::size_t stride_of(std::size_t bytes) {
  if constexpr (LogsUpdates<Method>)
    return Method::stride_of(bytes);
  else
    return Method(bytes).stride();
}

}  // namespace pmsim::blocks::inplace
