#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/memory/memory.hpp"

namespace pmsim::memory {

/// One step of a store log: what a tracked memory was asked to do to its durable bytes.
struct LogEntry {
  OpKind kind;              ///< store, streaming store, flush, fence, block write or block flush; see `order`
  bool order;               ///< an ordering point, which is no micro-operation; `kind` then says kCompute
  bool disabled;            ///< its site was disabled: it did nothing
  std::uint32_t operation;  ///< as last labelled
  std::uint32_t thread;
  Site site;
  Address address;  ///< first byte; 0 for fences
  std::uint64_t bytes;
  std::vector<std::byte> data;  ///< what was stored
};

}  // namespace pmsim::memory
