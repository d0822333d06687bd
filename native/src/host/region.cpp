#include "pmsim/host/region.hpp"

#include "pmsim/core/host_room.hpp"

namespace pmsim::host {

memory::HostMemory host_memory(const Place& place, std::uint64_t bytes, bool best_flush) {
  memory::HostOptions options;
  options.capacities = memory::Capacities::of(bytes, bytes, 0);
  options.pmem_path = place.path;
  options.large_pages = place.large_pages;
  options.best_flush = best_flush;
  return memory::HostMemory(options);
}

memory::HostMapping raw_mapping(const Place& place, std::uint64_t bytes) {
  // Refuses a machine without the instructions, as HostMemory does.
  static_cast<void>(memory::widest_stream(memory::cpu_features()));
  if (!place.path.empty())
    return memory::HostMapping::file(place.path, bytes);
  require_host_memory(bytes);  // all of it will be touched
  return memory::HostMapping::anonymous(bytes, place.large_pages);
}

void touch_regions(memory::HostMemory& memory) {
  for (const memory::Medium medium : {memory::Medium::kDram, memory::Medium::kPmem}) {
    for (const memory::RegionPlace& region : memory.regions().places(medium)) {
      for (memory::Address at = region.base; at < region.base + region.bytes; at += memory::kPageBytes)
        memory.store<std::uint8_t>(at, memory.load<std::uint8_t>(at));
    }
  }
}

void evict(memory::HostMemory& memory) {
  const memory::FlushKind kind =
      memory.features().clflushopt ? memory::FlushKind::kClflushOpt : memory::FlushKind::kClflush;
  for (const memory::Medium medium : {memory::Medium::kDram, memory::Medium::kPmem}) {
    for (const memory::RegionPlace& region : memory.regions().places(medium))
      memory.flush(region.base, region.bytes, kind);
  }
  memory.mfence();
}

void evict(const std::byte* data, std::uint64_t bytes) noexcept {
  const auto flush =
      memory::cpu_features().clflushopt ? &memory::instruction::clflushopt : &memory::instruction::clflush;
  for (std::uint64_t offset = 0; offset < bytes; offset += memory::kLineBytes)
    flush(data + offset);
  memory::instruction::mfence();
}

}  // namespace pmsim::host
