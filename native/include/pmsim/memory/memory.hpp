#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "pmsim/memory/micro_op.hpp"
#include "pmsim/memory/section.hpp"

namespace pmsim::memory {

/// An address of either memory: one fixed window per medium (micro_op.hpp), so that addresses kept inside
/// persistent structures stay valid after a restart and are the same on SimMemory and HostMemory.
using Address = std::uint64_t;

/// Names one flush, fence or ordering point of an algorithm's source for the crash checker; unique within the
/// algorithm.
using Site = std::uint16_t;
inline constexpr Site kNoSite = 0;

/// How to write a line back. Whether clwb keeps the line cached is the machine's business.
enum class FlushKind : std::uint8_t { kClwb = 0, kClflushOpt = 1, kClflush = 2 };

/// What a mispredicted branch waits for before the core knows better.
enum class BranchOn : std::uint8_t { kLastLoad, kAtHand };

[[nodiscard]] constexpr OpKind op_kind(FlushKind kind) noexcept {
  return static_cast<OpKind>(static_cast<std::uint8_t>(OpKind::kClwb) + static_cast<std::uint8_t>(kind));
}
static_assert(op_kind(FlushKind::kClwb) == OpKind::kClwb && op_kind(FlushKind::kClflush) == OpKind::kClflush);

/// What may be loaded and stored: plain bytes. Raw pointers are refused because they mean nothing after a
/// restart.
template <typename T>
concept Value = std::is_trivially_copyable_v<T> && std::default_initializable<T> && !std::is_pointer_v<T> &&
                !std::is_const_v<T> && !std::is_reference_v<T>;

/// Failure atomicity: an aligned store of at most this many bytes is durable entirely or not at all.
inline constexpr std::size_t kAtomicBytes = 8;
/// Unit and alignment of block transfers, and what a block device writes atomically.
inline constexpr std::size_t kSectorBytes = 512;

/// What is in the word of a latch.
struct LatchWord {
  static constexpr std::uint64_t kReader = 1;                       ///< how many hold it, in the lowest 16 bits
  static constexpr std::uint64_t kWriter = std::uint64_t{1} << 16;  ///< one holds it
  static constexpr std::uint64_t kVersion = kWriter << 1;           ///< how many writers have held it
  static constexpr std::uint64_t kNotAcquired = ~std::uint64_t{0};  ///< no version: an attempt that failed

