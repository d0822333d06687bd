#pragma once

#include <cstddef>
#include <cstdint>

#include "pmsim/host/benchmark.hpp"
#include "pmsim/memory/host_mapping.hpp"
#include "pmsim/memory/host_memory.hpp"

namespace pmsim::host {

/// HostMemory with `bytes` behind the pmem window, where `place` says, and behind the dram window.
/// `best_flush`: as HostOptions has it, for algorithms. Throws ConfigError where the CPU or the operating
/// system refuses.
[[nodiscard]] memory::HostMemory host_memory(const Place& place, std::uint64_t bytes, bool best_flush = true);

/// Raw memory for what is too fast for HostMemory's check of every address: chases through the caches.
[[nodiscard]] memory::HostMapping raw_mapping(const Place& place, std::uint64_t bytes);

/// Writes every page of every region once, keeping what is there, so that no page fault falls into a
/// measurement.
void touch_regions(memory::HostMemory& memory);

/// Puts the lines of every region out of all caches, with the best instruction there is.
void evict(memory::HostMemory& memory);
/// The same for raw memory.
void evict(const std::byte* data, std::uint64_t bytes) noexcept;

}  // namespace pmsim::host
