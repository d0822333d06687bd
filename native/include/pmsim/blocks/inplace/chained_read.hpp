#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::inplace {

/// What the address of a read follows from.
enum class Reads : std::uint8_t {
  kIndependent,  ///< from nothing that was read: reads overlap
  kDependent,    ///< from the value read before, as in a chain of pointers
};

/// Reads `into.size()` bytes at `address`. A dependent read makes each of its lines wait for the load before:
/// that is exact for one line; the further lines of a longer record wait for the first one, which hardware
/// would overlap.
template <memory::Memory M>
void read_bytes(M& memory, memory::Address address, std::span<std::byte> into, Reads reads) {
  if (reads == Reads::kIndependent)
    return memory.read(address, into);
  while (!into.empty()) {
    const std::size_t in_line = memory::kLineBytes - address % memory::kLineBytes;
    const std::span<std::byte> part = into.first(std::min(in_line, into.size()));
    part[0] = static_cast<std::byte>(memory.template load_dependent<std::uint8_t>(address));
    if (part.size() > 1)
      memory.read(address + 1, part.subspan(1));
    into = into.subspan(part.size());
    address += part.size();
  }
}

}  // namespace pmsim::blocks::inplace
