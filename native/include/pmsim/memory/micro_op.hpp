#pragma once

#include <cstdint>
#include <type_traits>

namespace pmsim::memory {

/// What one micro-operation asks of the machine. The values are part of the trace format: append only.
enum class OpKind : std::uint8_t {
  kLoad = 0,         ///< read `bytes` at `address`, inside one 64-byte line
  kStore = 1,        ///< write through the cache, inside one line
  kStreamStore = 2,  ///< non-temporal store, inside one line
  kClwb = 3,         ///< write the line back; whether it stays cached is the platform's business
  kClflushOpt = 4,   ///< write the line back and drop it
  kClflush = 5,      ///< as kClflushOpt, but ordered against other flushes and stores
  kSfence = 6,       ///< orders stores, flushes and streaming stores; later loads may run ahead
  kMfence = 7,       ///< orders everything
  kPrefetch = 8,     ///< software prefetch of the line (T0)
  kCompute = 9,      ///< `address` cycles of computation, `bytes` instructions
  kBlockRead = 10,   ///< read `bytes` at `address` of a block device; waits for it
  kBlockWrite = 11,  ///< write `bytes` at `address` of a block device; waits until the device has accepted it
  kBlockFlush = 12,  ///< empty the block device's volatile write cache (FLUSH CACHE); waits for it
  kOperationBegin = 13,  ///< an operation of the workload begins, when what is before has retired
  kOperationEnd = 14,    ///< it ends when everything before this has retired and, unless it is kDependent, all
                         ///< fences before have completed; `bytes` user bytes are credited
  kAtomic = 15,          ///< locked read-modify-write of one word: everything before has committed, flushes and
                         ///< streaming stores included; nothing after runs before
  kAcquire = 16,  ///< the latch of the line at `address`, in LatchMode `flags`: a kAtomic (optimistic: a load),
                  ///< and a wait while others hold it, unless it is an attempt
  kRelease = 17,  ///< gives it up: a kAtomic (of a writer: a store; optimistic: a load)
  kBlockGather =
      18,  ///< hands `bytes` at `address` of a block device over to the next group; waits for nothing
  kBlockCommit = 19,  ///< waits until what the thread has handed over is durable; the first that finds no group
                      ///< under way writes all that has been handed over, and empties the device's write cache
};
inline constexpr int kOpKinds = 20;

/// Bits of MicroOp::flags.
enum OpFlag : std::uint8_t {
  kDependent = 1,      ///< the address depends on the value of the load before it in program order; kCompute: a
                       ///< branch on that value is mispredicted, so nothing younger runs before it is there;
                       ///< kOperationBegin and kOperationEnd: waits for the loads before alone (rdtscp)
  kSerialising = 2,    ///< kOperationBegin: waits until everything before it has retired (rdtscp; lfence);
                       ///< kCompute: a branch whose operands are at hand is mispredicted
  kEntersSection = 4,  ///< kCompute of nothing: what retires from here on is of Section `site`
};

/// One 16-byte micro-operation: the narrow waist between algorithms and machines (design, section 1).
struct MicroOp {
  std::uint64_t address;  ///< simulated address; cycles for kCompute
  std::uint32_t bytes;    ///< size; instructions for kCompute
  OpKind kind;
  std::uint8_t flags;
  std::uint16_t site;  ///< identifies the persistence point in the source (0: none), for the crash checker
};
static_assert(sizeof(MicroOp) == 16 && std::is_trivially_copyable_v<MicroOp>);

/// How a latch is held: by any number of readers, or by one writer. Optimistically it is not held at all:
/// whoever reads waits for a writer, and looks afterwards whether there has been one meanwhile (Leis et al.,
/// The ART of Practical Synchronization, DaMoN 2016). By one writer, too, who does not wait: an attempt, for
/// who must not wait while he holds something else, and can do without.
enum class LatchMode : std::uint8_t { kShared = 0, kExclusive = 1, kOptimistic = 2, kAttempt = 3 };
[[nodiscard]] constexpr bool writes(LatchMode mode) noexcept {
  return mode == LatchMode::kExclusive || mode == LatchMode::kAttempt;
}

inline constexpr std::uint32_t kLineBytes = 64;

/// The simulated physical address space is cut into one fixed window per kind of memory, so that a machine
/// knows from an address alone which device serves it. Each window is 2^44 bytes (16 TiB).
enum class Medium : std::uint8_t { kDram = 0, kPmem = 1, kBlock = 2 };
inline constexpr int kMediumShift = 44;
inline constexpr std::uint64_t kMediumBytes = std::uint64_t{1} << kMediumShift;

[[nodiscard]] constexpr std::uint64_t medium_base(Medium medium) noexcept {
  return (static_cast<std::uint64_t>(medium) + 1) << kMediumShift;
}
[[nodiscard]] constexpr Medium medium_of(std::uint64_t address) noexcept {
  return static_cast<Medium>((address >> kMediumShift) - 1);
}

}  // namespace pmsim::memory
