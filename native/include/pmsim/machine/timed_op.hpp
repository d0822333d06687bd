#pragma once

#include <cstdint>

#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

/// Where the hierarchy found a line.
enum Level : std::uint8_t {
  kL1 = 0,
  kL2 = 1,
  kLlc = 2,
  kFromMemory = 3,
  kFromCore = 4,  ///< in a cache of another core, or that core had to give up its copy
};

/// How an address was translated: by the first TLB level, by the second, or by a page walk. A walk also names
/// the cache level (kL2 and beyond) where it found its last entry, in the three lowest bits, and above them
/// that of the entry before it; kL1 there: none was read.
using Translation = std::uint8_t;
inline constexpr Translation kTlbFirst = 0;
inline constexpr Translation kTlbSecond = 1;
inline constexpr Translation kWalk = 64;

[[nodiscard]] constexpr Translation walk(Level upper, Level last) noexcept {
  return static_cast<Translation>(kWalk | last | upper << 3);
}
[[nodiscard]] constexpr Level upper_level(Translation walk) noexcept {
  return static_cast<Level>(walk >> 3 & 7);
}
[[nodiscard]] constexpr Level last_level(Translation walk) noexcept { return static_cast<Level>(walk & 7); }

/// Bits of TimedOp::flags; the first equals memory::kDependent.
enum TimedFlag : std::uint8_t {
  kTimedDependent = 1,
  kTimedSerialising = 2,
  kTimedDirty = 4,     ///< flush: there is something to write back
  kTimedInFlight = 8,  ///< hit on a line that a prefetch may still be bringing
  kTimedAfterFlush =
      16,  ///< miss on a line that this core has just flushed: ownership cannot be asked for early
  kTimedAfterFence = 32,  ///< the same, with a fence in between: not before that fence has completed
  kTimedCached = 64       ///< streaming store of a whole line that this core has in L1 or L2
};

/// Kinds beyond memory::OpKind that only the hierarchy produces.
inline constexpr std::uint8_t kWriteback = 32;    ///< a dirty line leaves the last-level cache
inline constexpr std::uint8_t kHwPrefetch = 33;   ///< the prefetcher fetches a line into L2
inline constexpr std::uint8_t kSectionMark = 34;  ///< a section begins
/// Behind the access to its word: the thread has the latch from here on, or waits until it has. `level` is a
/// memory::LatchMode.
inline constexpr std::uint8_t kLatchAcquire = 35;
inline constexpr std::uint8_t kLatchRelease = 36;   ///< behind the access to its word: others may have it
inline constexpr std::uint8_t kLatchValidate = 37;  ///< the same, of one that was not held

/// A kind of micro-operation as TimedOp::kind has it.
[[nodiscard]] constexpr std::uint8_t code(memory::OpKind kind) noexcept {
  return static_cast<std::uint8_t>(kind);
}
/// Whether it completes when everything before has, and the front end waits for that.
[[nodiscard]] constexpr bool blocks_front_end(std::uint8_t kind) noexcept {
  return kind == code(memory::OpKind::kMfence) || kind == code(memory::OpKind::kAtomic);
}

/// Whether it is nothing but a wait, for a latch or for the block device, and so nothing where no time passes.
[[nodiscard]] constexpr bool is_wait(std::uint8_t kind) noexcept {
  using memory::OpKind;
  switch (kind) {
    case code(OpKind::kBlockRead):
    case code(OpKind::kBlockWrite):
    case code(OpKind::kBlockFlush):
    case code(OpKind::kBlockGather):
    case code(OpKind::kBlockCommit):
    case kLatchAcquire:
    case kLatchRelease:
    case kLatchValidate:
      return true;
    default:
      return false;
  }
}

/// A micro-operation after the time-free part of the machine (TLB and cache tags) has seen it: all that timing
/// needs to know. Runs of independent L1 hits arrive merged into one kCompute; where something waits for the
/// value of the last one, that one follows as a load of no instructions.
struct TimedOp {
  std::uint64_t line;  ///< address / 64; kCompute: cycles; block I/O: address; operation end: user bytes;
                       ///< section mark: its number
  std::uint32_t instructions;  ///< window slots it takes; block I/O: bytes
  std::uint8_t kind;
  std::uint8_t level;
  std::uint8_t translation;
  std::uint8_t flags;
};
static_assert(sizeof(TimedOp) == 16);

}  // namespace pmsim::machine
