#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "pmsim/core/error.hpp"
#include "pmsim/memory/copy_lines.hpp"
#include "pmsim/memory/host_cpu.hpp"
#include "pmsim/memory/host_group.hpp"
#include "pmsim/memory/host_mapping.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::memory {

struct HostOptions {
  /// How much each medium holds; its address space is mapped at once, its memory is taken when touched.
  Capacities capacities = Capacities::of(std::uint64_t{1} << 30, std::uint64_t{1} << 30, 0);
  /// File behind the pmem window, on a DAX file system for real persistence; created or grown as needed. Empty:
  /// anonymous memory, which is fine for timing DRAM and for tests.
  std::string pmem_path{};
  /// File or device behind the block window; needed when capacities hold block bytes.
  std::string block_path{};
  bool block_direct = false;  ///< O_DIRECT: past the page cache, which otherwise hides the device
  /// Anonymous memory is aligned to 2 MiB, and the system is asked for pages of that size.
  bool large_pages = false;
  /// Instructions to use; a test may take some away.
  CpuFeatures features = cpu_features();
  /// Where the CPU has no clwb, the best flush that it has takes its place, as in libpmem: clflushopt, which
  /// drops the line, or clflush, which waits for it, too. What is durable when is the same; who times an
  /// instruction wants the one that it has named.
  bool best_flush = false;
};

/// The real machine: the concept Memory executed with real loads, stores, flushes and fences.
///
/// Addresses are the same as SimMemory's: window plus offset, so persistent structures survive a new mapping.
/// Thread-safe as far as the hardware is; allocate() is not. The contents of a file stay from run to run:
/// allocate the same regions in the same order to find them again.
class HostMemory {
 public:
  /// Throws ConfigError where the CPU lacks non-temporal stores or the operating system refuses a file or
  /// mapping.
  explicit HostMemory(const HostOptions& options = {});

  Address allocate(Medium medium, std::uint64_t bytes, const RegionOptions& options = {}) {
    return table_.allocate(medium, bytes, options).base;
  }

