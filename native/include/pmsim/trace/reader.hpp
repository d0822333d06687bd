#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "pmsim/memory/stream.hpp"
#include "pmsim/trace/codec.hpp"
#include "pmsim/trace/format.hpp"
#include "pmsim/trace/writer.hpp"

namespace pmsim::trace {

/// Reads a trace chunk by chunk. Whatever is wrong with the file is a ConfigError that names it and says what
/// to do.
class TraceReader {
 public:
  /// Checks header, footer and that the chunks fill the space between them; reads no chunk.
  explicit TraceReader(std::filesystem::path path);

  [[nodiscard]] const TraceInfo& info() const noexcept { return info_; }
  /// Checks chunk number `index`, appends its micro-operations to `stream` and the sizes of its batches to
  /// `batches`.
  void read_chunk(std::size_t index, memory::Stream& stream, std::vector<std::uint32_t>& batches);

 private:
  [[noreturn]] void refuse(const char* what) const;
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes);
  void read_header();
  void read_footer();
  void check_places(std::span<const MicroOp> ops) const;

  std::filesystem::path path_;
  FileHandle file_;
  TraceInfo info_;
  std::uint64_t header_bytes_ = 0;
  Decoder decoder_;
};

/// Header and footer of a trace; the chunks are not read.
[[nodiscard]] TraceInfo read_info(const std::filesystem::path& path);

/// Reads the whole trace and compares its checksums and counts. Throws ConfigError at the first difference.
TraceInfo verify(const std::filesystem::path& path);

}  // namespace pmsim::trace
