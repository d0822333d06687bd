#include "pmsim/machine/cache.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace pmsim::machine {

namespace {

/// Bits of a line's number that say its set within a slice: `sets` are whole slices of 2^bits sets each, at
/// least `slices` of them.
int bits_in_slice(std::uint64_t sets, std::uint64_t slices) {
  return std::countr_zero(sets | std::bit_floor(std::max<std::uint64_t>(1, sets / slices)));
}

}  // namespace

Cache::Cache(std::int64_t size_bytes, std::int64_t ways, std::int64_t line_bytes, std::int64_t slices)
    : ways_(static_cast<std::uint64_t>(ways)),
      set_count_(static_cast<std::uint64_t>(std::max<std::int64_t>(1, size_bytes / (ways * line_bytes)))),
      slice_bits_(bits_in_slice(set_count_, static_cast<std::uint64_t>(slices))),
      slice_mask_((std::uint64_t{1} << slice_bits_) - 1),
      slices_(set_count_ >> slice_bits_),
      stride_((sizeof(RecencySet) + ways_ * sizeof(std::uint64_t) + kHostLine - 1) / kHostLine * kHostLine),
      held_(std::make_unique<std::uint8_t[]>(set_count_)),
      memory_(static_cast<std::byte*>(std::aligned_alloc(kHostLine, stride_ * set_count_))),
      empty_(RecencySet::empty(ways_)) {
  if (!memory_) {
    throw std::bad_alloc();
  }
}

}  // namespace pmsim::machine
