#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pmsim/blocks/named_list.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::inplace {

/// What the hardware updates atomically needs no algorithm (sec. 3.4); above kMostBytes a record is a page.
inline constexpr std::size_t kLeastBytes = memory::kAtomicBytes;
inline constexpr std::size_t kMostBytes = 1024;

/// Throws ConfigError unless a record can hold `bytes` of user data.
inline void require_record_bytes(std::size_t bytes) {
  if (bytes < kLeastBytes || bytes > kMostBytes || bytes % memory::kAtomicBytes != 0) {
    throw ConfigError("update_size = " + std::to_string(bytes) + " bytes: must be a multiple of 8 from " +
                      std::to_string(kLeastBytes) + " to " + std::to_string(kMostBytes));
  }
}

[[nodiscard]] constexpr std::size_t whole_lines(std::size_t bytes) noexcept {
  return (bytes + memory::kLineBytes - 1) / memory::kLineBytes * memory::kLineBytes;
}

}  // namespace pmsim::blocks::inplace
