#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pmsim {

/// How many bits are one. By the popcnt instruction where the CPU has it: the portable build has none, and
/// counts by a table in a call for each word otherwise.
[[nodiscard]] std::uint32_t count_bits(std::span<const std::byte> data) noexcept;

}  // namespace pmsim
