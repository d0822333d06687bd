#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::trace {

/// The layout of a trace file; docs/trace-format.md says it in words.
inline constexpr std::array<std::uint8_t, 8> kMagic{'P', 'M', 'S', 'I', 'M', 'T', 'R', 0x1a};
inline constexpr std::uint32_t kVersion = 3;
inline constexpr std::uint32_t kByteOrder = 0x0a0b0c0d;
inline constexpr std::uint32_t kChunkMark = 0x4b4e4843;    // "CHNK"
inline constexpr std::uint32_t kFooterMark = 0x544f4f46;   // "FOOT"
inline constexpr std::uint32_t kTrailerMark = 0x21444e45;  // "END!"

inline constexpr std::uint64_t kHeaderBytes =
    8 + 4 * 4 + 5 * 8 + 4;  ///< before groups, provenance and checksum
inline constexpr std::uint64_t kChunkHeaderBytes = 7 * 4;
inline constexpr std::uint64_t kTrailerBytes = 8 + 8 + 4 + 4;

/// The writer closes a chunk after the batch that fills it to this size, or splits a batch at kMostChunkOps.
inline constexpr std::uint32_t kChunkOps = 8192;
inline constexpr std::uint32_t kMostChunkOps = 1U
                                               << 20;  ///< more than this no reader accepts: bounds its memory
inline constexpr std::uint32_t kMostThreads = 1U << 16;
inline constexpr std::uint32_t kMostProvenanceBytes = 1U << 24;

struct ChunkEntry {
  std::uint32_t thread = 0;
  std::uint32_t ops = 0;
  std::uint32_t bytes = 0;  ///< header included
  std::uint64_t offset = 0;
};

/// How the recorded run was driven, so that a replay is driven alike.
struct RunPlan {
  std::uint64_t seed = 0;
  std::uint64_t warmup_operations = 0;
  std::uint64_t untimed_operations = 0;  ///< of these
  std::uint64_t measured_operations = 0;
  std::uint64_t pmem_footprint = 0;
  bool shares_lines = false;                   ///< threads do (memory::Source)
  std::vector<std::uint32_t> group_of_thread;  ///< empty: all threads are one group
};

/// What a trace says about itself.
struct TraceInfo {
  std::uint32_t version = kVersion;
  std::string provenance;  ///< JSON text, as given to the writer
  RunPlan plan;
  std::array<std::uint64_t, memory::kOpKinds> operations_by_kind{};
  std::vector<std::uint64_t> operations_by_thread;
  /// Bytes from the start of each medium's window to the end of the highest access: what a platform must hold.
  std::array<std::uint64_t, 3> extent_bytes{};
  /// Micro-operations that no machine can run (is_regular).
  std::uint64_t irregular_operations = 0;
  std::uint64_t file_bytes = 0;
  std::vector<ChunkEntry> chunks;

  [[nodiscard]] std::uint32_t threads() const noexcept {
    return static_cast<std::uint32_t>(operations_by_thread.size());
  }
  [[nodiscard]] std::uint64_t operations() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : operations_by_thread)
      sum += count;
    return sum;
  }
};

/// Whether the address of a micro-operation is a place in memory. Of the others it is a plain number.
[[nodiscard]] constexpr bool has_place(memory::OpKind kind) noexcept {
  using memory::OpKind;
  return kind != OpKind::kSfence && kind != OpKind::kMfence && kind != OpKind::kCompute &&
         kind != OpKind::kOperationBegin && kind != OpKind::kOperationEnd;
}

/// Cycles that one operation may compute for; of more, times could overflow.
inline constexpr std::uint64_t kMostCycles = (std::uint64_t{1} << 32) - 1;

/// Whether a machine can run it. Its address lies in the window of a medium that the kind is for, memory is
/// accessed within a line, and a block device in whole sectors.
[[nodiscard]] constexpr bool is_regular(const memory::MicroOp& op) noexcept {
  using memory::OpKind;
  if (op.kind == OpKind::kCompute)
    return op.address <= kMostCycles;
  if (!has_place(op.kind))
    return true;
  const std::uint64_t window = op.address >> memory::kMediumShift;
  const bool on_block = window == 1 + static_cast<std::uint64_t>(memory::Medium::kBlock);
  const bool moves_sectors =
      op.kind == OpKind::kBlockRead || op.kind == OpKind::kBlockWrite || op.kind == OpKind::kBlockGather;
  if (moves_sectors)
    return on_block && op.bytes > 0 && (op.address | op.bytes) % memory::kSectorBytes == 0;
  if (op.kind == OpKind::kBlockFlush || op.kind == OpKind::kBlockCommit)
    return on_block;
  return window >= 1 && !on_block && window <= std::tuple_size_v<decltype(TraceInfo::extent_bytes)> &&
         op.address % memory::kLineBytes + op.bytes <= memory::kLineBytes;
}
/// Of a regular one: which of TraceInfo::extent_bytes it counts for, and to where it reaches.
[[nodiscard]] constexpr std::size_t medium_index(const memory::MicroOp& op) noexcept {
  return static_cast<std::size_t>(op.address >> memory::kMediumShift) - 1;
}
[[nodiscard]] constexpr std::uint64_t end_in_medium(const memory::MicroOp& op) noexcept {
  return (op.address & (memory::kMediumBytes - 1)) + op.bytes;
}

/// Name of a kind in provenance, tables and Python.
[[nodiscard]] const char* name_of(memory::OpKind kind) noexcept;

}  // namespace pmsim::trace
