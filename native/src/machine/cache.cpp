#include "pmsim/machine/cache.hpp"

#include <algorithm>

namespace pmsim::machine {

Cache::Cache(std::int64_t size_bytes, std::int64_t ways, std::int64_t line_bytes)
    : ways_(static_cast<std::uint64_t>(ways)),
      set_count_(static_cast<std::uint64_t>(std::max<std::int64_t>(1, size_bytes / (ways * line_bytes)))),
      ways_mask_((std::uint32_t{1} << ways) - 1),
      used_(set_count_ / 64 + 1, 0),
      sets_(std::make_unique_for_overwrite<RecencySet[]>(set_count_)),
      words_(std::make_unique_for_overwrite<std::uint64_t[]>(ways_ * set_count_)),
      dirty_(set_count_, 0) {}

}  // namespace pmsim::machine
