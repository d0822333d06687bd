#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pmsim/trace/codec.hpp"
#include "pmsim/trace/format.hpp"

namespace pmsim::trace {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, CloseFile>;

/// Writes a trace. Keeps at most one chunk per thread in memory (and one batch more). The file appears under
/// its name in finish(); until then it is NAME.partial, and is removed when the writer goes away unfinished.
class TraceWriter {
 public:
  /// Throws ConfigError when the file cannot be made. `provenance` is kept as it is: JSON by convention.
  TraceWriter(std::filesystem::path path, std::uint32_t threads, const std::string& provenance,
              RunPlan plan = {});
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  ~TraceWriter();

  /// One batch of a thread, as its source has served it. An empty batch leaves no mark.
  void append(std::uint32_t thread, std::span<const MicroOp> batch);
  /// Writes the rest, the footer and the final name; returns what the file says about itself.
  TraceInfo finish();

 private:
  struct Waiting {
    std::vector<MicroOp> ops;
    std::vector<std::uint32_t> batches;  ///< their sizes
  };
  void count(std::uint32_t thread, const MicroOp& op);
  void write_chunk(std::uint32_t thread);
  void write(std::span<const std::byte> data);
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  FileHandle file_;
  TraceInfo info_;
  std::uint64_t offset_ = 0;
  std::vector<Waiting> waiting_;  ///< per thread, less than one chunk
  Encoder encoder_;
  EncodedChunk chunk_;
};

}  // namespace pmsim::trace
