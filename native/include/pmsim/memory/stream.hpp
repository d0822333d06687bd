#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "pmsim/memory/micro_op.hpp"

namespace pmsim::memory {

/// The micro-operations that one virtual thread has executed functionally and that still await their time.
/// Cleared and refilled in place: after warm-up nothing is allocated.
class Stream {
 public:
  /// Micro-operations of one stream between two calls of its poll: a millisecond of functional execution, 0.4 s
  /// where each touches another page of the host for the first time.
  static constexpr std::size_t kPollEvery = std::size_t{1} << 16;

  void push(OpKind kind, std::uint64_t address, std::uint32_t bytes, std::uint8_t flags = 0,
            std::uint16_t site = 0) {
    if (size_ == bound_) [[unlikely]]
      extend();
    ops_[size_++] = MicroOp{address, bytes, kind, flags, site};
  }
  void clear() noexcept {
    size_ = 0;
    bound_ = std::min(room_, kPollEvery);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const MicroOp* data() const noexcept { return ops_.get(); }
  [[nodiscard]] const MicroOp& operator[](std::size_t index) const noexcept { return ops_[index]; }

  /// Called after each kPollEvery micro-operations since clear(); may throw to stop whoever executes. An
  /// operation may be the recovery of an engine with millions of leaves: this is the one place that all of it
  /// comes by.
  void on_poll(std::function<void()> poll) { poll_ = std::move(poll); }
  /// Not while an exception is on its way, of which it may be the cause: who unfixes a page then emits
  /// micro-operations, too, and a second one would end the process.
  void poll() const {
    if (poll_ && std::uncaught_exceptions() == 0)
      poll_();
  }

 private:
  /// Out of line: push() is inlined into everything that is simulated.
  void extend();

  struct Free {
    void operator()(MicroOp* ops) const noexcept { std::free(ops); }
  };
  /// No vector: gigabytes grow without being copied, and nothing is written to room before it is used.
  std::unique_ptr<MicroOp[], Free> ops_;
  std::size_t room_ = 0;
  std::size_t size_ = 0;
  std::size_t bound_ = 0;  ///< where push() has to stop: the end of the room, or the next poll
  std::function<void()> poll_;
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

  /// Whether threads access lines that others write, so that caches have to be kept coherent, which takes time
  /// of the host. Sources that say so, and no others, have locked accesses: replays of traces go by these.
  [[nodiscard]] virtual bool shares_lines() const noexcept { return false; }
};

}  // namespace pmsim::memory
