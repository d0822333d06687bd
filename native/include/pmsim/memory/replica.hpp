#pragma once

#include <cstdint>
#include <span>

#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::memory {

/// A memory that looks as another one does after a power failure, cheap to change and to put back: what a crash
/// checker runs recovery on, a hundred thousand times a second.
///
/// Invariant outside of put() ... restore(): the same regions as the source, the same bytes of pmem and block
/// devices, dram zero. Only lines that have changed since are ever copied.
class Replica {
 public:
  /// Follows `source` from now on, which must be freshly made, must outlive the replica and stay where it is.
  /// `persistence`: whether (and how) the replica tracks durability itself, for a second crash.
  Replica(SimMemory& source, Persistence persistence);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  [[nodiscard]] SimMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const SimMemory& memory() const noexcept { return memory_; }

  /// Takes over regions that the source has allocated and lines that it has stored to since the last sync().
  void sync();
  /// The same after the source has been put back: it has changed all lines of its journal once more.
  void sync_again();

  /// Writes durable bytes inside one line or sector before the replica's program runs.
  void put(Address address, std::span<const std::byte> bytes);
  /// Undoes put() and whatever ran since; regions allocated meanwhile are gone.
  void restore();
  /// Call where every replica of `source` has synchronised: its journal is no longer needed.
  static void forget_changes(SimMemory& source, std::span<Replica* const> replicas);

  /// Of the durable bytes before the replica's program runs.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  /// Stores that have changed a byte of pmem since the beginning.
  [[nodiscard]] std::uint64_t changes() const noexcept { return memory_.changes_; }

 private:
  [[nodiscard]] static std::uint64_t hash_of(Address line, const std::byte* bytes) noexcept;
  void copy_line(SimMemory::Region& region, Address line);
  void match_regions();

  SimMemory* source_;
  SimMemory memory_;
  std::size_t seen_ = 0;  ///< entries of the source's journal that are taken over
  std::uint64_t hash_ = 0;
  std::uint64_t hash_of_source_ = 0;
};

}  // namespace pmsim::memory
