#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "pmsim/memory/mapped_bytes.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::memory {

inline constexpr std::uint32_t kBlockBytes = 256;

/// How often units of one size were written. histogram[k] counts the units written 2^k to 2^(k+1) - 1 times.
struct WearCounts {
  std::uint64_t writes = 0;
  std::uint64_t units = 0;  ///< written at least once
  std::uint64_t maximum = 0;
  std::array<std::uint64_t, 32> histogram{};

  void add(std::uint32_t count) noexcept {
    if (count == 0)
      return;
    writes += count;
    ++units;
    if (count > maximum)
      maximum = count;
    ++histogram[static_cast<std::size_t>(std::bit_width(count) - 1)];
  }
};

/// What an algorithm writes to persistent memory, before any cache or on-DIMM buffer merges or evicts
/// something.
struct WearSummary {
  WearCounts lines;                  ///< 64 bytes: flushes of modified lines and streamed lines
  WearCounts blocks;                 ///< 256 bytes: runs of line writes that stay inside one block count once
  std::uint64_t modified_lines = 0;  ///< stored to but not written back yet: each costs at least one more write
};

/// Write counts of one region, in lazily allocated arrays: 7.8 % of the bytes of the touched part.
class WearMap {
 public:
  WearMap(Address base, std::uint64_t bytes)
      : base_(base & ~Address{kBlockBytes - 1}),
        line_count_((base - base_ + bytes + kLineBytes - 1) / kLineBytes),
        block_count_((base - base_ + bytes + kBlockBytes - 1) / kBlockBytes),
        lines_(line_count_ * sizeof(std::uint32_t)),
        blocks_(block_count_ * sizeof(std::uint32_t)),
        touched_(line_count_ / kLinesPerGroup / 8 + 1) {}

  void store(Address address) noexcept { line(address) |= 1; }

  /// Writes the line back if it has been modified since.
  void flush(Address address) noexcept {
    std::uint32_t& entry = line(address);
    if ((entry & 1) != 0) {
      entry &= ~1U;
      write_back(entry, address);
    }
  }
  /// `bytes` of one line. Where they are all of it, nothing that was stored there before is left to be written.
  void stream(Address address, std::uint64_t bytes) noexcept {
    std::uint32_t& entry = line(address);
    if (bytes == kLineBytes)
      entry &= ~1U;
    write_back(entry, address);
  }

  void add_to(WearSummary& summary) const noexcept {
    for_each_touched([&](std::uint64_t index) {
      const std::uint32_t entry = lines_.as<std::uint32_t>()[index];
      summary.lines.add(entry >> 1);
      summary.modified_lines += entry & 1;
      if (index % kLinesPerBlock == 0)
        summary.blocks.add(blocks_.as<std::uint32_t>()[index / kLinesPerBlock]);
    });
  }

  /// Appends the write count of every line that has been written, in the order of addresses.
  void append_line_writes(std::vector<std::uint32_t>& counts) const {
    for_each_touched([&](std::uint64_t index) {
      if (const std::uint32_t writes = lines_.as<std::uint32_t>()[index] >> 1; writes != 0)
        counts.push_back(writes);
    });
  }

  /// Counts from zero again; what is modified stays so.
  void reset() noexcept {
    for_each_touched([&](std::uint64_t index) {
      lines_.as<std::uint32_t>()[index] &= 1;
      blocks_.as<std::uint32_t>()[index / kLinesPerBlock] = 0;
    });
    last_block_ = 0;  // the next write begins a run of its own
  }

 private:
  template <typename Visit>
  void for_each_touched(Visit&& visit) const {
    const auto* touched = touched_.as<std::uint8_t>();
    for (std::uint64_t group = 0; group * kLinesPerGroup < line_count_; ++group) {
      if ((touched[group / 8] >> (group % 8) & 1) == 0)
        continue;
      const std::uint64_t end = std::min((group + 1) * kLinesPerGroup, line_count_);
      for (std::uint64_t index = group * kLinesPerGroup; index < end; ++index)
        visit(index);
    }
  }

  static constexpr std::uint64_t kLinesPerGroup =
      64;  ///< of one bit in touched_, so that a summary skips the rest
  static constexpr std::uint64_t kLinesPerBlock = kBlockBytes / kLineBytes;

  [[nodiscard]] std::uint32_t& line(Address address) noexcept {
    const std::uint64_t index = (address - base_) / kLineBytes;
    const std::uint64_t group = index / kLinesPerGroup;
    touched_.as<std::uint8_t>()[group / 8] |= static_cast<std::uint8_t>(1U << (group % 8));
    return lines_.as<std::uint32_t>()[index];
  }
  void write_back(std::uint32_t& entry, Address address) noexcept {
    entry += 2;
    const std::uint64_t block = (address - base_) / kBlockBytes;
    if (block + 1 == last_block_)
      return;
    last_block_ = block + 1;
    ++blocks_.as<std::uint32_t>()[block];
  }

  Address base_;  ///< of the block that contains the region's first byte
  std::uint64_t line_count_;
  std::uint64_t block_count_;
  MappedBytes lines_;   ///< writes << 1 | modified, per line
  MappedBytes blocks_;  ///< writes per block
  MappedBytes touched_;
  std::uint64_t last_block_ = 0;  ///< 1 + block of the latest line write; 0: none yet
};

}  // namespace pmsim::memory
