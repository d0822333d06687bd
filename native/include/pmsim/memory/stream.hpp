#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/memory/micro_op.hpp"

namespace pmsim::memory {

/// The micro-operations that one virtual thread has executed functionally and that still await their time.
/// Cleared and refilled in place: after warm-up nothing is allocated.
class Stream {
 public:
  void push(OpKind kind, std::uint64_t address, std::uint32_t bytes, std::uint8_t flags = 0,
            std::uint16_t site = 0) {
    ops_.push_back(MicroOp{address, bytes, kind, flags, site});
  }
  void clear() noexcept { ops_.clear(); }
  [[nodiscard]] std::size_t size() const noexcept { return ops_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ops_.empty(); }
  [[nodiscard]] const MicroOp* data() const noexcept { return ops_.data(); }
  [[nodiscard]] const MicroOp& operator[](std::size_t index) const noexcept { return ops_[index]; }

 private:
  std::vector<MicroOp> ops_;
};

/// Where a machine gets its work: called once per batch and virtual thread, never per micro-operation.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Executes the next piece of work of `thread` functionally and appends its micro-operations to `stream`
  /// (which is empty). Appending nothing means that the thread has finished.
  virtual void refill(std::uint32_t thread, Stream& stream) = 0;
};

}  // namespace pmsim::memory
