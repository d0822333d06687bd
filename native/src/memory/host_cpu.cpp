#include "pmsim/memory/host_cpu.hpp"

#include "pmsim/core/error.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace pmsim::memory {

std::string_view name_of(FlushKind kind) noexcept {
  switch (kind) {
    case FlushKind::kClwb:
      return "clwb";
    case FlushKind::kClflushOpt:
      return "clflushopt";
    case FlushKind::kClflush:
      return "clflush";
  }
  return "unknown";
}

StreamWidth widest_stream(const CpuFeatures& features) {
  if (features.avx512f)
    return StreamWidth::kAvx512;
  if (features.avx)
    return StreamWidth::kAvx;
  if (features.sse2)
    return StreamWidth::kSse2;
  throw ConfigError(
      "this CPU has no non-temporal stores (movntdq, SSE2): HostMemory needs an x86-64 machine; use SimMemory");
}

#if defined(__x86_64__)

namespace {

CpuFeatures detect() noexcept {
  CpuFeatures found;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0)
    return found;
  found.clflush = (d >> 19 & 1) != 0;
  found.sse2 = (d >> 26 & 1) != 0;
  std::uint32_t enabled = 0;  // XCR0: the register state that the operating system saves
  if ((c >> 27 & 1) != 0)
    asm("xgetbv" : "=a"(enabled), "=d"(d) : "c"(0));
  found.avx = (c >> 28 & 1) != 0 && (enabled & 0x6) == 0x6;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    found.clflushopt = (b >> 23 & 1) != 0;
    found.clwb = (b >> 24 & 1) != 0;
    found.avx512f = (b >> 16 & 1) != 0 && (enabled & 0xe6) == 0xe6;
  }
  return found;
}

}  // namespace

const CpuFeatures& cpu_features() noexcept {
  static const CpuFeatures features = detect();
  return features;
}

namespace instruction {

void stream_lines_sse2(std::byte* to, const std::byte* from, std::size_t lines) noexcept {
  for (std::size_t line = 0; line < lines; ++line)
    stream_line(to + line * kLineBytes, from + line * kLineBytes);
}

__attribute__((target("avx"))) void stream_lines_avx(std::byte* to, const std::byte* from,
                                                     std::size_t lines) noexcept {
  for (std::size_t part = 0; part < lines * 2; ++part) {
    const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + part);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + part, value);
  }
}

__attribute__((target("avx512f"))) void stream_lines_avx512(std::byte* to, const std::byte* from,
                                                            std::size_t lines) noexcept {
  for (std::size_t line = 0; line < lines; ++line) {
    const __m512i value = _mm512_loadu_si512(from + line * kLineBytes);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + line * kLineBytes), value);
  }
}

}  // namespace instruction

#else  // not x86-64: HostMemory refuses to start, so none of these is ever reached

const CpuFeatures& cpu_features() noexcept {
  static const CpuFeatures none;
  return none;
}

namespace instruction {
void stream_lines_sse2(std::byte*, const std::byte*, std::size_t) noexcept {}
void stream_lines_avx(std::byte*, const std::byte*, std::size_t) noexcept {}
void stream_lines_avx512(std::byte*, const std::byte*, std::size_t) noexcept {}
}  // namespace instruction

#endif

}  // namespace pmsim::memory
