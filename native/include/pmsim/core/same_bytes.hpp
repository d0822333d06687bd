#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace pmsim {

/// std::equal of std::byte takes one at a time (libstdc++ 12 knows memcmp for integers only).
[[nodiscard]] inline bool same_bytes(std::span<const std::byte> one,
                                     std::span<const std::byte> other) noexcept {
  return one.size() == other.size() && (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

}  // namespace pmsim
