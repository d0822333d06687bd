#include "pmsim/core/crc32c.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pmsim {

namespace {

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> data,
                                                               std::uint32_t before) noexcept {
  std::uint64_t crc = static_cast<std::uint32_t>(~before);
  for (; data.size() >= sizeof(std::uint64_t); data = data.subspan(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  return crc32c(data, ~static_cast<std::uint32_t>(crc));
}

bool has_instruction() noexcept {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#endif

}  // namespace

std::uint32_t crc32c_fast(std::span<const std::byte> data, std::uint32_t before) noexcept {
#if defined(__x86_64__)
  if (has_instruction())
    return by_instruction(data, before);
#endif
  return crc32c(data, before);
}

}  // namespace pmsim