  template <Value T>
  [[nodiscard]] T load(Address address) {
    ensure((address & (alignof(T) - 1)) == 0, "a typed load is not aligned; use read()");
    T value;
    std::memcpy(&value, at(address, sizeof(T)), sizeof(T));
    return value;
  }
  template <Value T>
  [[nodiscard]] T load_dependent(Address address) {
    return load<T>(address);  // the dependency is in the data
  }
  template <Value T>
  void store(Address address, const std::type_identity_t<T>& value) {
    ensure((address & (alignof(T) - 1)) == 0, "a typed store is not aligned; use write()");
    if constexpr (sizeof(T) <= kAtomicBytes && std::has_single_bit(sizeof(T)) && alignof(T) == sizeof(T)) {
      store_word<sizeof(T)>(at(address, sizeof(T)), &value);
    } else {
      copy_in(at(address, sizeof(T)), std::as_bytes(std::span(&value, 1)));
    }
  }
  void read(Address address, std::span<std::byte> into) {
    if (!into.empty())
      std::memcpy(into.data(), at(address, into.size()), into.size());
  }
  void write(Address address, std::span<const std::byte> from) {
    if (from.empty())
      return;
    std::byte* to = at(address, from.size());
    if (from.size() == kLineBytes && address % kAtomicBytes == 0) {
      for (std::size_t word = 0; word < kLineBytes; word += kAtomicBytes)
        store_word<kAtomicBytes>(to + word, from.data() + word);
    } else {
      copy_in(to, from);
    }
  }
  void stream(Address address, std::span<const std::byte> from) {
    ensure(((address | from.size()) & (kAtomicBytes - 1)) == 0, "stream() needs multiples of 8 bytes");
    if (from.empty())
      return;
    std::byte* to = at(address, from.size());
    if (from.size() == kLineBytes && address % kLineBytes == 0)
      instruction::stream_line(to, from.data());
    else
      stream_in(to, from);
  }
  void copy_lines(Address from, Address to, std::uint32_t lines) {
    ensure(((from | to) & (kLineBytes - 1)) == 0 && medium_of(to) == Medium::kDram,
           "copy_lines() needs lines of dram");
    const std::uint64_t bytes = std::uint64_t{lines} * kLineBytes;
    if (bytes != 0)
      memory::copy_lines(at(to, bytes), at(from, bytes), lines);
  }
  /// Throws ConfigError where the CPU lacks the instruction, and HostOptions::best_flush puts none in its
  /// place.
  void flush(Address address, std::size_t bytes, FlushKind kind = FlushKind::kClwb, Site = kNoSite) {
    if (bytes == 0)
      return;
    if (!features_.has(kind)) [[unlikely]]
      kind = instead_of(kind);
    const std::byte* const begin = at(address, bytes);
    const std::byte* const end = begin + bytes;
    for (const std::byte* line = begin - address % kLineBytes; line < end; line += kLineBytes) {
      switch (kind) {
        case FlushKind::kClwb:
          instruction::clwb(line);
          break;
        case FlushKind::kClflushOpt:
          instruction::clflushopt(line);
          break;
        case FlushKind::kClflush:
          instruction::clflush(line);
          break;
      }
    }
  }
  void sfence(Site = kNoSite) noexcept { instruction::sfence(); }
  void mfence(Site = kNoSite) noexcept { instruction::mfence(); }
  /// Stores are volatile where they are words, but payloads are not: nothing moves across this.
  void order(Site = kNoSite) noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  void prefetch(Address address) { __builtin_prefetch(at(address, 1), 0, 3); }
  std::uint64_t fetch_add(Address address, std::uint64_t delta) {
    return word_at(address).fetch_add(delta, std::memory_order_seq_cst);
  }
  std::uint64_t compare_exchange(Address address, std::uint64_t expected, std::uint64_t desired) {
    word_at(address).compare_exchange_strong(expected, desired, std::memory_order_seq_cst);
    return expected;  // which is what was there, where that differs
  }
  /// Spins on the thread's own copy of the line.
  std::uint64_t acquire(Address latch, LatchMode mode) {
    const std::atomic_ref<std::uint64_t> word = word_at(latch);
    for (;; instruction::pause()) {
      std::uint64_t before = word.load(std::memory_order_acquire);
      if (LatchWord::admits(before, mode) &&
          (mode == LatchMode::kOptimistic ||
           word.compare_exchange_weak(before, LatchWord::held(before, mode), std::memory_order_acquire,
                                      std::memory_order_relaxed)))
        return LatchWord::version(before);
      if (mode == LatchMode::kAttempt)
        return LatchWord::kNotAcquired;
    }
  }
  bool release(Address latch, LatchMode mode, std::uint64_t version) {
    const std::atomic_ref<std::uint64_t> word = word_at(latch);
    switch (mode) {
      case LatchMode::kShared:
        word.fetch_sub(LatchWord::kReader, std::memory_order_release);
        return true;
      case LatchMode::kExclusive:
      case LatchMode::kAttempt:  // nobody else writes it
        word.store(LatchWord::released(word.load(std::memory_order_relaxed), mode), std::memory_order_release);
        return true;
      case LatchMode::kOptimistic:
        break;
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    const std::uint64_t now = word.load(std::memory_order_relaxed);
    return LatchWord::admits(now, mode) && LatchWord::version(now) == version;
  }
  void compute(std::uint64_t, std::uint32_t) noexcept {}  // the real computation is the algorithm's own code
  void mispredict(BranchOn = BranchOn::kLastLoad) noexcept {}
  void block_read(Address device, Address destination, std::size_t bytes);
  void block_write(Address device, Address source, std::size_t bytes);
  void block_flush(Site = kNoSite);
  std::uint64_t block_gather(Address device, Address source, std::size_t bytes);
  void block_commit(std::uint64_t gathered, Site = kNoSite);
  void operation_begin() noexcept {}
  void operation_end() noexcept {}
  Section enter(Section section) noexcept { return section; }

  /// What lies at a range, for a benchmark that cannot have each of its loads checked.
  [[nodiscard]] std::span<const std::byte> view(Address address, std::size_t bytes) const {
    return {at(address, bytes), bytes};
  }
  /// Whether the pmem window is a DAX mapping made with MAP_SYNC: only then do flush and fence alone make data
  /// durable. Otherwise the file is an ordinary one, mapped through the page cache, and timings are those of
  /// DRAM.
  [[nodiscard]] bool pmem_is_dax() const noexcept { return windows_[index_of(Medium::kPmem)].is_dax(); }
  [[nodiscard]] const CpuFeatures& features() const noexcept { return features_; }
  [[nodiscard]] StreamWidth stream_width() const noexcept { return stream_width_; }
  /// Groups of block writes so far.
  [[nodiscard]] std::uint64_t block_groups() const { return group_->groups(); }
  [[nodiscard]] const RegionTable& regions() const noexcept { return table_; }

 private:
  /// Memory of the host behind a medium.
  struct Mapped {
    Address end = 0;          ///< of the medium's addresses: they begin at its window; 0: none
    std::uintptr_t base = 0;  ///< what is added to one of them, modulo 2^64
  };
  /// Host pointer of an access; one that leaves its window's mapping is refused. Every access comes by: the
  /// fewer instructions the better.
  [[nodiscard]] std::byte* at(Address address, std::uint64_t bytes) const {
    const Mapped& mapped = mapped_[address >> kMediumShift & (mapped_.size() - 1)];
    // One comparison: a sum of no more than a window's size wraps around from the last window alone, which is
    // empty.
    if (address + bytes - 1 < mapped.end) [[likely]]
      return reinterpret_cast<std::byte*>(address + mapped.base);
    table_.refuse(address, bytes);
  }
  [[nodiscard]] std::atomic_ref<std::uint64_t> word_at(Address address) const {
    ensure((address & (sizeof(std::uint64_t) - 1)) == 0, "a locked access is not aligned");
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(at(address, sizeof(std::uint64_t))));
  }
  /// One store instruction; volatile, so that the compiler neither splits nor merges nor reorders it.
  template <std::size_t kBytes>
  static void store_word(std::byte* to, const void* from) noexcept {
    using Word =
        std::conditional_t<kBytes == 8, std::uint64_t,
                           std::conditional_t<kBytes == 4, std::uint32_t,
                                              std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>>;
    Word word;
    std::memcpy(&word, from, sizeof word);
    *reinterpret_cast<volatile Word*>(to) = word;
  }
  /// Stores in ascending order, each word by one instruction: what failure atomicity and same-line order rest
  /// on.
  static void copy_in(std::byte* to, std::span<const std::byte> from) noexcept;
  /// Whole words, lines among them by the widest stores of the CPU.
  void stream_in(std::byte* to, std::span<const std::byte> from) const noexcept;
  [[nodiscard]] FlushKind instead_of(FlushKind kind) const;

  CpuFeatures features_;
  bool best_flush_;
  StreamWidth stream_width_;
  RegionTable table_;
  std::array<HostMapping, kMedia - 1> windows_;  ///< dram, pmem
  std::array<Mapped, 4> mapped_;                 ///< by window; what is no window, or the block one, is empty
  BlockFile block_;
  std::unique_ptr<HostGroup> group_ = std::make_unique<HostGroup>();  ///< stays where it is when this moves
};

static_assert(Memory<HostMemory>);

}  // namespace pmsim::memory
