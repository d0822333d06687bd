#include "pmsim/trace/writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "pmsim/core/error.hpp"
#include "pmsim/trace/crc32c.hpp"

namespace pmsim::trace {

TraceWriter::TraceWriter(std::filesystem::path path, std::uint32_t threads, const std::string& provenance)
    : path_(std::move(path)), partial_(path_.string() + ".partial"), waiting_(threads) {
  if (threads == 0 || threads > kMostThreads) {
    throw ConfigError("trace " + path_.string() + ": threads = " + std::to_string(threads) + ": must be 1 to " +
                      std::to_string(kMostThreads));
  }
  if (provenance.size() > kMostProvenanceBytes) {
    throw ConfigError("trace " + path_.string() + ": the provenance is longer than 16 MiB; say less");
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) {
    throw ConfigError("trace " + path_.string() + ": is a directory; name a file");
  }
  file_.reset(std::fopen(partial_.c_str(), "wb"));
  if (!file_)
    fail("cannot be created");
  info_.provenance = provenance;
  info_.operations_by_thread.resize(threads);
  ByteWriter header;
  header.bytes(std::as_bytes(std::span(kMagic)));
  header.fixed(kVersion);
  header.fixed(kByteOrder);
  header.fixed(threads);
  header.fixed(static_cast<std::uint32_t>(provenance.size()));
  header.bytes(std::as_bytes(std::span(provenance)));
  header.fixed(crc32c(header.view()));
  write(header.view());
}

TraceWriter::~TraceWriter() {
  if (!file_)
    return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

void TraceWriter::fail(const char* what) const {
  throw ConfigError("trace " + path_.string() + ": " + what + ": " + std::strerror(errno) +
                    "; name a writable place with enough room");
}

void TraceWriter::write(std::span<const std::byte> data) {
  if (std::fwrite(data.data(), 1, data.size(), file_.get()) != data.size())
    fail("cannot be written");
  offset_ += data.size();
}

void TraceWriter::append(std::uint32_t thread, std::span<const MicroOp> ops) {
  ensure(file_ != nullptr && thread < waiting_.size(),
         "a trace got operations of an unknown thread or after its end");
  info_.operations_by_thread[thread] += ops.size();
  for (const MicroOp& op : ops)
    ++info_.operations_by_kind[static_cast<std::size_t>(op.kind)];
  std::vector<MicroOp>& waiting = waiting_[thread];
  while (!ops.empty()) {
    const std::size_t count = std::min<std::size_t>(ops.size(), kChunkOps - waiting.size());
    waiting.insert(waiting.end(), ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(count));
    ops = ops.subspan(count);
    if (waiting.size() == kChunkOps)
      write_chunk(thread);
  }
}

void TraceWriter::write_chunk(std::uint32_t thread) {
  std::vector<MicroOp>& ops = waiting_[thread];
  chunk_.symbols.clear();
  chunk_.differences.clear();
  encoder_.encode(ops, chunk_);
  ByteWriter header;
  header.fixed(kChunkMark);
  header.fixed(thread);
  header.fixed(static_cast<std::uint32_t>(ops.size()));
  header.fixed(static_cast<std::uint32_t>(chunk_.symbols.size()));
  header.fixed(static_cast<std::uint32_t>(chunk_.differences.size()));
  header.fixed(crc32c(chunk_.differences.view(), crc32c(chunk_.symbols.view(), crc32c(header.view()))));
  const std::uint64_t offset = offset_;
  write(header.view());
  write(chunk_.symbols.view());
  write(chunk_.differences.view());
  info_.chunks.push_back(
      {thread, static_cast<std::uint32_t>(ops.size()), static_cast<std::uint32_t>(offset_ - offset), offset});
  ops.clear();
}

TraceInfo TraceWriter::finish() {
  ensure(file_ != nullptr, "a trace is finished twice");
  for (std::uint32_t thread = 0; thread < waiting_.size(); ++thread) {
    if (!waiting_[thread].empty())
      write_chunk(thread);
  }
  ByteWriter footer;
  footer.fixed(kFooterMark);
  footer.fixed(static_cast<std::uint32_t>(memory::kOpKinds));
  for (const std::uint64_t count : info_.operations_by_kind)
    footer.fixed(count);
  for (const std::uint64_t count : info_.operations_by_thread)
    footer.fixed(count);
  footer.fixed(static_cast<std::uint64_t>(info_.chunks.size()));
  for (const ChunkEntry& chunk : info_.chunks) {
    footer.fixed(chunk.thread);
    footer.fixed(chunk.ops);
    footer.fixed(chunk.bytes);
  }
  footer.fixed(crc32c(footer.view()));
  ByteWriter trailer;
  trailer.fixed(offset_);
  trailer.fixed(static_cast<std::uint64_t>(footer.size()));
  trailer.fixed(crc32c(trailer.view()));
  trailer.fixed(kTrailerMark);
  write(footer.view());
  write(trailer.view());
  std::FILE* file = file_.release();
  if (std::fclose(file) != 0)
    fail("cannot be written");
  std::error_code error;
  std::filesystem::rename(partial_, path_, error);
  if (error)
    throw ConfigError("trace " + path_.string() + ": cannot take its name: " + error.message() +
                      "; name a file");
  info_.file_bytes = offset_;
  return info_;
}

}  // namespace pmsim::trace
