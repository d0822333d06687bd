#include "pmsim/trace/reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "pmsim/core/crc32c.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/trace/sources.hpp"

namespace pmsim::trace {

namespace {

constexpr std::uint32_t kLeastKinds = 15;  ///< of the first traces; some have been appended since
/// Operations before the measurement and in it: more than any run has, and products with the number of batches
/// stay below 2^63.
constexpr std::uint64_t kMostPlanned = std::uint64_t{1} << 50;

}  // namespace

TraceReader::TraceReader(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status)) {
    throw ConfigError("trace " + path_.string() + ": no such file; record one with `pmsim trace record`");
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw ConfigError("trace " + path_.string() + ": not a regular file; name a recorded trace");
  }
  info_.file_bytes = std::filesystem::file_size(path_, error);
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (error || !file_) {
    throw ConfigError("trace " + path_.string() + ": cannot be read: " + std::strerror(errno) +
                      "; check its permissions");
  }
  try {
    read_header();
    read_footer();
  } catch (const Malformed& malformed) {
    refuse(malformed.what);
  }
}

void TraceReader::refuse(const char* what) const {
  throw ConfigError("trace " + path_.string() + ": damaged or cut short (" + what +
                    "); copy it again or record it again with `pmsim trace record`");
}

std::vector<std::byte> TraceReader::read(std::uint64_t offset, std::uint64_t bytes) {
  if (offset > info_.file_bytes || bytes > info_.file_bytes - offset)
    throw Malformed{"the file ends too early"};
  std::vector<std::byte> data(bytes);
  if (::fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) != 0 ||
      std::fread(data.data(), 1, data.size(), file_.get()) != data.size()) {
    throw Malformed{"the file cannot be read"};
  }
  return data;
}

void TraceReader::read_header() {
  if (info_.file_bytes < kMagic.size())
    throw Malformed{"it is shorter than any trace"};
  const auto magic = read(0, kMagic.size());
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kMagic)))) {
    throw ConfigError("trace " + path_.string() + ": not a pmsim trace; record one with `pmsim trace record`");
  }
  const auto start = read(0, kHeaderBytes);
  ByteReader reader{std::span(start).subspan(kMagic.size())};
  info_.version = reader.fixed<std::uint32_t>();
  if (info_.version != kVersion) {
    throw ConfigError("trace " + path_.string() + ": format version " + std::to_string(info_.version) +
                      ", this pmsim reads version " + std::to_string(kVersion) +
                      "; record it again with this version, or use the one that wrote it");
  }
  if (reader.fixed<std::uint32_t>() != kByteOrder)
    throw Malformed{"the byte order mark is wrong"};
  const auto threads = reader.fixed<std::uint32_t>();
  const auto provenance = reader.fixed<std::uint32_t>();
  if (threads == 0 || threads > kMostThreads)
    throw Malformed{"the number of threads is impossible"};
  if (provenance > kMostProvenanceBytes)
    throw Malformed{"the provenance is impossibly long"};
  const std::uint64_t fixed_bytes = kHeaderBytes + std::uint64_t{threads} * sizeof(std::uint32_t);
  header_bytes_ = fixed_bytes + provenance + sizeof(std::uint32_t);
  const auto header = read(0, header_bytes_);
  const std::span<const std::byte> checked = std::span(header).first(header.size() - sizeof(std::uint32_t));
  if (ByteReader(std::span(header).last(sizeof(std::uint32_t))).fixed<std::uint32_t>() != crc32c(checked)) {
    throw Malformed{"the checksum of the header differs"};
  }
  info_.plan.seed = reader.fixed<std::uint64_t>();
  info_.plan.warmup_operations = reader.fixed<std::uint64_t>();
  info_.plan.untimed_operations = reader.fixed<std::uint64_t>();
  info_.plan.measured_operations = reader.fixed<std::uint64_t>();
  info_.plan.pmem_footprint = reader.fixed<std::uint64_t>();
  info_.plan.shares_lines = reader.fixed<std::uint32_t>() != 0;
  if (std::max(info_.plan.warmup_operations, info_.plan.measured_operations) > kMostPlanned)
    throw Malformed{"the number of operations to run is impossible"};
  if (info_.plan.untimed_operations > info_.plan.warmup_operations)
    throw Malformed{"more of the warm-up is untimed than there is"};
  ByteReader groups{checked.subspan(kHeaderBytes)};
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    info_.plan.group_of_thread.push_back(groups.fixed<std::uint32_t>());
    if (info_.plan.group_of_thread.back() >= threads)
      throw Malformed{"a group of threads is impossible"};
  }
  const auto text = checked.subspan(fixed_bytes);
  info_.provenance.assign(reinterpret_cast<const char*>(text.data()), text.size());
  info_.operations_by_thread.resize(threads);
}

