#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "pmsim/memory/memory.hpp"

namespace pmsim::memory {

/// What the CPU and the operating system let a program use, asked at run time (CPUID, XGETBV).
struct CpuFeatures {
  bool clflush = false;
  bool clflushopt = false;
  bool clwb = false;
  bool sse2 = false;
  bool avx = false;
  bool avx512f = false;

  [[nodiscard]] bool has(FlushKind kind) const noexcept {
    return std::array{clwb, clflushopt, clflush}[static_cast<std::size_t>(kind)];
  }
};

/// Of this machine, detected once. All false on anything but x86-64.
[[nodiscard]] const CpuFeatures& cpu_features() noexcept;

[[nodiscard]] std::string_view name_of(FlushKind kind) noexcept;

/// How whole 64-byte lines are streamed.
enum class StreamWidth : std::uint8_t { kSse2 = 0, kAvx = 1, kAvx512 = 2 };

/// The widest that `features` allow. Throws ConfigError when there is none.
[[nodiscard]] StreamWidth widest_stream(const CpuFeatures& features);

/// The instructions themselves, each usable only where cpu_features() says so; in place, as a call would be
/// more than most of them. The "memory" clobbers keep the compiler from moving stores across flushes and
/// fences.
namespace instruction {
#if defined(__x86_64__)
// By their bytes: assemblers of the portable baseline know neither name.
inline void clwb(const std::byte* line) noexcept {
  asm volatile(".byte 0x66; xsaveopt %0" ::"m"(*line) : "memory");
}
inline void clflushopt(const std::byte* line) noexcept {
  asm volatile(".byte 0x66; clflush %0" ::"m"(*line) : "memory");
}
inline void clflush(const std::byte* line) noexcept { asm volatile("clflush %0" ::"m"(*line) : "memory"); }
inline void sfence() noexcept { asm volatile("sfence" ::: "memory"); }
inline void mfence() noexcept { asm volatile("mfence" ::: "memory"); }
/// Between two looks of a loop that waits for another thread.
inline void pause() noexcept { asm volatile("pause" ::: "memory"); }
/// Streams one aligned word.
inline void stream_word(std::byte* to, const std::byte* from) noexcept {
  long long word = 0;
  std::memcpy(&word, from, sizeof word);
  _mm_stream_si64(reinterpret_cast<long long*>(to), word);
}
/// Streams one line to a 64-byte aligned destination, by SSE2: what has just been read comes out of registers,
/// where wider loads would wait for the narrow stores of whoever put the line together.
inline void stream_line(std::byte* to, const std::byte* from) noexcept {
  for (std::size_t part = 0; part < kLineBytes / sizeof(__m128i); ++part) {
    const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + part);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + part, value);
  }
}
#else  // HostMemory refuses to start there, so none of these is ever reached
inline void clwb(const std::byte*) noexcept {}
inline void clflushopt(const std::byte*) noexcept {}
inline void clflush(const std::byte*) noexcept {}
inline void sfence() noexcept {}
inline void mfence() noexcept {}
inline void pause() noexcept {}
inline void stream_word(std::byte*, const std::byte*) noexcept {}
inline void stream_line(std::byte*, const std::byte*) noexcept {}
#endif
/// Stream `lines` whole lines to a 64-byte aligned destination, each compiled for its own target, so that the
/// rest of the build stays on the portable baseline.
void stream_lines_sse2(std::byte* to, const std::byte* from, std::size_t lines) noexcept;
void stream_lines_avx(std::byte* to, const std::byte* from, std::size_t lines) noexcept;
void stream_lines_avx512(std::byte* to, const std::byte* from, std::size_t lines) noexcept;
}  // namespace instruction

}  // namespace pmsim::memory
