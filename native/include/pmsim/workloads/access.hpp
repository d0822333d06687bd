#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pmsim/memory/memory.hpp"

namespace pmsim::workloads {

/// A full cache line, as an AVX-512 register holds it.
using Line = std::array<std::byte, memory::kLineBytes>;

/// How a microbenchmark touches memory.
enum class Access : std::uint8_t {
  kLoad,
  kStore,
  kStoreClwb,
  kStoreClflushOpt,
  kStoreClflush,
  kStream,
  kUpdate,  ///< reads a line and stores to it, as an increment does
  kUpdateClwb
};

[[nodiscard]] constexpr Access access_named(std::string_view name) {
  if (name == "load")
    return Access::kLoad;
  if (name == "store")
    return Access::kStore;
  if (name == "store+clwb")
    return Access::kStoreClwb;
  if (name == "store+clflushopt")
    return Access::kStoreClflushOpt;
  if (name == "store+clflush")
    return Access::kStoreClflush;
  if (name == "load+store")
    return Access::kUpdate;
  if (name == "load+store+clwb")
    return Access::kUpdateClwb;
  return Access::kStream;
}

/// Makes the compiler believe that somebody looks at what was read: on HostMemory the loads stay.
template <typename T>
inline void consume(const T& value) noexcept {
  asm volatile("" ::"m"(value));
}

/// Touches one whole line; a flush follows its store at once, as in LATTester (memaccess.h, SIZEBTSTFLUSH).
template <memory::Memory M>
void touch_line(M& memory, memory::Address address, Access access) {
  // Not zeros: there are processors that do not write back a line of zeros over zeros.
  static constexpr Line kLine = [] {
    Line line;
    line.fill(std::byte{0x5a});
    return line;
  }();
  if (access == Access::kLoad || access == Access::kUpdate || access == Access::kUpdateClwb) {
    Line line;
    memory.read(address, line);
    consume(line);
  }
  switch (access) {
    case Access::kLoad:
      break;
    case Access::kStream:
      memory.stream(address, kLine);
      break;
    case Access::kStore:
    case Access::kUpdate:
      memory.write(address, kLine);
      break;
    case Access::kStoreClwb:
    case Access::kUpdateClwb:
      memory.write(address, kLine);
      memory.flush(address, sizeof(Line), memory::FlushKind::kClwb, memory::kNoSite);
      break;
    case Access::kStoreClflushOpt:
      memory.write(address, kLine);
      memory.flush(address, sizeof(Line), memory::FlushKind::kClflushOpt, memory::kNoSite);
      break;
    case Access::kStoreClflush:
      memory.write(address, kLine);
      memory.flush(address, sizeof(Line), memory::FlushKind::kClflush, memory::kNoSite);
      break;
  }
}

/// Touches whole lines one after the other: on simulated memory the same micro-operations as line by line, for
/// less work of the host's.
template <memory::Memory M>
void touch_lines(M& memory, memory::Address address, std::uint64_t bytes, Access access) {
  constexpr std::uint64_t kTogether = 4 * memory::kLineBytes;
  std::uint64_t done = 0;
  if (access == Access::kLoad) {
    std::array<std::byte, kTogether> lines;
    for (; done + kTogether <= bytes; done += kTogether) {
      memory.read(address + done, lines);
      consume(lines);
    }
  } else if (access == Access::kStream || access == Access::kStore) {
    static constexpr auto kLines = [] {
      std::array<std::byte, kTogether> lines;
      lines.fill(std::byte{0x5a});
      return lines;
    }();
    for (; done + kTogether <= bytes; done += kTogether) {
      if (access == Access::kStream) {
        memory.stream(address + done, kLines);
      } else {
        memory.write(address + done, kLines);
      }
    }
  }
  for (; done < bytes; done += memory::kLineBytes) {
    touch_line(memory, address + done, access);
  }
}

}  // namespace pmsim::workloads
