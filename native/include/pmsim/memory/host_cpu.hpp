#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

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

/// The instructions themselves, each usable only where cpu_features() says so. Compiled for their own target,
/// so that the rest of the build stays on the portable baseline.
namespace instruction {
void clwb(const std::byte* line) noexcept;
void clflushopt(const std::byte* line) noexcept;
void clflush(const std::byte* line) noexcept;
void sfence() noexcept;
void mfence() noexcept;
/// Between two looks of a loop that waits for another thread.
void pause() noexcept;
/// Streams `lines` whole lines to a 64-byte aligned destination.
void stream_lines_sse2(std::byte* to, const std::byte* from, std::size_t lines) noexcept;
void stream_lines_avx(std::byte* to, const std::byte* from, std::size_t lines) noexcept;
void stream_lines_avx512(std::byte* to, const std::byte* from, std::size_t lines) noexcept;
/// Streams one aligned word.
void stream_word(std::byte* to, const std::byte* from) noexcept;
}  // namespace instruction

}  // namespace pmsim::memory
