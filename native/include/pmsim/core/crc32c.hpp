#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pmsim {

namespace detail {
consteval std::array<std::uint32_t, 256> crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = value;
  }
  return table;
}
inline constexpr auto kCrc32cTable = crc32c_table();
}  // namespace detail

/// CRC-32C (Castagnoli, reflected, RFC 3720 appendix B.4). Pass the result of one piece to continue with the
/// next.
[[nodiscard]] constexpr std::uint32_t crc32c(std::span<const std::byte> data,
                                             std::uint32_t before = 0) noexcept {
  std::uint32_t crc = ~before;
  for (const std::byte byte : data) {
    crc = (crc >> 8) ^ detail::kCrc32cTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  return ~crc;
}

/// The same by the crc32 instruction (SSE4.2) where the CPU has it: eight bytes per instruction.
[[nodiscard]] std::uint32_t crc32c_fast(std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

}  // namespace pmsim
