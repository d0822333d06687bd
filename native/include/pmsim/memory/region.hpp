#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/memory/memory.hpp"

namespace pmsim::memory {

inline constexpr int kMedia = 3;
inline constexpr std::uint64_t kPageBytes = 4096;

[[nodiscard]] constexpr std::size_t index_of(Medium medium) noexcept {
  return static_cast<std::size_t>(medium);
}
[[nodiscard]] std::string_view name_of(Medium medium) noexcept;

/// Whether a region keeps its bytes.
enum class Backing : std::uint8_t {
  kBytes,   ///< real bytes, zero until written
  kSparse,  ///< the same, kept line by line: for large regions that are touched here and there. No block
            ///< transfers.
  kNone,    ///< contents do not matter: reads give zeros, writes are dropped (microbenchmarks over 360 GB)
};

/// Bytes of each medium that regions may occupy together.
struct Capacities {
  std::array<std::uint64_t, kMedia> bytes{kMediumBytes, kMediumBytes, kMediumBytes};
  /// Memory mode: DRAM and PMem are names of one main memory, as large as `bytes` says of PMem. No two regions
  /// have the same place in their windows.
  bool one_main_memory = false;

  [[nodiscard]] static Capacities of(std::uint64_t dram, std::uint64_t pmem, std::uint64_t block) noexcept {
    return Capacities{.bytes = {dram, pmem, block}};
  }
};

struct RegionOptions {
  std::string name = "unnamed";
  std::uint64_t alignment = kPageBytes;  ///< power of two, at least 64
  Backing backing = Backing::kBytes;
};

/// Where a region lies. Regions of a medium are bump-allocated in the order of the calls, so the same calls
/// give the same addresses on every memory, which is what lets a restarted program find its data.
struct RegionPlace {
  Address base = 0;
  std::uint64_t bytes = 0;
  std::string name;
};

/// The bump allocator of the medium windows.
class RegionTable {
 public:
  explicit RegionTable(const Capacities& capacities);

  /// Throws ConfigError for an empty region or a bad alignment, CapacityError for one that exceeds the capacity
  /// of the medium.
  const RegionPlace& allocate(Medium medium, std::uint64_t bytes, const RegionOptions& options);

  [[nodiscard]] const std::vector<RegionPlace>& places(Medium medium) const noexcept {
    return places_[index_of(medium)];
  }
  /// Bytes of all regions there.
  [[nodiscard]] std::uint64_t bytes_on(Medium medium) const noexcept;
  /// Bytes of the modules of PMem that programs use: regions there, or in memory mode main memory up to its
  /// last one.
  [[nodiscard]] std::uint64_t pmem_footprint() const noexcept {
    return capacities_.one_main_memory ? used_[index_of(Medium::kPmem)] : bytes_on(Medium::kPmem);
  }
  [[nodiscard]] const Capacities& capacities() const noexcept { return capacities_; }

  /// Throws ConfigError unless the transfer is whole sectors inside one region of the block device.
  void check_block(Address device, std::uint64_t bytes) const;

  /// Throws the ConfigError of an access outside of every region, naming the nearest region below it.
  [[noreturn]] void refuse(Address address, std::uint64_t bytes) const;

 private:
  Capacities capacities_;
  std::array<std::uint64_t, kMedia> used_{};
  std::array<std::vector<RegionPlace>, kMedia> places_;
};

}  // namespace pmsim::memory
