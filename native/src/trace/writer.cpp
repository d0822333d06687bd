#include "pmsim/trace/writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "pmsim/core/crc32c.hpp"
#include "pmsim/core/error.hpp"

namespace pmsim::trace {

TraceWriter::TraceWriter(std::filesystem::path path, std::uint32_t threads, const std::string& provenance,
                         RunPlan plan)
    : path_(std::move(path)), partial_(path_.string() + ".partial"), waiting_(threads) {
  if (threads == 0 || threads > kMostThreads) {
    throw ConfigError("trace " + path_.string() + ": threads = " + std::to_string(threads) + ": must be 1 to " +
                      std::to_string(kMostThreads));
  }
  if (provenance.size() > kMostProvenanceBytes) {
    throw ConfigError("trace " + path_.string() + ": the provenance is longer than 16 MiB; say less");
  }
  ensure(plan.group_of_thread.empty() || plan.group_of_thread.size() == threads,
         "a group for each thread or none");
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) {
    throw ConfigError("trace " + path_.string() + ": is a directory; name a file");
  }
  file_.reset(std::fopen(partial_.c_str(), "wb"));
  if (!file_)
    fail("cannot be created");
  info_.provenance = provenance;
  info_.operations_by_thread.resize(threads);
  info_.plan = std::move(plan);
  info_.plan.group_of_thread.resize(threads, 0);
  ByteWriter header;
  header.bytes(std::as_bytes(std::span(kMagic)));
  header.fixed(kVersion);
  header.fixed(kByteOrder);
  header.fixed(threads);
  header.fixed(static_cast<std::uint32_t>(provenance.size()));
  header.fixed(info_.plan.seed);
  header.fixed(info_.plan.warmup_operations);
  header.fixed(info_.plan.untimed_operations);
  header.fixed(info_.plan.measured_operations);
  header.fixed(info_.plan.pmem_footprint);
  header.fixed(std::uint32_t{info_.plan.shares_lines});
  for (const std::uint32_t group : info_.plan.group_of_thread)
    header.fixed(group);
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

void TraceWriter::count(std::uint32_t thread, const MicroOp& op) {
  ++info_.operations_by_thread[thread];
  ++info_.operations_by_kind[static_cast<std::size_t>(op.kind)];
  if (!is_regular(op)) {
    ++info_.irregular_operations;
    return;
  }
  if (!has_place(op.kind))
    return;
  std::uint64_t& extent = info_.extent_bytes[medium_index(op)];
  extent = std::max(extent, end_in_medium(op));
}

void TraceWriter::append(std::uint32_t thread, std::span<const MicroOp> batch) {
  ensure(file_ != nullptr && thread < waiting_.size(),
         "a trace got operations of an unknown thread or after its end");
  for (const MicroOp& op : batch)
    count(thread, op);
  Waiting& waiting = waiting_[thread];
  while (!batch.empty()) {
    const std::size_t size = std::min<std::size_t>(batch.size(), kMostChunkOps - waiting.ops.size());
    waiting.ops.insert(waiting.ops.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(size));
    waiting.batches.push_back(static_cast<std::uint32_t>(size));
    batch = batch.subspan(size);
    if (waiting.ops.size() >= kChunkOps)
      write_chunk(thread);
  }
}

void TraceWriter::write_chunk(std::uint32_t thread) {
  Waiting& waiting = waiting_[thread];
  chunk_.symbols.clear();
  chunk_.differences.clear();
  encoder_.encode(waiting.ops, chunk_);
  ByteWriter batches;  // runs of equal sizes
  for (std::size_t i = 0; i < waiting.batches.size();) {
    std::size_t end = i;
    while (end < waiting.batches.size() && waiting.batches[end] == waiting.batches[i])
      ++end;
    batches.varint(waiting.batches[i]);
    batches.varint(end - i);
    i = end;
  }
  ByteWriter header;
  header.fixed(kChunkMark);
  header.fixed(thread);
  header.fixed(static_cast<std::uint32_t>(waiting.ops.size()));
  header.fixed(static_cast<std::uint32_t>(batches.size()));
  header.fixed(static_cast<std::uint32_t>(chunk_.symbols.size()));
  header.fixed(static_cast<std::uint32_t>(chunk_.differences.size()));
  std::uint32_t checksum = crc32c(header.view());
  for (const ByteWriter* part : {&batches, &chunk_.symbols, &chunk_.differences})
    checksum = crc32c(part->view(), checksum);
  header.fixed(checksum);
  const std::uint64_t offset = offset_;
  write(header.view());
  for (const ByteWriter* part : {&batches, &chunk_.symbols, &chunk_.differences})
    write(part->view());
  info_.chunks.push_back({thread, static_cast<std::uint32_t>(waiting.ops.size()),
                          static_cast<std::uint32_t>(offset_ - offset), offset});
  waiting.ops.clear();
  waiting.batches.clear();
}

TraceInfo TraceWriter::finish() {
  ensure(file_ != nullptr, "a trace is finished twice");
  for (std::uint32_t thread = 0; thread < waiting_.size(); ++thread) {
    if (!waiting_[thread].ops.empty())
      write_chunk(thread);
  }
  ByteWriter footer;
  footer.fixed(kFooterMark);
  footer.fixed(static_cast<std::uint32_t>(memory::kOpKinds));
  for (const std::uint64_t count : info_.operations_by_kind)
    footer.fixed(count);
  for (const std::uint64_t count : info_.operations_by_thread)
    footer.fixed(count);
  for (const std::uint64_t extent : info_.extent_bytes)
    footer.fixed(extent);
  footer.fixed(info_.irregular_operations);
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
