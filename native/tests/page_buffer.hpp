#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "pmsim/blocks/page/layout.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::page {

using Bytes = std::vector<std::byte>;

/// A page in DRAM with random changes, and the reference that it must equal.
struct Buffer {
  Frame frame;
  Bytes reference;
};

template <typename M>
Buffer make_buffer(M& memory, std::uint32_t page_bytes) {
  Buffer buffer{.frame = {}, .reference = Bytes(page_bytes)};
  buffer.frame.data = memory.allocate(memory::Medium::kDram, page_bytes);
  buffer.frame.mark_dirty(0, page_bytes);
  return buffer;
}

template <typename M>
void change(M& memory, Buffer& buffer, Random& random, int changes) {
  for (int count = 0; count < changes; ++count) {
    const auto offset = static_cast<std::uint32_t>(random.below(buffer.reference.size() / 8) * 8);
    const std::uint64_t value = random.next();
    std::memcpy(buffer.reference.data() + offset, &value, sizeof value);
    memory.template store<std::uint64_t>(buffer.frame.data + offset, value);
    buffer.frame.mark_dirty(offset, sizeof value);
  }
}

template <typename M>
Bytes content(M& memory, Address address, std::size_t bytes) {
  Bytes found(bytes);
  memory.read(address, found);
  return found;
}

}  // namespace pmsim::blocks::page
