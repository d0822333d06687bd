#include "pmsim/machine/cache.hpp"

#include <algorithm>
#include <new>

namespace pmsim::machine {

Cache::Cache(std::int64_t size_bytes, std::int64_t ways, std::int64_t line_bytes)
    : ways_(static_cast<std::uint64_t>(ways)),
      set_count_(static_cast<std::uint64_t>(std::max<std::int64_t>(1, size_bytes / (ways * line_bytes)))),
      stride_((sizeof(RecencySet) + ways_ * sizeof(std::uint64_t) + kHostLine - 1) / kHostLine * kHostLine),
      held_(set_count_, 0),
      memory_(static_cast<std::byte*>(std::aligned_alloc(kHostLine, stride_ * set_count_))),
      empty_(RecencySet::empty(ways_)) {
  if (!memory_) {
    throw std::bad_alloc();
  }
}

}  // namespace pmsim::machine
