#include "pmsim/machine/cache.hpp"

#include <algorithm>

namespace pmsim::machine {

Cache::Cache(std::int64_t size_bytes, std::int64_t ways, std::int64_t line_bytes)
    : ways_(static_cast<std::uint64_t>(ways)),
      sets_(static_cast<std::uint64_t>(std::max<std::int64_t>(1, size_bytes / (ways * line_bytes)))),
      tags_(ways_ * sets_, kEmpty) {}

}  // namespace pmsim::machine