  [[nodiscard]] static constexpr std::uint64_t version(std::uint64_t word) noexcept { return word / kVersion; }
  [[nodiscard]] static constexpr bool admits(std::uint64_t word, LatchMode mode) noexcept {
    return (word & (writes(mode) ? kVersion - 1 : kWriter)) == 0;
  }
  /// Of one that admits the mode, when it has been acquired.
  [[nodiscard]] static constexpr std::uint64_t held(std::uint64_t word, LatchMode mode) noexcept {
    return word + (writes(mode) ? kWriter : mode == LatchMode::kShared ? kReader : 0);
  }
  [[nodiscard]] static constexpr bool is_held(std::uint64_t word, LatchMode mode) noexcept {
    return mode == LatchMode::kOptimistic || (word & (writes(mode) ? kWriter : kWriter - 1)) != 0;
  }
  /// Of one that is held in the mode, when it has been released: a writer's bit carries over to the version.
  [[nodiscard]] static constexpr std::uint64_t released(std::uint64_t word, LatchMode mode) noexcept {
    return writes(mode) ? word + kWriter : word - (mode == LatchMode::kShared ? kReader : 0);
  }
};

/// Waist 1: what every algorithm is written against. SimMemory simulates it, HostMemory executes it.
///
/// Accesses
///  - load<T>, store<T>: address aligned to alignof(T). T is spelt out at a store, never deduced.
///  - load_dependent<T>: the address came from the value of the load before it (a pointer was followed).
///  - read, write: any alignment; a write is a series of stores of at most 8 bytes in ascending order.
///  - stream: non-temporal store; address and size are multiples of 8.
///  - copy_lines(from, to, lines): whole lines to dram, in no order and not failure-atomic; the ranges do not
///    overlap. Costs what its loop costs (copy_lines.hpp).
///  - Loads see the thread's latest stores, streamed ones included.
/// Durability (x86; lines are 64 bytes; media other than kPmem lose everything)
///  - A cached store *may* become durable at any moment from then on, since any line may be evicted at any
///  time.
///    Cached stores to one line become durable in program order; different lines are independent.
///  - flush covers each line that [address, address + bytes) touches. What was stored there before the flush
///  *is*
///    durable after the thread's next sfence or mfence. A clflush is also ordered before the thread's later
///    stores.
///  - Streamed words are durable in any order, and surely after the thread's next sfence or mfence.
///  - Failure atomicity is 8 aligned bytes, whatever the size of the access.
///  - order is an ordering point between two stores to the same line. It costs no instruction: the CPU keeps
///  the
///    order anyway, and the compiler must be told to. It says nothing about different lines.
/// Threads
///  - fetch_add: adds to an aligned 64-bit word by a locked read-modify-write, and returns what was there. What
///    the thread has flushed and streamed before is durable then, as after a fence (Intel SDM, volume 2, CLWB).
///  - compare_exchange: the same, but that the word becomes `desired` if it was `expected`, and else stays.
///  - acquire, release: a latch, which is a LatchWord in dram that begins as 0, one in a line at most. To hold
///    it costs a locked read-modify-write, and a wait while it is held otherwise; optimistically, a load.
///    acquire returns the latch's version, which release takes; an optimistic release says whether it is still
///    the same, so that what has been read may be believed (all others say yes). An attempt does not wait, and
///    returns kNotAcquired where the latch is held. On SimMemory operations run
///    one after the other: the word is free but for what the thread itself holds, no version changes meanwhile
///    but by its own attempts, and to acquire what is held, other than by an attempt, is an error, unless there
///    is somebody to let go on (SimMemory::on_latch_wait). There it is
///    the machine that waits, and that spends the time of reading again; an attempt never fails because of
///    others.
/// Block device
///  - block_read and block_write move whole sectors between a kBlock address and a dram or pmem address, and
///  wait.
///    Written sectors may be durable, each with any of its versions; block_flush makes the latest one so.
///  - block_gather hands sectors over to a group and does not wait: they may be durable from then on, and
///  source
///    must stay as it is until they surely are, which is when block_commit returns. It is given what
///    block_gather returned, the latest of the thread's. Whoever finds no group under way writes, by one
///    command for what lies together and one flush, all that has been handed over; others wait, for that or for
///    the next (group commit; DeWitt et al., Implementation Techniques for Main Memory Database Systems, SIGMOD
///    1984, section 5.2). What was handed over before is durable, too, then.
/// Cost only
///  - compute: cycles of work and the instructions that fill the window meanwhile. HostMemory executes nothing.
///  - mispredict: the branch at this place depends on the value of the load before it, and no predictor can
///  know it
///    (where a search ends, say): a core runs ahead on the wrong path until the value is there. With
///    BranchOn::kAtHand the branch depends on what has been in registers or L1 for long: only the way of the
///    front end is lost. HostMemory executes nothing: the branch itself is the algorithm's own code.
///  - operation_begin, operation_end: frame one operation, for latency.
///  - enter: what follows is of this section (InSection, section.hpp), for where the time goes. Returns the one
///    before.
/// Persistence points carry a Site; SimMemory can disable one, to prove that the checker misses it.
template <typename M>
concept Memory =
    requires(M memory, Address address, std::uint64_t word, std::size_t bytes, std::span<std::byte> into,
             std::span<const std::byte> from, FlushKind kind, Site site, std::uint32_t instructions) {
      { memory.template load<std::uint64_t>(address) } -> std::same_as<std::uint64_t>;
      { memory.template load<std::uint8_t>(address) } -> std::same_as<std::uint8_t>;
      { memory.template load_dependent<std::uint64_t>(address) } -> std::same_as<std::uint64_t>;
      { memory.template store<std::uint64_t>(address, word) } -> std::same_as<void>;
      { memory.read(address, into) } -> std::same_as<void>;
      { memory.write(address, from) } -> std::same_as<void>;
      { memory.stream(address, from) } -> std::same_as<void>;
      { memory.copy_lines(address, address, instructions) } -> std::same_as<void>;
      { memory.flush(address, bytes, kind, site) } -> std::same_as<void>;
      { memory.sfence(site) } -> std::same_as<void>;
      { memory.mfence(site) } -> std::same_as<void>;
      { memory.order(site) } -> std::same_as<void>;
      { memory.prefetch(address) } -> std::same_as<void>;
      { memory.fetch_add(address, word) } -> std::same_as<std::uint64_t>;
      { memory.compare_exchange(address, word, word) } -> std::same_as<std::uint64_t>;
      { memory.acquire(address, LatchMode::kShared) } -> std::same_as<std::uint64_t>;
      { memory.release(address, LatchMode::kShared, word) } -> std::same_as<bool>;
      { memory.compute(word, instructions) } -> std::same_as<void>;
      { memory.mispredict() } -> std::same_as<void>;
      { memory.mispredict(BranchOn::kAtHand) } -> std::same_as<void>;
      { memory.block_read(address, address, bytes) } -> std::same_as<void>;
      { memory.block_write(address, address, bytes) } -> std::same_as<void>;
      { memory.block_flush(site) } -> std::same_as<void>;
      { memory.block_gather(address, address, bytes) } -> std::same_as<std::uint64_t>;
      { memory.block_commit(word, site) } -> std::same_as<void>;
      { memory.operation_begin() } -> std::same_as<void>;
      { memory.operation_end() } -> std::same_as<void>;
      { memory.enter(Section::kLog) } -> std::same_as<Section>;
    };

static_assert(!Memory<int> && !Memory<std::byte*>);
static_assert(Value<std::uint64_t> && !Value<std::byte*> && !Value<const int>);

}  // namespace pmsim::memory
