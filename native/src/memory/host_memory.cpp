#include "pmsim/memory/host_memory.hpp"

#include <algorithm>

namespace pmsim::memory {

HostMemory::HostMemory(const HostOptions& options)
    : features_(options.features),
      best_flush_(options.best_flush),
      stream_width_(widest_stream(options.features)),
      table_(options.capacities) {
  const auto& bytes = options.capacities.bytes;
  windows_[index_of(Medium::kDram)] =
      HostMapping::anonymous(bytes[index_of(Medium::kDram)], options.large_pages);
  const std::uint64_t pmem = bytes[index_of(Medium::kPmem)];
  windows_[index_of(Medium::kPmem)] = options.pmem_path.empty()
                                          ? HostMapping::anonymous(pmem, options.large_pages)
                                          : HostMapping::file(options.pmem_path, pmem);
  for (const Medium medium : {Medium::kDram, Medium::kPmem}) {
    const HostMapping& mapping = windows_[index_of(medium)];
    const Address first = medium_base(medium);
    mapped_[first >> kMediumShift] = {.end = first + mapping.size(),
                                      .base = reinterpret_cast<std::uintptr_t>(mapping.data()) - first};
  }
  const std::uint64_t block = bytes[index_of(Medium::kBlock)];
  if (block == 0)
    return;
  if (options.block_path.empty()) {
    throw ConfigError("HostOptions.block_path is empty but the capacity of block is " + std::to_string(block) +
                      " bytes; name a file or device, or set that capacity to 0");
  }
  block_ = BlockFile(options.block_path, block, options.block_direct);
}

void HostMemory::copy_in(std::byte* to, std::span<const std::byte> from) noexcept {
  const std::byte* source = from.data();
  std::size_t left = from.size();
  const auto words = [&]<std::size_t kBytes, std::size_t kWords = 1>() {
    for (std::size_t word = 0; word < kWords; ++word)
      store_word<kBytes>(to + word * kBytes, source + word * kBytes);
    to += kWords * kBytes;
    source += kWords * kBytes;
    left -= kWords * kBytes;
  };
  const auto lies_at = [&](std::size_t bytes) { return (reinterpret_cast<std::uintptr_t>(to) & bytes) != 0; };
  // Up to a boundary of eight bytes in the widest words that are aligned, then such of eight, then what is
  // left.
  if (lies_at(1) && left >= 1)
    words.operator()<1>();
  if (lies_at(2) && left >= 2)
    words.operator()<2>();
  if (lies_at(4) && left >= 4)
    words.operator()<4>();
  while (left >= kLineBytes)  // counting takes as long as storing
    words.operator()<8, kLineBytes / 8>();
  while (left >= 8)
    words.operator()<8>();
  if (left >= 4)
    words.operator()<4>();
  if (left >= 2)
    words.operator()<2>();
  if (left >= 1)
    words.operator()<1>();
}

void HostMemory::stream_in(std::byte* to, std::span<const std::byte> from) const noexcept {
  const std::byte* source = from.data();
  std::size_t left = from.size();
  const auto words = [&](std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += kAtomicBytes)
      instruction::stream_word(to + done, source + done);
    to += bytes;
    source += bytes;
    left -= bytes;
  };
  // Mappings begin on pages, so lines do where addresses do.
  words(std::min<std::size_t>(left, -reinterpret_cast<std::uintptr_t>(to) % kLineBytes));
  const std::size_t lines = left / kLineBytes;
  switch (stream_width_) {
    case StreamWidth::kAvx512:
      instruction::stream_lines_avx512(to, source, lines);
      break;
    case StreamWidth::kAvx:
      instruction::stream_lines_avx(to, source, lines);
      break;
    case StreamWidth::kSse2:
      instruction::stream_lines_sse2(to, source, lines);
      break;
  }
  to += lines * kLineBytes;
  source += lines * kLineBytes;
  left -= lines * kLineBytes;
  words(left);
}

FlushKind HostMemory::instead_of(FlushKind kind) const {
  if (best_flush_ && kind == FlushKind::kClwb && features_.clflush)
    return features_.clflushopt ? FlushKind::kClflushOpt : FlushKind::kClflush;
  const std::string name(name_of(kind));
  throw ConfigError("this CPU has no " + name + " instruction; use clflush, which every x86-64 CPU has, " +
                    "or run the algorithm on SimMemory");
}

void HostMemory::block_read(Address device, Address destination, std::size_t bytes) {
  table_.check_block(device, bytes);
  block_.read(device - medium_base(Medium::kBlock), at(destination, bytes), bytes);
}

void HostMemory::block_write(Address device, Address source, std::size_t bytes) {
  table_.check_block(device, bytes);
  block_.write(device - medium_base(Medium::kBlock), at(source, bytes), bytes);
}

void HostMemory::block_flush(Site) {
  if (table_.capacities().bytes[index_of(Medium::kBlock)] != 0)
    block_.flush();
}

std::uint64_t HostMemory::block_gather(Address device, Address source, std::size_t bytes) {
  table_.check_block(device, bytes);
  return group_->gather(device - medium_base(Medium::kBlock), {at(source, bytes), bytes});
}

void HostMemory::block_commit(std::uint64_t gathered, Site) { group_->commit(gathered, block_); }

}  // namespace pmsim::memory
