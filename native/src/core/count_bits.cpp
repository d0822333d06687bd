#include "pmsim/core/count_bits.hpp"

#include <bit>
#include <cstring>

namespace pmsim {

namespace {

[[gnu::always_inline]] inline std::uint32_t count(std::span<const std::byte> data) noexcept {
  std::uint32_t bits = 0;
  for (; data.size() >= sizeof(std::uint64_t); data = data.subspan(sizeof(std::uint64_t))) {
    std::uint64_t word;
    std::memcpy(&word, data.data(), sizeof word);
    bits += static_cast<std::uint32_t>(std::popcount(word));
  }
  for (const std::byte byte : data)
    bits += static_cast<std::uint32_t>(std::popcount(std::to_integer<unsigned>(byte)));
  return bits;
}

#if defined(__x86_64__)
__attribute__((target("popcnt"))) std::uint32_t by_instruction(std::span<const std::byte> data) noexcept {
  return count(data);
}

bool has_instruction() noexcept {
  static const bool has = __builtin_cpu_supports("popcnt") != 0;
  return has;
}
#endif

}  // namespace

std::uint32_t count_bits(std::span<const std::byte> data) noexcept {
#if defined(__x86_64__)
  if (has_instruction())
    return by_instruction(data);
#endif
  return count(data);
}

}  // namespace pmsim
