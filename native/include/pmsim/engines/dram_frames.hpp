#pragma once

#include <cstdint>

#include "pmsim/engines/page_store.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::engines {

/// Where pages lie that stay in DRAM: in the order of their ids, a line further apart than they are long. Side
/// by side, what is at the same place of every page, its header above all, would share a handful of the caches'
/// sets; the frames of a buffer pool have their own headers in between.
class DramFrames {
 public:
  DramFrames() = default;
  DramFrames(Address base, std::uint32_t page_bytes) noexcept : base_(base), stride_(stride(page_bytes)) {}

  /// Bytes of a region for so many pages, and how many a region has room for.
  [[nodiscard]] static std::uint64_t bytes_for(std::uint64_t pages, std::uint32_t page_bytes) noexcept {
    return pages * stride(page_bytes);
  }
  [[nodiscard]] static std::uint64_t pages_in(std::uint64_t bytes, std::uint32_t page_bytes) noexcept {
    return bytes / stride(page_bytes);
  }
  [[nodiscard]] Address address(PageId id) const noexcept { return base_ + id * stride_; }
  [[nodiscard]] PageId id(Address page) const noexcept { return (page - base_) / stride_; }

 private:
  [[nodiscard]] static std::uint64_t stride(std::uint32_t page_bytes) noexcept {
    return std::uint64_t{page_bytes} + memory::kLineBytes;
  }

  Address base_ = 0;
  std::uint64_t stride_ = 1;
};

}  // namespace pmsim::engines
