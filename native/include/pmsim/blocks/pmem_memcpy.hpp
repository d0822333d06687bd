#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks {

/// From here on pmem_memcpy streams instead of flushing (Movnt_threshold of PMDK's libpmem).
inline constexpr std::size_t kPmemMemcpyStreamsFrom = 256;

/// pmem_memcpy of PMDK's libpmem without its fence (PMEM_F_MEM_NODRAIN): short ranges are stored and flushed,
/// of long ones the whole lines are streamed. Durable behind the next fence.
template <memory::Memory M>
void pmem_memcpy_nodrain(M& memory, memory::Address target, std::span<const std::byte> data,
                         memory::Site flush) {
  const auto store = [&](std::uint64_t at, std::uint64_t bytes) {
    if (bytes == 0)
      return;
    memory.write(target + at, data.subspan(at, bytes));
    memory.flush(target + at, bytes, memory::FlushKind::kClwb, flush);
  };
  if (data.size() < kPmemMemcpyStreamsFrom)
    return store(0, data.size());
  const std::uint64_t head = (memory::kLineBytes - target % memory::kLineBytes) % memory::kLineBytes;
  const std::uint64_t body = (data.size() - head) / memory::kLineBytes * memory::kLineBytes;
  store(0, head);
  memory.stream(target + head, data.subspan(head, body));
  store(head + body, data.size() - head - body);
}

}  // namespace pmsim::blocks
