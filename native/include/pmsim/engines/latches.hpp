#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/options.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines {

using memory::Address;
using memory::LatchMode;

/// Latches of an engine whose transactions several threads run: a line of DRAM each, as processors want them.
/// By default there are none, and to hold one of them is to do nothing.
///
/// Order, in which nobody waits for who waits for him: pages from the root down and from left to right; then
/// one of those inside of a buffer manager; then the log's. Where threads have logs of their own, a transaction
/// holds a latch of its own all the time, which others only look at when they end (wal/commit_order.hpp).
class Latches {
 public:
  Latches() = default;
  Latches(Address base, std::uint64_t count) noexcept : base_(base), count_(count) {}

  [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t count) noexcept {
    return count * memory::kLineBytes;
  }
  /// Whether threads have to agree on anything. Throws ConfigError for an unknown EngineOptions::latches.
  [[nodiscard]] static bool are_needed(const EngineOptions& options) {
    if (options.latches != "none" && options.latches != "shared" && options.latches != "optimistic")
      throw ConfigError("latches = '" + options.latches + "': unknown; known: none, shared, optimistic");
    return options.threads > 1 && options.latches != "none";
  }

  [[nodiscard]] bool any() const noexcept { return count_ != 0; }
  /// 0: there is none.
  [[nodiscard]] Address of(std::uint64_t index) const noexcept {
    return count_ == 0 ? 0 : base_ + index % count_ * memory::kLineBytes;
  }

 private:
  Address base_ = 0;
  std::uint64_t count_ = 0;
};

/// One for each page of a tree, by its id, and how those hold it who only read.
struct PageLatches {
  Latches latches;
  LatchMode read = LatchMode::kShared;
};

/// Holds a latch until the end of the scope, or of done(). Latch 0 is none.
template <memory::Memory M>
class HeldLatch {
 public:
  HeldLatch() = default;
  HeldLatch(M& memory, Address latch, LatchMode mode) : memory_(&memory), latch_(latch), mode_(mode) {
    if (latch_ == 0) [[likely]]
      return;
    version_ = memory.acquire(latch_, mode_);
    if (version_ == memory::LatchWord::kNotAcquired)
      latch_ = 0;  // held by the thread itself, since operations run one at a time
  }
  HeldLatch(HeldLatch&& other) noexcept { *this = static_cast<HeldLatch&&>(other); }
  /// What it held before must have been given up.
  HeldLatch& operator=(HeldLatch&& other) noexcept {
    memory_ = other.memory_;
    latch_ = other.latch_;
    mode_ = other.mode_;
    version_ = other.version_;
    other.latch_ = 0;
    return *this;
  }
  HeldLatch(const HeldLatch&) = delete;
  HeldLatch& operator=(const HeldLatch&) = delete;
  ~HeldLatch() noexcept(false) { done(); }

  /// An engine runs one operation at a time, so what was read optimistically is always good: reading again is
  /// for the machine, in time (memory.hpp).
  void done() {
    if (latch_ == 0) [[likely]]
      return;
    const Address latch = latch_;
    latch_ = 0;
    // Work that is being stopped (Stream::on_poll) wants no further micro-operation, and must not throw again.
    if (std::uncaught_exceptions() == 0)
      static_cast<void>(memory_->release(latch, mode_, version_));
  }

 private:
  M* memory_ = nullptr;
  Address latch_ = 0;
  LatchMode mode_ = LatchMode::kShared;
  std::uint64_t version_ = 0;
};

}  // namespace pmsim::engines
