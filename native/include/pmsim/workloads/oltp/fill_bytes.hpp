#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pmsim/core/random.hpp"

namespace pmsim::workloads::oltp {

/// Bytes that nobody compresses or mistakes for others: a function of `seed`.
inline void fill_bytes(std::span<std::byte> bytes, std::uint64_t seed) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = mix64(seed++);
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, bytes.size() - at));
  }
}

}  // namespace pmsim::workloads::oltp
