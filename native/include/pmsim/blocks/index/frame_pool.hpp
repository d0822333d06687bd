#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pmsim/core/error.hpp"

namespace pmsim::blocks::index {

/// Memory for coroutine frames: what is given back is used again, so after warm-up nothing is allocated.
/// Outlives every frame taken from it. Not thread-safe: one pool per scheduler.
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  [[nodiscard]] void* take(std::size_t bytes) {
    const std::size_t size_class = class_of(bytes);
    std::vector<Block*>& free = free_[size_class];
    if (free.empty()) {
      owned_.push_back(std::make_unique<std::byte[]>(sizeof(Block) + (std::size_t{1} << size_class)));
      free.reserve(owned_.size());
      free.push_back(new (owned_.back().get()) Block{this, size_class});
    }
    Block* block = free.back();
    free.pop_back();
    return block + 1;
  }

  static void give_back(void* frame) noexcept {
    Block* block = static_cast<Block*>(frame) - 1;
    block->pool->free_[block->size_class].push_back(block);  // has room: reserved for every block there is
  }

  /// Frames ever allocated: constant after warm-up.
  [[nodiscard]] std::size_t allocations() const noexcept { return owned_.size(); }

 private:
  struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) Block {
    FramePool* pool;
    std::size_t size_class;
  };
  static constexpr std::size_t kClasses = 16;

  [[nodiscard]] static std::size_t class_of(std::size_t bytes) {
    const auto size_class = static_cast<std::size_t>(std::bit_width(bytes - 1));
    ensure(size_class < kClasses, "pmsim bug: a coroutine frame of more than 32 KiB");
    return size_class;
  }

  std::vector<std::unique_ptr<std::byte[]>> owned_;
  std::array<std::vector<Block*>, kClasses> free_;
};

}  // namespace pmsim::blocks::index