void TraceReader::read_footer() {
  if (info_.file_bytes < header_bytes_ + kTrailerBytes)
    throw Malformed{"the end is missing"};
  const std::uint64_t trailer_offset = info_.file_bytes - kTrailerBytes;
  const auto trailer = read(trailer_offset, kTrailerBytes);
  ByteReader end(trailer);
  const auto footer_offset = end.fixed<std::uint64_t>();
  const auto footer_bytes = end.fixed<std::uint64_t>();
  if (end.fixed<std::uint32_t>() != crc32c(std::span(trailer).first(16)))
    throw Malformed{"the end is missing"};
  if (end.fixed<std::uint32_t>() != kTrailerMark)
    throw Malformed{"the end is missing"};
  if (footer_offset < header_bytes_ || footer_offset > trailer_offset ||
      footer_bytes != trailer_offset - footer_offset || footer_bytes < sizeof(std::uint32_t)) {
    throw Malformed{"the footer is not where it should be"};
  }
  const auto footer = read(footer_offset, footer_bytes);
  const std::span<const std::byte> checked = std::span(footer).first(footer.size() - sizeof(std::uint32_t));
  if (ByteReader(std::span(footer).last(sizeof(std::uint32_t))).fixed<std::uint32_t>() != crc32c(checked)) {
    throw Malformed{"the checksum of the footer differs"};
  }
  ByteReader reader(checked);
  if (reader.fixed<std::uint32_t>() != kFooterMark)
    throw Malformed{"the footer is not where it should be"};
  const auto kinds = reader.fixed<std::uint32_t>();
  if (kinds < kLeastKinds || kinds > memory::kOpKinds)
    throw Malformed{"the number of kinds differs"};
  std::uint64_t by_kind = 0;
  for (std::uint64_t& count : std::span(info_.operations_by_kind).first(kinds))
    by_kind += count = reader.fixed<std::uint64_t>();
  for (std::uint64_t& count : info_.operations_by_thread)
    count = reader.fixed<std::uint64_t>();
  for (std::uint64_t& extent : info_.extent_bytes)
    extent = reader.fixed<std::uint64_t>();
  info_.irregular_operations = reader.fixed<std::uint64_t>();
  std::vector<std::uint64_t> by_thread(info_.threads(), 0);
  std::uint64_t offset = header_bytes_;
  for (auto left = reader.fixed<std::uint64_t>(); left != 0; --left) {
    ChunkEntry chunk;
    chunk.thread = reader.fixed<std::uint32_t>();
    chunk.ops = reader.fixed<std::uint32_t>();
    chunk.bytes = reader.fixed<std::uint32_t>();
    chunk.offset = offset;
    offset += chunk.bytes;
    if (chunk.thread >= info_.threads() || chunk.ops == 0 || chunk.ops > kMostChunkOps ||
        chunk.bytes < kChunkHeaderBytes) {
      throw Malformed{"the index of the chunks is impossible"};
    }
    by_thread[chunk.thread] += chunk.ops;
    info_.chunks.push_back(chunk);
  }
  if (!reader.done() || offset != footer_offset)
    throw Malformed{"the chunks do not fill the file"};
  if (by_thread != info_.operations_by_thread || by_kind != info_.operations()) {
    throw Malformed{"the counts contradict each other"};
  }
}

/// A platform is chosen by what the footer says. Beyond that a machine would look for modules that it has not.
void TraceReader::check_places(std::span<const MicroOp> ops) const {
  for (const MicroOp& op : ops) {
    if (!is_regular(op)) {
      if (info_.irregular_operations == 0)
        throw Malformed{"an operation is what no machine can run, where the footer says that there are none"};
    } else if (has_place(op.kind) && end_in_medium(op) > info_.extent_bytes[medium_index(op)]) {
      throw Malformed{"an operation is where the footer says that there are none"};
    }
  }
}

void TraceReader::read_chunk(std::size_t index, memory::Stream& stream, std::vector<std::uint32_t>& batches) {
  const ChunkEntry& entry = info_.chunks.at(index);
  try {
    const auto data = read(entry.offset, entry.bytes);
    ByteReader reader(data);
    const auto mark = reader.fixed<std::uint32_t>();
    const auto thread = reader.fixed<std::uint32_t>();
    const auto ops = reader.fixed<std::uint32_t>();
    const auto batch_bytes = reader.fixed<std::uint32_t>();
    const auto symbol_bytes = reader.fixed<std::uint32_t>();
    const auto difference_bytes = reader.fixed<std::uint32_t>();
    const auto checksum = reader.fixed<std::uint32_t>();
    const std::span<const std::byte> all(data);
    const auto payload = all.subspan(kChunkHeaderBytes);
    if (checksum != crc32c(payload, crc32c(all.first(kChunkHeaderBytes - sizeof checksum)))) {
      throw Malformed{"the checksum of a chunk differs"};
    }
    if (mark != kChunkMark || thread != entry.thread || ops != entry.ops ||
        std::uint64_t{batch_bytes} + symbol_bytes + difference_bytes != payload.size()) {
      throw Malformed{"a chunk contradicts the index"};
    }
    const std::size_t before = stream.size();
    decoder_.decode(payload.subspan(batch_bytes, symbol_bytes), payload.last(difference_bytes), ops, stream);
    check_places(std::span(stream.data(), stream.size()).subspan(before));
    std::uint64_t left = ops;
    for (ByteReader sizes(payload.first(batch_bytes)); !sizes.done();) {
      const std::uint64_t size = sizes.varint();
      const std::uint64_t count = sizes.varint();
      if (size == 0 || count == 0 || count > left / size)
        throw Malformed{"the batches exceed their chunk"};
      batches.insert(batches.end(), count, static_cast<std::uint32_t>(size));
      left -= size * count;
    }
    if (left != 0)
      throw Malformed{"the batches do not fill their chunk"};
  } catch (const Malformed& malformed) {
    refuse(malformed.what);
  }
}

TraceInfo read_info(const std::filesystem::path& path) { return TraceReader(path).info(); }

TraceInfo verify(const std::filesystem::path& path) {
  ReplaySource source(path);
  source.drain();
  source.check_served();
  return source.info();
}

}  // namespace pmsim::trace
